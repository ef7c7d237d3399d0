"""Options from a command line."""

import shlex
import typing
from typing import Any

from absl import flags

from official_bert.options import cli


def parse(options_class: type[Any], command_line: str) -> Any:
    """Returns the resolved options of a line such as `--score --top_k=3`."""
    values = flags.FlagValues()
    cli.define_flags(options_class, values)
    values(["command", *shlex.split(command_line)])
    return cli.options_from_flags(options_class, values).resolve()


def run(command, line):
    """Runs a module of `official_bert.commands` on a command line."""
    options_class = typing.get_type_hints(command.main)["options"]
    return command.main(parse(options_class, line))


def files_of_run(folder, output):
    """Returns the flags of a model's files and of the output directory."""
    return {
        "bert_config_file": str(folder / "bert_config.json"),
        "vocab_file": str(folder / "vocab.txt"),
        "output_dir": str(folder / output),
    }


def files_of_model(folder, checkpoint):
    """Returns the flags of a model's files and of its checkpoint."""
    return {
        "bert_config_file": str(folder / "bert_config.json"),
        "vocab_file": str(folder / "vocab.txt"),
        "init_checkpoint": str(checkpoint),
    }


def flags_of_run(folder, output):
    """Returns these flags as they are typed."""
    files = files_of_run(folder, output)
    return [f"--{name}={value}" for name, value in files.items()]
