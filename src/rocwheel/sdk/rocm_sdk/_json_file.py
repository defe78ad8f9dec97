"""Reads the JSON files that lie among the packages, whatever has become of them."""

from __future__ import annotations

import json

from ._regular_file import NotAFileError, read_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any, TypeVar

    Kind = TypeVar("Kind")

__all__ = ["DamagedFileError", "read_field", "read_json"]

SHOWN = 60
"""Characters of a wrong value that a message shows."""


class DamagedFileError(ValueError):
    """A file of a package isn't what it should be; the text names it, what was found and what was expected."""

    def __init__(self, path: Path, found: str, expected: str) -> None:
        super().__init__(f"{path}: {found}; expected {expected}")
        self.path, self.found, self.expected = path, found, expected


def read_json(path: Path, kind: type[Kind], expected: str) -> Kind:
    """Return the value in a file.

    Raises `DamagedFileError` when it can't be read or is of another kind, `FileNotFoundError` when there is no file.
    """
    try:
        value = json.loads(read_regular(path))
    except FileNotFoundError:
        raise
    except NotAFileError as e:
        raise DamagedFileError(path, f"is {e.found}", expected) from e
    except OSError as e:
        raise DamagedFileError(path, f"can't be read ({e.strerror})", expected) from e
    except UnicodeDecodeError as e:
        raise DamagedFileError(path, f"is not UTF-8 at byte {e.start}", expected) from e
    except ValueError as e:
        raise DamagedFileError(path, f"is not JSON ({e})", expected) from e
    except RecursionError as e:
        raise DamagedFileError(path, "is nested without end", expected) from e
    if not isinstance(value, kind):
        raise DamagedFileError(path, f"holds {_show(value)}", expected)
    return value


def read_field(path: Path, value: Any, name: str, kind: type[Kind]) -> Kind:
    """Return a field of a JSON object. Raises `DamagedFileError` unless it is one and the field is of this ``kind``."""
    expected = f"an object whose {name!r} is {_NAMES[kind]}"
    if not isinstance(value, dict) or name not in value:
        raise DamagedFileError(path, f"has {_show(value)}", expected)
    field = value[name]
    if not isinstance(field, kind):
        raise DamagedFileError(path, f"has {_show(field)} for {name!r}", expected)
    return field


_NAMES: dict[type, str] = {str: "a text", list: "a list", dict: "an object"}


def _show(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
