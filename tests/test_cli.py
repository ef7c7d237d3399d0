"""From dataclass to command line to `main(options)`."""

import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import textwrap

import pytest
from absl import flags

from official_bert import cli
from official_bert.cli import option
from official_bert.errors import InputError

ROOT = pathlib.Path(__file__).resolve().parents[1]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Baking(cli.Options):
    """Flags of every type."""

    flour: str = option("What to bake.")
    filling: str | None = option("What to put into it.", None)
    shape: str = option("Its shape.", "round", choices=("round", "long"))
    minutes: int = option("In the oven.", 30, at_least=1, at_most=90)
    salt: float = option("Its share.", 0.02, at_least=0, at_most=1)
    do_glaze: bool = option("Whether to glaze it.", True)


def parse(*arguments: str) -> Baking:
    values = flags.FlagValues()
    cli.define_flags(Baking, values)
    values(["bake.py", *arguments])
    return cli.options_from_flags(Baking, values)


def test_flags_that_are_not_given_have_their_defaults():
    assert parse("--flour=rye") == Baking(
        flour="rye",
        filling=None,
        shape="round",
        minutes=30,
        salt=0.02,
        do_glaze=True,
    )


@pytest.mark.parametrize(
    ("argument", "name", "value"),
    [
        ("--flour=a=b, c", "flour", "a=b, c"),
        ("--filling=jam", "filling", "jam"),
        ("--filling=", "filling", ""),
        ("--shape=long", "shape", "long"),
        ("--minutes=45", "minutes", 45),
        ("--salt=1e-3", "salt", 0.001),
        ("--salt=1", "salt", 1.0),
        ("--do_glaze", "do_glaze", True),
        ("--do_glaze=true", "do_glaze", True),
        ("--do_glaze=False", "do_glaze", False),
        ("--nodo_glaze", "do_glaze", False),
    ],
)
def test_a_flag_becomes_a_field_of_its_type(argument, name, value):
    field = getattr(parse("--flour=rye", argument), name)

    assert field == value
    assert type(field) is type(value)


class Again(Baking):
    """Who bakes again bakes the same, but that it is not glazed again."""

    @classmethod
    def defaults_from_earlier_run(cls, given):
        return {"flour": "rye", "minutes": 45, "shape": f"like {sorted(given)}"}


def test_what_is_not_given_may_be_remembered():
    values = flags.FlagValues()
    cli.define_flags(Again, values)
    values(["bake.py", "--minutes=30", "--shape=long"])
    made = cli.options_from_flags(Again, values)
    # Given, though it is the default.
    assert (made.flour, made.minutes, made.shape) == ("rye", 30, "long")
    assert made.salt == 0.02
    values = flags.FlagValues()
    cli.define_flags(Again, values)
    values(["bake.py", "--salt=0"])
    with pytest.raises(InputError, match=r"Received: \"like \['salt'\]\""):
        cli.options_from_flags(Again, values)


def test_a_value_may_follow_as_the_next_word():
    assert parse("--flour", "rye", "--minutes", "5").minutes == 5


def test_a_field_without_default_must_be_given():
    message = "--flour must be given: What to bake[.] --help lists all"
    with pytest.raises(InputError, match=message):
        parse("--minutes=45")


@pytest.mark.parametrize("argument", ["--minutes=long", "--salt=much"])
def test_numbers_must_be_numbers(argument):
    with pytest.raises(flags.IllegalFlagValueError, match=argument):
        parse("--flour=rye", argument)


def test_a_misspelt_flag_is_met_with_a_suggestion():
    with pytest.raises(flags.UnrecognizedFlagError, match="minutes"):
        parse("--flour=rye", "--minute=45")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("shape", "square", "--shape must be one of round, long. .*'square'"),
        ("minutes", 0, "--minutes must be at least 1. Received: 0"),
        ("minutes", 91, "--minutes must be at most 90. Received: 91"),
        ("salt", -0.5, "--salt must be at least 0. Received: -0.5"),
        ("salt", 1.5, "--salt must be at most 1. Received: 1.5"),
        ("salt", float("nan"), "--salt must be finite. Received: nan"),
        ("salt", float("inf"), "--salt must be finite. Received: inf"),
    ],
)
def test_a_value_out_of_bounds_is_refused(name, value, message):
    with pytest.raises(InputError, match=message):
        Baking(flour="rye", **{name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [("minutes", 1), ("minutes", 90), ("salt", 0), ("salt", 1)],
)
def test_the_bounds_themselves_are_allowed(name, value):
    assert getattr(Baking(flour="rye", **{name: value}), name) == value


def test_options_are_written_as_json():
    record = json.loads(parse("--flour=rye", "--salt=0").to_json("bake.py"))

    assert record["command"] == "bake.py"
    assert Baking(**record["options"]) == Baking(flour="rye", salt=0)


COMMAND = """
    \"\"\"Bakes bread.\"\"\"

    import dataclasses
    import sys

    from official_bert import cli
    from official_bert.cli import option
    from official_bert.errors import InputError


    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Baking(cli.Options):
        flour: str = option("What to bake.")
        shape: str = option("Its shape.", "round", choices=("round", "long"))
        minutes: int = option("In the oven.", 30, at_least=1)
        do_train: bool = option("Whether to train the baker.", False)


    class Mill:
        def __del__(self) -> None:
            if sys.is_finalizing():
                print("the mill outlives Python")


    def main(options: Baking) -> None:
        mill = Mill()  # An error's traceback holds it.
        if options.flour == "sand":
            raise InputError("flour.txt:3: flour must be of corn.")
        if options.flour == "none":
            raise RuntimeError("the oven is broken")
        if options.flour == "much":
            with open("/dev/full", "w") as file:
                file.write(options.flour)
        if options.flour == "hot":
            raise KeyboardInterrupt
        print(options)


    if __name__ == "__main__":
        cli.run(main, Baking)
"""


@pytest.fixture(scope="module")
def command(tmp_path_factory):
    path = tmp_path_factory.mktemp("command") / "bake.py"
    path.write_text(textwrap.dedent(COMMAND).lstrip())
    return path


def run(command: pathlib.Path, *arguments: str):
    return subprocess.run(
        [sys.executable, str(command), *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_command_calls_main_with_its_options(command):
    result = run(command, "--flour=rye", "--nodo_train", "--minutes=5")

    assert result.stdout.startswith("Baking(flour='rye', shape='round', min")
    assert "minutes=5, do_train=False" in result.stdout
    assert result.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "messages"),
    [
        # Even where a required flag stands behind the stray word.
        (
            ["--do_train", "true", "--flour=rye"],
            ["bake.py: error: All arguments must be flags", "'true'"],
        ),
        (["--flour=sand"], ["bake.py: error: flour.txt:3: flour must"]),
        (
            ["--flour=much"],
            ["bake.py: error: [Errno 28] No space", "Make room"],
        ),
        (["--flour=rye", "--shape=flat"], ["one of round, long", "'flat'"]),
        (["--flour=rye", "--minutes=0"], ["--minutes must be at least 1"]),
        (["--do_train"], ["--flour"]),
        (["--flour=rye", "--minutes=x"], ["--minutes=x"]),
        (["--flour=rye", "--minuets=3"], ["minuets", "minutes"]),
    ],
    ids=lambda value: " ".join(value) if value[0].startswith("--") else "",
)
def test_what_the_user_got_wrong_is_said_without_a_traceback(
    command, arguments, messages
):
    result = run(command, *arguments)

    assert result.returncode == 1
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    for message in messages:
        assert message in result.stderr


def test_what_the_program_got_wrong_keeps_its_traceback(command):
    result = run(command, "--flour=none")

    assert "Traceback" in result.stderr
    assert "RuntimeError: the oven is broken" in result.stderr
    assert result.returncode != 0


def test_ctrl_c_ends_a_command_in_peace(command):
    result = run(command, "--flour=hot")

    assert result.stderr.strip() == "bake.py: interrupted"
    assert result.returncode == 130


def test_help_says_what_the_command_does_and_lists_its_flags(command):
    output = run(command, "--help").stdout

    assert "Bakes bread." in output
    for line in (
        "--flour: What to bake.\n    (required)",
        "--shape: <round|long>: Its shape.",
        "(default: 'round')",
        "--minutes: In the oven.",
        "(default: '30')",
        "--[no]do_train: Whether to train the baker.",
    ):
        assert line in output
