"""BERT itself, without heads, out of whatever checkpoint has it."""

from typing import NamedTuple

import tensorflow as tf

from official_bert.checkpoints import loading, numbered
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.inference.blanks import MASK
from official_bert.modeling.encoder import Bert, BertOutput
from official_bert.options import VisualizeAttention
from official_bert.tokenization import BatchTokenizer


class BertAlone(NamedTuple):
    """A model and what it reads.

    Attributes:
        bert: With its weights.
        tokenizer: Of the model; keeps [MASK] whole.
        max_seq_length: At most how many pieces to read.
        source: Where the weights are from, as a user knows it.
    """

    bert: Bert
    tokenizer: BatchTokenizer
    max_seq_length: int
    source: str

    def require_length(self, num_pieces: int, where: str) -> None:
        """Raises `InputError` for a text that is too long.

        Args:
            num_pieces: Of it, with [CLS] and [SEP].
            where: What to begin the error with.
        """
        if num_pieces <= self.max_seq_length:
            return
        positions = self.bert.config.max_position_embeddings
        advice = (
            f"Pass --max_seq_length={num_pieces}, or shorten it."
            if num_pieces <= positions
            else f"Shorten it; the model has {positions} positions."
        )
        raise InputError(
            f"{where}: must have at most --max_seq_length="
            f"{self.max_seq_length} pieces, with [CLS] and [SEP]. Received: "
            f"{num_pieces}. {advice}"
        )

    def read(
        self,
        tokens: list[str],
        segment_ids: list[int],
        return_attention: bool = False,
    ) -> BertOutput:
        """Runs the model on one sequence, without padding.

        Args:
            tokens: S pieces.
            segment_ids: S numbers.
            return_attention: See `Bert`.

        Returns:
            Tensors whose first axis is 1.
        """
        ids = self.tokenizer.convert_tokens_to_ids(tokens)
        output: BertOutput = self.bert(
            tf.constant([ids]),
            segment_ids=tf.constant([segment_ids]),
            return_attention=return_attention,
        )
        return output


def load(options: VisualizeAttention) -> BertAlone:
    """Returns the model that the options name.

    Raises:
        InputError: Its files are damaged, or not of one model.
    """
    prefix = numbered.named_by(options)
    bert, tokenizer = load_files(
        options.config_path,
        options.vocab_path,
        prefix,
        do_lower_case=options.is_uncased,
        never_split=(MASK,),
    )
    return BertAlone(bert, tokenizer, options.max_seq_length, prefix)


def load_files(
    bert_config_file: str,
    vocab_file: str,
    init_checkpoint: str,
    *,
    do_lower_case: bool,
    never_split: tuple[str, ...] = (),
    may_initialize: str = "",
) -> tuple[Bert, BatchTokenizer]:
    """Returns a BERT and its tokenizer.

    Args:
        bert_config_file: Its sizes.
        vocab_file: Its vocabulary.
        init_checkpoint: A TF1 checkpoint, or a run's folder, whose newest is
            meant; heads may lie there.
        do_lower_case: Whether the model is uncased.
        never_split: Tokens that are kept whole in texts.
        may_initialize: Regular expression of weights that may be missing.

    Raises:
        InputError: These are damaged, or not of one model.
    """
    tokenizer = BatchTokenizer(vocab_file, do_lower_case, never_split)
    config = BertConfig.from_json_file(bert_config_file)
    config.require_vocabulary(tokenizer.vocab, vocab_file)
    bert = Bert(config)
    bert.build()
    loading.load(
        loading.by_name(bert.trainable_variables),
        init_checkpoint,
        may_initialize=may_initialize,
        may_skip=loading.NOT_BERT,
    )
    return bert, tokenizer
