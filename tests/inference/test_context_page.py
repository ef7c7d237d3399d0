"""Occurrences of a word and the cosines of its vectors."""

import json

import numpy as np
import pytest
from sklearn.metrics.pairwise import cosine_similarity
from support import recorded, tiny

from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.inference import context_page
from official_bert.inference.trained_models import LoadedBert
from official_bert.modeling.encoder import Bert
from official_bert.tokenization import BatchTokenizer

VOCAB = [*tiny.VOCAB, "##s", "##fish"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("contexts")
    (folder / "vocab.txt").write_text("\n".join(VOCAB) + "\n")
    config = {
        **tiny.CONFIG,
        "vocab_size": len(VOCAB),
        "num_hidden_layers": 2,
        "max_position_embeddings": 16,
    }
    bert = Bert(BertConfig.from_dict(json.loads(json.dumps(config))))
    bert.build()
    recorded.set_weights(bert.trainable_variables, 3)
    tokenizer = BatchTokenizer(str(folder / "vocab.txt"))
    return LoadedBert(bert, tokenizer, "drawn")


def write(tmp_path, text):
    path = tmp_path / "s.txt"
    path.write_text(text)
    return str(path)


def test_every_occurrence_of_the_whole_word_is_found(model, tmp_path):
    path = write(
        tmp_path,
        "\ufeffa Catfish is red\n \nIt is a red CATFISH, catfish!\n"
        "cat catfishs catfish\n",
    )
    found = context_page.find(model, "catfish", path)
    assert [(c.where, c.text[c.start : c.end]) for c in found] == [
        (f"{path}:1", "Catfish"),
        (f"{path}:3", "CATFISH"),
        (f"{path}:3", "catfish"),
        (f"{path}:4", "catfish"),
    ]
    assert found[0].text == "a Catfish is red"
    # Neither "catfishs" nor "cat".
    assert (found[3].first, found[3].last) == (4, 6)
    assert all(c.tokens[c.first : c.last] == ["cat", "##fish"] for c in found)


def test_several_words_can_be_compared(model, tmp_path):
    path = write(tmp_path, "the red cat is red\nbad red cat\n")
    found = context_page.find(model, "Red Cat", path)
    assert [c.text[c.start : c.end] for c in found] == ["red cat"] * 2


def test_cosines_are_those_of_the_mean_token_vectors(model, tmp_path):
    path = write(
        tmp_path, "catfish is red\nwhat is it ? catfish\nsun catfish\n"
    )
    compared = context_page.compare(model, "catfish", path)
    assert compared.cosines.shape == (3, 3, 3)
    for layer in range(3):
        vectors = []
        for text, first in (
            ("catfish is red", 1),
            ("what is it ? catfish", 5),
            ("sun catfish", 2),
        ):
            pieces = ["[CLS]", *model.tokenizer.tokenize(text), "[SEP]"]
            output = model.bert(
                np.array([model.tokenizer.convert_tokens_to_ids(pieces)])
            )
            outputs = [output.embedding_output, *output.encoder_outputs]
            vectors.append(
                np.mean(np.float64(outputs[layer][0, first : first + 2]), 0)
            )
        np.testing.assert_allclose(
            compared.cosines[layer], cosine_similarity(vectors), atol=2e-6
        )
    off_diagonal = compared.cosines[:, ~np.eye(3, dtype=bool)]
    assert off_diagonal.max() < 0.9999


@pytest.mark.parametrize(
    ("text", "word", "message"),
    [
        ("red cat\n\nred dog\n", "cat", r"s\.txt:3.*'red dog'"),
        ("red cat\nred cats\n", "cat", r"s\.txt:2.*'red cats'"),
        ("red cat\n", "cat", r"s\.txt: .* 1\."),
        ("cat\n" * 61, "cat", r"s\.txt: .* 61\."),
        ("red cat\n", "wolf", "--word='wolf'"),
        ("red cat\n", "\x00", "--word="),
        ("cat\n" + "cat " * 11, "cat", r"s\.txt:2: 13.*=12.*=13"),
        ("cat\n" + "cat " * 15, "cat", r"s\.txt:2: 17.*=12.* 16 positions"),
    ],
)
def test_invalid_input_is_an_error(model, tmp_path, text, word, message):
    with pytest.raises(InputError, match=message):
        context_page.find(model, word, write(tmp_path, text), 12)
