import sys

from official_bert.io import progress


def test_bar_needs_no_standard_error(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)  # In programs without a console.
    with progress.bar([1, 2], description="Counting") as bar:
        assert [*bar] == [1, 2]
    sys.stderr.close()
