"""Options of `demo.py`."""

import dataclasses

from official_bert import cli, files
from official_bert.cli import option
from official_bert.config import BertConfig

# What predicting writes, of which the report is made.
PREDICTIONS = "test_predictions.tsv"
# What the report calls fine-tuned models, and their folders.
FINETUNED = {
    "from this model": "finetuned",
    "from random weights": "not_pretrained",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Demo(cli.Options):
    """Options of `demo.py`: a model that two cores train in minutes."""

    output_dir: str = option("Folder for all that it makes.", "demo")
    vocab_size: int = option(
        "At most how many pieces to learn.", 4000, at_least=500
    )
    hidden_size: int = option("The model's width.", 128, at_least=1)
    num_hidden_layers: int = option("Its layers.", 2, at_least=1)
    num_attention_heads: int = option("Its heads.", 4, at_least=1)
    max_seq_length: int = option(
        "Pieces per instance.", 64, at_least=5, at_most=512
    )
    max_predictions_per_seq: int = option(
        "At most how many to mask in each.", 10, at_least=1
    )
    dupe_factor: int = option(
        "How often to mask the text anew.", 10, at_least=1
    )
    train_batch_size: int = option("Instances per step.", 32, at_least=1)
    learning_rate: float = option("Adam's rate at its peak.", 1e-3, at_least=0)
    num_train_steps: int = option("Pre-training steps.", 4000, at_least=1)
    finetuning_learning_rate: float = option(
        "The same when fine-tuning.", 3e-4, at_least=0
    )
    num_train_epochs: float = option(
        "How often to go over the labelled pairs.", 3.0, at_least=0
    )

    def __post_init__(self) -> None:
        """Checks what only later steps would notice."""
        super().__post_init__()
        files.require_checkpoint_path(self.output_dir)
        BertConfig(
            vocab_size=self.vocab_size,
            hidden_size=self.hidden_size,
            num_hidden_layers=self.num_hidden_layers,
            num_attention_heads=self.num_attention_heads,
        ).validate()
