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
from rocwheel.linking.known.sdk_names import is_sdk_package
from rocwheel.repair.comparing.finds import Found, what_files_find

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rocwheel.audit.finding import Finding
    from rocwheel.audit.settings import AuditSettings
    from rocwheel.audit.undeclared_uses import UndeclaredUse
    from rocwheel.installed.tree import Distribution, InstalledFile
    from rocwheel.linking.run_path_choice import SetRunpath
    from rocwheel.repair.toolkit import Toolkit

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

    def __init__(
        self,
        tree: Tree,
        edits: Mapping[str, SetRunpath],
        toolkits: Mapping[str, Toolkit],
        settings: AuditSettings,
    ) -> None:
        files = tuple(_edited(file, edits) for file in tree.files)
        rules = msgspec.structs.replace(settings, select=_RULES)
        self.subject = Subject(Tree(tree.distributions, files, tree.is_prefix), rules)
        self.toolkits = toolkits
        """Those of the wheels, by their source."""
        self._given = {other.name for other in tree.distributions}

    def undeclared(self, owner: Distribution) -> tuple[str, ...]:
        """Return the packages that a wheel loads libraries from and that it doesn't require yet, in order.

        ROCm's packages that are not at hand are left out where the wheel's toolkit is not the SDK.
        """
        toolkit = self.toolkits.get(owner.source)
        used = (use.provider for use in self._uses if use.owner.source == owner.source)
        is_left_out = toolkit is not None and not toolkit.is_sdk
        return tuple(name for name in used if name in self._given or not (is_left_out and is_sdk_package(name)))

    def leftovers(self, owner: Distribution) -> tuple[str, ...]:
        """Return what no edit fixes in a wheel."""
        found = (finding for finding in self._findings if finding.file.startswith(f"{owner.source}!"))
        return tuple(f"{finding.path} {finding.found}" for finding in found)

    def finds(self, owner: Distribution) -> dict[str, tuple[Found, ...]]:
        """Return what each loadable file of a wheel finds now, by the member's name."""
        return what_files_find(self.subject, owner)

    @cached_property
    def _uses(self) -> tuple[UndeclaredUse, ...]:
        return tuple(undeclared_uses(self.subject))

    @cached_property
    def _findings(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in check(self.subject) if finding.severity is not Severity.NOTE)


def _edited(file: InstalledFile, edits: Mapping[str, SetRunpath]) -> InstalledFile:
    edit = edits.get(file.source)
    if edit is None or file.elf is None:
        return file
    return msgspec.structs.replace(file, elf=edit.applied_to(file.elf))
