"""Creates models saved by sentence-transformers, and what they compute.

  SENTENCE_TRANSFORMERS_PYTHON tools/golden/make_sentence_transformers.py

Run with a Python that has sentence-transformers; made with 6.2.0.

`sentence_transformers/` is `transformers/pretraining`, with a pooling, a dense
layer, normalization and prompts. `vectors.npz` holds its vectors of `TEXTS`,
its vectors with the prompt "query", and the vectors of each pooling alone,
under the name of the pooling.

`cross_encoder/` is the same model with a random output. `scores.npz` holds its
scores of `PAIRS`, and its logits under the name `Identity`.
"""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEXTS = [
    *("a b c", "", "d e f g h i j k l m n o p q r s", "q", "c b a a a"),
    "a [SEP] b[MASK]",
]
PAIRS = [
    ("a b c", "d e f"),
    ("q", "c b a a a"),
    ("a b", "d e f g h i j k l m n o p q r s"),
    ("a b c d e f g h i j", "s r q p o n m l k"),
    ("a [SEP] b", "[MASK]c"),
]
PROMPTS = {"query": "s r ", "document": ""}


def main() -> None:
    """Writes the directory."""
    import numpy as np
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers import models as modules

    golden = ROOT / "tests" / "golden"
    torch.manual_seed(5)
    bert = modules.Transformer(
        str(golden / "transformers" / "pretraining"), max_seq_length=9
    )
    size = bert.get_embedding_dimension()
    vectors = {}
    for name in modules.Pooling.POOLING_MODES:
        pooling = modules.Pooling(size, name)
        model = SentenceTransformer(modules=[bert, pooling], device="cpu")
        vectors[name] = model.encode(TEXTS)
    model = SentenceTransformer(
        modules=[
            bert,
            modules.Pooling(size, ("max", "mean")),
            modules.Dense(2 * size, 5),
            modules.Normalize(),
        ],
        prompts=PROMPTS,
        similarity_fn_name="dot",
        device="cpu",
    )
    vectors["model"] = model.encode(TEXTS)
    vectors["query"] = model.encode(TEXTS, prompt_name="query")
    directory = golden / "sentence_transformers"
    model.save_pretrained(str(directory), create_model_card=False)
    np.savez_compressed(directory / "vectors.npz", **vectors)
    make_cross_encoder(golden)


def make_cross_encoder(golden: pathlib.Path) -> None:
    import numpy as np
    import torch
    from sentence_transformers import CrossEncoder

    torch.manual_seed(5)
    model = CrossEncoder(
        str(golden / "transformers" / "pretraining"),
        num_labels=1,
        max_length=9,
        device="cpu",
    )
    with torch.no_grad():
        for weight in model.model.classifier.parameters():
            weight.normal_(0.0, 0.5)
    directory = golden / "cross_encoder"
    model.save_pretrained(str(directory), create_model_card=False)
    # The sigmoid is the default.
    scores = {"Sigmoid": model.predict(PAIRS)}
    identity = torch.nn.Identity()
    scores["Identity"] = model.predict(PAIRS, activation_fn=identity)
    np.savez_compressed(directory / "scores.npz", **scores)


if __name__ == "__main__":
    main()
