"""Options of the reference's ``build_python_packages.py``, in the words of ``rocwheel build``."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from rocwheel.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_COMMAND = "build"
_OWN_BUILD = "left out: Windows has a build of its own, and `rocwheel selector merge` makes one rocm of both"


class _Now(NamedTuple):
    """What an old option is today."""

    words: tuple[str, ...]
    takes_value: bool = False
    note: str = ""
    """What to say; by default the words."""


_OLD = {
    "--linux-amdgpu-families": _Now(("--targets",), takes_value=True),
    "--windows-amdgpu-families": _Now((), takes_value=True, note=_OWN_BUILD),
    "--devel-tarball-compression": _Now(("--devel-compression", "xz")),
    "--no-devel-tarball-compression": _Now(("--devel-compression", "none")),
    "--wheel-compression": _Now((), note="the default"),
    "--no-wheel-compression": _Now(("--level", "0")),
    "--build-packages": _Now((), note="the default"),
    "--no-build-packages": _Now(("--dry-run",)),
}


def translate_reference_options(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return a command line with today's words in place of old options, and a note for each of these.

    Other commands than ``build`` stay as they are. Raises `InputError` for an old option beside the one that replaces
    it, and for one without its value.
    """
    if words[:1] != [_COMMAND]:
        return list(words), []
    notes: list[str] = []
    return [_COMMAND, *_translated(words[1:], notes)], notes


def name_as_given(option: str, words: Sequence[str]) -> str:
    """Return the name by which a command line gives an option of today: an old one, or the option itself."""
    given = {word.partition("=")[0] for word in _options(words)}
    return next((old for old, now in _OLD.items() if now.words[:1] == (option,) and old in given), option)


def _options(words: Sequence[str]) -> Sequence[str]:
    return words[: words.index("--")] if "--" in words else words


def _translated(words: Sequence[str], notes: list[str]) -> Iterator[str]:
    """Yield the words of today, and append a note for each that replaces an old one."""
    options = _options(words)
    given = {word.partition("=")[0] for word in options}
    rest = deque(options)
    while rest:
        word = rest.popleft()
        name, equals, value = word.partition("=")
        now = _OLD.get(name)
        if now is None or (equals and not now.takes_value):
            yield word
            continue
        if now.words and now.words[0] in given:
            raise InputError(name, f"is now {now.words[0]}, which is given, too", remedy="Give one of them.")
        notes.append(f"{name} is now {' '.join(now.words)}" if now.words else f"{name}: {now.note}")
        values = ([value] if equals else [_value_of(name, rest)]) if now.takes_value else []
        yield from (*now.words, *values) if now.words else ()
    yield from words[len(options) :]


def _value_of(option: str, words: deque[str]) -> str:
    """Take the next word off; raise `InputError` when it is no value."""
    if words and not words[0].startswith("-"):
        return words.popleft()
    found = f"has no value: {words[0]} follows it" if words else "has no value"
    raise InputError(option, found, expected="GPU targets or families, such as gfx94X-dcgpu")
