"""Records the changes to a checkout with their reasons, and renders them as a patch."""

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
    """A change to one file: the text before and after. `None` means that the file doesn't exist."""

    path: str
    before: str | None
    after: str | None
    phase: int
    reason: str


class FileChange(msgspec.Struct, frozen=True):
    """The overall change to one file, with its individual edits."""

    path: str
    before: SourceFile | None
    after: SourceFile | None
    edits: tuple[Edit, ...]


class Draft:
    """The files of a checkout after the edits so far."""

    def __init__(self, checkout: Checkout) -> None:
        self._before = checkout.files
        self._files = dict(checkout.files)
        self._unread = checkout.unread
        self._edits: list[Edit] = []
        self.phase = 1
        """The phase of the edits that follow."""

    @property
    def checkout(self) -> Checkout:
        """The checkout after the edits so far."""
        return Checkout(self._files, self._unread)

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The edits so far, in order."""
        return tuple(self._edits)

    def has(self, path: str) -> bool:
        """Return whether the file exists after the edits so far."""
        return path in self._files

    def text(self, path: str) -> str:
        """Return a file's text after the edits so far, or an empty string if there is no such file."""
        return self._files[path].text if path in self._files else ""

    def put(self, path: str, text: str, reason: str, *, is_executable: bool = False) -> None:
        """Set a file's text. Raises `InputError` for a file with mixed line endings."""
        old = self._files.get(path)
        if old is not None and old.text == text:
            return
        if old is not None:
            refuse_mixed(path, old)
        self._edits.append(Edit(path, old.text if old else None, text, self.phase, reason))
        self._files[path] = old.with_text(text) if old else SourceFile(text, is_executable=is_executable)

    def delete(self, path: str, reason: str) -> None:
        """Delete a file if it exists."""
        old = self._files.pop(path, None)
        if old is not None:
            self._edits.append(Edit(path, old.text, None, self.phase, reason))

    def changes(self) -> Iterator[FileChange]:
        """Yield each changed file, sorted by path. Files that end up unchanged are left out."""
        for path in sorted({edit.path for edit in self._edits}):
            before, after = self._before.get(path), self._files.get(path)
            if before != after:
                yield FileChange(path, before, after, tuple(edit for edit in self._edits if edit.path == path))


Reason = tuple[int, str]
"""A phase, and the reason for a change in this phase."""

_CONTEXT = 3
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_NO_LINE_END = "\\ No newline at end of file\n"
_PLAIN_NAME = re.compile(r"[\w./+@,:=~-]+", re.ASCII)


def render_patch(changes: Iterable[FileChange]) -> bytes:
    """Return the patch with the changes, or an empty value if there are no changes."""
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
    """Return a path as git writes it: in quotes, with escapes, if the path has special characters."""
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
    """Return the reasons as a single line, grouped by phase."""
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
    """Return the patch between two texts with these file ``names``, or an empty string if the texts are the same."""
    hunks = [(f"{header}\n", *(_spell(line, "\n") for line in lines)) for header, lines in unified_hunks(before, after)]
    head = [f"--- {names[0]}\n+++ {names[1]}\n"] if hunks else []
    return "".join([*head, *(line for hunk in hunks for line in hunk)])


def unified_hunks(before: str, after: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the hunks between two texts: the header without its line ending, and the lines."""
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
    """Split a text only at line feeds."""
    return list(StringIO(text))


def hunk_reasons(before: str, edits: Sequence[Edit]) -> list[tuple[str, int, Reason]]:
    """Return the reasons for changed lines.

    ``-`` comes with the index of a line in the old text, and ``+`` with the index of a line in the new text.
    """
    # Each line with its index in the old text, or with the reason for its addition.
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
"""The beginning of a comment with a question. Later lines of the comment begin with ``#`` and spaces."""

_WIDTH = 100
_INDENT = "#   "
_COMMENT = re.compile(r"^[ \t]*# rocwheel asks: .*\n(?:[ \t]*#   .*\n)*", re.MULTILINE)


class Question(msgspec.Struct, frozen=True):
    """A question in a file, and its line number."""

    path: str
    line: int
    text: str


def ask(text: str, indent: str = "") -> str:
    """Return the lines of a comment with a question."""
    lines = textwrap.wrap(
        MARK + text, _WIDTH, subsequent_indent=_INDENT, break_long_words=False, break_on_hyphens=False
    )
    return "".join(f"{indent}{line}\n" for line in lines)


def questions_in(path: str, text: str) -> Iterator[Question]:
    """Yield the questions in a file."""
    for match in _COMMENT.finditer(text):
        lines = [line.strip() for line in match[0].splitlines()]
        words = [lines[0].removeprefix(MARK), *(line.removeprefix("#").strip() for line in lines[1:])]
        yield Question(path, text.count("\n", 0, match.start()) + 1, " ".join(words))


def without_question(text: str, question: str) -> str:
    """Return the text without the comment that has this question."""
    for match in _COMMENT.finditer(text):
        if next(questions_in("", match[0])).text == question:
            return text[: match.start()] + text[match.end() :]
    return text
