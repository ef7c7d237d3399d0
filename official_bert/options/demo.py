"""Options of `demo.py`."""

import dataclasses

from official_bert import cli
from official_bert.cli import option
from official_bert.config import BertConfig
from official_bert.options.checks import checkpoint_directory

# The file of predictions that the report reads.
PREDICTIONS = "test_predictions.tsv"
# The fine-tuned models in the report, and their directories.
FINETUNED = {
    "from this model": "finetuned",
    "from random weights": "not_pretrained",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Demo(cli.Options):
    """Options of `demo.py`: a model that trains in minutes on two cores."""

    output_dir: str = option(
        "Directory of all output.", "demo", check=checkpoint_directory
    )
    vocab_size: int = option(
        "Maximum number of tokens in the vocabulary.", 4000, at_least=500
    )
    hidden_size: int = option(
        "Hidden size of the model.", 128, at_least=1, heading="Model"
    )
    num_hidden_layers: int = option("Number of layers.", 2, at_least=1)
    num_attention_heads: int = option(
        "Number of attention heads.", 4, at_least=1
    )
    max_seq_length: int = option(
        "Tokens per instance.", 64, between=(5, 512), heading="Data"
    )
    max_predictions_per_seq: int = option(
        "Maximum number of masked tokens per instance.", 10, at_least=1
    )
    dupe_factor: int = option(
        "Passes over the text, with different masks.", 10, at_least=1
    )
    train_batch_size: int = option(
        "Instances per step.", 32, at_least=1, heading="Training"
    )
    learning_rate: float = option(
        "Peak learning rate of pre-training.", 1e-3, at_least=0
    )
    num_train_steps: int = option("Pre-training steps.", 4000, at_least=1)
    finetuning_learning_rate: float = option(
        "Peak learning rate of fine-tuning.", 3e-4, at_least=0
    )
    num_train_epochs: float = option(
        "Passes over the labelled pairs.", 3.0, at_least=0
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        BertConfig(
            vocab_size=self.vocab_size,
            hidden_size=self.hidden_size,
            num_hidden_layers=self.num_hidden_layers,
            num_attention_heads=self.num_attention_heads,
        ).validate()
