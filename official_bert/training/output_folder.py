"""A run's output folder: held by one run, with notes on it, and its plots."""

import contextlib
import os
from collections.abc import Iterator, Mapping

from official_bert import files, plots
from official_bert.options import tf_config
from official_bert.options.training import TrainingOptions
from official_bert.training import distribution, locking


@contextlib.contextmanager
def held(options: TrainingOptions) -> Iterator[None]:
    """Holds the folder of a whole run, and draws its plots in the end.

    Raises:
        InputError: Another run has it, it takes no files, or another host died.
    """
    with (
        locking.only_run(options),
        distribution.noticing_dead_hosts(options),
    ):
        yield
        if options.plots and tf_config.is_chief(options.resolved_strategy):
            plots.write(options.output_dir)


def leave_notes(
    folder: str, options: TrainingOptions, model_files: Mapping[str, str]
) -> None:
    """Leaves the options, and all that is needed to use what is trained.

    Args:
        folder: Where this process writes; see `distribution.own_folder`.
        options: Of the run.
        model_files: {name: text}, written if the run trains.
    """
    mode = "train" if options.do_train else "eval"
    texts = {f"{mode}_options.json": options.to_json(options.command)}
    if options.do_train:
        texts |= model_files
    for name, text in texts.items():
        files.write_text(os.path.join(folder, name), text)
