"""Exports a tokenizer as a TF Hub preprocessor, a SavedModel.

It has the interface of the preprocessors that TensorFlow publishes ("Common
SavedModel APIs for text tasks" in TensorFlow's documentation), and makes the
tokens of `FullTokenizer`. TensorFlow and `tensorflow_text` can load it.
"""

from typing import Any

import tensorflow as tf

from official_bert.export import graph_packing, saved_model
from official_bert.export.graph_tokenizer import GraphTokenizer
from official_bert.export.saved_model import callable_object
from official_bert.inputs import text_inputs
from official_bert.tokenization import FullTokenizer, num_tokens

# Published names of the ids of special tokens.
_SPECIAL_TOKENS = {
    "start_of_sequence_id": "[CLS]",
    "end_of_segment_id": "[SEP]",
    "padding_id": "[PAD]",
    "mask_id": "[MASK]",
}


def export(path: str, tokenizer: FullTokenizer, *, seq_length: int) -> None:
    """Writes a preprocessor; an interrupted export changes nothing.

    Loaded with `tf.saved_model.load` or `hub.load`, after `tensorflow_text` has
    been imported, `preprocessor` offers:

    * `preprocessor(texts)`: string [B] -> `input_word_ids`, `input_mask`,
      `input_type_ids`, each int32 [B, seq_length];
    * `preprocessor.tokenize(texts)` -> int32 [B, (words), (tokens)];
    * `preprocessor.tokenize_with_offsets(texts)` -> a list of the same ids and,
      as int64, the bytes at which each token begins and before which it ends;
    * `preprocessor.tokenize.get_special_tokens_dict()` -> int32 [] each:
      `vocab_size`, `start_of_sequence_id`, `end_of_segment_id`, and if the
      vocabulary has them, `padding_id` and `mask_id`;
    * `preprocessor.bert_pack_inputs(segments, seq_length=...)`: a list of one
      or two segments, int32 [B, (tokens)] or [B, (words), (tokens)], -> the
      three tensors. If a pair is too long, the longer segment is truncated.

    The vocabulary becomes part of the SavedModel. `seq_length` is the default
    length, with special tokens. Raises `InputError` if the vocabulary cannot be
    used, or the SavedModel cannot be written.
    """
    module = _make_module(GraphTokenizer(tokenizer), seq_length)
    module.vocab_file = tf.saved_model.Asset(tokenizer.vocab_file)
    saved_model.write(module, path, module.__call__)


def _make_module(tokenizer: GraphTokenizer, seq_length: int) -> Any:
    vocab = tokenizer.vocab
    special_ids = text_inputs.special_ids(vocab)
    padding_id = vocab.get("[PAD]", 0)

    # If a call of the loaded function omits an argument, it gets the default of
    # the saved function.
    def pack(
        segments: list[tf.RaggedTensor], seq_length: Any = seq_length
    ) -> dict[str, tf.Tensor]:
        return graph_packing.pack(segments, seq_length, special_ids, padding_id)

    published = {
        name: vocab[token]
        for name, token in _SPECIAL_TOKENS.items()
        if token in vocab
    }
    published["vocab_size"] = num_tokens(vocab)
    special = callable_object(
        lambda: {name: tf.constant(i) for name, i in published.items()}, []
    )
    texts = [tf.TensorSpec([None], tf.string, name="sentences")]
    module = callable_object(
        lambda texts: pack([tokenizer.tokenize(texts)]), texts
    )
    module.tokenize = callable_object(tokenizer.tokenize_words, texts)
    module.tokenize.get_special_tokens_dict = special
    module.tokenize_with_offsets = callable_object(
        tokenizer.tokenize_words_with_offsets, texts
    )
    module.tokenize_with_offsets.get_special_tokens_dict = special
    module.bert_pack_inputs = callable_object(pack)
    length = tf.TensorSpec([], tf.int32, name="seq_length")
    for num_segments in (1, 2):
        for rank in (2, 3):
            spec = tf.RaggedTensorSpec([None] * rank, tf.int32)
            module.bert_pack_inputs.__call__.get_concrete_function(
                [spec] * num_segments, seq_length=length
            )
    return module
