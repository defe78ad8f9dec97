"""The audit of a finished wheel before it gets its name: what is wrong keeps it from appearing."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rocwheel.audit.auditing import audit
from rocwheel.audit.configuration import Configuration
from rocwheel.audit.finding import Severity
from rocwheel.audit.reading import read_tree
from rocwheel.audit.run_path_entries import resolve_entry, split_run_path
from rocwheel.audit.subject import Subject
from rocwheel.errors import InputError, ProblemsError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

    from rocwheel.audit.finding import Finding
    from rocwheel.audit.tree import Tree

__all__ = ["FaultyWheelError", "WheelFaultError", "verify_wheel"]

_RUN_PATH_RULES = "run-path-"
_ABSOLUTE = "run-path-absolute"
_DEAD = "run-path-dead"


class WheelFaultError(InputError):
    """One finding of the audit that keeps a wheel from being written."""

    exit_status: ClassVar[int] = 1


class FaultyWheelError(ProblemsError):
    """Every finding that keeps a wheel from being written."""

    exit_status: ClassVar[int] = 1

    def __init__(self, wheel: str, findings: Sequence[Finding]) -> None:
        faults = [
            WheelFaultError(_place(finding.file), _reason(finding), remedy=finding.remedy) for finding in findings
        ]
        super().__init__(f"{wheel} is not written", faults)


def verify_wheel(
    wheel: Path, companions: Sequence[Path], *, system_run_paths: Collection[str] = (), search: Collection[str] = ()
) -> None:
    """Audit a wheel beside its companions.

    ``system_run_paths`` are the absolute run path entries that are meant; ``search`` the folders in site-packages that
    run paths may lead to, though this SDK lacks one. Raises `FaultyWheelError` with every error, and with everything
    that is wrong with a run path.
    """
    tree = read_tree([wheel], companions)
    report = audit(tree, Configuration(ignore=tuple(_meant_breaches(tree, system_run_paths, search))))
    faults = [finding for finding in report.findings if _is_fault(finding)]
    if faults:
        raise FaultyWheelError(wheel.name, faults)


def _meant_breaches(tree: Tree, system_run_paths: Collection[str], search: Collection[str]) -> Iterator[str]:
    """Give the rules that are broken, if at all, only by entries that are meant."""
    entries = [(file, entry) for file in tree.loadable for entry in split_run_path(file.run_path)]
    if all(entry in system_run_paths for _, entry in entries if entry.startswith("/")):
        yield _ABSOLUTE
    folders = {*Subject(tree, Configuration()).folders, *search, None}
    if all(resolve_entry(entry, file.folder) in folders for file, entry in entries):
        yield _DEAD


def _is_fault(finding: Finding) -> bool:
    return finding.severity is Severity.ERROR or finding.rule.startswith(_RUN_PATH_RULES)


def _place(file: str) -> str:
    """Return a member's path inside the wheel; the wheel's own name where the finding is about all of it."""
    wheel, member, path = file.partition("!")
    return path if member else wheel.rpartition("/")[2]


def _reason(finding: Finding) -> str:
    return f"{finding.found} ({finding.rule})"
