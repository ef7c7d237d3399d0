import pytest
from support import conversions


@pytest.fixture
def directory(tmp_path, monkeypatch):
    """An empty working directory, with an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """{format: directory} of one random pre-trained model."""
    folder = tmp_path_factory.mktemp("models")
    conversions.released(folder / "tf1", "masked_lm", hidden_dropout_prob=0.1)
    for name in conversions.FORMATS[1:]:
        conversions.convert(input=folder / "tf1", output=folder / name, to=name)
    return {name: folder / name for name in conversions.FORMATS}
