"""One run of `create_pretraining_data.py`: options and derived values."""

import dataclasses
import functools
from typing import Any

import numpy as np
import numpy.typing as npt

from official_bert.inputs import schemas
from official_bert.options import CreatePretrainingData
from official_bert.pretraining_data import masking
from official_bert.sources import pretrained
from official_bert.tokenization import Tokenizer, num_tokens, require_tokens
from official_bert.tokenization.vocab import SPECIAL_TOKENS


@dataclasses.dataclass(frozen=True)
class Job:
    """The options of a run, and values that each process derives from them.

    Only the fields are sent to other processes.
    """

    options: CreatePretrainingData
    corpus_directory: str = ""  # The tokenized corpus, if it is in files.
    vocab_copy: str = ""  # A copy of `--vocab_file`, for other machines.

    def __reduce__(self) -> tuple[Any, ...]:
        fields = self.options, self.corpus_directory, self.vocab_copy
        return _received_job, fields

    @functools.cached_property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of `--vocab_file`."""
        model_files = self.options.model_files
        if self.vocab_copy:  # Its settings are beside it, too.
            model_files = dataclasses.replace(
                model_files, vocab_file=self.vocab_copy
            )
        return model_files.tokenizer

    @functools.cached_property
    def num_tokens(self) -> int:
        """The largest token id + 1.

        With `words_are_separated`, the id of a token in the corpus is larger by
        this number if the token continues a word.
        """
        return num_tokens(self.tokenizer.vocab)

    @functools.cached_property
    def is_continuation(self) -> npt.NDArray[np.bool_]:
        """For each id in the corpus: is it masked with the token before it?"""
        vocab = self.tokenizer.vocab
        flags = np.zeros(2 * self.num_tokens, np.bool_)
        flags[self.num_tokens :] = True
        if self.options.do_whole_word_mask:
            flags[[vocab[t] for t in vocab if t.startswith("##")]] = True
        return flags

    @functools.cached_property
    def num_to_predict(self) -> npt.NDArray[np.int64]:
        """The number of tokens to mask for each sequence length; at least 1.

        Lengths include [CLS] and [SEP]. Numbers are rounded half to even.
        """
        options = self.options
        lengths = np.arange(options.max_seq_length + 1)
        counts = np.rint(lengths * options.masked_lm_prob).astype(np.int64)
        return np.clip(counts, 1, options.max_predictions_per_seq)

    @functools.cached_property
    def dynamic_masking(self) -> schemas.Masking:
        """How training masks unmasked instances."""
        vocab, options = self.tokenizer.vocab, self.options
        return schemas.Masking(
            options.max_predictions_per_seq,
            options.max_ngram,
            vocab["[MASK]"],
            self.num_tokens,
            options.mask_share,
            options.random_share,
        )

    @functools.cached_property
    def replacements(self) -> masking.Replacements:
        """The replacements of masked tokens."""
        vocab, options = self.tokenizer.vocab, self.options
        size = self.num_tokens
        return masking.Replacements(
            vocab["[MASK]"],
            np.array([i for i in vocab.values() if i < size], np.int32),
            options.mask_share,
            options.random_share,
            options.same_share,
        )

    def check_vocabulary(self) -> None:
        """Raises `InputError` unless the vocabulary fits the options.

        Warns if its casing does not seem to be that of the options.
        """
        vocab, options = self.tokenizer.vocab, self.options
        where = options.model_files.vocab_source
        require_tokens(vocab, where, SPECIAL_TOKENS)
        if options.bert_config_file:
            options.model_files.config.require_vocabulary(vocab, where)
        if not options.model:  # Otherwise, the model defines the casing.
            pretrained.warn_of_casing(options.model_files)


# Cached, because a worker process receives the same job with each item.
@functools.lru_cache(maxsize=1)
def _received_job(*fields: Any) -> Job:
    return Job(*fields)
