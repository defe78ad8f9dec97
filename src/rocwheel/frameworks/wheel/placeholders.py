"""The ``{placeholders}`` of a wheel's description: finds them, parses their values, and fills them in."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from rocwheel.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from pathlib import Path

__all__ = ["fill_placeholders", "parse_values", "placeholder_names"]

_OPTION = "--set"
_PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9-]*)\}")


def placeholder_names(data: Mapping[str, Any]) -> frozenset[str]:
    """Return the names in a description's decoded TOML, apart from ``[values]``."""
    texts = _texts({name: value for name, value in data.items() if name != "values"})
    return frozenset(name for text in texts for name in _PLACEHOLDER.findall(text))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        yield from (text for item in value for text in _texts(item))
    elif isinstance(value, dict):
        yield from (text for pair in value.items() for item in pair for text in _texts(item))


def fill_placeholders(value: Any, known: Mapping[str, str], source: Path | str) -> Any:
    """Return decoded TOML with every ``{name}`` replaced by its value; raise `InputError` for one without a value."""
    if isinstance(value, str):
        return _PLACEHOLDER.sub(lambda match: _value(match[1], known, source), value)
    if isinstance(value, list):
        return [fill_placeholders(item, known, source) for item in value]
    if isinstance(value, dict):
        pairs = value.items()
        return {fill_placeholders(key, known, source): fill_placeholders(item, known, source) for key, item in pairs}
    return value


def _value(name: str, known: Mapping[str, str], source: Path | str) -> str:
    if name not in known:
        names = ", ".join(sorted(known))
        remedy = f"Give it with --set {name}=VALUE."
        raise InputError(source, f"names {{{name}}}, but it has no value", expected=f"one of {names}", remedy=remedy)
    return str(known[name])


def parse_values(words: Iterable[str], known: Collection[str], options: Mapping[str, str] = {}) -> dict[str, str]:
    """Parse the ``NAME=VALUE`` words that give placeholders their values, and add those that ``options`` give.

    Raises `InputError` for any other word, for a name that is neither in ``known`` nor in ``options``, and for a name
    with two values.
    """
    values = dict(options)
    for word in words:
        name, equals, value = word.partition("=")
        if not (name and equals):
            raise InputError(_OPTION, f"is {word!r}", expected="NAME=VALUE")
        if name not in known and name not in options:
            found = f"gives {name} a value, but the description has no such placeholder"
            raise InputError(_OPTION, found, expected=f"one of {', '.join(sorted(known)) or 'none'}")
        if values.setdefault(name, value) != value:
            raise InputError(
                _OPTION,
                f"gives {name} the value {value!r}, but it has the value {values[name]!r}",
                expected="one value",
            )
    return values
