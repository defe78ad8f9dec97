"""Packages that break one rule of the audit, and how the finding says so."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.support.trees import find, library, package, tree

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rocwheel.audit.finding import Finding
    from rocwheel.environment.tree import Distribution, InstalledFile, Tree

__all__ = ["CORE", "HIP", "TAG", "TO_CORE", "USES_CORE", "Breach", "brief", "check_breach", "one", "with_core"]

CORE = package("rocm-sdk-core")
HIP = library("_rocm_sdk_core/lib/libamdhip64.so.7", "libc.so.6")
"""A library of `CORE`."""
USES_CORE = package(requires=("rocm-sdk-core==1.0",))
TO_CORE = "$ORIGIN/../_rocm_sdk_core/lib"
"""The run path from ``demo/`` to `HIP`."""
TAG = "py3-none-manylinux_2_17_x86_64"


class Breach(NamedTuple):
    """Packages that break a rule, the file of the finding, its text, and the settings of the audit."""

    audited: Tree
    file: str
    found: str
    settings: Mapping[str, Any] = MappingProxyType({})


def one(*files: InstalledFile, owner: Distribution | None = None) -> Tree:
    """Return a tree of one wheel."""
    return tree((owner or package(), list(files)))


def with_core(*files: InstalledFile, owner: Distribution = USES_CORE) -> Tree:
    """Return a tree of a wheel and of the SDK's core package with it."""
    return tree((owner, list(files)), (CORE, [HIP]))


def brief(findings: list[Finding]) -> list[tuple[str, str, str]]:
    """Return rule, member or wheel, and text of each finding."""
    return [
        (finding.rule, finding.file.rpartition("!")[2].removeprefix("dist/"), finding.found) for finding in findings
    ]


def check_breach(rule: str, breach: Breach) -> None:
    """Check that a breach leads to its finding and to no other."""
    assert brief(find(breach.audited, **breach.settings)) == [(rule, breach.file, breach.found)]
