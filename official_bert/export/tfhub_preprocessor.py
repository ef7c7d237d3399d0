"""A tokenizer as a TF Hub preprocessor: a SavedModel from texts to ids.

Its interface is that of the preprocessors published by TensorFlow ("Common
SavedModel APIs for text tasks" in TensorFlow's documentation); its pieces are
those of `FullTokenizer`. Who loads it needs `tensorflow_text`, and nothing of
this project.
"""

from typing import Any, NamedTuple

import tensorflow as tf

from official_bert import files
from official_bert.errors import InputError
from official_bert.export import saved_model
from official_bert.export.graph_tokenizer import GraphTokenizer

# The published names of special tokens' ids.
_SPECIAL_TOKENS = {
    "start_of_sequence_id": "[CLS]",
    "end_of_segment_id": "[SEP]",
    "padding_id": "[PAD]",
    "mask_id": "[MASK]",
}

_TEXTS = (tf.TensorSpec([None], tf.string, name="sentences"),)

# [CLS] and a [SEP] for each of two segments.
SHORTEST = 3


def export_preprocessor(
    path: str, vocab_file: str, do_lower_case: bool, seq_length: int = 128
) -> None:
    """Writes a preprocessor: all of it, or nothing under that name.

    Loaded with `tf.saved_model.load` or `hub.load`, after `tensorflow_text` has
    been imported, `preprocessor` can be asked for:

    * `preprocessor(texts)`: string [B] -> `input_word_ids`, `input_mask`,
      `input_type_ids`, each int32 [B, seq_length];
    * `preprocessor.tokenize(texts)` -> int32 [B, (words), (pieces)];
    * `preprocessor.tokenize_with_offsets(texts)` -> a list of the same, and
      int64, the bytes where each piece starts and ends in its text;
    * `preprocessor.tokenize.get_special_tokens_dict()` -> int32 [] each:
      `vocab_size`, `start_of_sequence_id`, `end_of_segment_id`, and where the
      vocabulary has them, `padding_id` and `mask_id`;
    * `preprocessor.bert_pack_inputs(segments, seq_length=...)`: a list of one
      segment or two, int32 [B, (pieces)] or [B, (words), (pieces)], -> the
      three tensors. A pair that is too long loses the ends of the longer one.

    Args:
        path: Folder for the SavedModel; what stands there is replaced.
        vocab_file: The vocabulary; it becomes part of it.
        do_lower_case: Whether the model wants text lower-cased.
        seq_length: What rows are shortened and padded to, unless told.

    Raises:
        InputError: `seq_length` is too short, the vocabulary cannot be used, or
            the disk is full.
    """
    if seq_length < SHORTEST:
        raise InputError(
            f"Sequences must have room for [CLS] and two [SEP], {SHORTEST} "
            f"pieces. Received: {seq_length}. Give more."
        )
    module = _make_module(vocab_file, do_lower_case, seq_length)
    with files.replacing_directory(path) as folder:
        saved_model.save(module, folder, module.__call__)


class _Calls(NamedTuple):
    """What a preprocessor can be asked.

    Attributes:
        tokenizer: What knows the vocabulary.
        seq_length: Of rows, unless another is asked for.
    """

    tokenizer: GraphTokenizer
    seq_length: int

    def preprocess(self, texts: tf.Tensor) -> dict[str, tf.Tensor]:
        """The module itself."""
        pieces = self.tokenizer.tokenize(texts)
        return self.tokenizer.pack([pieces], self.seq_length)

    def tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """`tokenize`."""
        return self.tokenizer.tokenize_words(texts)

    def tokenize_with_offsets(self, texts: tf.Tensor) -> list[tf.RaggedTensor]:
        """`tokenize_with_offsets`."""
        return list(self.tokenizer.tokenize_words_with_offsets(texts))

    def special_tokens(self) -> dict[str, tf.Tensor]:
        """`tokenize.get_special_tokens_dict`."""
        vocab = self.tokenizer.vocab
        special = {"vocab_size": max(vocab.values()) + 1}
        for name, token in _SPECIAL_TOKENS.items():
            if token in vocab:
                special[name] = vocab[token]
        return {name: tf.constant(id_) for name, id_ in special.items()}


def _make_module(vocab_file: str, do_lower_case: bool, seq_length: int) -> Any:
    calls = _Calls(GraphTokenizer(vocab_file, do_lower_case), seq_length)
    # A tf.Module would lose its `variables`.
    module = tf.train.Checkpoint()
    module.vocab_file = tf.saved_model.Asset(vocab_file)
    module.__call__ = _traced(calls.preprocess, _TEXTS)
    module.tokenize = _callable(calls.tokenize, _TEXTS)
    module.tokenize_with_offsets = _callable(
        calls.tokenize_with_offsets, _TEXTS
    )
    special_tokens = _callable(calls.special_tokens, ())
    module.tokenize.get_special_tokens_dict = special_tokens
    module.tokenize_with_offsets.get_special_tokens_dict = special_tokens
    module.bert_pack_inputs = _Packer(calls)
    return module


def _traced(call: Any, signature: tuple[tf.TensorSpec, ...]) -> Any:
    return tf.function(call, input_signature=signature, autograph=False)


def _callable(call: Any, signature: tuple[tf.TensorSpec, ...]) -> Any:
    """Returns something to save that is called, and may have parts."""
    saved = tf.train.Checkpoint()
    saved.__call__ = _traced(call, signature)
    return saved


class _Packer(tf.train.Checkpoint):
    """`bert_pack_inputs`, for segments by piece or by word and piece."""

    def __init__(self, calls: _Calls):
        super().__init__()
        tokenizer, default = calls

        # What is left out of a call to a loaded function is filled in from the
        # defaults of the saved one, so that these must be this one's.
        def pack(
            segments: list[tf.RaggedTensor], seq_length: Any = default
        ) -> dict[str, tf.Tensor]:
            return tokenizer.pack(segments, seq_length)

        self.__call__ = tf.function(pack, autograph=False)
        length = tf.TensorSpec([], tf.int32, name="seq_length")
        for num_segments in (1, 2):
            for rank in (2, 3):
                spec = tf.RaggedTensorSpec([None] * rank, tf.int32)
                self.__call__.get_concrete_function(
                    [spec] * num_segments, seq_length=length
                )
