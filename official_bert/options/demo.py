"""Options of `demo.py`."""

from official_bert.options.flags import Options, path_option
from official_bert.sources import checkpoint_paths


class Demo(Options):
    """Options of `demo.py`."""

    output_dir: str = path_option(
        "Output directory.", "demo", check=checkpoint_paths.require_supported
    )
