"""Options from a command line."""

from typing import Any

from absl import flags

from official_bert import cli


def parse(options_class: type[Any], command_line: str) -> Any:
    """Returns the options of a line such as `--score --top_k=3`."""
    values = flags.FlagValues()
    cli.define_flags(options_class, values)
    values(["command", *command_line.split()])
    return cli.options_from_flags(options_class, values)
