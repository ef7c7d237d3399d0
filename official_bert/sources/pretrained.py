"""Finds the model that a `--model` value names.

The value is a directory, a released model or a Hugging Face repository. Weights
stay where they are, in any format that `convert_checkpoint.py` reads. Configs
and vocabularies of other formats are translated to `bert_config.json` and
`vocab.txt`, in a cache.
"""

import atexit
import dataclasses
import functools
import hashlib
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from absl import logging

from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.io import files
from official_bert.runs.file_names import CONFIG, VOCAB
from official_bert.sources import (
    checkpoint_paths,
    formats,
    task_file,
    tokenizer_files,
)
from official_bert.sources.downloads import download
from official_bert.sources.embedding_settings import EmbeddingSettings
from official_bert.sources.formats import METADATA_PATTERNS
from official_bert.sources.formats.huggingface import files as huggingface_files
from official_bert.sources.formats.huggingface import sentence_transformers
from official_bert.sources.formats.tf1 import files as tf1_files
from official_bert.sources.released_models import released
from official_bert.tokenization.normalize import normalize
from official_bert.tokenization.settings import (
    CASED,
    UNCASED,
    UNKNOWN,
    TokenizerSettings,
)

if TYPE_CHECKING:
    from official_bert.tokenization import Tokenizer


@dataclasses.dataclass(frozen=True)
class ModelFiles:
    """The files of a model, under the names of their flags.

    `init_checkpoint` is a TF1 checkpoint prefix, a run directory whose newest
    checkpoint is used, a Hugging Face directory or a KerasHub preset.
    `vocab_file` is empty if there is none. Files are read at most once.
    """

    bert_config_file: str = ""
    vocab_file: str = ""
    init_checkpoint: str = ""
    do_lower_case: bool | None = None  # None: as in the tokenizer's files.
    strip_accents: str = "auto"
    never_split: str = ""

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Returns the names of the flags; the first three name files."""
        return tuple(field.name for field in dataclasses.fields(cls))

    def __getstate__(self) -> dict[str, Any]:
        """Returns the fields: what was read may refer to modules."""
        return {name: getattr(self, name) for name in self.names()}

    @functools.cached_property
    def source(self) -> formats.Source:
        """The format of the weights, which may be in a directory."""
        return formats.find(self.init_checkpoint, self.init_checkpoint)

    @functools.cached_property
    def config(self) -> BertConfig:
        """The checked config; reading it may raise an `InputError`."""
        return BertConfig.from_json_file(self.bert_config_file)

    @functools.cached_property
    def vocab(self) -> str:
        """The content of the vocabulary file; "" without one."""
        return files.read_text(self.vocab_file) if self.vocab_file else ""

    @functools.cached_property
    def vocab_source(self) -> str:
        """The file or model that the vocabulary comes from, for messages."""
        return self.vocab_file

    @functools.cached_property
    def settings(self) -> TokenizerSettings:
        """The tokenizer's settings: those beside the vocabulary, and flags."""
        beside = UNKNOWN
        if self.vocab_file:
            beside = tokenizer_files.read(os.path.dirname(self.vocab_file))
        return beside.with_flags(
            self.do_lower_case, self.strip_accents, self.never_split
        )

    @functools.cached_property
    def embedding(self) -> EmbeddingSettings | None:
        """How a text becomes a vector, if the model was trained for it."""
        return sentence_transformers.read(self.init_checkpoint)

    @functools.cached_property
    def task(self) -> dict[str, Any]:
        """The `task.json` of a fine-tuned model; {} for other models.

        For a model of transformers, it has only the kind and the labels; a
        model with one output is a regression model, without labels.
        """
        directory = self.init_checkpoint
        if task := task_file.read_beside(directory):
            return task
        if not files.exists(os.path.join(directory, huggingface_files.CONFIG)):
            return {}
        config_json = self.source.config_json
        head = huggingface_files.head(config_json)
        if not (head and head.task):
            return {}
        labels: tuple[str, ...] = ()
        if head.task in ("text", "tagging"):
            labels = huggingface_files.labels(config_json)
        return {
            "kind": head.task,
            "labels": [*labels] if len(labels) > 1 else [],
        }

    @functools.cached_property
    def tokenizer(self) -> "Tokenizer":
        """The tokenizer of the vocabulary and the settings."""
        return self.make_tokenizer()

    @property
    def special_tokens(self) -> tuple[str, ...]:
        """See `tokenizer_files.special_tokens`."""
        return tokenizer_files.special_tokens(self.vocab)

    def make_tokenizer(self, never_split: Sequence[str] = ()) -> "Tokenizer":
        """Returns a tokenizer that keeps more tokens whole."""
        from official_bert.tokenization import Tokenizer  # Imports NumPy.

        if not self.vocab_file:
            raise InputError(
                f"{self.init_checkpoint} has neither vocab.txt nor "
                "tokenizer.json. Copy one of them there."
            )
        return Tokenizer(
            self.vocab_file, never_split=never_split, settings=self.settings
        )

    def tokenizer_for(
        self, config: BertConfig, never_split: Sequence[str] = ()
    ) -> "Tokenizer":
        """Returns the tokenizer; `InputError` if it does not fit the config."""
        tokenizer = (
            self.make_tokenizer(never_split) if never_split else self.tokenizer
        )
        config.require_vocabulary(tokenizer.vocab, self.vocab_source)
        return tokenizer


def find(
    model: str | os.PathLike[str], vocab_file: str | None = None
) -> ModelFiles:
    """Returns the files of a model; downloads all files except its weights.

    Args:
        model: A directory, a name in `released`, or OWNER/NAME[@REVISION] on
            the Hugging Face Hub. See `download_weights`.
        vocab_file: The vocabulary that will replace the model's. If the model
            has none, this one shows the casing.

    Raises:
        InputError: There is no such model, it cannot be downloaded, or it is
            not a BERT model in a supported format.
    """
    model = os.path.expanduser(model)
    if files.exists(model):
        directory = model.rstrip("/")
    else:
        directory = download(model, METADATA_PATTERNS)
    directory = sentence_transformers.transformer_directory(directory)
    source = formats.find(directory, model)
    checkpoint, config_file = directory, None
    if source.format.files is tf1_files:
        checkpoint = checkpoint_paths.find(directory)
        config_file = _config_of_checkpoint(directory, source, model)
    if config_file:
        own_vocab = checkpoint_paths.beside(directory, VOCAB) or ""
        folder = os.path.dirname(config_file)
        settings = tf1_files.read_settings(folder)
        casing = _casing(folder, own_vocab or vocab_file or "", settings)
        found = ModelFiles(config_file, own_vocab, checkpoint, **casing)
    else:
        found = _translated(source, checkpoint, vocab_file or "", model)
    if checkpoint == directory:  # So that it is not read again.
        vars(found)["source"] = source
    return found


def _translated(
    source: formats.Source, checkpoint: str, vocab_file: str, model: str
) -> ModelFiles:
    """Returns the files of a model without `bert_config.json`.

    Its config and its vocabulary are translated. See `find` for the arguments.
    """
    directory, reader = source.path, source.format.files
    if reader is tf1_files:  # A repository with config.json.
        reader = huggingface_files
    config = reader.read_config(directory, source.config_json)
    config_cache = _cache({CONFIG: config.to_json_string()})
    vocab, settings = reader.read_tokenizer(directory)
    own_vocab = ""
    if vocab is not None:
        text = tokenizer_files.config_text(vocab, settings)
        vocab_cache = _cache({VOCAB: vocab, tokenizer_files.CONFIG: text})
        own_vocab = os.path.join(vocab_cache, VOCAB)
    casing = _casing(directory, own_vocab or vocab_file, settings)
    config_file = os.path.join(config_cache, CONFIG)
    found = ModelFiles(config_file, own_vocab, checkpoint, **casing)
    if vocab is not None:  # So that it is not read again.
        vars(found).update(vocab=vocab, vocab_source=model)
    return found


def _config_of_checkpoint(
    directory: str, source: formats.Source, model: str
) -> str | None:
    """Returns the `bert_config.json` beside a TF1 checkpoint, if any.

    Raises `InputError`, which names the model, if there is no `config.json`
    instead.
    """
    path = checkpoint_paths.beside(directory, CONFIG)
    if path is None and task_file.is_in(directory):
        raise InputError(
            f"{model}: has no {CONFIG}, because it was trained from a TF "
            "Hub module. Only predict.py --model_dir supports it."
        )
    if path is None and not source.config_json.content:
        raise InputError(
            f"{model}: has a checkpoint, but no {CONFIG}. Copy it there, or "
            "pass --bert_config_file, --vocab_file and --init_checkpoint "
            "instead of --model."
        )
    return path


def run_files(
    directory: str,
    do_lower_case: bool | None = None,
    vocab_file: str | None = None,
) -> ModelFiles:
    """Returns the files that training writes, whether or not they exist.

    By default, `do_lower_case` has its value from training or, if training did
    not store it, fits the vocabulary. `vocab_file` replaces the run's.
    """
    vocab_file = vocab_file or os.path.join(directory, VOCAB)
    casing: dict[str, Any] = {"do_lower_case": do_lower_case}
    if do_lower_case is None:
        settings = tf1_files.read_settings(directory)
        casing = _casing(directory, vocab_file, settings)
    return ModelFiles(
        os.path.join(directory, CONFIG),
        vocab_file,
        checkpoint_paths.find(directory),
        **casing,
    )


def download_weights(model: str | os.PathLike[str], checkpoint: str) -> None:
    """Downloads the weights of a model, if `find` returned this `checkpoint`.

    Directories and other checkpoints are local already.
    """
    model = os.path.expanduser(model)
    if files.exists(model):
        return
    directory = download(model, METADATA_PATTERNS)
    if f"{checkpoint}/".startswith(f"{directory}/"):
        download(model, commit=os.path.basename(directory))


def _casing(
    directory: str, vocab_file: str, settings: TokenizerSettings
) -> dict[str, Any]:
    """Returns the casing in files, name or vocabulary, as in `ModelFiles`."""
    lower = task_file.read(directory).get("do_lower_case")
    if lower is None:
        lower = settings.do_lower_case
    row = released().get(os.path.basename(directory))
    if lower is None and row:
        lower = row["casing"] == "uncased"
    if lower is not None or not files.exists(vocab_file):
        return {"do_lower_case": lower is not False}
    guess = guess_casing(files.read_text(vocab_file))
    casing: dict[str, Any] = {"do_lower_case": guess.do_lower_case}
    if guess.strip_accents is False:
        casing["strip_accents"] = "false"
    return casing


def warn_of_casing(model_files: ModelFiles) -> None:
    """Warns if a vocabulary seems to have the other casing."""
    vocab, settings = model_files.vocab, model_files.settings
    guess = guess_casing(vocab)
    problem = ""
    if settings.is_uncased and not guess.is_uncased:
        problem = "cased, but the text is lower-cased. Add --nodo_lower_case"
    elif guess.is_uncased and not settings.is_uncased:
        problem = (
            "uncased, but the text is not lower-cased. Omit --nodo_lower_case"
        )
    elif settings.strips_accents and guess.strip_accents is False:
        problem = (
            "uncased and has accents, but they are removed from the text. "
            "Add --strip_accents=false"
        )
    # Vocabularies of scripts without capitals, such as Arabic, fit both.
    if problem and re.search(r"^[a-z]{2}", vocab, re.MULTILINE):
        logging.warning(f"{model_files.vocab_source} looks {problem}")


def guess_casing(vocab: str) -> TokenizerSettings:
    """Returns the settings that change at most 1% of the tokens.

    Special tokens such as [CLS] do not count. Whether text is lower-cased
    depends only on tokens with letters that have a case.
    """
    tokens = [token for token in vocab.split() if token[0] != "["]
    if _keep(UNCASED, tokens):
        return UNCASED
    with_case = [token for token in tokens if token != token.swapcase()]
    with_accents = dataclasses.replace(UNCASED, strip_accents=False)
    if with_case and _keep(with_accents, with_case):
        return with_accents
    return CASED


def _keep(uncased: TokenizerSettings, tokens: Sequence[str]) -> bool:
    changed = [
        t for t in tokens if normalize(t, uncased) != normalize(t, CASED)
    ]
    return len(changed) <= len(tokens) / 100


def _cache(texts: Mapping[str, str]) -> str:
    """Returns a directory in the user's cache with files of {name: text}.

    If it cannot be written, as in containers with a read-only home, returns a
    temporary one.
    """
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    content = "".join(texts.values())
    digest = hashlib.sha256(content.encode("utf-8")).hexdigest()[:16]
    directory = os.path.join(home, "official_bert", digest)
    try:
        _write_missing(directory, texts)
    except InputError as error:
        try:
            directory = tempfile.mkdtemp()
        except OSError:
            raise InputError(
                f"{error} To use another directory, set XDG_CACHE_HOME."
            ) from error
        atexit.register(files.remove_directory, directory)
        _write_missing(directory, texts)
    return directory


def _write_missing(directory: str, texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        path = os.path.join(directory, name)
        if not files.exists(path):
            files.write_text(path, text)
