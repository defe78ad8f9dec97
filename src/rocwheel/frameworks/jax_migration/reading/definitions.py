"""Variables that a file sets, and the arguments that they bring to a call."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.messages import quoted
from rocwheel.frameworks.jax.words import Reference, pieces, reference
from rocwheel.frameworks.jax_migration.build_py import option_fates
from rocwheel.frameworks.jax_migration.reading.old_call import UndecidedError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["Definition", "Definitions", "expand_arguments", "split_fields"]

_NAME = re.compile(r"\$[({]?([A-Za-z_][\w.-]*)(?:\[[@*]\])?[)}]?")
_MOST_WORDS = 10_000
_REMEDY = "translate the whole command line by itself"


class Definition(msgspec.Struct, frozen=True):
    """What an assignment gives a variable, as the words that it is split into where it stands unquoted."""

    line: int
    words: tuple[str, ...]
    certain: bool = True
    """False under a condition, and for an assignment that adds to the value."""


Definitions = dict[str, list[Definition]]


def expand_arguments(words: Sequence[str], definitions: Mapping[str, list[Definition]]) -> list[str]:
    """Return the arguments of a call, with those that variables bring, and with the values that decide a translation.

    Raises `UndecidedError` for a variable that brings arguments and that the file doesn't set once and for all.
    """
    return list(_Expansion(definitions).arguments(words, ()))


class _Expansion:
    def __init__(self, definitions: Mapping[str, list[Definition]]) -> None:
        self.definitions = definitions
        self.count = 0

    def arguments(self, words: Sequence[str], within: tuple[str, ...]) -> Iterator[str]:
        before = ""
        for word in words:
            self.count += 1
            if self.count > _MOST_WORDS:
                message = f"its variables bring more than {_MOST_WORDS} words"
                raise UndecidedError(message)
            part = _only_reference(word)
            if part is None or _takes_value(before):
                yield self._decided(before, word)
            else:
                yield from self._brought(part, within)
            before = word

    def _brought(self, part: Reference, within: tuple[str, ...]) -> Iterator[str]:
        match = _NAME.fullmatch(part.text)
        name = match[1] if match else ""
        if name in within:
            message = f"{quoted(part.text)} is set by means of itself"
            raise UndecidedError(message)
        found = self.definitions.get(name, [])
        if not found:
            message = f"{quoted(part.text)} brings options, and this file doesn't set it: {_REMEDY}"
            raise UndecidedError(message)
        if len(found) > 1 or not found[0].certain:
            lines = ", ".join(str(item.line) for item in found[:10])
            message = f"{quoted(part.text)} brings options that depend on what runs before (line {lines}): {_REMEDY}"
            raise UndecidedError(message)
        yield from self.arguments(found[0].words, (*within, name))

    def _decided(self, before: str, word: str) -> str:
        option, equals, value = word.partition("=")
        name = (option if equals else before).removeprefix("--")
        fate = option_fates().get(name)
        if fate is None or not fate.decides or "\0" not in word:
            return word
        decided = self._value(value if equals else word)
        return f"{option}={decided}" if equals else decided

    def _value(self, value: str) -> str:
        return "".join(self._literal(part) if isinstance(part, Reference) else str(part) for part in pieces(value))

    def _literal(self, part: Reference) -> str:
        match = _NAME.fullmatch(part.text)
        found = self.definitions.get(match[1], []) if match else []
        if len(found) == 1 and found[0].certain and len(found[0].words) == 1 and "\0" not in found[0].words[0]:
            return found[0].words[0]
        message = f"{quoted(part.text)} decides what the new commands are, and this file doesn't: {_REMEDY}"
        raise UndecidedError(message)


def _only_reference(word: str) -> Reference | None:
    parts = list(pieces(word))
    return parts[0] if len(parts) == 1 and isinstance(parts[0], Reference) else None


def _takes_value(option: str) -> bool:
    fate = option_fates().get(option.removeprefix("--")) if option.startswith("--") else None
    return fate is not None and fate.kind in {"value", "append"}


def split_fields(word: str) -> tuple[str, ...]:
    """Return the words into which a shell splits an unquoted value at blanks; references stay in one piece."""
    fields, current = [], ""
    for part in pieces(word):
        if isinstance(part, str):
            first, *rest = re.split(r"\s+", part)
            current += first
            for item in rest:
                fields.append(current)
                current = item
        elif isinstance(part, Reference):
            # A value in quotes is split all the same where its variable stands without them.
            current += reference(part.text, part.language, "unquoted")
    return tuple(field for field in [*fields, current] if field)
