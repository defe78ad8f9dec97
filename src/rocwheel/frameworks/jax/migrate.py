"""Migrates rocm-jax from build.py to Bazel's own commands, in the four phases of its proposal.

The edits in ``migrate.toml`` are for one commit. The proposal: github.com/ROCm/rocm-jax, branch
simplify_jax_build_proposal.
"""

from __future__ import annotations

import difflib
import hashlib
import os
import re
import stat
import subprocess
import textwrap
from contextlib import ExitStack, suppress
from functools import cache
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from rocwheel.core.decoding import read_table
from rocwheel.core.errors import InputError, ProblemsError, WorkError, read_error, write_error
from rocwheel.core.reading import read_regular
from rocwheel.core.writing import AtomicFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


Phase = Literal[1, 2, 3, 4]
"""The phases of the proposal: prepare, switch, deprecate, and remove."""

State = Literal["done", "left", "unclear"]
"""Whether an edit was applied to a file.

If the file contains neither the new lines nor the old text, the state is unclear.
"""

LAST_PHASE: Phase = 4
_SWITCH: Phase = 2
"""The phase after which nothing calls build.py or runs patchelf."""
_MARK_LENGTH = 12
"""The minimum length of a distinctive line. Many files have shorter lines, such as ``import glob``."""


class Edit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The replacement of a text with ``new``, or, if ``after`` is set, the insertion of ``new`` after that text.

    A long text isn't quoted: ``first`` is its first line, ``lines`` the number of its lines, and ``digest`` the
    beginning of its SHA-256 hash. ``following`` is the first nonblank line after ``after`` at the expected commit.
    """

    new: str = ""
    old: str = ""
    after: str = ""
    following: str = ""
    first: str = ""
    lines: int = 0
    digest: str = ""

    def state(self, text: str) -> State:
        """Return whether this edit must still be applied to a text. The new lines may have been modified since."""
        lines = set(text.splitlines())
        new = self.marks or self._new_lines
        found = len(new & lines)
        if self.is_intact(text):
            if not self.after or not found:
                return "left"
            return "done" if found * 2 >= len(new) else "unclear"
        if self.new:
            return "done" if found else "unclear"
        return "unclear" if self.beginning in lines else "done"

    def is_intact(self, text: str) -> bool:
        """Return whether a text contains the old text, or has nothing between ``after`` and ``following``."""
        if not self.after:
            return self.count(text) > 0
        return any(_first_line(rest) == self.following for rest in text.split(self.after)[1:])

    @property
    def marks(self) -> set[str]:
        """The new lines that are long enough to come only from this edit."""
        return {line for line in self._new_lines if len(line.strip()) >= _MARK_LENGTH}

    @property
    def _new_lines(self) -> set[str]:
        return set(filter(str.strip, self.new.splitlines())) - set(f"{self.old}{self.after}".splitlines())

    def count(self, text: str) -> int:
        """Return how many times a text contains the old text."""
        old = self._old(text)
        return text.count(old) if old else 0

    def applied(self, text: str) -> str:
        """Return the edited text. The text must contain the old text exactly once."""
        return text.replace(self._old(text), self.after + self.new)

    def _old(self, text: str) -> str:
        if not self.first:
            return self.old or self.after
        lines = text.splitlines(keepends=True)
        starts = [number for number, line in enumerate(lines) if line == f"{self.first}\n"]
        blocks = ("".join(lines[start : start + self.lines]) for start in starts)
        return next((block for block in blocks if _digest(block) == self.digest), "")

    @property
    def beginning(self) -> str:
        """The first nonblank line of the old text."""
        return next(line for line in (self.first or self.old or self.after).splitlines() if line.strip())


def _first_line(text: str) -> str:
    return next((line for line in text.splitlines() if line.strip()), "")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class FileEdits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The change to one file in one phase, and the reason."""

    phase: Phase
    path: str
    why: str
    edits: tuple[Edit, ...] = ()
    create: str = ""
    delete: bool = False

    def is_done(self, text: str | None) -> bool:
        """Return whether a file has this change.

        All edits of a file are written together. Therefore, a distinctive line of one edit is sufficient evidence,
        unless an old text is still present.
        """
        if text is None or self.delete:
            return text is None and self.delete
        if self.create:
            return text == self.create
        return self.has_traces(text) or all(edit.state(text) == "done" for edit in self.edits)

    def has_traces(self, text: str | None) -> bool:
        """Return whether a file contains distinctive new lines, but none of the old text."""
        if text is None or self.has_old(text):
            return False
        return any(edit.marks and edit.state(text) == "done" for edit in self.edits)

    def has_old(self, text: str) -> bool:
        """Return whether a file contains one of the texts to be replaced."""
        return any(not edit.after and edit.is_intact(text) for edit in self.edits)


class Proposal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All edits in order, and the commit that they apply to."""

    commit: str
    date: str
    files: tuple[FileEdits, ...]

    @property
    def expected(self) -> str:
        """The checkout that the edits apply to."""
        return f"rocm-jax at commit {self.commit[:9]} from {self.date}"


@cache
def rocm_jax_proposal() -> Proposal:
    """Return the edits for rocm-jax."""
    return read_table(__package__, "migrate.toml", Proposal)


class FileChange(msgspec.Struct, frozen=True):
    """The contents of a file before and after the migration. `None` means that the file doesn't exist."""

    path: str
    before: str | None
    after: str | None
    mode: int | None = None
    """The permissions of a file that exists."""


class Migration(msgspec.Struct, frozen=True):
    """The remaining work in a checkout, up to a phase."""

    root: Path
    edits: tuple[FileEdits, ...]
    """The edits of the remaining phases, with their reasons."""
    changes: tuple[FileChange, ...]

    @property
    def patch(self) -> str:
        """The changes as a patch for ``git apply``. The reasons precede it."""
        told = [f"Phase {edit.phase}: {edit.path}: {edit.why}\n" for edit in self.edits]
        return "".join([*told, *(["\n"] if told else []), *map(_file_patch, self.changes)])


def plan_migration(folder: Path, *, phase: Phase = LAST_PHASE, proposal: Proposal | None = None) -> Migration:
    """Plan the changes up to the end of a phase, without writing anything.

    Changes that were already made to a file are skipped, even if their lines were edited afterwards. Raises
    `InputError` for a folder that isn't a checkout of rocm-jax. Raises `ProblemsError` with each text that differs from
    the expected commit, or with each file that may already be edited. Also raises it with each line of the checkout
    that would still need build.py or patchelf.
    """
    proposal = proposal or rocm_jax_proposal()
    root, paths = _tracked_files(folder, proposal.expected)
    files = _Files(root)
    if all(files.text(path) is None for path in (_BUILD_PY, _BAZELRC)):
        remedy = "For JAX's own tree, use `rocwheel jax bazelrc` and `rocwheel jax commands`."
        raise InputError(folder, f"has no {_BUILD_PY}", expected=proposal.expected, remedy=remedy)
    deleted = {edit.path for edit in proposal.files if edit.delete}
    chosen = [edit for edit in proposal.files if edit.phase <= phase]
    begun = {edit.phase for edit in chosen if edit.has_traces(files.text(edit.path))}
    left, problems = list[FileEdits](), list[InputError]()
    for edit in chosen:
        text = files.text(edit.path)
        if edit.is_done(text) or (text is None and edit.path in deleted):
            continue
        if edit.create and text is not None and edit.phase in begun:
            continue  # this file may have changes, too
        left.append(edit)
        problems += files.edit(edit)
    if problems:
        subject = f"{folder}: differs from {proposal.expected}. Check out this commit"
        raise ProblemsError(subject, problems)
    later = {edit.path for edit in proposal.files if edit.phase > phase}
    if phase >= _SWITCH and (old := list(_unconverted(files, sorted({*paths} - later)))):
        subject = f"{folder}: phase {phase} can't convert these lines. Call Bazel as in BUILDING.md"
        raise ProblemsError(subject, old)
    return Migration(root, tuple(left), tuple(files.changes()))


_BUILD_PY = "jax_rocm_plugin/build/build.py"
_BAZELRC = "jax_rocm_plugin/.bazelrc"


def _tracked_files(folder: Path, expected: str) -> tuple[Path, list[str]]:
    """Return a checkout's root, and the paths that git tracks. Raises `InputError` for any other folder."""
    if not folder.is_dir():
        raise InputError(folder, "isn't a folder", expected=expected)
    root = Path(_git(folder, "rev-parse", "--show-toplevel", expected=expected).removesuffix("\n"))
    return root, _git(root, "ls-files", "-z", expected=expected).split("\0")[:-1]


def _git(folder: Path, *arguments: str, expected: str) -> str:
    """Run git without the caller's repository variables, and without programs that the repository configures."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "-c", "core.fsmonitor=false", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, check=False, env={**environ, "LC_ALL": "C"}
        )
    except OSError as e:
        source, found = "git", f"can't be run ({e.strerror})"
        raise WorkError(source, found, remedy="Install git.") from e
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise InputError(folder, f"isn't a git checkout ({said[-1] if said else ''})", expected=expected)
    return os.fsdecode(done.stdout)


class _Files:
    """The files of a checkout: their contents on disk, and after the edits so far."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._before: dict[str, str | None] = {}
        self._after: dict[str, str | None] = {}

    def text(self, path: str) -> str | None:
        """Return a file's text after the edits so far, or `None` if the file doesn't exist."""
        if path not in self._after:
            self._before[path] = self._after[path] = _read(self._root, path)
        return self._after[path]

    def edit(self, change: FileEdits) -> Iterator[InputError]:
        """Edit a file, and yield the edits that can't be applied."""
        text = self.text(change.path)
        if change.create and text is None:
            self._after[change.path] = change.create
        elif change.create:
            yield InputError(change.path, "exists with different content")
        elif text is None:
            yield InputError(change.path, "doesn't exist")
        elif change.delete:
            self._after[change.path] = None
        else:
            has_old = change.has_old(text)
            for edit in [edit for edit in change.edits if edit.state(text) != "done"]:
                beginning = textwrap.shorten(edit.beginning, _TEXT_WIDTH, placeholder="...")
                if (count := edit.count(text)) != 1:
                    yield InputError(change.path, f"has this text {count} times: {beginning}")
                elif edit.state(text) == "unclear" and not has_old:
                    yield InputError(change.path, f"may already have edited lines after: {beginning}")
                else:
                    text = edit.applied(text)
            self._after[change.path] = text

    def lines(self, path: str) -> Sequence[str]:
        """Return a file's lines after the edits so far. Links, folders, and large files have no lines."""
        place = self._root / path
        if path in self._after or (place.is_file() and not place.is_symlink() and place.stat().st_size <= _MOST_BYTES):
            return (self.text(path) or "").splitlines()
        return ()

    def changes(self) -> Iterator[FileChange]:
        """Yield each changed file, sorted by path."""
        for path, after in sorted(self._after.items()):
            if after != self._before[path]:
                before = self._before[path]
                mode = None if before is None else stat.S_IMODE((self._root / path).stat().st_mode)
                yield FileChange(path, before, after, mode)


_MOST_BYTES = 1 << 20
"""A file larger than this isn't a script."""


def _read(root: Path, path: str) -> str | None:
    place = root / path
    if place.is_symlink() or not place.resolve().is_relative_to(root.resolve()):
        raise InputError(place, "is a symbolic link or below one", expected="a file in the checkout")
    try:
        return read_regular(place).decode(errors="surrogateescape")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as e:
        raise read_error(place, e) from e


_PATH_WIDTH, _TEXT_WIDTH = 80, 30
"""Length limits that keep an error's lines within 120 characters."""
_OLD = re.compile(r"\b(build\.py|patchelf)\b")


def _unconverted(files: _Files, paths: Sequence[str]) -> Iterator[InputError]:
    """Yield the lines that still need build.py or patchelf."""
    for path in paths:
        for number, line in enumerate(files.lines(path), 1):
            if match := _OLD.search(line):
                place = path if len(path) <= _PATH_WIDTH else f"...{path[3 - _PATH_WIDTH :]}"
                yield InputError(f"{place}:{number}", f"still needs {match[1]}")


_NO_LINE_END = "\n\\ No newline at end of file\n"


def text_patch(names: tuple[str, str], before: str, after: str) -> str:
    """Return the patch between two texts with these file ``names``, or an empty string if the texts are the same."""
    lines = difflib.unified_diff(list(StringIO(before)), list(StringIO(after)), *names)
    return "".join(line if line.endswith("\n") else line + _NO_LINE_END for line in lines)


def _file_patch(change: FileChange) -> str:
    mode = "100755" if (change.mode or 0) & stat.S_IXUSR else "100644"
    old, new = f"a/{change.path}", f"b/{change.path}"
    head = f"diff --git {old} {new}\n"
    if change.before is None:
        head, old = f"{head}new file mode {mode}\n", "/dev/null"
    if change.after is None:
        head, new = f"{head}deleted file mode {mode}\n", "/dev/null"
    return head + text_patch((old, new), change.before or "", change.after or "")


_ANY_WRITE = 0o222


def apply_changes(root: Path, changes: Sequence[FileChange]) -> None:
    """Write changes to a checkout.

    First, all new contents are written under temporary names, so that a full disk changes nothing. The permissions of
    files don't change. Raises `ProblemsError` with all files that can't be written.
    """
    if problems := list(_write_problems(root, changes)):
        subject = f"{root}: no file was changed"
        raise ProblemsError(subject, problems)
    new_mode = _new_mode()
    with ExitStack() as stack:
        targets = []
        for change in changes:
            if change.after is not None:
                target = AtomicFile(root / change.path, mode=new_mode if change.mode is None else change.mode)
                stack.callback(target.discard)
                target.write(change.after.encode(errors="surrogateescape"))
                target.file.flush()
                targets.append(target)
        for target in targets:
            target.commit()
    for change in changes:
        if change.after is None:
            _delete(root, root / change.path)


def _new_mode() -> int:
    """Return the permissions of new files. A process can read its umask only by setting it."""
    umask = os.umask(0o077)
    os.umask(umask)
    return 0o666 & ~umask


def _write_problems(root: Path, changes: Sequence[FileChange]) -> Iterator[WorkError]:
    for change in changes:
        path = root / change.path
        if change.before is not None and not path.stat().st_mode & _ANY_WRITE:
            yield WorkError(path, "is read-only", remedy="Make the file writable (chmod u+w).")
        elif not os.access(path.parent, os.W_OK | os.X_OK):
            yield WorkError(path, "is in a read-only folder", remedy="Check the folder's permissions.")


def _delete(root: Path, path: Path) -> None:
    """Delete a file and the folders that become empty, as git does."""
    try:
        path.unlink(missing_ok=True)
    except OSError as e:
        raise write_error(path, e, remedy="Check the permissions of its folder.") from e
    with suppress(OSError):
        for parent in path.parents:
            if parent == root:
                break
            parent.rmdir()
