import dataclasses
import os
import subprocess
import sys
import textwrap

import pytest
from absl import flags
from support import ROOT
from support.processes import run_python

from official_bert.errors import InputError
from official_bert.options import cli
from official_bert.options.flags import Options, option, positive, share, switch


class OvenOptions(Options, heading="Devices"):
    minutes: int = option("Baking time.", 30, between=(1, 90))
    steam: float = option("Seconds of steam.", 0.0, needs="water")
    water: str | None = option("Its source.", None, needed_by="do_brush")


class TimeOptions(Options, heading="Evaluation"):
    seconds: int = option("Time to taste.", 3)


class Baking(TimeOptions, OvenOptions, heading="Model"):
    one_of = ("filling", "salt", "do_glaze")

    flour: str = option("The flour.")
    filling: str | None = option(
        "The filling.",
        None,
        needed_by="do_brush",
        check=lambda text: None if text.islower() else "is not low.",
    )
    shape: str = option("The shape.", "round", choices=("round", "long"))
    salt: float = share("Share of salt.", 0.02, heading="Data")
    do_glaze: bool = option("Whether to glaze.", True)
    cold: bool = switch("Whether to bake cold.", conflicts="minutes")
    do_brush: bool = switch("Whether to brush.")
    loaves: int = positive("Number of loaves.", 2)
    minutes: int = option("Longer time.", 40, between=(1, 90))


def make(**values):
    return Baking(**{"flour": "rye", "filling": "jam", **values}).resolve()


def parse(*arguments, options_class=Baking):
    values = flags.FlagValues()
    cli.define_flags(options_class, values)
    values(["bake.py", "--filling=jam", *arguments])
    return cli.options_from_flags(options_class, values)


@pytest.mark.parametrize(
    ("arguments", "changes"),
    [
        ([], {}),
        (["--flour=a=b, c"], {"flour": "a=b, c"}),
        (["--flour", "b"], {"flour": "b"}),
        # Its check runs only if --do_brush is set.
        (["--filling=Jam"], {"filling": "Jam"}),
        (["--filling=", "--salt=1"], {"filling": "", "salt": 1.0}),
        (["--minutes=45"], {"minutes": 45}),
        (["--salt=1e-3"], {"salt": 0.001}),
        (["--do_glaze=true"], {"do_glaze": True}),
        (["--do_glaze=False"], {"do_glaze": False}),
        (["--nodo_glaze", "--cold"], {"do_glaze": False, "cold": True}),
    ],
)
def test_flag_becomes_a_field_of_its_type(arguments, changes):
    found = parse("--flour=rye", *arguments)
    assert found == make(**changes)
    for name, value in changes.items():
        assert type(getattr(found, name)) is type(value)


class BakingAgain(Baking):
    def _complete(self):
        return self.fill({"minutes": 45, "salt": 0.5, "filling": "figs"})


def test_given_values_override_implied_ones_which_override_defaults():
    from_python = BakingAgain(flour="rye", minutes=1, filling="jam")
    for given in (
        from_python.replace(minutes=40),
        parse("--flour=rye", "--minutes=40", options_class=BakingAgain),
    ):
        found = given.resolve()  # 40 is the default.
        assert (found.minutes, found.salt, found.filling) == (40, 0.5, "jam")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"shape": "square"}, "--shape=square .*round, long"),
        ({"shape": 1}, "--shape=1 must be text"),
        ({"minutes": 1.5}, "--minutes=1.5 must be an integer"),
        ({"loaves": True}, "--loaves must be an integer"),
        ({"salt": "much"}, "--salt=much must be a number"),
        ({"cold": 1}, "--cold=1 must be true or false"),
        ({"flour": None}, "--flour is required: The flour"),
        ({"flour": "a\0b"}, "--flour=.*null character"),
        ({"minutes": 0}, "--minutes=0 .*1"),
        ({"minutes": 91}, "--minutes=91 .*90"),
        ({"loaves": 0}, "--loaves=0 .*1"),
        ({"loaves": 2**31}, "--loaves=.*below 2\\*\\*31"),
        ({"salt": -0.5}, "--salt=-0.5 .*0"),
        ({"salt": float("nan")}, "--salt=nan"),
        ({"salt": float("inf")}, "--salt=inf"),
        ({"steam": 3.5}, "--steam=3.5 .*--water"),
        ({"do_brush": True}, "--do_brush .*--water"),
        ({"do_brush": True, "water": "a", "filling": "A"}, "--filling=A is n"),
        ({"cold": True, "minutes": 90}, "--cold conflicts with --minutes=90"),
        ({"filling": "", "salt": 0.02}, "--filling, --salt, --do_glaze"),
    ],
)
def test_value_that_breaks_its_declaration_is_an_error(values, message):
    with pytest.raises(InputError, match=message):
        make(**values)


def test_heading_applies_to_the_following_options_of_the_class():
    names = {
        "Required": "flour",
        "Evaluation": "seconds",
        "Devices": "steam water",
        "Model": "filling shape",
        "Data": "salt do_glaze cold do_brush loaves minutes",
    }
    found = {f.name: f.metadata["heading"] for f in dataclasses.fields(Baking)}
    assert found == {
        name: heading for heading in names for name in names[heading].split()
    }


def test_policy_of_a_field_overrides_that_of_its_class_and_the_default():
    class Cooling(Options, inherited=False):
        fan: bool = switch("Whether to use a fan.", in_sweep=False)
        hours: int = positive("Hours to cool.", 1, inherited=True)

    assert Cooling.names() == ["fan", "hours"]
    assert Cooling.names(in_sweep=False) == ["fan"]
    assert Cooling.names(inherited=True, on_resume="fixed") == ["hours"]
    with pytest.raises(TypeError, match="inheritd"):
        switch("Whether to open a window.", inheritd=True)


COMMAND = """
    \"\"\"Bakes bread.\"\"\"

    import os
    import sys

    from official_bert.options import cli
    from official_bert.errors import InputError
    from official_bert.options.flags import Options, option


    class Baking(Options):
        flour: str = option("What to bake.")
        shape: str = option("Its shape.", "round", choices=("round", "long"))
        salt: float = option("Share of salt.", 0.5, alias="salt_share",
                             common=False)
        minutes: int = option("In the oven.", 30, heading="Devices",
                              common=False)
        do_train: bool = option("Train the baker.", False, heading="Training")


    class Mill:
        def __del__(self) -> None:
            if sys.is_finalizing():
                print("the mill outlives Python")


    def main(options: Baking) -> None:
        options = options.resolve()
        with cli.quiet_imports():
            os.write(2, b"I0000 oneDNN is on\\n")
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
        print("yeast is fresh", file=sys.stderr)
        print(options, os.environ["TF_ENABLE_ONEDNN_OPTS"])
        assert os.environ["KERAS_BACKEND"] == "tensorflow"
        assert not os.path.exists(os.environ["KERAS_HOME"] + "/keras.json")


    if __name__ == "__main__":
        cli.run(main, Baking)
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A function that runs the command; returns its status and output."""
    path = tmp_path_factory.mktemp("command") / "bake.py"
    path.write_text(textwrap.dedent(COMMAND).lstrip())

    def run_command(*arguments, preexec_fn=None, **environment):
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        for name in ("TF_ENABLE_ONEDNN_OPTS", "TF_CPP_MIN_LOG_LEVEL"):
            env.pop(name, None)
        (path.parent / "keras.json").write_text('{"floatx": "float16"}')
        env |= {"KERAS_BACKEND": "jax", "KERAS_HOME": str(path.parent)}
        env |= environment
        done = run_python(
            path, *arguments, status=None, env=env, preexec_fn=preexec_fn
        )
        return done.returncode, done.stdout, done.stderr

    return run_command


def test_command_calls_main_with_onednn_on_unless_the_user_set_it(run):
    fields = "flour='rye', shape='round', salt=0.5, minutes=30, do_train=False"
    for variables, value in [({}, "1"), ({"TF_ENABLE_ONEDNN_OPTS": "0"}, "0")]:
        status, output, _ = run("--flour=rye", "--nodo_train", **variables)
        assert (status, output) == (0, f"Baking({fields}) {value}\n")


def test_closed_stderr_and_letters_of_other_encodings_are_no_errors(run):
    status, output, _ = run("--flour=rye", preexec_fn=lambda: os.close(2))
    assert (status, output[:19]) == (0, "Baking(flour='rye',")
    status, output, _ = run("--flour=Mähl", PYTHONIOENCODING="ascii")
    assert (status, output[:23]) == (0, r"Baking(flour='M\xe4hl',")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--do_train", "true", "--flour=rye"], "bake.py: error: 'true'"),
        (["--flour=sand"], "bake.py: error: flour.txt:3: flour must"),
        (["--flour=much"], "bake.py: error: [Errno 28] No space left"),
        (["--do_train"], "--flour is required: What to bake."),
        (["--flour=rye", "--minutes=x"], "--minutes=x must be an integer."),
        (["--flour=rye", "--salt=much"], "--salt=much must be a number."),
        (["--do_train=yes"], "--do_train=yes must be true or false."),
        (["--flour=rye", "--minuets=3"], "--minuets. Did you mean --minutes?"),
        (["--salt-share=1"], "--salt-share. Did you mean --salt_share?"),
    ],
)
def test_user_error_is_one_message_without_traceback(run, arguments, message):
    status, output, errors = run(*arguments)
    assert (status, output) == (1, "")
    assert "Traceback" not in errors
    assert message in errors
    assert errors.count("error: ") == 1


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("lr", "--learning_rate"),
        ("epochs", "--num_train_epochs"),
        ("batch_size", "--train_batch_size"),
        ("max_length", "--max_seq_length"),
        ("model-name-or-path", "--model"),
        ("data", "--train_file or --data_dir"),
        ("train-file", "--train_file"),
        ("laerning_rate", "--learning_rate"),
        ("nodo_trian", "--do_train"),
        ("colour", None),
    ],
)
def test_unknown_flag_suggests_the_flag_of_this_command(name, hint):
    names = ["do_train", "train_file", "data_dir", "model", "learning_rate"]
    names += ["num_train_epochs", "train_batch_size", "max_seq_length"]
    message = cli.unknown_flag(name, names)
    hint = f" Did you mean {hint}?" if hint else ""
    end = "See --help=all for all flags."
    assert message == f"There is no flag --{name}.{hint} {end}"


def test_program_error_keeps_its_traceback_and_ctrl_c_has_none(run):
    _, _, errors = run("--flour=none")
    assert "Traceback" in errors
    assert "RuntimeError: the oven is broken" in errors
    status, _, errors = run("--flour=hot")
    assert (status, errors.strip()) == (130, "bake.py: interrupted")


@pytest.mark.parametrize("flags_given", ["--help", "-h", "--help rye"])
def test_help_lists_common_flags_by_heading_and_exits_with_0(run, flags_given):
    status, output, errors = run(*flags_given.split())
    assert (status, errors) == (0, "")
    assert output == (
        "Bakes bread.\n\nRequired:\n  --flour: What to bake.\n\nData:\n"
        "  --shape: <round | long>: Its shape. (default: round)\n\n"
        "Training:\n  --[no]do_train: Train the baker.\n\n"
        "--help=all lists all flags.\n"
        "--flagfile=FILE reads flags from a file.\n"
    )


@pytest.mark.parametrize("flag", ["--help=all", "--helpfull"])
def test_full_help_lists_all_flags(run, flag):
    status, output, errors = run(flag)
    assert (status, errors) == (0, "")
    for name in ("--flour:", "--salt:", "--minutes:"):
        assert name in output


@pytest.mark.parametrize("flag", ["--help", "--model=list"])
def test_closed_output_pipe_is_not_an_error(flag):
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, str(ROOT / "run_classifier.py"), flag]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


def test_stderr_of_imports_is_shown_only_on_request(run):
    for arguments, environment, is_shown in (
        ([], {}, False),
        (["--verbose"], {}, True),
        ([], {"TF_CPP_MIN_LOG_LEVEL": "0"}, True),
    ):
        _, _, errors = run("--flour=rye", *arguments, **environment)
        assert ("I0000 oneDNN" in errors) == is_shown
        assert "yeast is fresh" in errors
