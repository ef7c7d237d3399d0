"""BERT itself, without heads, out of whatever checkpoint has it."""

import os
from typing import NamedTuple

import tensorflow as tf

from official_bert import files, json_files
from official_bert.checkpoints import loading, numbered
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.inference.blanks import MASK
from official_bert.modeling.encoder import Bert, BertOutput
from official_bert.options import VisualizeAttention
from official_bert.tokenization import BatchTokenizer

# Heads, and what a run needs to go on.
_NOT_BERT = rf"^(?!bert/)|{loading.OPTIMIZER_STATE}"


class Encoder(NamedTuple):
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


def load(options: VisualizeAttention) -> Encoder:
    """Returns the model that the options name.

    Raises:
        InputError: Its files are damaged, or not of one model.
    """
    do_lower_case = options.do_lower_case is not False
    prefix = options.init_checkpoint
    if options.model_dir:
        prefix = numbered.best_or_latest(options.model_dir)
        described = os.path.join(options.model_dir, "task.json")
        if files.exists(described):
            do_lower_case = bool(
                json_files.read_object(described).get("do_lower_case", True)
            )
    if prefix is None:
        raise InputError(
            f"{options.model_dir}: must hold a checkpoint. Received: none."
        )
    tokenizer = BatchTokenizer(
        options.vocabulary, do_lower_case, never_split=(MASK,)
    )
    config = BertConfig.from_json_file(options.config_file)
    config.require_vocabulary(len(tokenizer.vocab), options.vocabulary)
    bert = Bert(config)
    bert.build()
    loading.load(
        loading.by_name(bert.trainable_variables), prefix, may_skip=_NOT_BERT
    )
    return Encoder(bert, tokenizer, options.max_seq_length, prefix)
