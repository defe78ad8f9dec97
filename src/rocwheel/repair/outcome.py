"""Wheels as they are once their run paths are repaired: which packages they use, and what keeps them from loading."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from rocwheel.audit.audit import check
from rocwheel.audit.finding import Severity
from rocwheel.audit.subject import Subject
from rocwheel.audit.undeclared_uses import undeclared_uses
from rocwheel.installed.tree import Tree
from rocwheel.linking.sdk_layout import find_sdk_library, other_versions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rocwheel.audit.finding import Finding
    from rocwheel.audit.settings import AuditSettings
    from rocwheel.audit.undeclared_uses import UndeclaredUse
    from rocwheel.installed.tree import Distribution, InstalledFile
    from rocwheel.linking.run_path_choice import SetRunpath

__all__ = ["RepairedTree"]

_RULES = (
    "unresolved-library",
    "unreachable-library",
    "unresolved-dlopen",
    "undefined-symbol",
    "executable-stack",
    "wrong-machine",
)


class RepairedTree:
    """Packages that are installed together, with their files as ``edits``, by the files' source, make them."""

    def __init__(self, tree: Tree, edits: Mapping[str, SetRunpath], settings: AuditSettings) -> None:
        files = tuple(_edited(file, edits) for file in tree.files)
        rules = msgspec.structs.replace(settings, select=_RULES)
        self._subject = Subject(Tree(tree.distributions, files, tree.is_prefix), rules)
        self._given = {other.name for other in tree.distributions}

    def undeclared(self, owner: Distribution) -> tuple[str, ...]:
        """Return the packages that a wheel loads libraries from and that it doesn't require yet, in order.

        ROCm's packages that are not at hand are left out where the wheel is built for another version of them.
        """
        is_other = bool(self._other_versions(owner))
        used = (use.provider for use in self._uses if use.owner.source == owner.source)
        return tuple(provider for provider in used if provider in self._given or not is_other)

    def leftovers(self, owner: Distribution) -> tuple[str, ...]:
        """Return what no edit fixes in a wheel."""
        found = (finding for finding in self._findings if finding.file.startswith(f"{owner.source}!"))
        return (*(f"{finding.path} {finding.found}" for finding in found), *self._warning(owner))

    @cached_property
    def _uses(self) -> tuple[UndeclaredUse, ...]:
        return tuple(undeclared_uses(self._subject))

    @cached_property
    def _findings(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in check(self._subject) if finding.severity is not Severity.NOTE)

    def _warning(self, owner: Distribution) -> list[str]:
        others = self._other_versions(owner)
        names = ", ".join(f"{name} (known: {', '.join(known)})" for name, known in others.items())
        remedy = (
            "use --with to give the packages that it was built with; Requires-Dist gets no package that is only assumed"
        )
        return [f"is built for another version of ROCm's packages, judging by {names}: {remedy}"] if others else []

    def _other_versions(self, owner: Distribution) -> dict[str, list[str]]:
        """Return the libraries that a wheel lacks, with their other versions in SDK packages that are not at hand."""
        missed = (
            search.name
            for process in self._subject.processes
            for search in process.missed
            if process.file.distribution == owner.source
        )
        found = {name: [other for other in other_versions(name) if self._is_assumed(other)] for name in missed}
        return {name: others for name, others in found.items() if others}

    def _is_assumed(self, soname: str) -> bool:
        layout = find_sdk_library(soname)
        return layout is not None and layout.distribution not in self._given


def _edited(file: InstalledFile, edits: Mapping[str, SetRunpath]) -> InstalledFile:
    edit = edits.get(file.source)
    if edit is None or file.elf is None:
        return file
    return msgspec.structs.replace(file, elf=edit.applied_to(file.elf))
