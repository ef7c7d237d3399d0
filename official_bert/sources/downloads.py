"""Downloads of models from the Hugging Face Hub."""

import difflib
import functools
import logging as stdlib_logging
import os
import re

from official_bert.errors import InputError, first_line, listed
from official_bert.io import files
from official_bert.runs import file_names
from official_bert.sources import checkpoint_paths, formats
from official_bert.sources.formats import METADATA_PATTERNS, WEIGHTS_PATTERNS
from official_bert.sources.released_models import DEMO, released

_REPOSITORY = re.compile(r"\w[\w.-]*/\w[\w.-]*(@.+)?")
_ARCHIVES = "https://storage.googleapis.com/bert_models/"


def is_name(model: str) -> bool:
    """Whether this can be a name in `released`, or OWNER/NAME[@REVISION]."""
    return model in released() or bool(_REPOSITORY.fullmatch(model))


@functools.cache
def download(
    model: str,
    patterns: tuple[str, ...] = METADATA_PATTERNS + WEIGHTS_PATTERNS,
    commit: str = "",
) -> str:
    """Returns the directory of a repository's files in the Hub's cache.

    Only files that the cache lacks are downloaded. `commit` overrides the
    revision. `DEMO` is in the directory of the commands.
    """
    if model == DEMO:
        return os.path.join(
            files.data_directory(), released()[DEMO]["repository"]
        )
    if not is_name(model):
        raise _unknown(model)
    name, _, revision = model.partition("@")
    archive = ""
    if name in released():
        row = released()[name]
        name, archive = row["repository"], row["archive"]
    import huggingface_hub
    from huggingface_hub import errors

    # absl would show a line for every request.
    stdlib_logging.getLogger("httpx2").setLevel(stdlib_logging.WARNING)
    try:
        directory: str = huggingface_hub.snapshot_download(
            name,
            revision=commit or revision or None,
            allow_patterns=list(patterns),
        )
    # The client raises the others for proxies that it does not support.
    except (
        *(OSError, ImportError, ValueError),
        *(errors.HTTPError, errors.XetDownloadError),
    ) as error:
        problem = _download_problem(error, revision, archive)
        raise InputError(f"{name} {problem}") from error
    if not commit:
        _require_weights(name, directory)
    return directory


def _unknown(model: str) -> InputError:
    rows = released().items()
    similar = [n for n, r in rows if r["repository"].endswith(f"/{model}")]
    similar += difflib.get_close_matches(model, released(), 1, 0.75)
    hint = f"Did you mean {similar[0]}? " if similar else ""
    if files.exists(f"{model}{file_names.INDEX}"):
        hint = "For a checkpoint, pass its directory. "
    return InputError(
        f"{model!r} must be a directory, the name of a released model, or "
        "OWNER/NAME on the Hugging Face Hub, such as sentence-transformers/"
        f"all-MiniLM-L6-v2. {hint}`python run_classifier.py --model=list` "
        "shows the released models."
    )


def _download_problem(error: Exception, revision: str, archive: str) -> str:
    from huggingface_hub import errors

    # From special to general kinds of errors.
    problems: dict[type[Exception], str] = {
        errors.HFValidationError: "is neither a directory nor a valid name on "
        f"the Hugging Face Hub: {first_line(error)}",
        errors.RevisionNotFoundError: f"has no revision {revision}.",
        errors.GatedRepoError: "requires permission. Request access on the "
        "page of the model, then log in with `hf auth login`.",
        errors.RepositoryNotFoundError: "is neither a directory nor a "
        "repository on the Hugging Face Hub. Check the name; for a private "
        "repository, log in with `hf auth login`.",
    }
    for kind, problem in problems.items():
        if isinstance(error, kind):
            return problem
    local = "pass a local directory"
    if archive:
        local = f"unpack {_ARCHIVES}{archive}.zip, and pass the directory"
    return (
        "cannot be downloaded. Check the connection, HF_ENDPOINT, "
        f"HF_HUB_OFFLINE and proxies (ALL_PROXY), or {local}. Received: "
        f"{first_line(error).removeprefix('Got: ')}"
    )


def _require_weights(repository: str, directory: str) -> None:
    """Raises `InputError` if a repository has no weights that can be read."""
    import huggingface_hub

    if checkpoint_paths.has_any(
        files.list_directory(directory), WEIGHTS_PATTERNS
    ):
        return  # They are in the cache.
    api = huggingface_hub.HfApi()
    try:
        commit = os.path.basename(directory)
        names = api.list_repo_files(repository, revision=commit)
    except (OSError, huggingface_hub.errors.HTTPError):
        return  # Without a connection, downloading the weights fails anyway.
    if checkpoint_paths.has_any(names, WEIGHTS_PATTERNS):
        return
    for row in released().values():
        if row["repository"] == repository:
            raise InputError(
                f"{repository} has no safetensors. Download and unpack "
                f"{_ARCHIVES}{row['archive']}.zip, and pass the directory."
            )
    for name in names:
        formats.require_readable(f"{repository}/{name}")
    raise InputError(f"{repository} has no weights. Received: {listed(names)}.")
