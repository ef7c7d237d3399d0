"""Options classes become flags, and flags become options."""

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
class OvenOptions(cli.Options, heading="Devices"):
    minutes: int = option("Baking time.", 30, between=(1, 90))
    steam: float = option("Seconds of steam.", 0.0, needs="water")
    water: str | None = option("Its source.", None, needed_by=("do_brush",))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Baking(OvenOptions, heading="Model"):
    one_of = ("filling", "salt", "do_glaze")

    flour: str = option("The flour.")
    filling: str | None = option(
        "The filling.",
        None,
        check=lambda text: None if text.islower() else "must be lower case.",
    )
    shape: str = option("The shape.", "round", choices=("round", "long"))
    salt: float = option("Share of salt.", 0.02, at_least=0, heading="Data")
    do_glaze: bool = option("Whether to glaze.", True)
    cold: bool = option("Whether to bake cold.", False, conflicts=("minutes",))
    do_brush: bool = option("Whether to brush.", False)
    minutes: int = option("Longer time.", 40, between=(1, 90))


def make(**values):
    return Baking(**{"flour": "rye", "filling": "jam", **values})


def parse(*arguments, options_class=Baking):
    values = flags.FlagValues()
    cli.define_flags(options_class, values)
    values(["bake.py", "--filling=jam", *arguments])
    return cli.options_from_flags(options_class, values)


def test_omitted_flags_have_their_defaults():
    assert parse("--flour=rye") == make()


@pytest.mark.parametrize(
    ("arguments", "name", "value"),
    [
        (["--flour=a=b, c"], "flour", "a=b, c"),
        (["--flour", "b"], "flour", "b"),
        (["--filling=", "--salt=1"], "filling", ""),
        (["--minutes=45"], "minutes", 45),
        (["--salt=1e-3"], "salt", 0.001),
        (["--salt=1"], "salt", 1.0),
        (["--do_glaze=true"], "do_glaze", True),
        (["--do_glaze=False"], "do_glaze", False),
        (["--nodo_glaze"], "do_glaze", False),
    ],
)
def test_flag_becomes_a_field_of_its_type(arguments, name, value):
    found = getattr(parse("--flour=rye", *arguments), name)
    assert (found, type(found)) == (value, type(value))


class BakingAgain(Baking):
    @classmethod
    def defaults_from_earlier_run(cls, given):
        return {"minutes": 45, "salt": 0.5, "filling": f"{sorted(given)}"}


def test_flags_given_override_an_earlier_run_which_overrides_defaults():
    made = parse(
        "--flour=rye", "--minutes=40", options_class=BakingAgain
    )  # 40 is the default.
    assert (made.minutes, made.salt, made.filling) == (40, 0.5, "jam")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (["--minutes=45"], InputError, "--flour is required: The flour"),
        (["--minutes=long"], flags.IllegalFlagValueError, "--minutes=long"),
        (["--salt=much"], flags.IllegalFlagValueError, "--salt=much"),
        (["--minute=45"], flags.UnrecognizedFlagError, "minutes"),
    ],
)
def test_command_line_that_cannot_be_parsed_is_an_error(
    arguments, error, message
):
    with pytest.raises(error, match=message):
        parse(*arguments)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"shape": "square"}, "--shape=square .*round, long"),
        ({"minutes": 0}, "--minutes=0 .*1"),
        ({"minutes": 91}, "--minutes=91 .*90"),
        ({"salt": -0.5}, "--salt=-0.5 .*0"),
        ({"salt": float("nan")}, "--salt=nan"),
        ({"salt": float("inf")}, "--salt=inf"),
        ({"filling": "Jam"}, "--filling=Jam must be lower case"),
        ({"steam": 3.5}, "--steam=3.5 .*--water"),
        ({"do_brush": True}, "--do_brush .*--water"),
        ({"cold": True, "minutes": 90}, "--cold conflicts with --minutes=90"),
        ({"filling": "", "salt": 0.02}, "--filling, --salt, --do_glaze"),
    ],
)
def test_value_that_breaks_its_declaration_is_an_error(values, message):
    with pytest.raises(InputError, match=message):
        make(**values)


def test_check_of_an_option_runs_only_where_the_option_is_needed():
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Trip(cli.Options):
        by_car: bool = option("Whether to drive.", False)
        road: str | None = option(
            "The road.", None, needed_by=("by_car",), check=lambda _: "is shut."
        )

    assert Trip(road="A1")
    with pytest.raises(InputError, match="--road=A1 is shut"):
        Trip(road="A1", by_car=True)


def test_headings_follow_the_first_declaration_unless_set_again():
    assert cli.find_headings(Baking) == {
        "minutes": "Devices",
        "steam": "Devices",
        "water": "Devices",
        "flour": "Required",
        "filling": "Model",
        "shape": "Model",
        "salt": "Data",
        "do_glaze": "Data",
        "cold": "Data",
        "do_brush": "Data",
    }


def test_json_of_options_holds_the_command_and_all_values():
    record = json.loads(parse("--flour=rye", "--salt=0").to_json("bake.py"))
    assert record["command"] == "bake.py"
    assert Baking(**record["options"]) == make(salt=0)


COMMAND = """
    \"\"\"Bakes bread.\"\"\"

    import dataclasses
    import os
    import sys

    from official_bert import cli
    from official_bert.cli import option
    from official_bert.errors import InputError


    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Baking(cli.Options):
        flour: str = option("What to bake.")
        shape: str = option("Its shape.", "round", choices=("round", "long"))
        minutes: int = option("In the oven.", 30, heading="Devices")
        do_train: bool = option("Train the baker.", False, heading="Training")


    class Mill:
        def __del__(self) -> None:
            if sys.is_finalizing():
                print("the mill outlives Python")


    def main(options: Baking) -> None:
        mill = Mill()  # The traceback of an error refers to it.
        if options.flour == "sand":
            raise InputError("flour.txt:3: flour must be of corn.")
        if options.flour == "none":
            raise RuntimeError("the oven is broken")
        if options.flour == "much":
            with open("/dev/full", "w") as file:
                file.write(options.flour)
        if options.flour == "hot":
            raise KeyboardInterrupt
        print(options, os.environ["TF_ENABLE_ONEDNN_OPTS"])


    if __name__ == "__main__":
        cli.run(main, Baking)
"""


@pytest.fixture(scope="module")
def command(tmp_path_factory):
    path = tmp_path_factory.mktemp("command") / "bake.py"
    path.write_text(textwrap.dedent(COMMAND).lstrip())
    return path


def run(command, *arguments, **environment):
    inherited = {**os.environ, "PYTHONPATH": str(ROOT)}
    inherited.pop("TF_ENABLE_ONEDNN_OPTS", None)
    return subprocess.run(
        [sys.executable, str(command), *arguments],
        env=inherited | environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("environment", "value"), [({}, "1"), ({"TF_ENABLE_ONEDNN_OPTS": "0"}, "0")]
)
def test_command_calls_main_with_onednn_on_unless_the_user_set_it(
    command, environment, value
):
    result = run(command, "--flour=rye", "--nodo_train", **environment)
    assert result.returncode == 0
    assert result.stdout == (
        "Baking(flour='rye', shape='round', minutes=30, do_train=False) "
        f"{value}\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--do_train", "true", "--flour=rye"], "bake.py: error: 'true'"),
        (["--flour=sand"], "bake.py: error: flour.txt:3: flour must"),
        (["--flour=much"], "bake.py: error: [Errno 28] No space left"),
        (["--flour=rye", "--shape=flat"], "--shape=flat"),
        (["--do_train"], "--flour"),
        (["--flour=rye", "--minutes=x"], "--minutes=x"),
        (["--flour=rye", "--minuets=3"], "minutes"),
    ],
)
def test_user_error_ends_with_a_message_and_without_traceback(
    command, arguments, message
):
    result = run(command, *arguments)
    assert (result.returncode, result.stdout) == (1, "")
    assert "Traceback" not in result.stderr
    assert message in result.stderr


def test_program_error_keeps_its_traceback(command):
    result = run(command, "--flour=none")
    assert "Traceback" in result.stderr
    assert "RuntimeError: the oven is broken" in result.stderr
    assert result.returncode != 0


def test_ctrl_c_ends_a_command_with_status_130(command):
    result = run(command, "--flour=hot")
    assert result.stderr.strip() == "bake.py: interrupted"
    assert result.returncode == 130


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_lists_flags_under_headings_and_exits_with_0(command, flag):
    result = run(command, flag)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith(
        "Bakes bread.\n\nRequired:\n  --flour: What to bake.\n\nData:\n"
        "  --shape: <round|long>: Its shape.\n    (default: 'round')\n\n"
        "Training:\n  --[no]do_train: Train the baker.\n    (default: 'false')"
        "\n\nDevices:\n  --minutes: In the oven.\n    (default: '30')\n"
    )
