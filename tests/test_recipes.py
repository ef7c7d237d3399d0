import re

import pytest
from support import ROOT, command_lines, conversions

from official_bert.commands import COMMANDS
from official_bert.options import RunClassifier

RECIPES = sorted((ROOT / "recipes").glob("*.cfg"))


def commands(recipe):
    """Returns [(command, its flags)] from the comment of a recipe."""
    comment = re.findall(r"^# ?(.*)", recipe.read_text(), re.MULTILINE)
    text = re.sub(r"\\\n\s*", "", "\n".join(comment))
    return re.findall(r"^ +python (\w+)\.py (.*)$", text, re.MULTILINE)


def lines(recipe):
    """Returns {flag: its text} of a recipe."""
    found = re.findall(r"^--([^\s=]+)=?(.*)$", recipe.read_text(), re.MULTILINE)
    return {name: value or "True" for name, value in found}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """The directory of a model with 512 positions, and of data."""
    folder = tmp_path_factory.mktemp("model")
    conversions.released(folder, "masked_lm", max_position_embeddings=512)
    (folder / "data").write_text("")
    return folder


def with_existing_files(flags, model):
    """Replaces the paths and the models of a command line."""
    found = []
    for flag in flags.split():
        name, _, value = flag.lstrip("-").partition("=")
        if name in ("model", "data_dir", "input"):
            value = model
        elif name == "init_checkpoint":
            value = model / "bert_model.ckpt"
        elif name in ("bert_config_file", "vocab_file"):
            value = model / value
        elif name.startswith("output"):
            value = model / "output"
        elif name != "flagfile" and name.endswith("_file"):
            value = model / "data"
        found.append(f"--{name}={value or True}")
    return " ".join(found)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.stem)
def test_recipe_fits_the_commands_of_its_comment(recipe, model, monkeypatch):
    monkeypatch.chdir(ROOT)
    values = lines(recipe)
    ignored = values.pop("undefok", "").split(",")
    used = set()
    for command, flags in commands(recipe):
        line = with_existing_files(flags, model)
        options_class = COMMANDS[command]
        options = command_lines.parse(options_class, line)
        if f"--flagfile=recipes/{recipe.name}" not in flags.split():
            continue
        for name, value in values.items():
            if hasattr(options, name):
                used.add(name)
                found = getattr(options, name)
                assert found == type(found)(value), name
            else:
                assert name in ignored
    assert used == set(values)


def test_flags_after_a_recipe_replace_its_values(model):
    path = ROOT / "recipes" / "glue.cfg"
    line = (
        f"--flagfile={path} --model={model} --data_dir={model} --task_name=rte "
        f"--output_dir={model}/output --learning_rate=5e-5 --nodo_eval"
    )
    options = command_lines.parse(RunClassifier, line)
    assert (options.learning_rate, options.do_eval) == (5e-5, False)
    assert options.train_batch_size == 32
