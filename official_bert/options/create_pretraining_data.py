"""Options of `create_pretraining_data.py`."""

import math
import os
import shlex

from absl import logging

from official_bert.io import files
from official_bert.options import checks, flags
from official_bert.options.model_source import CasedModel

MAX_NGRAM = 10

# Enough to fill a record of 512 tokens with instances of 30.
MAX_SEQUENCES_PER_ROW = 16


class CreatePretrainingData(CasedModel, heading="Data"):
    """Options of `create_pretraining_data.py`."""

    input_file: str = flags.path_option(
        "Text files or glob patterns, comma-separated, also .gz: one sentence "
        "per line, and blank lines between documents."
    )
    split_sentences: bool = flags.switch(
        "Split prose into sentences. Consecutive lines are joined. Blank lines "
        "end paragraphs and, if there are --document_blank_lines of them, "
        "documents.",
        check=checks.installed("livekit.blingfire"),
    )
    document_blank_lines: int = flags.non_negative(
        "With --split_sentences: number of blank lines that end a document. "
        "The end of a file always does. 0: each line is a document.",
        3,
        needs="split_sentences",
    )
    output_file: str = flags.path_option(
        "TFRecord files to write, comma-separated; each gets a part."
    )
    masking: str = flags.choice(
        "static: mask tokens now, differently in each pass. dynamic: "
        "run_pretraining.py masks them, differently in each step.",
        "static|dynamic",
    )
    do_whole_word_mask: bool = flags.switch(
        "Mask whole words, not single tokens."
    )
    words_are_separated: bool = flags.switch(
        "With --do_whole_word_mask: spaces separate all words of the text, "
        "also in Chinese, where each character is a token.",
        needs="do_whole_word_mask",
    )
    max_ngram: int = flags.option(
        "Mask spans of up to N tokens (N words with --do_whole_word_mask). The "
        "probability of a span of length n is proportional to 1/n.",
        1,
        between=(1, MAX_NGRAM),
    )
    max_seq_length: int = flags.option(
        "Maximum tokens per instance, with [CLS] and [SEP].", 128, at_least=5
    )
    max_predictions_per_seq: int = flags.positive(
        "Maximum number of masked tokens per instance.", 20
    )
    random_seed: int = flags.option(
        "The same seed gives the same output.", 12345, num_bits=63
    )
    dupe_factor: int = flags.positive(
        "Number of passes over the text, each with different masks.", 10
    )
    masked_lm_prob: float = flags.share("Proportion of tokens to mask.", 0.15)
    mask_share: float = flags.share(
        "Share of masked tokens that become [MASK]; all shares sum to 1.", 0.8
    )
    random_share: float = flags.share(
        "Share of masked tokens to replace with random tokens.", 0.1
    )
    same_share: float = flags.share(
        "Share of masked tokens not to change.", 0.1
    )
    nsp: str = flags.choice(
        "Segments of an instance. next: two; half of the time, the second is "
        "from another document. sop: two, swapped half of the time. none: one.",
        "next|sop|none",
    )
    short_seq_prob: float = flags.share(
        "Probability of creating instances shorter than --max_seq_length.", 0.1
    )
    num_workers: int = flags.non_negative(
        "Number of processes. 0: one process, which creates exactly the "
        "instances of the 2018 release. N: different random instances, the "
        "same for every N; memory depends on the longest document, and the end "
        "of a file ends a document.",
        conflicts="runner",
    )
    runner: str | None = flags.optional(
        "Apache Beam runner, for clusters; creates the same instances as "
        "--num_workers=1. Needs the extra beam.",
        choices=(
            "DirectRunner",
            "DaskRunner",
            "FlinkRunner",
            "SparkRunner",
            "DataflowRunner",
        ),
    )
    beam_options: str | None = flags.optional(
        "The runner's flags, as one string.",
        needs="runner",
        check=checks.parsed_by(shlex.split, "flags as in a shell"),
    )
    compress: bool = flags.switch("Write gzip records; training detects them.")
    pack_sequences: bool = flags.switch(
        "Pack several short instances into one record. "
        "--max_predictions_per_seq then applies to a whole record."
    )
    max_sequences_per_row: int = flags.positive(
        "With --pack_sequences: maximum number of instances per record.",
        MAX_SEQUENCES_PER_ROW,
    )
    bert_config_file: str | None = flags.optional_path(
        "The bert_config.json of the model, to check vocabulary and length."
    )

    def _check(self) -> None:
        super()._check()
        others = filter(None, (self.vocab_file, self.bert_config_file))
        names = files.expand(self.input_file)
        # A pattern may match it.
        if os.path.realpath(self.vocab_file) in map(os.path.realpath, names):
            message = "must not include the file of --vocab_file. Move it."
            raise self.error("input_file", message)
        inputs = [*names, *others]
        checks.require_outputs(self, "output_file", inputs, self.output_files())
        if not self.output_files():
            raise self.error("output_file", "must name at least one file.")
        if self.bert_config_file:
            self.model_files.config.require_length(self.max_seq_length)
        # With fewer predictions, packed records would not be filled.
        needed = math.ceil(self.masked_lm_prob * self.max_seq_length)
        if self.pack_sequences and self.max_predictions_per_seq < needed:
            message = f"must be at least {needed} with --pack_sequences."
            raise self.error("max_predictions_per_seq", message)
        if self.max_predictions_per_seq < 0.9 * needed:
            logging.warning(
                f"--max_predictions_per_seq={self.max_predictions_per_seq} "
                f"limits the masks of sequences of {self.max_seq_length} "
                f"tokens, of which {needed} would be masked. Set "
                f"--max_predictions_per_seq={needed} here and in "
                "run_pretraining.py"
            )
        total = self.mask_share + self.random_share + self.same_share
        if not math.isclose(total, 1, abs_tol=1e-6):
            message = "must sum to 1 with --random_share and --same_share."
            raise self.error("mask_share", message)

    def output_files(self) -> list[str]:
        """Returns the names in `output_file`."""
        return [name for name in self.output_file.split(",") if name]
