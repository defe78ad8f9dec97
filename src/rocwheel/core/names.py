"""File names and paths: how callers pass them, which names Linux accepts, and which names Windows rejects or confuses.

The rules are from Microsoft's "Naming Files, Paths, and Namespaces" and "Maximum Path Length Limitation". Lengths are
in UTF-16 code units, as on Windows. Other systems don't check these rules: installers on Linux and Wine accept all
names.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rocwheel.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator


GivenPath = str | os.PathLike[str]
GivenPaths = GivenPath | Iterable[GivenPath]


def paths_given(paths: GivenPaths) -> tuple[Path, ...]:
    """Return the paths. A string is a single path, not an iterable of characters."""
    if isinstance(paths, str | os.PathLike):
        return (Path(paths),)
    return tuple(Path(path) for path in paths)


def some_paths_given(name: str, paths: GivenPaths) -> tuple[Path, ...]:
    """Return the paths from the parameter ``name``. Raises `InputError` if there are no paths."""
    found = paths_given(paths)
    if not found:
        raise InputError(name, "is empty", expected="at least one path")
    return found


_LONGEST = 255
"""The maximum length of a file name in bytes, for Linux and its common file systems."""


def is_file_name(text: str) -> bool:
    r"""Return whether text can be a file's name: a single part of a path, except for ``.`` and ``..``.

    >>> [is_file_name(text) for text in ("con", "x.whl", "", "..", "a/b", "a\0b", "x" * 256)]
    [True, True, False, False, False, False, False]
    """
    if text in {"", ".", ".."} or not {"/", "\0"}.isdisjoint(text):
        return False
    return len(text.encode(errors="replace")) <= _LONGEST


def cut_name(text: str, most: int) -> str:
    """Return the longest prefix of a file name with at most ``most`` bytes and only whole characters.

    >>> cut_name("größe", 4), cut_name("name", 4)
    ('grö', 'name')
    """
    text = text[:most]
    while len(os.fsencode(text)) > most:
        text = text[:-1]
    return text


def is_utf8(text: str) -> bool:
    r"""Return whether text can be encoded as UTF-8. In names, other bytes are decoded as surrogates (:pep:`383`).

    >>> is_utf8("é"), is_utf8("\udcff")
    (True, False)
    """
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


LONGEST_PATH: Final = 259
"""The maximum length of a complete path, including the drive: ``MAX_PATH`` (260) without the final NUL."""

SHORTEST_SITE: Final = len(r"C:\v\Lib\site-packages")
"""The length of the shortest possible site-packages path, which is in an environment at the top of a drive."""

_LONGEST_NAME: Final = 255
_SEPARATOR: Final = 1
_LAST_OF_16_BITS: Final = "\uffff"
_SIGMA, _FINAL_SIGMA = "\u03a3", "\u03c2"
_REFUSED: Final = {
    "<": "a less-than sign",
    ">": "a greater-than sign",
    ":": "a colon",
    '"': "a quotation mark",
    "\\": "a backslash",
    "|": "a vertical bar",
    "?": "a question mark",
    "*": "an asterisk",
}
_DEVICE: Final = re.compile(r"CON|PRN|AUX|NUL|CONIN\$|CONOUT\$|(?:COM|LPT)[1-9¹²³]", re.IGNORECASE)


@lru_cache(maxsize=4096)  # paths in a tree share folders
def windows_name_fault(name: str) -> str:
    """Return why Windows rejects or changes a part of a path, or an empty string for a valid part.

    The result completes the sentence "the name ...".
    """
    if not name:
        return "is empty"
    if sign := _refused_sign(name):
        return f"has {sign}, which Windows doesn't allow in names"
    if name[-1] in ". ":
        ends = "a dot" if name[-1] == "." else "a space"
        return f"ends with {ends}, which Windows removes from the name"
    # Before Windows 11, a file extension makes no difference: NUL.txt is also the device.
    if _DEVICE.fullmatch(name.partition(".")[0].rstrip(" ")):
        return f"is the name of the device {name.partition('.')[0].rstrip(' ').upper()} on Windows"
    if (length := path_length(name)) > _LONGEST_NAME:
        return f"has {length} characters, but Windows allows at most {_LONGEST_NAME} in a name"
    return "" if is_utf8(name) else "isn't UTF-8, but names on Windows are Unicode"


def _refused_sign(name: str) -> str:
    found = [what for sign, what in _REFUSED.items() if sign in name]
    found += ["a control character"] if any(sign < " " for sign in name) else []
    return next(iter(found), "")


def windows_path_fault(path: str) -> str:
    """Return the first fault in the names in a path, including the name, or an empty string for a valid path."""
    for name in path.split("/"):
        if name not in {".", ".."} and (fault := windows_name_fault(name)):
            return f"{name!r} {fault}"
    return ""


def path_length(path: str) -> int:
    """Return the length of a path in UTF-16 code units, as Windows counts."""
    return len(path.encode("utf-16-le", "surrogatepass")) // 2


def room_above(path: str, longest: int = LONGEST_PATH) -> int:
    """Return the maximum length of a parent folder's path for ``path`` if the total length is at most ``longest``.

    The result is negative if ``path`` is too long for any folder.
    """
    return longest - _SEPARATOR - path_length(path)


def fold_case(path: str) -> str:
    """Return a path as NTFS compares it, in uppercase. Paths that NTFS considers equal have equal results.

    NTFS's table maps 16-bit lowercase letters to uppercase letters. The table leaves some letters unchanged that
    Unicode folds: ``ß``, whose uppercase form has two letters, the dotless i (U+0131), the long s (U+017F), and the
    micro sign (U+00B5). Wine's table makes the same exceptions. The table of ntfs-3g, which is from Windows XP, also
    leaves the final sigma (U+03C2) unchanged.
    """
    return path.upper() if path.isascii() else "".join(map(_upper, path))


def _upper(sign: str) -> str:
    if sign == _FINAL_SIGMA:
        return _SIGMA
    if sign > _LAST_OF_16_BITS:
        return sign
    # Greek letters with an iota subscript have a single uppercase letter, which Unicode calls titlecase.
    return next((upper for upper in (sign.upper(), sign.title()) if len(upper) == 1 and upper.lower() == sign), sign)


def find_case_clashes(paths: Iterable[str]) -> Iterator[tuple[str, ...]]:
    """Yield the paths that differ only in case, sorted.

    On Windows, the last file that is written replaces the other files.

    If a folder has the name of a file, the folder's path is reported. Folders may differ in case, because they become
    the same folder.
    """
    files: dict[str, set[str]] = defaultdict(set)
    folders: dict[str, set[str]] = defaultdict(set)
    for path in paths:
        files[fold_case(path)].add(path)
        for folder in _parents(path):
            folders[fold_case(folder)].add(folder)
    for key in sorted(files):
        alike = files[key] | folders.get(key, set())
        if len(alike) > 1:
            yield tuple(sorted(alike))


def _parents(path: str) -> Iterator[str]:
    parts = path.split("/")
    for count in range(1, len(parts)):
        yield "/".join(parts[:count])
