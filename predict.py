r"""Asks a trained model about new text, a line at a time.

  echo "A film to remember." | python predict.py --model_dir=/tmp/sst2_output/

  python predict.py --model_dir=/tmp/mrpc_output/ \
    --input_file=pairs.tsv --output_file=answers.jsonl

  python predict.py --fill_mask --input_file=blanks.txt \
    --vocab_file=$BERT_BASE_DIR/vocab.txt \
    --bert_config_file=$BERT_BASE_DIR/bert_config.json \
    --init_checkpoint=$BERT_BASE_DIR/bert_model.ckpt

Every line is answered by a JSON object on a line: `input` is what was given,
the rest the answer, such as

  {"input": "Good.", "label": "1", "probabilities": {"0": 0.1, "1": 0.9}}
  {"input": "A [MASK].", "guesses": [[{"piece": "cat", "probability": 0.2}]]}

and with --score `pseudo_log_likelihood`, `num_pieces` and `perplexity`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from official_bert import cli
from official_bert.options import Predict

if TYPE_CHECKING:
    from official_bert.inference.answering import Answerer


def main(options: Predict) -> None:
    """Answers all lines, as the options say."""
    # TensorFlow takes seconds to import; errors in flags should not.
    from official_bert.inference import answering

    answering.run(load(options), options)


def load(options: Predict) -> Answerer:
    """Returns the model that the options name, ready to answer."""
    from official_bert.inference import answering, masked_lm, scoring
    from official_bert.inference.blanks import MaskedLanguageModel
    from official_bert.inference.predictor import Predictor

    if not options.is_masked_lm:
        assert options.model_dir
        predictor = Predictor.from_dir(
            options.model_dir, batch_size=options.batch_size
        )
        answering.set_columns(predictor, options)
        return predictor
    if options.model_dir:
        model, tokenizer = masked_lm.load(
            options.model_dir, do_lower_case=options.lowers_case
        )
    else:
        model, tokenizer = masked_lm.load_files(
            options.config_file,
            options.vocabulary,
            options.checkpoint,
            do_lower_case=options.lowers_case,
        )
    asked = MaskedLanguageModel(model, tokenizer, options.batch_size)
    if options.score:
        return scoring.Scorer(asked)
    return masked_lm.FillMask(asked, options.top_k)


if __name__ == "__main__":
    cli.run(main, Predict)
