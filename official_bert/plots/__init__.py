"""Plots of a training run, drawn from the files in its run directory.

TensorBoard events become `training_curves.png` and `.html`, the confusion
matrices in `eval_results.json` become `confusion_matrix.png` and `.html`. Those
of variants, such as `eval_results_zh.json`, have names of their own.
"""

import os

from absl import logging

from official_bert.io import files, json_files
from official_bert.runs import file_names


def write(output_dir: str) -> list[str]:
    """Draws the plots for which there is data; returns their paths."""
    # matplotlib takes a second to import, TensorBoard longer.
    from official_bert.plots import confusion_matrix, training_curves

    written = []
    if curves := training_curves.read(output_dir):
        written += training_curves.draw(output_dir, curves)
    for file_name in files.list_directory(output_dir):
        if not (name := file_names.ANY_METRICS.fullmatch(file_name)):
            continue
        results = json_files.read_object(os.path.join(output_dir, file_name))
        if matrices := confusion_matrix.find(results):
            written += confusion_matrix.draw(output_dir, matrices, name[1])
    for path in written:
        logging.info(f"Wrote {path}")
    return written
