"""Options of `extract_features.py`."""

import dataclasses
import os

from official_bert import cli, files
from official_bert.cli import option
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.options.checks import check_outputs
from official_bert.options.model_source import require_released

POOLINGS = ("none", "cls", "mean", "max")

_ENDINGS = {".npy": "npy", ".tfrecord": "tfrecord", ".tf_record": "tfrecord"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExtractFeatures(cli.Options):
    """Options of `extract_features.py`."""

    input_file: str = option(
        "Texts, one a line; a pair is two with ` ||| ` between. .gz is "
        "unpacked."
    )
    output_file: str = option("Where to write the vectors.")
    layers: str = option(
        "Whose outputs to write, comma-separated: 0 is the lowest layer, -1 "
        "the highest.",
        "-1,-2,-3,-4",
    )
    bert_config_file: str = option("The bert_config.json of the model.")
    max_seq_length: int = option(
        "Pieces per sequence, [CLS] and [SEP]s included; longer texts are cut "
        "off.",
        128,
        at_least=3,
    )
    init_checkpoint: str = option(
        "TF1 checkpoint of the model, such as uncased_L-12_H-768_A-12/"
        "bert_model.ckpt."
    )
    vocab_file: str = option("The vocabulary the model was trained with.")
    do_lower_case: bool = option(
        "Whether to lower-case the text. True for uncased models.", True
    )
    batch_size: int = option("Sequences at once.", 32, at_least=1)
    use_tpu: bool = option(
        "Accepted if false: vectors are made on this machine's GPU or CPU.",
        False,
    )
    master: str | None = option(
        "Accepted for old command lines; it has no effect.", None
    )
    num_tpu_cores: int = option(
        "Accepted for old command lines; it has no effect.", 8
    )
    use_one_hot_embeddings: bool = option(
        "Accepted for old command lines; it has no effect.", False
    )
    pooling: str = option(
        "none: a vector for every piece. One for a whole line: cls: that of "
        "[CLS]; mean and max: over all its pieces, [CLS] and [SEP] among them.",
        "none",
        choices=POOLINGS,
    )
    normalize: bool = option(
        "Whether to divide every vector by its length.", False
    )
    output_format: str = option(
        "jsonl: JSON lines, as in 2018. npy: with `pooling`, a float32 array "
        "[lines, layers * hidden size]. tfrecord: a tf.train.Example for each "
        "line. auto: as the name of the file ends, else jsonl.",
        "auto",
        choices=("auto", "jsonl", "npy", "tfrecord"),
    )

    @property
    def resolved_format(self) -> str:
        """What `output_format` comes to."""
        if self.output_format != "auto":
            return self.output_format
        ending = os.path.splitext(self.output_file)[1]
        return _ENDINGS.get(ending, "jsonl")

    @property
    def layer_indexes(self) -> list[int]:
        """The numbers in `layers`."""
        return [int(part) for part in self.layers.split(",")]

    def __post_init__(self) -> None:
        """Checks everything that can be checked without TensorFlow."""
        super().__post_init__()
        if self.use_tpu:
            raise InputError(
                "--use_tpu must be false. Received: true. Vectors are made on "
                "this machine's GPU or CPU; leave it out."
            )
        config = BertConfig.from_json_file(self.bert_config_file)
        config.require_length(self.max_seq_length)
        self._check_layers(config.num_hidden_layers)
        require_pooling(self.pooling, config)
        if self.resolved_format == "npy" and self.pooling == "none":
            raise InputError(
                "A .npy file must have one vector for each line. Received: "
                "--pooling=none. Choose cls, mean or max, or another "
                "--output_format."
            )
        require_released(
            config, self.vocab_file, self.init_checkpoint, self.do_lower_case
        )
        self._check_files()

    def _check_layers(self, num_hidden_layers: int) -> None:
        try:
            indexes = self.layer_indexes
        except ValueError:
            indexes = []
        if not indexes or not all(
            -num_hidden_layers <= index < num_hidden_layers for index in indexes
        ):
            raise InputError(
                f"--layers must be numbers from {-num_hidden_layers} to "
                f"{num_hidden_layers - 1}, comma-separated. Received: "
                f"{self.layers!r}. Say which of the model's are wanted."
            )

    def _check_files(self) -> None:
        files.require(self.input_file, "--input_file")
        is_remote = files.is_remote(self.input_file)
        # It is read twice: first to check it and to count its lines.
        if not is_remote and not os.path.isfile(self.input_file):
            raise InputError(
                "--input_file must be a file. Received: "
                f"{self.input_file!r}, which can be read only once. Write it "
                "to a file."
            )
        inputs = [self.input_file, self.bert_config_file, self.vocab_file]
        check_outputs("--output_file", [self.output_file], inputs)


def require_pooling(pooling: str, config: BertConfig) -> None:
    """Raises `InputError` if what is pooled says nothing of the text."""
    if pooling == "cls" and config.is_left_to_right:
        raise InputError(
            "The pooling cls needs a model whose [CLS] sees the text. "
            "Received: one that reads from left to right, whose [CLS] sees "
            "itself alone. Choose mean or max."
        )
