"""Creates `sentence_transformers/`: a model saved there, and its vectors.

  SENTENCE_TRANSFORMERS_PYTHON tools/golden/make_sentence_transformers.py

Run with a Python that has sentence-transformers; made with 6.2.0. The model is
`transformers/pretraining`, with a pooling, a dense layer, normalization and
prompts. `vectors.npz` holds its vectors of `TEXTS`, those with the prompt
"query", and those of each pooling alone, under its name.
"""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEXTS = ["a b c", "", "d e f g h i j k l m n o p q r s", "q", "c b a a a"]
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


if __name__ == "__main__":
    main()
