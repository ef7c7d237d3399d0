"""Runs a command of the installed package, from any directory.

  official_bert run_classifier --help
  python -m official_bert run_classifier --help

In a clone, both are the same as `python run_classifier.py --help`.
"""

import ast
import pathlib
import runpy
import sys

from official_bert.released_models import commands_directory


def main() -> None:
    """Runs the command in the first argument, with the other arguments."""
    directory = pathlib.Path(commands_directory())
    commands = {path.stem: path for path in sorted(directory.glob("*.py"))}
    name = sys.argv[1] if len(sys.argv) > 1 else "--help"
    if name in commands:
        del sys.argv[1]
        runpy.run_path(str(commands[name]), run_name="__main__")
    elif name in ("-h", "--help"):
        print("Usage: official_bert COMMAND --flag=value ...\n")
        for name, path in commands.items():
            purpose = ast.get_docstring(ast.parse(path.read_text("utf-8")))
            print(f"  {name:27}{str(purpose).splitlines()[0]}")
    else:
        sys.exit(
            f"official_bert: error: There is no command {name}. See --help."
        )


if __name__ == "__main__":
    main()
