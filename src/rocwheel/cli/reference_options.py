"""Options of the reference's ``build_python_packages.py``, in the words of ``rocwheel build``."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rocwheel.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_COMMAND = "build"


class _Now(NamedTuple):
    """What an old option is today."""

    words: tuple[str, ...]
    note: str = ""
    """What to say; by default the words."""


_OLD = {
    "--devel-tarball-compression": _Now(("--devel-compression", "xz")),
    "--no-devel-tarball-compression": _Now(("--devel-compression", "none")),
    "--wheel-compression": _Now((), note="the default"),
    "--no-wheel-compression": _Now(("--level", "0")),
    "--build-packages": _Now((), note="the default"),
}


def translate_reference_options(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return a command line with today's words in place of old options, and a note for each of these.

    Other commands than ``build`` stay as they are. Raises `InputError` for an old option beside the one that replaces
    it.
    """
    if words[:1] != [_COMMAND]:
        return list(words), []
    notes: list[str] = []
    return [_COMMAND, *_translated(words[1:], notes)], notes


def _translated(words: Sequence[str], notes: list[str]) -> Iterator[str]:
    """Yield the words of today, and append a note for each that replaces an old one."""
    options = words[: words.index("--")] if "--" in words else words
    given = {word.partition("=")[0] for word in options}
    for word in options:
        now = _OLD.get(word)
        if now is None:
            yield word
            continue
        if now.words and now.words[0] in given:
            raise InputError(word, f"is now {now.words[0]}, which is given, too", remedy="Give one of them.")
        notes.append(f"{word} is now {' '.join(now.words)}" if now.words else f"{word}: {now.note}")
        yield from now.words
    yield from words[len(options) :]
