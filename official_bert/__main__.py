"""Runs a command of the installed package, from any directory.

  official_bert run_classifier --help
  python -m official_bert run_classifier --help

In a clone, both are the same as `python run_classifier.py --help`.
"""

import sys

from official_bert import commands


def main() -> None:
    """Runs the command in the first argument, with the other arguments."""
    name = sys.argv[1] if len(sys.argv) > 1 else "--help"
    if name in commands.COMMANDS:
        sys.argv = [f"{name}.py", *sys.argv[2:]]
        commands.run(name)
    elif name in ("-h", "--help"):
        print("Usage: official_bert COMMAND --flag=value ...\n")
        for name in commands.COMMANDS:
            print(f"  {name:27}{commands.purpose(name)}")
    else:
        sys.exit(
            f"official_bert: error: There is no command {name}. See --help."
        )


if __name__ == "__main__":
    main()
