"""Options of `demo.py`."""

from official_bert import model_formats
from official_bert.flags import Options, option


class Demo(Options):
    """Options of `demo.py`."""

    output_dir: str = option(
        "Directory for all output.",
        "demo",
        check=model_formats.require_checkpoint_path,
    )
