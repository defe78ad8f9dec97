"""Changes as one patch that ``git apply`` and ``patch -p1`` take (git's diff format); hunks are headed by reasons."""

from __future__ import annotations

import difflib
import re
from io import StringIO
from itertools import groupby
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rocwheel.frameworks.jax_checkout.checkout import SourceFile
    from rocwheel.frameworks.jax_checkout.editing.draft import Edit, FileChange

__all__ = ["Reason", "hunk_reasons", "render_patch", "text_patch", "unified_hunks"]

Reason = tuple[int, str]
"""A phase, and why it changes something."""

_CONTEXT = 3
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_NO_LINE_END = "\\ No newline at end of file\n"
_PLAIN_NAME = re.compile(r"[\w./+@,:=~-]+", re.ASCII)


class _Line(msgspec.Struct):
    """A line of a text that edits have changed: where it comes from, or why it was added."""

    text: str
    origin: int | None
    reason: Reason = (0, "")


def render_patch(changes: Iterable[FileChange]) -> bytes:
    """Return the patch of the changes, empty if there are none."""
    return b"".join(_file_patch(change) for change in changes)


def _file_patch(change: FileChange) -> bytes:
    old, new = _name(f"a/{change.path}"), _name(f"b/{change.path}")
    head = [f"diff --git {old} {new}\n"]
    if change.before is None and change.after is not None:
        head.append(f"new file mode {_mode(change.after)}\n")
    if change.after is None and change.before is not None:
        head.append(f"deleted file mode {_mode(change.before)}\n")
    names = f"--- {old if change.before else '/dev/null'}\n+++ {new if change.after else '/dev/null'}\n"
    body = [line for hunk in _hunks(change) for line in hunk]
    return "".join([*head, *([names] if body else []), *body]).encode(errors="surrogateescape")


def _mode(file: SourceFile) -> str:
    return "100755" if file.is_executable else "100644"


def _name(path: str) -> str:
    """Spell a path as git does: in quotes, with escapes, if it has other characters than plain ones."""
    if _PLAIN_NAME.fullmatch(path):
        return path
    plain = path.replace("\\", r"\\").replace('"', r"\"")
    data = plain.encode(errors="surrogateescape")
    return '"' + "".join(chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}" for byte in data) + '"'


def _hunks(change: FileChange) -> Iterator[list[str]]:
    before, after = (file.text if file else "" for file in (change.before, change.after))
    line_end = (change.before or change.after or _never()).line_end
    reasons = hunk_reasons(before, change.edits)
    for header, lines in unified_hunks(before, after):
        match = _HUNK.match(header)
        old, new = _span(match, 1), _span(match, 3)
        why = dict.fromkeys(reason for side, index, reason in reasons if index in (old if side == "-" else new))
        yield [f"{header} {_heading(list(why))}".rstrip() + "\n", *(_spell(line, line_end) for line in lines)]


def _heading(reasons: list[Reason]) -> str:
    """Return reasons as one line: those of a phase together, behind its number."""
    phases = groupby(sorted(reasons, key=lambda reason: reason[0]), key=lambda reason: reason[0])
    return "; ".join(f"phase {phase}: {'; '.join(text for _, text in rows)}" for phase, rows in phases)


def _never() -> SourceFile:
    raise AssertionError


def _span(match: re.Match[str] | None, group: int) -> range:
    assert match is not None
    length = int(match[group + 1] or 1)
    start = int(match[group]) - 1 if length else int(match[group])
    return range(start, start + length)


def _spell(line: str, line_end: str) -> str:
    return line[:-1] + line_end if line.endswith("\n") else line + "\n" + _NO_LINE_END


def text_patch(names: tuple[str, str], before: str, after: str) -> str:
    """Return the patch from one text to another, headed by their ``names``; empty if they are the same."""
    hunks = [(f"{header}\n", *(_spell(line, "\n") for line in lines)) for header, lines in unified_hunks(before, after)]
    head = [f"--- {names[0]}\n+++ {names[1]}\n"] if hunks else []
    return "".join([*head, *(line for hunk in hunks for line in hunk)])


def unified_hunks(before: str, after: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the hunks between two texts: the header without its line end, and the lines."""
    header, lines = "", list[str]()
    diff = difflib.unified_diff(_lines(before), _lines(after), n=_CONTEXT)
    for line in list(diff)[2:]:
        if line.startswith("@@"):
            if header:
                yield header, lines
            header, lines = line.rstrip("\n"), []
        else:
            lines.append(line)
    if header:
        yield header, lines


def _lines(text: str) -> list[str]:
    """Part a text after each line feed, and nowhere else."""
    return list(StringIO(text))


def hunk_reasons(before: str, edits: Sequence[Edit]) -> list[tuple[str, int, Reason]]:
    """Return why lines changed: ``-`` with the index of a line of the old text, ``+`` with one of the new text."""
    lines = [_Line(text, index) for index, text in enumerate(_lines(before))]
    removed: dict[int, Reason] = {}
    for edit in edits:
        new: list[_Line] = []
        texts = [line.text for line in lines]
        why = (edit.phase, edit.reason)
        after = _lines(edit.after or "")
        for tag, i, j, k, m in difflib.SequenceMatcher(None, texts, after, autojunk=False).get_opcodes():
            if tag == "equal":
                new += lines[i:j]
            else:
                removed |= {line.origin: why for line in lines[i:j] if line.origin is not None}
                new += [_Line(text, None, why) for text in after[k:m]]
        lines = new
    added = [("+", index, line.reason) for index, line in enumerate(lines) if line.origin is None]
    return [*(("-", index, why) for index, why in sorted(removed.items())), *added]
