"""Words that can't be meant as a place or the name of a library, such as empty ones: refused for all commands here."""

from __future__ import annotations

import re
from pathlib import Path, PosixPath
from typing import Any, get_args

from rocwheel.core.errors import InputError

__all__ = ["FolderToMake", "check_place_words"]

_METAVARS = frozenset({"DIR", "DIST_DIR", "FILE", "FOLDER", "PATH", "PLACE", "PREFIX", "STORE", "URL"})
"""What parameters are called that take places as texts; those of the type `Path` are known by that."""
_FEW_SLASHES = re.compile(r"(s3|https?|file):(?!//)(/?)", re.IGNORECASE)


_LIBRARY = "LIBRARY"


class FolderToMake(PosixPath):
    """A path as it was given with a slash at its end, which paths don't keep."""


def check_place_words(parameter: Any, value: Any) -> None:
    """Raise `InputError` for an empty word where ``parameter`` takes a place or library, and for a URL without slashes.

    So it does for a slash at the end of what has to be a file, as paths don't keep it.

    An empty word is mostly an unset variable of the shell, and as a path it would be the current folder.
    """
    is_library = parameter.metavar == _LIBRARY
    if not (is_library or _is_place(parameter)) or value == parameter.default:
        return
    for word in value if isinstance(value, list | tuple) else (value,):
        if parameter.metavar == "FILE" and isinstance(word, str) and word.endswith("/"):
            raise InputError(word, "names a folder", expected="a file", remedy=f"Change {_name(parameter)}.")
        if word == "":
            expected = "the name of a library, such as librccl.so.1" if is_library else "a file, folder or URL"
            remedy = "Is a variable unset?" if is_library else "Is a variable unset? The current folder is '.'."
            raise InputError(_name(parameter), "is empty", expected=expected, remedy=remedy)
        if isinstance(word, str) and (begin := _FEW_SLASHES.match(word)):
            remedy = f"For a path that begins so, write ./{begin[0]}..."
            found = "has one slash" if begin[2] else "has no slashes behind its scheme"
            raise InputError(word, found, expected=f"{begin[1]}:// for a URL", remedy=remedy)


def _is_place(parameter: Any) -> bool:
    kind = parameter.type_descriptor.annotation
    return Path in (kind, *get_args(kind)) or parameter.metavar in _METAVARS


def _name(parameter: Any) -> str:
    is_option = parameter.param_type_name == "option"
    return str(max(parameter.opts, key=len) if is_option else parameter.metavar or parameter.name.upper())
