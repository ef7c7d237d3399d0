"""What every command can be told: one frozen dataclass each, one field a flag.

Names, defaults and meanings of the 2018 release's flags are its own; flags that
it did not have stand last in each class and leave the old behaviour alone.
All values are checked here, before anything slow is imported or begun.
"""

from official_bert.options.classification import RunClassifier
from official_bert.options.conversion import ConvertCheckpoint
from official_bert.options.demo import Demo
from official_bert.options.export import ExportTfhub
from official_bert.options.features import ExtractFeatures
from official_bert.options.finetuning import Finetuning
from official_bert.options.hub import RunClassifierWithTfhub
from official_bert.options.prediction import Predict
from official_bert.options.pretraining import RunPretraining
from official_bert.options.pretraining_data import CreatePretrainingData
from official_bert.options.squad import RunSquad
from official_bert.options.visualization import VisualizeAttention
from official_bert.options.vocabulary import BuildVocab

__all__ = [
    "BuildVocab",
    "ConvertCheckpoint",
    "CreatePretrainingData",
    "Demo",
    "ExportTfhub",
    "ExtractFeatures",
    "Finetuning",
    "Predict",
    "RunClassifier",
    "RunClassifierWithTfhub",
    "RunPretraining",
    "RunSquad",
    "VisualizeAttention",
]
