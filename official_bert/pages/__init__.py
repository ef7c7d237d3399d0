"""Web pages that need nothing but themselves: no network, no other file.

A page is a template of this folder, with `style.css`, a script and the data put
into it. What a page shows is put in as text, never as markup, and its content
security policy lets the browser fetch nothing.
"""

from typing import Any


def render(name: str, **values: Any) -> str:
    """Returns a page.

    Args:
        name: Of the template, such as ``attention.html``.
        **values: What the template shows; strings are escaped.
    """
    import jinja2  # Only who draws needs it.

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("official_bert", "pages"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name).render(values)
