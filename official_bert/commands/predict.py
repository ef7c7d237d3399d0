r"""Predicts new examples, one per line, with a trained model.

  echo "A film to remember." | python predict.py --model_dir=/tmp/sst2_output/

  python predict.py --model_dir=/tmp/mrpc_output/ \
    --input_file=pairs.tsv --output_file=answers.jsonl

  python predict.py --fill_mask --input_file=blanks.txt \
    --model=uncased_L-12_H-768_A-12

The output has a JSON object per line, with the `input` and its predictions:

  {"input": "Good.", "label": "1", "probabilities": {"0": 0.1, "1": 0.9}}
  {"input": "A [MASK].", "guesses": [[{"token": "cat", "probability": 0.2}]]}

With --score, an object has `pseudo_log_likelihood`, `num_tokens` and
`perplexity`.

By default, --fill_mask and --score use bert_tiny_demo, which needs no network.
"""

from official_bert.options import Predict


def main(options: Predict) -> None:
    """Predicts all lines."""
    options = options.resolve()
    from official_bert.inference import line_prediction

    line_prediction.run(options)
