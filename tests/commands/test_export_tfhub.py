import json
import math
import shutil

import pytest
import tensorflow as tf
from support import command_lines, hub_modules
from support.processes import run_python

from official_bert.commands import export_tfhub
from official_bert.errors import InputError
from official_bert.options import ExportTfhub
from official_bert.runs import checkpoints
from official_bert.sources import weight_names
from official_bert.sources.pretrained import ModelFiles

# A user who has TensorFlow and tensorflow_text, but not this project.
LOAD = """
import json, sys
for name in ("official_bert", "tensorflow_hub", "tf_keras", "keras_hub"):
    sys.modules[name] = None
import tensorflow as tf
encoder = tf.saved_model.load(sys.argv[1])
import tensorflow_text
inputs = tf.saved_model.load(sys.argv[2])(["good cat", "Good cat"])
with tf.GradientTape() as tape:
    outputs = encoder(inputs, training=True)
    loss = tf.reduce_sum(outputs["sequence_output"] ** 3)
gradients = tape.gradient(loss, encoder.trainable_variables)
print(json.dumps({
    "input_word_ids": inputs["input_word_ids"].numpy().tolist(),
    "sequence_output": outputs["sequence_output"].shape.as_list(),
    "no_gradient": sum(gradient is None for gradient in gradients),
    "vocab": open(encoder.vocab_file.asset_path.numpy()).read(),
    "do_lower_case": bool(encoder.do_lower_case),
}))
"""


FILES = ("bert_config.json", "vocab.txt")


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    directory = tmp_path_factory.mktemp("model")
    moments = ["global_step", "bert/pooler/dense/bias/adam_m"]
    hub_modules.write_files(directory, others=moments)
    return directory


def options(directory, **changes):
    checkpoint = directory / "bert_model.ckpt"
    files = command_lines.files_of_model(directory, checkpoint)
    flags = {**files, "max_seq_length": 16, **changes}
    return ExportTfhub(**flags).resolve()


@pytest.mark.nightly
def test_exports_work_without_this_project(directory, tmp_path, capsys):
    pytest.importorskip("tensorflow_text")
    encoder, preprocessor = str(tmp_path / "a/e"), str(tmp_path / "a/p")
    both = {"export_path": encoder, "preprocessor_path": preprocessor}
    export_tfhub.main(options(directory, **both, do_lower_case=False))

    printed = capsys.readouterr().out
    shapes = weight_names.shapes(hub_modules.CONFIG)
    sizes = [math.prod(shapes[n]) for n in shapes if n.startswith("bert/")]
    assert f"{sum(sizes):,} weights" in printed
    assert "with the masked LM head" in printed
    assert "Left out: cls/seq_relationship/output_bias" in printed
    result = run_python("-c", LOAD, encoder, preprocessor, cwd=tmp_path)
    found = json.loads(result.stdout)
    ids = [[2, 5, 7, 3] + [0] * 12, [2, 1, 7, 3] + [0] * 12]  # Case matters.
    assert found["input_word_ids"] == ids
    assert found["sequence_output"] == [2, 16, 48]
    # `sequence_output` does not depend on the pooler's two weights.
    assert found["no_gradient"] <= 2
    assert found["vocab"].split() == hub_modules.VOCAB
    assert found["do_lower_case"] is False

    with pytest.raises(InputError, match=r"--export_path=.* must be new"):
        options(directory, **both)
    again = {"export_path": None, "preprocessor_path": preprocessor}
    export_tfhub.main(options(directory, **again, overwrite=True))
    uncased = tf.saved_model.load(preprocessor)(["Good cat"])
    assert uncased["input_word_ids"].numpy().tolist() == ids[:1]


def test_model_dir_means_its_best_checkpoint_and_its_files(directory, tmp_path):
    for name in FILES:
        shutil.copy(directory / name, tmp_path)
    (tmp_path / "task.json").write_text(json.dumps({"do_lower_case": False}))
    for part in (tmp_path, tmp_path / "best"):
        part.mkdir(exist_ok=True)
        checkpoints.save(str(part), 9, {"a": 1.0}, None, keep=1)
    path = str(tmp_path / "e")
    found = ExportTfhub(model_dir=str(tmp_path), export_path=path)
    expected = map(str, map(tmp_path.joinpath, [*FILES, "best"]))
    assert found.model_files == ModelFiles(*expected, False)


def test_bad_options_are_errors_before_anything_is_written(directory, tmp_path):
    new, inside, other = (str(tmp_path / n) for n in ("new", "new/p", "other"))
    only, long = {"export_path": None}, {"max_seq_length": 65}
    of_run = dict.fromkeys(("bert_config_file", "init_checkpoint"))
    of_run |= {"model_dir": str(directory)}
    in_run = {"preprocessor_path": f"{directory}/best"}
    replaced = {"overwrite": True, "export_path": str(directory)}
    for changes, message in [
        (only, "--export_path, --preprocessor_path"),
        ({"init_checkpoint": None}, "--init_checkpoint must be given"),
        ({"model_dir": new}, "--model_dir=.* with --bert_config_file="),
        ({"preprocessor_path": new}, "--preprocessor_path=.* --export_path"),
        ({"preprocessor_path": inside}, "--preprocessor_path=.* --export_path"),
        ({"preprocessor_path": other, **long}, "64 positions"),
        ({**only, "preprocessor_path": new, **long}, "64 positions"),
        ({"export_path": f"{directory}/vocab.txt"}, r"--export_path=.*\.txt"),
        ({"vocab_file": new}, "vocab_file, or vocab.txt"),
        ({"init_checkpoint": new}, "--init_checkpoint="),
        # Inputs are never replaced.
        (replaced, "--export_path="),
        ({**replaced, "export_path": str(directory.parent)}, "--export_path="),
        ({**of_run, **only, **in_run}, "--preprocessor_path="),
    ]:
        with pytest.raises(InputError, match=message):
            options(directory, **{"export_path": new, **changes})
    assert not list(tmp_path.iterdir())
    assert (directory / "vocab.txt").exists()
