"""A wheel as it is once its run paths are repaired: the packages that it uses, and what keeps it from being loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.audit.auditing import audit
from rocwheel.audit.environments import split_environments
from rocwheel.audit.finding import Severity
from rocwheel.audit.sdk_layout import find_sdk_library, other_versions
from rocwheel.audit.subject import Subject
from rocwheel.audit.tree import Tree
from rocwheel.audit.uses import undeclared_uses
from rocwheel.binary.runpath import RunpathTag

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rocwheel.audit.configuration import Configuration
    from rocwheel.audit.run_paths import SetRunpath
    from rocwheel.audit.tree import Distribution, InstalledFile

__all__ = ["RepairedWheel"]

_RULES = (
    "unresolved-library",
    "unreachable-library",
    "unresolved-dlopen",
    "undefined-symbol",
    "executable-stack",
    "wrong-machine",
)


class RepairedWheel:
    """One wheel of ``tree`` with its files as ``edits``, by the member's name, make them."""

    def __init__(
        self, tree: Tree, owner: Distribution, edits: Mapping[str, SetRunpath], settings: Configuration
    ) -> None:
        files = tuple(_edited(file, edits) if file.distribution == owner.source else file for file in tree.files)
        self._tree = Tree(tree.distributions, files, tree.is_prefix)
        self._owner = owner
        self._settings = settings
        environments = split_environments(self._tree)
        self._subject = Subject(next(e for e in environments if owner.source in e.owners), settings)
        self._given = {other.name for other in tree.distributions}

    def undeclared(self) -> tuple[str, ...]:
        """Return the packages that the wheel loads libraries from and that it doesn't require yet, in order.

        ROCm's packages that are not at hand are none of them where the wheel is for another version of them.
        """
        uses = (use for use in undeclared_uses(self._subject) if use.owner.source == self._owner.source)
        is_other = bool(self._other_versions())
        return tuple(use.provider for use in uses if use.provider in self._given or not is_other)

    def leftovers(self) -> tuple[str, ...]:
        """Return what no edit mends."""
        report = audit(self._tree, msgspec.structs.replace(self._settings, select=_RULES))
        found = tuple(
            f"{finding.path} {finding.found}"
            for finding in report.findings
            if finding.severity is not Severity.NOTE and finding.file.startswith(f"{self._owner.source}!")
        )
        return (*found, *self._warning())

    def _warning(self) -> list[str]:
        others = self._other_versions()
        names = ", ".join(f"{name} (known: {', '.join(known)})" for name, known in others.items())
        remedy = "give those that it was built with by --with; Requires-Dist gets none of those taken for granted"
        return [f"is for another version of ROCm's packages, by {names}: {remedy}"] if others else []

    def _other_versions(self) -> dict[str, list[str]]:
        """Return the libraries that the wheel lacks and that SDK packages not at hand have in other versions."""
        missed = (
            search.name
            for process in self._subject.processes
            for search in process.missed
            if self._is_own(process.file)
        )
        found = {name: [other for other in other_versions(name) if self._is_assumed(other)] for name in missed}
        return {name: others for name, others in found.items() if others}

    def _is_own(self, file: InstalledFile) -> bool:
        return file.distribution == self._owner.source

    def _is_assumed(self, soname: str) -> bool:
        layout = find_sdk_library(soname)
        return layout is not None and layout.distribution not in self._given


def _edited(file: InstalledFile, edits: Mapping[str, SetRunpath]) -> InstalledFile:
    edit = edits.get(file.member)
    if edit is None or file.elf is None:
        return file
    value = edit.value or None
    values = {"runpath": value, "rpath": None} if edit.tag is RunpathTag.RUNPATH else {"runpath": None, "rpath": value}
    return msgspec.structs.replace(file, elf=msgspec.structs.replace(file.elf, **values))
