"""Tables of the keys of JSON documents, from the structs that commands print and their docstrings."""

from __future__ import annotations

import ast
import enum
import inspect
import re
import textwrap
from collections.abc import Collection, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Row", "rows", "table"]

_DEEPEST = 3
_WORDS = {str: "string", int: "number", float: "number", bool: "true or false", bytes: "string", Path: "path"}
_PLURAL = re.compile(r"^(string|number|path|object|list)\b")
_ROLE = re.compile(r":(pep|rfc):`(\d+)`")


class Row(NamedTuple):
    """A key of a document."""

    key: str
    value: str
    meaning: str


def table(places: str) -> str:
    """Return a table in Markdown of the keys of the structs at some places, which spaces separate.

    A place is a module and a class, such as ``audit.audit:AuditReport``. ``gpus=`` before it is the key that has the
    struct, and ``/2`` after it is how deep the keys go.
    """
    lines = ["| key | value | meaning |", "|---|---|---|"]
    for place in places.split():
        lead, _, rest = place.rpartition("=")
        name, _, depth = rest.partition("/")
        module, _, struct = name.partition(":")
        found = getattr(import_module(f"rocwheel.{module}"), struct)
        keys = rows(found, f"{lead}." if lead else "", int(depth or _DEEPEST))
        lines += [f"| `{row.key}` | {row.value} | {row.meaning} |" for row in keys]
    return "\n".join(lines)


def rows(struct: type[msgspec.Struct], lead: str = "", depth: int = _DEEPEST) -> list[Row]:
    """Return the keys of a struct and of the structs in it, each struct once."""
    return list(_rows(struct, lead, depth, {}))


def _rows(struct: type[msgspec.Struct], lead: str, depth: int, seen: dict[type, str]) -> Iterator[Row]:
    """Yield the keys; ``seen`` has the key of each struct."""
    hints = get_type_hints(struct, include_extras=False)
    texts = _field_texts(struct)
    for field in msgspec.structs.fields(struct):
        value, inner = _value(hints[field.name])
        key = f"{lead}{field.encode_name}"
        earlier = [f"Same keys as `{seen[one]}`." for one in inner if one in seen]
        yield Row(key, value, " ".join([text for text in [texts.get(field.name), *earlier] if text]))
        for one in inner:
            if one not in seen and depth > 1:
                seen[one] = key
                yield from _rows(one, f"{key}.", depth - 1, seen)


def _value(hint: Any) -> tuple[str, list[type[msgspec.Struct]]]:
    """Return words for a type, and the structs in it."""
    origin, inside = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        known = [_value(one) for one in inside if one not in (NoneType, msgspec.UnsetType)]
        words = " or ".join(dict.fromkeys(word for word, _ in known))
        return words + (" or null" if NoneType in inside else ""), [one for _, structs in known for one in structs]
    if origin is Literal:
        return ", ".join(f"`{one}`" for one in inside), []
    if isinstance(origin, type) and issubclass(origin, Collection):
        is_mapping = issubclass(origin, Mapping)
        word, structs = _value(inside[1 if is_mapping else 0])
        plural = _PLURAL.sub(r"\1s", word)
        return f"object of {plural}" if is_mapping else f"list of {plural}", structs
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return "object", [hint]
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return ", ".join(f"`{one.value}`" for one in hint), []
    return _WORDS.get(hint, "string"), []


@cache
def _field_texts(struct: type) -> dict[str, str]:
    """Return the docstrings below the fields of a class and of those that it inherits from."""
    found: dict[str, str] = {}
    for one in reversed(struct.__mro__[:-1]):
        if one is msgspec.Struct:
            continue
        try:
            [node] = ast.parse(textwrap.dedent(inspect.getsource(one))).body
        except (OSError, TypeError):
            continue
        assert isinstance(node, ast.ClassDef)
        for field, after in zip(node.body, node.body[1:], strict=False):
            text = _text(after)
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and text:
                first = inspect.cleandoc(text).partition("\n\n")[0]
                found[field.target.id] = _markdown(" ".join(first.split()))
    return found


def _markdown(text: str) -> str:
    plain = _ROLE.sub(lambda role: f"{role[1].upper()} {role[2]}", text)
    return plain.replace("``", "`").replace("`None`", "null").replace("|", "\\|")


def _text(node: ast.stmt) -> str:
    """Return the text of a statement that is only a string, or an empty text."""
    value = node.value.value if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) else None
    return value if isinstance(value, str) else ""
