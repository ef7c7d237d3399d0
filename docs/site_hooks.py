"""Adds the pages outside of docs/ and the docstrings of the API to the site."""

import os
import posixpath
import re

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# {path in the repository: path on the site}.
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
    "data/README.md": "data.md",
    "data/bert_tiny/README.md": "bert_tiny_demo.md",
    "benchmarks/README.md": "benchmarks.md",
    "tools/README.md": "tools.md",
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages of `PAGES`."""
    for source, target in PAGES.items():
        with open(os.path.join(ROOT, source), encoding="utf-8") as file:
            content = file.read()
        files.append(File.generated(config, target, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Replaces links of the repository by docstrings and links of the site."""
    target = page.file.src_uri
    if target.startswith("api/"):
        item = r"^\* \[`(.+)`\].*$"
        return re.sub(item, r"::: \1", markdown, flags=re.MULTILINE)
    sources = {site: source for source, site in PAGES.items()}
    source = sources.get(target, f"docs/{target}")

    def replace(match: re.Match[str]) -> str:
        path = posixpath.join(posixpath.dirname(source), match[1])
        path = posixpath.normpath(path)
        path = PAGES.get(path, path.removeprefix("docs/"))
        return f"]({posixpath.relpath(path, posixpath.dirname(target) or '.')}"

    return re.sub(r"\]\((?!\w+:|#)([^)#]+)", replace, markdown)
