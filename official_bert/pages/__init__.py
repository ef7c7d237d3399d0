"""Self-contained web pages, which need no network.

A page is a template of this directory with `style.css`, a script and its data
inlined. Values are escaped, and the content security policy prevents the
browser from loading anything.
"""

from typing import Any


def render(template: str, **values: Any) -> str:
    """Returns the page of a template, such as `attention.html`, as HTML."""
    import jinja2  # Not at start-up: few commands need it.

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("official_bert", "pages"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template).render(values)
