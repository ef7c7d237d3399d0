"""Options of `demo.py`."""

from official_bert import cli, files
from official_bert.cli import option


class Demo(cli.Options):
    """Options of `demo.py`."""

    output_dir: str = option(
        "Directory of all output.", "demo", check=files.require_checkpoint_path
    )
