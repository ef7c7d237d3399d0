"""Occurrences of a word and the cosines of its vectors."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import cosine_similarity
from support import recorded, tiny

from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.inference import context_page
from official_bert.inference.trained_models import LoadedBert
from official_bert.modeling.encoder import Bert

CONTINUATIONS = ("##s", "##fish")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("contexts")
    changes = {
        "vocab_size": len(tiny.VOCAB) + len(CONTINUATIONS),
        "num_hidden_layers": 2,
        "max_position_embeddings": 16,
    }
    bert = Bert(BertConfig.from_dict({**tiny.CONFIG, **changes}))
    tokenizer = tiny.tokenizer(folder, *CONTINUATIONS)
    return LoadedBert(recorded.assign(bert, 3), tokenizer, "drawn")


@pytest.fixture
def write(tmp_path):
    def written(text):
        (tmp_path / "s.txt").write_text(text)
        return str(tmp_path / "s.txt")

    return written


def test_every_occurrence_of_the_whole_word_is_found(model, write):
    path = write(
        "\ufeffa Catfish is red\n \nIt is a red CATFISH, catfish!\n"
        "cat catfishs catfish\n"
    )
    found = context_page.find(model, "catfish", path)
    assert [(c.where, c.word) for c in found] == [
        (f"{path}:1", "Catfish"),
        (f"{path}:3", "CATFISH"),
        (f"{path}:3", "catfish"),
        (f"{path}:4", "catfish"),
    ]
    assert (found[0].before, found[0].after) == ("a ", " is red")
    # Neither "catfishs" nor "cat".
    assert (found[3].first, found[3].last) == (4, 6)
    assert all(c.tokens[c.first : c.last] == ["cat", "##fish"] for c in found)


def test_several_words_can_be_compared(model, write):
    path = write("the red cat is red\nbad red cat\n")
    found = context_page.find(model, "Red Cat", path)
    assert [c.word for c in found] == ["red cat"] * 2


def test_cosines_are_those_of_the_mean_token_vectors(model, write):
    texts = {"catfish is red": 1, "what is it ? catfish": 5, "sun catfish": 2}
    contexts = context_page.find(model, "catfish", write("\n".join(texts)))
    cosines = context_page.compare(model, contexts)
    vectors = []
    for text, first in texts.items():
        tokens = ["[CLS]", *model.tokenizer.tokenize(text), "[SEP]"]
        ids = model.tokenizer.convert_tokens_to_ids(tokens)
        output = model.bert(np.array([ids]))
        layers = [output.embedding_output, *output.encoder_outputs]
        layers = np.asarray(layers, np.float64)
        vectors.append(layers[:, 0, first : first + 2].mean(1))
    expected = map(cosine_similarity, np.swapaxes(vectors, 0, 1))
    np.testing.assert_allclose(cosines, [*expected], atol=2e-6)
    assert cosines[:, ~np.eye(3, dtype=bool)].max() < 0.9999


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
def test_invalid_input_is_an_error(model, write, text, word, message):
    with pytest.raises(InputError, match=message):
        context_page.find(model, word, write(text), 12)
