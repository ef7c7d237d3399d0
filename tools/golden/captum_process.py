"""Computes integrated gradients with captum, in a Python that has it.

  python tools/golden/captum_process.py CLASS FOLDER

FOLDER is a model of transformers, of CLASS. Needs captum, transformers and
PyTorch. Writes FOLDER/attributions.json: for each predicted output of `INPUTS`,
the attributions of all tokens. As in captum's tutorial on BERT, the baseline
keeps [CLS], [SEP], positions and segments; other tokens are [MASK] there, not
[PAD]. The text "a b c" has the ids 5, 6, 7.
"""

import json
import os
import sys
from typing import Any

CLS, SEP, MASK = 2, 3, 4

# {class: the token ids of a text or a pair}.
INPUTS = {
    "BertForSequenceClassification": [[7, 5, 9], [6, 21]],
    "BertForTokenClassification": [[7, 5, 9, 9]],
    "BertForQuestionAnswering": [[7, 5], [9, 14, 6, 21, 10]],
}
STEPS = 64


def indices(name: str, logits: Any) -> list[list[tuple[int, ...]]]:
    """Returns the indices of the logits that are summed for each output."""
    if name == "BertForSequenceClassification":
        return [[(int(logits.argmax()),)]]
    if name == "BertForTokenClassification":
        tags = logits.argmax(-1).tolist()[1:-1]  # Without [CLS] and [SEP].
        return [[(position, tag)] for position, tag in enumerate(tags, 1)]
    question, context = INPUTS[name]
    first = len(question) + 2
    positions = range(first, first + len(context))
    spans = [(s, e) for s in positions for e in positions if s <= e]
    s, e = max(spans, key=lambda p: float(logits[p[0], 0] + logits[p[1], 1]))
    return [[(s, 0), (e, 1)]]


def attributions(name: str, folder: str) -> list[list[float]]:
    import torch
    import transformers
    from captum.attr import LayerIntegratedGradients

    model = getattr(transformers, name).from_pretrained(folder).eval()
    ids, baseline, segments = [CLS], [CLS], [0]
    for segment, text in enumerate(INPUTS[name]):
        ids += [*text, SEP]
        baseline += [MASK] * len(text) + [SEP]
        segments += [segment] * (len(text) + 1)
    types = torch.tensor([segments])

    def run(input_ids: Any, token_types: Any) -> Any:
        found = model(input_ids, token_type_ids=token_types)
        if name == "BertForQuestionAnswering":
            return torch.stack([found.start_logits, found.end_logits], -1)
        return found.logits

    with torch.no_grad():
        outputs = indices(name, run(torch.tensor([ids]), types)[0])
    rows = []
    for output in outputs:

        def forward(
            input_ids: Any, token_types: Any, output: Any = output
        ) -> Any:
            logits = run(input_ids, token_types)
            return sum(logits[(slice(None), *index)] for index in output)

        found = LayerIntegratedGradients(
            forward, model.bert.embeddings
        ).attribute(
            torch.tensor([ids]),
            torch.tensor([baseline]),
            additional_forward_args=(types,),
            n_steps=STEPS,
            method="gausslegendre",
        )
        rows.append(found.sum(-1)[0].tolist())
    return rows


if __name__ == "__main__":
    result = attributions(*sys.argv[1:])
    with open(os.path.join(sys.argv[2], "attributions.json"), "w") as file:
        json.dump(result, file)
