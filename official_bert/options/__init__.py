"""Options of all commands: one frozen dataclass each, one field per flag.

Flags of the original keep their names, defaults and meanings. The defaults of
all other flags keep the original behavior. Creating options checks each value;
`resolve`, which `main` calls first, reads files and checks the rest, before
anything slow is imported or started.
"""

from official_bert.options.answers import AnswerOptions
from official_bert.options.build_vocab import BuildVocab
from official_bert.options.convert_checkpoint import ConvertCheckpoint
from official_bert.options.create_pretraining_data import CreatePretrainingData
from official_bert.options.demo import Demo
from official_bert.options.export_tfhub import ExportTfhub
from official_bert.options.extract_features import ExtractFeatures
from official_bert.options.finetuning import FinetuningOptions
from official_bert.options.predict import Predict
from official_bert.options.run_classifier import RunClassifier
from official_bert.options.run_classifier_with_tfhub import (
    RunClassifierWithTfhub,
)
from official_bert.options.run_pretraining import RunPretraining
from official_bert.options.run_squad import RunSquad
from official_bert.options.serve import Serve
from official_bert.options.visualize_attention import VisualizeAttention
