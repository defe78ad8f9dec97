"""The outputs of a build, found by the ends of their paths: folders, single files, and Bazel's runfiles manifests."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from rocwheel.core.errors import InputError
from rocwheel.core.reading import read_regular

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = ["InputFiles", "read_runfiles_manifest", "read_source_list"]

_PATTERN_CHARACTERS = set("*?[")
_KEY_ESCAPES = {"\\s": " ", "\\n": "\n", "\\b": "\\"}
_PATH_ESCAPES = {"\\n": "\n", "\\b": "\\"}


class InputFiles:
    """Files that a wheel may be made of. An earlier source takes precedence over a later one."""

    def __init__(self, sources: Iterable[Path], manifest: Mapping[str, Path] | None = None) -> None:
        self._sources = tuple(sources)
        self._manifest = dict(manifest or {})
        for path in self._sources:
            if not path.exists():
                raise InputError(path, "does not exist", remedy="Build it, or correct --src.")

    def find(self, wanted: str) -> dict[str, Path]:
        """Return the files whose path ends with ``wanted``, by file name; patterns are the shell's.

        Raises `InputError` when there is no such file, when a path without patterns fits two different files, and
        when two files that fit a pattern have the same name.
        """
        return self._found(wanted, depth=1)

    def texts(self, wanted: str) -> dict[str, Path]:
        """Return the files by the end of the path that ``wanted`` fits: texts of one name may be in several folders."""
        return self._found(wanted, depth=len(PurePosixPath(wanted).parts))

    def _found(self, wanted: str, depth: int) -> dict[str, Path]:
        for found in self._candidates(wanted):
            if found:
                return self._by_end(wanted, found, depth)
        places = ", ".join([*map(str, self._sources), *(["the runfiles manifest"] if self._manifest else [])])
        remedy = "Build the target that makes it, or give its folder with --src."
        raise InputError(wanted, f"is not among the inputs ({places or 'none are given'})", remedy=remedy)

    def _candidates(self, wanted: str) -> Iterator[list[Path]]:
        yield [path for path in self._sources if path.is_file() and PurePosixPath(path).match(wanted)]
        for folder in self._sources:
            if folder.is_dir():
                yield [path for path in sorted(folder.glob(wanted)) if path.is_file()]
                yield [path for path in sorted(folder.rglob(wanted)) if path.is_file()]
        yield [path for key, path in sorted(self._manifest.items()) if PurePosixPath(key).match(wanted)]

    def _by_end(self, wanted: str, found: list[Path], depth: int) -> dict[str, Path]:
        """Return the files by the last ``depth`` parts of their paths; links to one file are that file."""
        is_pattern = bool(_PATTERN_CHARACTERS & set(wanted))
        ends: dict[str, Path] = {}
        for path in found:
            end = PurePosixPath(*path.parts[-depth:]).as_posix()
            other = ends.setdefault(end, path) if is_pattern else found[0]
            if other.resolve() != path.resolve():
                several = "inputs of one name" if is_pattern else "inputs"
                remedy = "Give more of the path in the description."
                raise InputError(
                    wanted, f"fits several {several}: {other} and {path}", expected="one file", remedy=remedy
                )
            ends[end] = path
        return ends


def _lines(path: Path) -> list[str]:
    return read_regular(path).decode().replace("\r\n", "\n").split("\n")


def read_source_list(path: Path) -> tuple[Path, ...]:
    """Read a file with the path of an input on each line; raise `InputError` for one that can't be read."""
    try:
        return tuple(Path(line) for line in _lines(path) if line)
    except (OSError, UnicodeDecodeError) as e:
        raise InputError(path, f"can't be read as a list of inputs ({e})", remedy="Check --src-list.") from e


def read_runfiles_manifest(path: Path) -> dict[str, Path]:
    """Read a ``MANIFEST`` or ``*.runfiles_manifest`` of Bazel: each line a name, a space, and the file's path.

    A line that begins with a space has escapes in both (Bazel 7.4). Files that are made empty have no path and are
    left out. Raises `InputError` for a file that can't be read or holds other lines.
    """
    try:
        lines = _lines(path)
    except (OSError, UnicodeDecodeError) as e:
        raise InputError(path, f"can't be read as a runfiles manifest ({e})") from e
    rows = (_manifest_row(path, number, line) for number, line in enumerate(lines, 1) if line)
    return {name: Path(target) for name, target in rows if target}


def _manifest_row(path: Path, number: int, line: str) -> tuple[str, str]:
    escaped = line.startswith(" ")
    name, space, target = line.removeprefix(" ").partition(" ")
    if not space:
        expected = "a name, a space and a path"
        raise InputError(path, f"line {number} is {line!r}", expected=expected, remedy="Is it Bazel's MANIFEST?")
    return (_unescape(name, _KEY_ESCAPES), _unescape(target, _PATH_ESCAPES)) if escaped else (name, target)


def _unescape(text: str, escapes: Mapping[str, str]) -> str:
    parts, position = [], 0
    while position < len(text):
        pair = text[position : position + 2]
        parts.append(escapes.get(pair, text[position]))
        position += 2 if pair in escapes else 1
    return "".join(parts)
