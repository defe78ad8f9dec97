"""The tables of JSON documents name every key, with its kind of value and the docstring of its field."""

from __future__ import annotations

from enum import Enum
from typing import Literal

import msgspec

from scripts.json_tables import rows, table


class Kind(Enum):
    """A kind."""

    OLD = "old"
    NEW = "new"


class Part(msgspec.Struct):
    """A part."""

    size: int
    """The size
    in ``bytes``. (:pep:`700`)

    More about it.
    """


class Document(msgspec.Struct, rename="kebab"):
    """A document."""

    name: str | None
    kind: Kind
    is_new: bool
    all_parts: tuple[Part, ...]
    """`None` if there are no parts."""
    by_name: dict[str, Part]
    level: Literal["a", "b"]


def test_each_key_has_a_type_and_a_description() -> None:
    assert [tuple(row) for row in rows(Document, "top.")] == [
        ("top.name", "string or null", ""),
        ("top.kind", "`old`, `new`", ""),
        ("top.is-new", "true or false", ""),
        ("top.all-parts", "list of objects", "null if there are no parts."),
        ("top.all-parts.size", "number", "The size in `bytes`. (PEP 700)"),
        ("top.by-name", "object of objects", "Same keys as `top.all-parts`."),
        ("top.level", "`a`, `b`", ""),
    ]


def test_keys_are_listed_down_to_the_given_depth() -> None:
    assert [row.key for row in rows(Document, depth=1)] == ["name", "kind", "is-new", "all-parts", "by-name", "level"]


def test_a_mark_names_the_struct_and_its_key() -> None:
    first = table("verified=verify.files:Verified/1").splitlines()[2]
    assert first.startswith("| `verified.path` | string |")
