"""HTML in small pieces: what is not markup is escaped, whoever wrote it."""

from __future__ import annotations

import base64
import hashlib
import re
from html import escape
from urllib.parse import quote

__all__ = ["Html", "element", "escaped", "finding_field", "joined", "policy_hash", "project_link"]

_VOID = frozenset(["input", "link", "meta"])

_UNSEEN = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
"""Control characters, those that turn the direction of text around, and what UTF-8 can't hold."""


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def element(tag: str, /, *children: str, **attributes: str | None) -> Html:
    """Return an element; children that are not `Html` are escaped.

    A trailing underscore of an attribute's name is left out, others become dashes. An attribute of the value ``""`` is
    written without one, and `None` leaves it out.
    """
    given = "".join(_attribute(key, value) for key, value in attributes.items() if value is not None)
    if tag in _VOID:
        return Html(f"<{tag}{given}>")
    return Html(f"<{tag}{given}>{joined(*children)}</{tag}>")


def _attribute(key: str, value: str) -> str:
    name = key.rstrip("_").replace("_", "-")
    return f' {name}="{escaped(value)}"' if value else f" {name}"


def joined(*children: str) -> Html:
    """Return pieces side by side, escaped unless they are `Html`."""
    return Html("".join(child if isinstance(child, Html) else escaped(child) for child in children))


def project_link(name: str) -> Html:
    """Return a link to a project's folder beside the page."""
    return Html(f'<a href="{quote(name.encode(errors="replace"), safe="")}/">{escaped(name)}</a>')


def finding_field(identity: str, label: str, example: str | None = None) -> Html:
    """Return a field to type in. The script shows it: without one it would do nothing."""
    field = element("input", id=identity, type="search", autocomplete="off", placeholder=example)
    return element("label", label, field, class_="find", hidden="")


def escaped(text: str) -> Html:
    """Return text as markup that shows it."""
    return Html(escape(text if text.isprintable() else _UNSEEN.sub("\ufffd", text)))


def policy_hash(text: str) -> str:
    """Return how a Content-Security-Policy allows a script or style that stands in the page (CSP 3, hash-source)."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
