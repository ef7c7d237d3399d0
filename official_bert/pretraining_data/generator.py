"""From text files to TFRecord files."""

import os
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

from absl import logging

from official_bert import files, signals
from official_bert.options import CreatePretrainingData
from official_bert.pretraining_data import parallel, serial


def run(options: CreatePretrainingData) -> None:
    """Writes the instances of `options.input_file` to `options.output_file`.

    Raises:
        InputError: Text, vocabulary or model do not fit the options, or there
            is no room. Output files are then as they were.
    """
    for name in options.output_files():
        files.make_directory(os.path.dirname(name) or ".")
    names = files.expand(options.input_file)
    logging.info("Reading %d input files: %s", len(names), ", ".join(names))
    # The SIGTERM of schedulers leaves no more behind than Ctrl-C does.
    with signals.temporary_handler(_leave, signal.SIGTERM):
        _run(options, names)


def _run(options: CreatePretrainingData, names: Sequence[str]) -> None:
    if options.runner:
        # Beam is large, and installed by those who need it.
        from official_bert.pretraining_data import beam_pipeline

        beam_pipeline.run(options, names)
    elif options.num_workers:
        parallel.run(options, names)
    else:
        serial.run(options, names)


def _leave(number: int, frame: object) -> NoReturn:
    sys.exit(128 + number)  # As a shell would say it.
