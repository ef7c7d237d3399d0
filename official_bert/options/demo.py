"""Options of `demo.py`."""

from official_bert.options.flags import Options, option
from official_bert.sources import model_formats


class Demo(Options):
    """Options of `demo.py`."""

    output_dir: str = option(
        "Directory for all output.",
        "demo",
        check=model_formats.require_checkpoint_path,
    )
