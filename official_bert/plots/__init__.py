"""Plots of a training run, drawn from the files in its run directory.

TensorBoard events become `training_curves.png` and `.html`, the confusion
matrices in `eval_results.json` become `confusion_matrix.png` and `.html`.
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
    results = os.path.join(output_dir, file_names.METRICS)
    if files.exists(results):
        matrices = confusion_matrix.find(json_files.read_object(results))
        if matrices:
            written += confusion_matrix.draw(output_dir, matrices)
    for path in written:
        logging.info(f"Wrote {path}")
    return written
