"""What is still wrong in a wheel once its run paths are repaired, and would keep its libraries from being loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.audit.auditing import audit
from rocwheel.audit.finding import Severity
from rocwheel.audit.tree import Tree
from rocwheel.binary.runpath import RunpathTag

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rocwheel.audit.configuration import Configuration
    from rocwheel.audit.run_paths import SetRunpath
    from rocwheel.audit.tree import Distribution, InstalledFile

__all__ = ["leftovers"]

_RULES = ("unreachable-library", "undefined-symbol", "executable-stack")


def leftovers(
    tree: Tree, owner: Distribution, edits: Mapping[str, SetRunpath], settings: Configuration
) -> tuple[str, ...]:
    """Return what no edit mends of the files of ``owner``, whose ``edits`` are by the member's name."""
    files = tuple(_edited(file, edits) if file.distribution == owner.source else file for file in tree.files)
    report = audit(Tree(tree.distributions, files, tree.is_prefix), msgspec.structs.replace(settings, select=_RULES))
    return tuple(
        f"{finding.path} {finding.found}"
        for finding in report.findings
        if finding.severity is not Severity.NOTE and finding.file.startswith(f"{owner.source}!")
    )


def _edited(file: InstalledFile, edits: Mapping[str, SetRunpath]) -> InstalledFile:
    edit = edits.get(file.member)
    if edit is None or file.elf is None:
        return file
    value = edit.value or None
    values = {"runpath": value, "rpath": None} if edit.tag is RunpathTag.RUNPATH else {"runpath": None, "rpath": value}
    return msgspec.structs.replace(file, elf=msgspec.structs.replace(file.elf, **values))
