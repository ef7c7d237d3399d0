"""Pictures of a training run, out of the files that it leaves behind.

TensorBoard's events become `training_curves.png` and `.html`, the confusion
matrices of `eval_results.json` `confusion_matrix.png` and `.html`.
"""

import os

from official_bert import files, json_files


def write(output_dir: str) -> list[str]:
    """Draws whatever a run's folder has something of.

    Args:
        output_dir: Of the run.

    Returns:
        The files written.
    """
    # matplotlib takes a second to import, TensorBoard's reader takes more.
    from official_bert.plots import confusion, curves

    written = []
    found = curves.read(output_dir)
    if found:
        written += curves.draw(output_dir, found)
    results = os.path.join(output_dir, "eval_results.json")
    if files.exists(results):
        matrices = confusion.find(json_files.read_object(results))
        if matrices:
            written += confusion.draw(output_dir, matrices)
    return written
