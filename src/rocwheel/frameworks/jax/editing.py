"""The checkout as the phases change it: each change with its reason, rendered as a patch."""

from __future__ import annotations

import difflib
import re
import textwrap
from io import StringIO
from itertools import groupby
from typing import TYPE_CHECKING

import msgspec

from rocwheel.frameworks.jax.checkout import Checkout, SourceFile, refuse_mixed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


class Edit(msgspec.Struct, frozen=True):
    """One change of one file: from a text to a text, where ``None`` is no file."""

    path: str
    before: str | None
    after: str | None
    phase: int
    reason: str


class FileChange(msgspec.Struct, frozen=True):
    """What becomes of one file, with the edits that lead there."""

    path: str
    before: SourceFile | None
    after: SourceFile | None
    edits: tuple[Edit, ...]


class Draft:
    """The texts after the edits so far."""

    def __init__(self, checkout: Checkout) -> None:
        self._before = checkout.files
        self._files = dict(checkout.files)
        self._unread = checkout.unread
        self._edits: list[Edit] = []
        self.phase = 1
        """The phase that edits belong to from now on."""

    @property
    def checkout(self) -> Checkout:
        """The checkout as it is by now."""
        return Checkout(self._files, self._unread)

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The edits so far, in their order."""
        return tuple(self._edits)

    def has(self, path: str) -> bool:
        """Return whether the file is there by now."""
        return path in self._files

    def text(self, path: str) -> str:
        """Return a file's text by now, empty if there is no such file."""
        return self._files[path].text if path in self._files else ""

    def put(self, path: str, text: str, reason: str, *, is_executable: bool = False) -> None:
        """Give a file this text. Raises `InputError` for a file with mixed line endings."""
        old = self._files.get(path)
        if old is not None and old.text == text:
            return
        if old is not None:
            refuse_mixed(path, old)
        self._edits.append(Edit(path, old.text if old else None, text, self.phase, reason))
        self._files[path] = old.with_text(text) if old else SourceFile(text, is_executable=is_executable)

    def delete(self, path: str, reason: str) -> None:
        """Delete a file, if it is there."""
        old = self._files.pop(path, None)
        if old is not None:
            self._edits.append(Edit(path, old.text, None, self.phase, reason))

    def changes(self) -> Iterator[FileChange]:
        """Yield each change, by path. Edits that were undone don't count."""
        for path in sorted({edit.path for edit in self._edits}):
            before, after = self._before.get(path), self._files.get(path)
            if before != after:
                yield FileChange(path, before, after, tuple(edit for edit in self._edits if edit.path == path))


Reason = tuple[int, str]
"""A phase, and why it changes something."""

_CONTEXT = 3
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_NO_LINE_END = "\\ No newline at end of file\n"
_PLAIN_NAME = re.compile(r"[\w./+@,:=~-]+", re.ASCII)


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
    file = change.before or change.after
    line_end = file.line_end if file else ""
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
    # Each line with the index that it has in the old text, or why it was added.
    lines: list[tuple[str, int | Reason]] = [(text, index) for index, text in enumerate(_lines(before))]
    removed: dict[int, Reason] = {}
    for edit in edits:
        new: list[tuple[str, int | Reason]] = []
        texts = [text for text, _ in lines]
        why = (edit.phase, edit.reason)
        after = _lines(edit.after or "")
        for tag, i, j, k, m in difflib.SequenceMatcher(None, texts, after, autojunk=False).get_opcodes():
            if tag == "equal":
                new += lines[i:j]
            else:
                removed |= {origin: why for _, origin in lines[i:j] if isinstance(origin, int)}
                new += [(text, why) for text in after[k:m]]
        lines = new
    added = [("+", index, reason) for index, (_, reason) in enumerate(lines) if not isinstance(reason, int)]
    return [*(("-", index, why) for index, why in sorted(removed.items())), *added]


MARK = "# rocwheel asks: "
"""How such a comment begins; its further lines begin with ``#`` and blanks."""

_WIDTH = 100
_INDENT = "#   "
_COMMENT = re.compile(r"^[ \t]*# rocwheel asks: .*\n(?:[ \t]*#   .*\n)*", re.MULTILINE)


class Question(msgspec.Struct, frozen=True):
    """A question with the file and the line where it stands."""

    path: str
    line: int
    text: str


def ask(text: str, indent: str = "") -> str:
    """Return the comment's lines."""
    lines = textwrap.wrap(
        MARK + text, _WIDTH, subsequent_indent=_INDENT, break_long_words=False, break_on_hyphens=False
    )
    return "".join(f"{indent}{line}\n" for line in lines)


def questions_in(path: str, text: str) -> Iterator[Question]:
    """Yield the questions that a file asks."""
    for match in _COMMENT.finditer(text):
        lines = [line.strip() for line in match[0].splitlines()]
        words = [lines[0].removeprefix(MARK), *(line.removeprefix("#").strip() for line in lines[1:])]
        yield Question(path, text.count("\n", 0, match.start()) + 1, " ".join(words))


def without_question(text: str, question: str) -> str:
    """Return a text without the comment that asks this."""
    for match in _COMMENT.finditer(text):
        if next(questions_in("", match[0])).text == question:
            return text[: match.start()] + text[match.end() :]
    return text
