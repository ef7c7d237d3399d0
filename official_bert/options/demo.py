"""Options of `demo.py`."""

from official_bert.options.flags import Options, option
from official_bert.sources import checkpoint_paths


class Demo(Options):
    """Options of `demo.py`."""

    output_dir: str = option(
        "Directory for all output.",
        "demo",
        check=checkpoint_paths.require_supported,
    )
