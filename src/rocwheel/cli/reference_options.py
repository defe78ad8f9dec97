"""Translates options of the reference's ``build_python_packages.py`` into options of ``rocwheel build``."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rocwheel.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_COMMAND = "build"


class _Now(NamedTuple):
    """The current equivalent of an old option."""

    words: tuple[str, ...]
    note: str = ""
    """The text to print. The default is the new words."""


_OLD = {
    "--devel-tarball-compression": _Now(("--devel-compression", "xz")),
    "--no-devel-tarball-compression": _Now(("--devel-compression", "none")),
    "--wheel-compression": _Now((), note="the default"),
    "--no-wheel-compression": _Now(("--level", "0")),
    "--build-packages": _Now((), note="the default"),
}


def translate_reference_options(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return a command line with current options instead of old ones, and a note about each replacement.

    Commands other than ``build`` stay unchanged. Raises `InputError` for an old option together with its replacement.
    """
    if words[:1] != [_COMMAND]:
        return list(words), []
    notes: list[str] = []
    return [_COMMAND, *_translated(words[1:], notes)], notes


def _translated(words: Sequence[str], notes: list[str]) -> Iterator[str]:
    """Yield the current words, and append a note about each replaced word."""
    options = words[: words.index("--")] if "--" in words else words
    given = {word.partition("=")[0] for word in options}
    for word in options:
        now = _OLD.get(word)
        if now is None:
            yield word
            continue
        if now.words and now.words[0] in given:
            raise InputError(
                word, f"is now {now.words[0]}, which is also on the command line", remedy="Remove one of them."
            )
        notes.append(f"{word} is now {' '.join(now.words)}" if now.words else f"{word}: {now.note}")
        yield from now.words
    yield from words[len(options) :]
