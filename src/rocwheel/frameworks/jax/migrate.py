"""The migration of a checkout: what changes, phase by phase, what is asked, and how the changes are written."""

from __future__ import annotations

import os
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from rocwheel.core.errors import InputError, ProblemsError, WorkError, write_error
from rocwheel.core.writing import AtomicFile
from rocwheel.frameworks.jax.callers import Plan, deprecate, untold_callers
from rocwheel.frameworks.jax.checkout import (
    WORKSPACE,
    GitCheckout,
    disk_file,
    find_structure,
    read_checkout,
    read_jax_build,
)
from rocwheel.frameworks.jax.editing import Draft, Edit, FileChange, Question, questions_in, render_patch
from rocwheel.frameworks.jax.phases import PATCH_NAME, prepare, remove, switch
from rocwheel.frameworks.jax.starlark import starlark_package

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rocwheel.frameworks.jax.checkout import Checkout


Phase = Literal[1, 2, 3, 4]
"""Those of the migration guide: prepare, switch, deprecate, remove."""

LAST_PHASE: Phase = 4
_SWITCHED: Phase = 2
"""The phase that replaces the calls of build.py."""
_PHASES = (prepare, switch, deprecate, remove)


class Migration(msgspec.Struct, frozen=True):
    """What is left to do in a checkout, up to a phase."""

    root: Path
    changes: tuple[FileChange, ...]
    """What is not yet on disk."""
    questions: tuple[Question, ...]
    """What the files ask then."""

    @property
    def patch(self) -> bytes:
        """The changes as one patch."""
        return render_patch(self.changes)

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The changes with their reasons, phase by phase."""
        return tuple(sorted((edit for change in self.changes for edit in change.edits), key=lambda edit: edit.phase))


def plan_migration(folder: Path, *, phase: Phase = LAST_PHASE, jax: Path | None = None) -> Migration:
    """Return what leads a checkout from what is committed there to the end of a phase; nothing is written.

    ``jax`` is a folder with the source of ``@jax``. Raises `InputError` for a folder that is no checkout, and
    `ProblemsError` for one of another structure, or with changes of its own.
    """
    git = read_checkout(folder)
    structure = find_structure(git.committed, str(folder))
    package = starlark_package(git.root / WORKSPACE / "rocm_wheel", "workspace")
    is_patched = PATCH_NAME in git.committed.text(structure.jax)
    if structure.jax in git.dirty and jax is None and not is_patched:
        _refuse_unsaid_source(git.root / structure.jax)
    build = read_jax_build(jax, git.committed, structure) if jax and not is_patched else ""
    rules = {name: file.text for name, file in package.files.items()}
    draft = Draft(git.committed)
    run_phases(Plan(draft, structure, rules, package.declaration, build), phase)
    return Migration(git.root, tuple(_left(git, draft, folder)), tuple(_questions(draft.checkout, phase)))


def run_phases(plan: Plan, phase: Phase = LAST_PHASE) -> None:
    """Edit the plan's draft up to a phase; raises `InputError` and `ProblemsError` for texts that can't be edited."""
    for number, step in enumerate(_PHASES[:phase], 1):
        plan.draft.phase = number
        step(plan)


def _refuse_unsaid_source(path: Path) -> None:
    """Raise `InputError` if the patch for ``@jax`` was made by a run before, and isn't committed yet."""
    disk = disk_file(path)
    if disk and PATCH_NAME in disk.text:
        found = "names the patch for @jax that a run with --jax has made, which is not committed"
        raise InputError(path, found, remedy="Commit it, or give the same --jax again.")


def _left(git: GitCheckout, draft: Draft, folder: Path) -> list[FileChange]:
    """Return the changes that are not on disk; raise `ProblemsError` for files with changes of another kind."""
    changes = {change.path: change for change in draft.changes()}
    left, foreign = [], [path for path in git.dirty if path not in changes]
    for path, change in changes.items():
        is_new = change.before is None
        disk = disk_file(git.root / path) if is_new or path in git.dirty else change.before
        if disk == change.after or (disk and change.after and disk.data == change.after.data):
            continue
        if disk != change.before:
            foreign.append(path)
        left.append(change)
    if foreign:
        found, remedy = "has changes that are not committed", "Commit them, or restore the file."
        problems = [InputError(path, found, remedy=remedy) for path in sorted(foreign)]
        subject = f"{folder}: is not clean"
        raise ProblemsError(subject, problems)
    return left


def _questions(checkout: Checkout, phase: Phase) -> Iterator[Question]:
    asked = [question for path, file in checkout.files.items() for question in questions_in(path, file.text)]
    untold = untold_callers(checkout) if phase >= _SWITCHED else ()
    yield from sorted([*asked, *untold], key=lambda question: (question.path, question.line))


_EXECUTABLE = 0o755
_ANY_WRITE = 0o222


def apply_changes(root: Path, changes: Sequence[FileChange]) -> None:
    """Write changes to a checkout.

    Every new text is on disk under another name before the first file gets its own, so that a full disk changes
    nothing. Whoever is killed in between leaves whole files, old and new, and the next run does the rest. Raises
    `ProblemsError` with every file that can't be written, or has changed since it was read.
    """
    if problems := list(_problems(root, changes)):
        subject = f"{root}: nothing was changed"
        raise ProblemsError(subject, problems)
    with ExitStack() as stack:
        targets = []
        for change in changes:
            if change.after is not None:
                target = AtomicFile(root / change.path, mode=_mode(root / change.path, change))
                stack.callback(target.discard)
                target.write(change.after.data)
                target.file.flush()
                targets.append(target)
        for target in targets:
            target.commit()
    for change in changes:
        if change.after is None:
            _delete(root, root / change.path)


def _mode(path: Path, change: FileChange) -> int:
    if change.before is not None:
        return path.stat().st_mode & 0o777
    return _EXECUTABLE if change.after and change.after.is_executable else 0o644


def _problems(root: Path, changes: Sequence[FileChange]) -> Iterator[WorkError]:
    for change in changes:
        path = root / change.path
        disk = disk_file(path)
        if path.parent.resolve() != root.resolve() / path.parent.relative_to(root):
            yield WorkError(path, "is below a symbolic link", remedy="Put a folder in the link's place.")
        elif (disk and disk.data) != (change.before and change.before.data):
            yield WorkError(path, "has changed since it was read", remedy="Run the command again.")
        elif disk is not None and not path.stat().st_mode & _ANY_WRITE:
            yield WorkError(path, "is read-only", remedy="Make it writable (chmod u+w).")
        elif not os.access(_nearest_folder(path), os.W_OK | os.X_OK):
            yield WorkError(path, "is in a folder that can't be written", remedy="Check its permissions.")


def _nearest_folder(path: Path) -> Path:
    return next(parent for parent in path.parents if parent.is_dir())


def _delete(root: Path, path: Path) -> None:
    """Delete a file, and the folders that it leaves empty, as git does."""
    try:
        path.unlink(missing_ok=True)
    except OSError as e:
        raise write_error(path, e, remedy="Check the permissions of its folder.") from e
    with suppress(OSError):
        for parent in path.parents:
            if parent == root:
                break
            parent.rmdir()
