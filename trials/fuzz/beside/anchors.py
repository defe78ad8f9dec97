"""What html5lib, made after the standard of browsers, reads of links, held against what rocwheel has of html.parser."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import html5lib

from trials.fuzz.harness import require

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element  # nosec B405 (a type alone)

    from rocwheel.index.pages import RawPage

__all__ = ["compare_anchors"]

# Where tags are misnested or unfinished, or their contents aren't text (scripts, tables, comments), browsers mend the
# page in ways that reading tag by tag can't follow. And html.parser differs over references without a semicolon from
# one release of Python to the next.
_REFERENCE = r"&(?:amp|lt|gt|quot|nbsp|eacute|\#(?:39|x27|233|xe9));"
_TEXT = rf"(?:[^<&\0\r\x01-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]|{_REFERENCE})*"
_QUOTED = rf"(?:[^<>&\0\r\"'`\x01-\x08\x0b-\x1f\x7f-\x9f]|{_REFERENCE})*"
_VALUE = rf"(?:\"{_QUOTED}\"|'{_QUOTED}'|[\w./:%@+-]+)"
_ATTRIBUTES = rf"(?:[ \n\t]+[a-zA-Z][a-zA-Z-]*(?:[ ]?=[ ]?{_VALUE})?)*[ \n]?"
_PLAIN = re.compile(
    rf"(?:<!DOCTYPE\ html>)?(?:{_TEXT}(?:<[aA]{_ATTRIBUTES}>{_TEXT}</[aA][ ]?>"
    rf"|<(?:base|meta|br|hr|link){_ATTRIBUTES}>|</?(?:html|head|body|div|ul|li|p|h1|span)[ ]?>))*{_TEXT}",
    re.ASCII | re.VERBOSE,
)
_LARGEST = 4000
"""Characters, for which html5lib takes some 4 ms."""


def compare_anchors(page: RawPage, text: str) -> None:
    """Require that html5lib has the same links of a plain page, with their texts and notes, relative to the same."""
    if len(text) > _LARGEST or not _PLAIN.fullmatch(text):
        return
    document = html5lib.parse(text, namespaceHTMLElements=False)
    anchors = [anchor for anchor in document.iter("a") if anchor.get("href") is not None]
    own = [(file.url, file.requires_python, file.yanked_reason) for file in page.files]
    theirs = [
        (_without_fragment(one.get("href")), one.get("data-requires-python"), one.get("data-yanked")) for one in anchors
    ]
    require(own == theirs, f"links {own}, html5lib has {theirs}")
    hashes = [(file.hashes, file.metadata_hashes) for file in page.files]
    promised = [(_digests(one.get("href").strip().partition("#")[2]), _promised(one)) for one in anchors]
    require(hashes == promised, f"hashes {hashes}, html5lib has {promised}")
    texts = ["".join(anchor.itertext()).strip() for anchor in anchors]
    require(list(page.projects) == texts, f"texts {page.projects}, html5lib has {texts}")
    bases = [one.get("href") for one in document.iter("base") if one.get("href") is not None]
    require(page.base == (bases or [""])[0], f"base {page.base!r}, html5lib has {bases}")


def _without_fragment(address: str) -> str:
    return address.strip().partition("#")[0]


def _promised(anchor: Element) -> dict[str, str] | None:
    """Return the hashes of core metadata (:pep:`714`): by its newer name where there are both."""
    text = anchor.get("data-core-metadata", anchor.get("data-dist-info-metadata"))
    return None if text is None or text == "false" else _digests(text)


def _digests(text: str) -> dict[str, str]:
    words = [word.split("=", 1) for word in text.split("&") if "=" in word]
    return {name: digest for name, digest in words if digest}
