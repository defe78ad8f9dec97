"""License expressions (SPDX 2.3 annex D, :pep:`639`): checked, and joined for what holds several parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["expression_fault", "join_expressions"]

_AND = " AND "


def expression_fault(text: str) -> str:
    """Return what is wrong with an SPDX expression; nothing for a right one."""
    try:
        canonicalize_license_expression(text)
    except InvalidLicenseExpression as e:
        return str(e)
    return ""


def join_expressions(expressions: Iterable[str | None]) -> str | None:
    """Return the expression for what holds several parts, each term once and sorted; none if that of a part is missing.

    A choice (``OR``) is left to those who get the package.
    """
    given = list(expressions)
    if not given or not all(given):
        return None
    terms = {term for text in given for term in _terms(text or "")}
    return canonicalize_license_expression(_AND.join(sorted(terms, key=str.lower)))


def _terms(text: str) -> list[str]:
    if "(" in text or " OR " in text:
        return [f"({text})" if " OR " in text and not text.startswith("(") else text]
    return text.split(_AND)
