"""Options of `create_pretraining_data.py`."""

import dataclasses
import math
import shlex

from official_bert import cli, files
from official_bert.cli import option
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.options.checks import check_outputs

RUNNERS = ("DirectRunner", "FlinkRunner", "SparkRunner", "DataflowRunner")

# What the two segments of an instance are for.
PAIR_TASKS = ("next", "sop", "none")

# Short ones, of some 30 pieces, still fill a row of 512.
MAX_SEQUENCES_PER_ROW = 16


@dataclasses.dataclass(frozen=True, kw_only=True)
class CreatePretrainingData(cli.Options):
    """Options of `create_pretraining_data.py`."""

    input_file: str = option(
        "Text, one sentence a line, documents parted by blank lines: files or "
        "globs, comma-separated; .gz is unpacked."
    )
    output_file: str = option(
        "TFRecord files to write, comma-separated; instances go to them in "
        "turn."
    )
    vocab_file: str = option("The vocabulary the model is trained with.")
    do_lower_case: bool = option(
        "Whether to lower-case the text. True for uncased models.", True
    )
    do_whole_word_mask: bool = option(
        "Whether to mask whole words rather than single pieces.", False
    )
    max_seq_length: int = option(
        "Pieces per instance, [CLS] and [SEP]s included.",
        128,
        # Three special tokens, and one piece for each of the two segments.
        at_least=5,
    )
    max_predictions_per_seq: int = option(
        "At most how many pieces to mask in an instance.", 20, at_least=1
    )
    random_seed: int = option("Random seed; the same gives the same.", 12345)
    dupe_factor: int = option(
        "How often to go over the text, with other masks.", 10, at_least=1
    )
    masked_lm_prob: float = option(
        "The share of pieces to mask.", 0.15, at_least=0, at_most=1
    )
    mask_share: float = option(
        "The share of these that [MASK] stands for; with the next two it must "
        "sum to 1.",
        0.8,
        at_least=0,
        at_most=1,
    )
    random_share: float = option(
        "The share that a random piece stands for.", 0.1, at_least=0, at_most=1
    )
    same_share: float = option(
        "The share that is left as it is.", 0.1, at_least=0, at_most=1
    )
    nsp: str = option(
        "What instances are. next: two segments, the second from elsewhere "
        "half the time. sop: two that follow each other, half the time in the "
        "other order. none: one segment.",
        "next",
        choices=PAIR_TASKS,
    )
    short_seq_prob: float = option(
        "The share of instances made shorter than `max_seq_length`.",
        0.1,
        at_least=0,
        at_most=1,
    )
    num_workers: int = option(
        "Processes that make other instances than without them, but the same "
        "for any number, in bounded memory. 0 draws as the 2018 release does.",
        0,
        at_least=0,
    )
    runner: str | None = option(
        "The Apache Beam runner to make them with instead; they are those of "
        "`num_workers`. Needs requirements-beam.txt.",
        None,
        choices=RUNNERS,
    )
    beam_options: str | None = option(
        "Flags for the Beam runner, in one string: '--flink_master=HOST:8081'.",
        None,
    )
    compress: bool = option(
        "Whether to write the records through GZIP. Training reads them as "
        "they are.",
        False,
    )
    pack_sequences: bool = option(
        "Whether to put several short instances into one row, so that hardly "
        "any of it is padding; --max_predictions_per_seq is then per row.",
        False,
    )
    max_sequences_per_row: int = option(
        "With `pack_sequences`: at most how many instances a row has.",
        MAX_SEQUENCES_PER_ROW,
        at_least=1,
    )
    bert_config_file: str | None = option(
        "The model the records are for; if given, its sizes are checked "
        "against vocabulary and length.",
        None,
    )

    def __post_init__(self) -> None:
        """Checks what can be checked before the text is read."""
        super().__post_init__()
        inputs = [*files.expand(self.input_file), self.vocab_file]
        if self.bert_config_file:
            inputs.append(self.bert_config_file)
        files.require(self.vocab_file, "--vocab_file")
        check_outputs("--output_file", self.output_files(), inputs)
        if not self.output_files():
            raise InputError(
                "--output_file must name at least one file. "
                f"Received: {self.output_file!r}. Name the TFRecords to write."
            )
        if self.bert_config_file:
            config = BertConfig.from_json_file(self.bert_config_file)
            config.require_length(self.max_seq_length)
        if self.runner and self.num_workers:
            raise InputError(
                "--runner and --num_workers exclude each other. Received: "
                f"--runner={self.runner} --num_workers={self.num_workers}. "
                "How many workers Beam has is said in --beam_options."
            )
        if self.beam_options and not self.runner:
            raise InputError(
                "--beam_options needs --runner. Received: "
                f"{self.beam_options!r}. Name the runner."
            )
        self.beam_flags()  # Raises, if they cannot be read.
        if self.pack_sequences:
            self._require_room_for_predictions()
        shares = (self.mask_share, self.random_share, self.same_share)
        if not math.isclose(sum(shares), 1, abs_tol=1e-6):
            raise InputError(
                "--mask_share, --random_share and --same_share must sum to 1. "
                f"Received: {', '.join(map(str, shares))}. Give all three."
            )

    def _require_room_for_predictions(self) -> None:
        needed = math.ceil(self.masked_lm_prob * self.max_seq_length)
        if self.max_predictions_per_seq < needed:
            raise InputError(
                "With --pack_sequences, --max_predictions_per_seq must be at "
                "least --masked_lm_prob times --max_seq_length: it is for all "
                "instances of a row, which else stays half empty. Received: "
                f"{self.max_predictions_per_seq}. Pass {needed} or a few more."
            )

    def beam_flags(self) -> list[str]:
        """Returns the flags in `beam_options`.

        Raises:
            InputError: They are not what a shell would read.
        """
        try:
            return shlex.split(self.beam_options or "")
        except ValueError as error:
            raise InputError(
                "--beam_options must be flags as in a shell. Received: "
                f"{self.beam_options!r} ({error})."
            ) from error

    def output_files(self) -> list[str]:
        """Returns the names in `output_file`."""
        return [name for name in self.output_file.split(",") if name]
