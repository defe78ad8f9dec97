"""The migration of a checkout: what changes, phase by phase, and what is asked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from rocwheel.core.errors import InputError, ProblemsError
from rocwheel.frameworks.jax.starlark_files import starlark_package
from rocwheel.frameworks.jax_checkout.editing.draft import Draft, Edit, FileChange
from rocwheel.frameworks.jax_checkout.editing.patch import render_patch
from rocwheel.frameworks.jax_checkout.editing.questions import Question, questions_in
from rocwheel.frameworks.jax_checkout.phases.deprecate import deprecate
from rocwheel.frameworks.jax_checkout.phases.plan import Plan
from rocwheel.frameworks.jax_checkout.phases.prepare import prepare
from rocwheel.frameworks.jax_checkout.phases.remove import remove
from rocwheel.frameworks.jax_checkout.phases.switch import PATCH_NAME, switch
from rocwheel.frameworks.jax_checkout.phases.users import untold_callers
from rocwheel.frameworks.jax_checkout.reading.git import GitCheckout, disk_file, read_checkout
from rocwheel.frameworks.jax_checkout.reading.jax_source import read_jax_build
from rocwheel.frameworks.jax_checkout.reading.structure import WORKSPACE, find_structure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.frameworks.jax_checkout.checkout import Checkout

__all__ = ["LAST_PHASE", "Migration", "Phase", "plan_migration", "run_phases"]

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
