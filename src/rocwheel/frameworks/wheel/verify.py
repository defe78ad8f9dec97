"""Audits a finished wheel before it gets its name. Faults keep it from being written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from packaging.utils import canonicalize_name

from rocwheel.audit.audit import audit
from rocwheel.audit.finding import Severity
from rocwheel.audit.settings import AuditSettings
from rocwheel.core.errors import InputError, ProblemsError
from rocwheel.distributions.formats.wheel_file_name import name_and_version
from rocwheel.frameworks.wheel.run_paths import IntendedEntries
from rocwheel.installed.environments import split_environments
from rocwheel.installed.reading.read_tree import read_tree
from rocwheel.linking.entries import split_run_path

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rocwheel.audit.finding import Finding
    from rocwheel.installed.tree import InstalledFile, Tree

__all__ = ["FaultyWheelError", "WheelFaultError", "verify_wheel", "without_distribution"]

_RUN_PATH_RULES = "run-path-"
_RULES_ON_INTENDED = ("run-path-absolute", "run-path-dead")
"""The rules that intended entries may break."""
_NOTHING_INTENDED = IntendedEntries(())


class WheelFaultError(InputError):
    """One finding of the audit that keeps a wheel from being written."""

    exit_status = 1


class FaultyWheelError(ProblemsError):
    """Every finding that keeps a wheel from being written."""

    exit_status = 1

    def __init__(self, wheel: str, findings: Sequence[Finding]) -> None:
        faults = [
            WheelFaultError(_place(finding.file), _reason(finding), remedy=finding.remedy) for finding in findings
        ]
        super().__init__(f"{wheel} is not written", faults)


def verify_wheel(wheel: Path, companions: Sequence[Path], intended: IntendedEntries = _NOTHING_INTENDED) -> None:
    """Audit a wheel together with its companions, without other wheels of its own distribution.

    Run path entries that are ``intended`` may lead to folders that no package at hand has. Raises `FaultyWheelError`
    with every error, and with everything that is wrong with a run path.
    """
    name = canonicalize_name(name_and_version(wheel.name)[0])
    tree = without_distribution(read_tree([wheel], companions), name)
    findings = [
        *_findings(tree, AuditSettings(ignore=_RULES_ON_INTENDED)),
        *_findings(_without_entries(tree, intended), AuditSettings(select=_RULES_ON_INTENDED)),
    ]
    faults = [finding for finding in findings if _is_fault(finding)]
    if faults:
        raise FaultyWheelError(wheel.name, faults)


def _findings(tree: Tree, settings: AuditSettings) -> tuple[Finding, ...]:
    return audit(split_environments(tree), settings).findings


def without_distribution(tree: Tree, name: str) -> Tree:
    """Return what is given as context without the distribution of a name: what is made replaces it."""
    own = {one.source for one in tree.distributions if one.is_context and one.name == name}
    distributions = tuple(one for one in tree.distributions if one.source not in own)
    files = tuple(file for file in tree.files if file.distribution not in own)
    return msgspec.structs.replace(tree, distributions=distributions, files=files)


def _without_entries(tree: Tree, intended: IntendedEntries) -> Tree:
    """Return the tree as if no run path had the intended entries."""
    return msgspec.structs.replace(tree, files=tuple(_bare(file, intended) for file in tree.files))


def _bare(file: InstalledFile, intended: IntendedEntries) -> InstalledFile:
    if file.elf is None or file.run_path is None:
        return file
    left_out = intended.of(file.run_path, file.folder)
    rest = ":".join(entry for entry in split_run_path(file.run_path) if entry not in left_out)
    return msgspec.structs.replace(file, elf=msgspec.structs.replace(file.elf, rpath=None, runpath=rest))


def _is_fault(finding: Finding) -> bool:
    return finding.severity is Severity.ERROR or finding.rule.startswith(_RUN_PATH_RULES)


def _place(file: str) -> str:
    """Return a member's path inside the wheel; the wheel's own name where the finding is about all of it."""
    wheel, member, path = file.partition("!")
    return path if member else wheel.rpartition("/")[2]


def _reason(finding: Finding) -> str:
    return f"{finding.found} ({finding.rule})"
