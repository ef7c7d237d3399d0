"""Options of `demo.py`."""

from official_bert import cli, files
from official_bert.cli import amount, count, option
from official_bert.config import BertConfig

# The file of predictions that the report reads.
PREDICTIONS = "test_predictions.tsv"
# The fine-tuned models in the report, and their directories.
FINETUNED = {
    "from this model": "finetuned",
    "from random weights": "not_pretrained",
}


class Demo(cli.Options):
    """Options of `demo.py`: a model that trains in minutes on two cores."""

    output_dir: str = option(
        "Directory of all output.", "demo", check=files.require_checkpoint_path
    )
    vocab_size: int = option("Maximum vocabulary size.", 4000, at_least=500)
    hidden_size: int = count("Hidden size of the model.", 128, heading="Model")
    num_hidden_layers: int = count("Number of layers.", 2)
    num_attention_heads: int = count("Number of attention heads.", 4)
    max_seq_length: int = option(
        "Tokens per instance.", 64, between=(5, 512), heading="Data"
    )
    max_predictions_per_seq: int = count("Masked tokens per instance.", 10)
    dupe_factor: int = count("Passes over the text, with different masks.", 10)
    train_batch_size: int = count("Instances per step.", 32, heading="Training")
    learning_rate: float = amount("Peak learning rate of pre-training.", 1e-3)
    num_train_steps: int = count("Pre-training steps.", 4000)
    finetuning_learning_rate: float = amount(
        "Peak learning rate of fine-tuning.", 3e-4
    )
    num_train_epochs: float = amount("Passes over the labelled pairs.", 3.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        BertConfig(
            vocab_size=self.vocab_size,
            hidden_size=self.hidden_size,
            num_hidden_layers=self.num_hidden_layers,
            num_attention_heads=self.num_attention_heads,
        ).validate()
