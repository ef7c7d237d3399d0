"""Runs commands: defines flags, prints `--help`, reports errors.

`commands.run` and the programs in `data/` call::

    cli.run(main, RunSquad)

Each field of the options class `RunSquad` is a flag. Python code can call
`main(RunSquad(...))` too; no code below `main` reads a flag.
"""

import contextlib
import dataclasses
import difflib
import errno
import gc
import io
import logging as stdlib_logging
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any, TypeVar

from absl import app, flags, logging

from official_bert.errors import InputError, short_reason, suppress_broken_pipe
from official_bert.options.flags import HEADINGS, VALUES, Options, plain_type

# Keras imports these packages if they are installed, which takes a third of all
# import time. No command needs what Keras uses them for.
_UNUSED_BY_KERAS = {"matplotlib", "sklearn"}

# The environment variable of TensorFlow's log level, and the level at which it
# logs only the error that ends the process.
_LOG_LEVEL, _FATAL_ONLY = "TF_CPP_MIN_LOG_LEVEL", "3"

# The files of an installed TensorFlow.
_IN_TENSORFLOW = re.compile(r"(site|dist)-packages[/\\]tensorflow[/\\]")

_DISK_FULL = [os.strerror(code) for code in (errno.ENOSPC, errno.EDQUOT)]

_DEFINE = {
    str: flags.DEFINE_string,
    int: flags.DEFINE_integer,
    float: flags.DEFINE_float,
    bool: flags.DEFINE_bool,
}

# Names that users of other programs may try instead of our flags.
_OTHER_NAMES = {
    "model": "model_name_or_path bert_model",
    "train_file": "data dataset dataset_name",
    "dev_file": "validation_file",
    "data_dir": "data dataset",
    "do_lower_case": "uncased",
    "train_batch_size": "batch_size per_device_train_batch_size",
    "learning_rate": "lr",
    "num_train_epochs": "epochs max_steps",
    "warmup_proportion": "warmup_steps warmup",
    "num_train_steps": "max_steps steps epochs",
    "keep_checkpoint_max": "save_total_limit",
    "eval_every": "eval_steps",
    "mixed_precision": "fp16 bf16",
}

_Options = TypeVar("_Options", bound=Options)


def run(
    main: Callable[[_Options], object], options_class: type[_Options]
) -> None:
    """Runs a command: parses its flags, then calls `main` with its options.

    An `InputError` ends the process with its message and status 1, Ctrl-C with
    status 130.
    """
    _complete_streams()
    # TensorFlow reads this variable when it is imported. By default, it
    # disables oneDNN on processors without AVX-512 VNNI, although oneDNN is
    # faster there too.
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
    os.environ["KERAS_BACKEND"] = "tensorflow"  # Users may have set another,
    os.environ["KERAS_HOME"] = os.devnull  # also a `floatx` in keras.json.
    define_flags(options_class)
    # absl's own --help would list the flags of all modules.
    app.define_help_flags()
    for name in ("help", "helpfull"):
        delattr(flags.FLAGS, name)
    help_flag = flags.BooleanFlag("help", False, "show help", short_name="h")
    help_flag.parser = _HelpParser()
    flags.DEFINE_flag(help_flag)
    flags.DEFINE_bool("helpfull", False, "the same as --help=all")
    flags.DEFINE_bool(
        "verbose",
        False,
        "show TensorFlow's log lines, and the source line of each log message",
    )
    logging.set_verbosity(logging.INFO)
    app.run(
        lambda argv: _call(main, options_class, argv),
        flags_parser=lambda argv: _parse(options_class, argv),
    )


def _complete_streams() -> None:
    """Prepares standard output and standard error for all messages."""
    # Messages may contain letters that the encoding of the user lacks.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    # Python sets closed streams to None. The next file that is opened would get
    # the number of the stream, and the messages that C++ code writes to it.
    for number, stream in enumerate((sys.stdin, sys.stdout, sys.stderr)):
        if stream is None:
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115


def global_flags() -> list[str]:
    """Returns flags outside the options, for commands that this one starts."""
    is_verbose = flags.FLAGS.is_parsed() and "verbose" in flags.FLAGS
    return ["--verbose"] if is_verbose and flags.FLAGS.verbose else []


class _HelpParser(flags.BooleanParser):
    """Accepts `--help=all`."""

    def parse(self, argument: Any) -> Any:
        return argument if argument == "all" else super().parse(argument)


def _parse(options_class: type[Options], argv: list[str]) -> list[str]:
    """Parses the flags; ends the process if one is unknown or invalid."""
    try:
        return flags.FLAGS(argv)
    except flags.UnrecognizedFlagError as error:
        message = unknown_flag(error.flagname, [*flag_names(options_class)])
    except flags.IllegalFlagValueError as error:
        message = _illegal_value(str(error), options_class)
    except flags.Error as error:
        message = f"{error}. See --help=all for all flags."
    sys.exit(f"{os.path.basename(argv[0])}: error: {message}")


def _illegal_value(message: str, options_class: type[Options]) -> str:
    """Rewrites absl's message, which ends with the text of an exception."""
    match = re.match(r"flag (--(\w+)=.*?): ", message, re.DOTALL)
    if match and (field := options_class.fields().get(match[2])):
        return f"{match[1]} must be {VALUES[plain_type(field.type)]}."
    return f"{message}. See --help=all for all flags."


def flag_names(options_class: type[Options]) -> dict[str, str]:
    """Returns {flag: option}; an alias is before the name of its option."""
    names: dict[str, str] = {}
    for name, field in options_class.fields().items():
        flags_of_option = filter(None, [field.metadata["alias"], name])
        names |= dict.fromkeys(flags_of_option, name)
    return names


def unknown_flag(name: str, names: Sequence[str]) -> str:
    """Returns the error for an unknown flag; `names` are those that exist."""
    plain = name.replace("-", "_")
    similar = [n for n in names if plain in _OTHER_NAMES.get(n, "").split()]
    similar = similar or difflib.get_close_matches(plain, names, n=1)
    suggestion = " or ".join(f"--{n}" for n in similar)
    hint = f" Did you mean {suggestion}?" if similar else ""
    return f"There is no flag --{name}.{hint} See --help=all for all flags."


def _call(
    main: Callable[[_Options], object],
    options_class: type[_Options],
    argv: list[str],
) -> None:
    """Calls `main`; an error that the user can correct ends the process."""
    name = os.path.basename(argv[0])
    status: str | int
    try:
        if flags.FLAGS.help or flags.FLAGS.helpfull:
            with suppress_broken_pipe():
                _print_help(options_class, sys.modules[main.__module__])
            return
        if len(argv) > 1:
            raise InputError(
                f"{argv[1]!r} is not a flag. Write --name=value, or for a "
                "boolean --name or --name=false."
            )
        if not flags.FLAGS.verbose:
            _shorten_log()
        main(options_from_flags(options_class))
        return
    except InputError as error:
        status = f"{name}: error: {error}"
    except Exception as error:
        # Python and TensorFlow raise different exceptions for a full disk.
        if not any(reason in str(error) for reason in _DISK_FULL):
            raise
        reason = short_reason(error)
        advice = "Free disk space, and run the command again."
        status = f"{name}: error: {reason}. {advice}"
    except KeyboardInterrupt:
        print(f"\n{name}: interrupted", file=sys.stderr)
        status = 128 + signal.SIGINT
    # Exit outside `except`: a traceback would keep objects alive until Python
    # shuts down, and TensorFlow's thread pools complain about that.
    sys.exit(status)


def _shorten_log() -> None:
    """Hides TensorFlow's log lines, and the source line of all others."""
    os.environ.setdefault(_LOG_LEVEL, _FATAL_ONLY)
    # TensorFlow's Python code warns of retracing.
    stdlib_logging.getLogger("tensorflow").setLevel("ERROR")
    handler = logging.get_absl_handler()
    # TensorFlow also logs through absl.
    handler.addFilter(
        lambda record: (
            record.levelno > stdlib_logging.INFO
            or not _IN_TENSORFLOW.search(record.pathname)
        )
    )
    handler.setFormatter(
        stdlib_logging.Formatter(
            "%(asctime)s %(levelname)s: %(message)s", datefmt="%H:%M:%S"
        )
    )


def _print_help(options_class: type[Options], module: ModuleType) -> None:
    """Prints the module's docstring, and the flags under their headings."""
    shows_all = flags.FLAGS.help == "all" or flags.FLAGS.helpfull
    sections: dict[str, list[str]] = {heading: [] for heading in HEADINGS}
    is_short = False
    for field in options_class.fields().values():
        is_required = field.default is dataclasses.MISSING
        if shows_all or is_required or field.metadata["common"]:
            sections[field.metadata["heading"]].append(_describe(field))
        else:
            is_short = True
    print((module.__doc__ or "").rstrip())
    for heading, descriptions in sections.items():
        if descriptions:
            print(f"\n{heading}:", *descriptions, sep="\n")
    if is_short:
        print("\n--help=all lists all flags.")
    print("--flagfile=FILE reads flags from a file.")


def _describe(field: dataclasses.Field[Any]) -> str:
    """Returns the lines of a flag in `--help`."""
    flag = flags.FLAGS[field.name]
    text = f"--{'[no]' if flag.boolean else ''}{flag.name}: "
    if alias := field.metadata["alias"]:
        text = f"--{alias}, {text}"
    if choices := field.metadata["choices"]:
        text += f"<{' | '.join(choices)}>: "
    text += flag.help
    if flag.default not in (None, "", False):
        text += f" (default: {flag.default})"
    return flags.text_wrap(text, indent="    ", firstline_indent="  ")


def define_flags(
    options_class: type[Options], flag_values: flags.FlagValues = flags.FLAGS
) -> None:
    """Defines one flag for every field of an options class."""
    for name, field in options_class.fields().items():
        is_required = field.default is dataclasses.MISSING
        _DEFINE[plain_type(field.type)](
            name,
            None if is_required else field.default,
            field.metadata["help"],
            flag_values=flag_values,
            module_name=sys.argv[0],
        )
        if alias := field.metadata["alias"]:
            flags.DEFINE_alias(alias, name, flag_values, sys.argv[0])


def options_from_flags(
    options_class: type[_Options], flag_values: flags.FlagValues = flags.FLAGS
) -> _Options:
    """Returns options with the flags that were given."""
    parsed = {name: flag_values[name] for name in options_class.fields()}
    return options_class(**{n: f.value for n, f in parsed.items() if f.present})


@contextlib.contextmanager
def quiet_imports() -> Iterator[None]:
    """Imports TensorFlow and Keras faster, without TensorFlow's messages."""
    with _collection_paused(), _messages_discarded():
        yield


@contextlib.contextmanager
def _messages_discarded() -> Iterator[None]:
    """Discards what TensorFlow writes to stderr when it is imported.

    No setting of TensorFlow hides these lines. They are discarded if
    TF_CPP_MIN_LOG_LEVEL is 3, which `_shorten_log` sets unless --verbose or
    another value is given. Within the block, Keras does not import
    `_UNUSED_BY_KERAS`.
    """
    if os.environ.get(_LOG_LEVEL) != _FATAL_ONLY or sys.stderr is None:
        yield
        return
    sys.stderr.flush()
    hidden: Any = dict.fromkeys(_UNUSED_BY_KERAS - sys.modules.keys())
    with open(os.devnull, "w") as null, os.fdopen(os.dup(2), "w") as saved:
        os.dup2(null.fileno(), 2)
        sys.modules.update(hidden)  # Importing them raises ImportError.
        try:
            yield
        finally:
            os.dup2(saved.fileno(), 2)
            for name in hidden:
                del sys.modules[name]


@contextlib.contextmanager
def _collection_paused() -> Iterator[None]:
    """Pauses garbage collection while TensorFlow is imported.

    The import creates 400,000 objects that stay. Collections would take a fifth
    of its time; later ones skip these objects.
    """
    if "tensorflow" in sys.modules or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
