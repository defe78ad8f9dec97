"""Models repaired wheels, including the packages that they use and any problems that prevent them from loading."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from rocwheel.artifacts.sdk_names import is_sdk_package
from rocwheel.audit.audit import check
from rocwheel.audit.finding import Severity
from rocwheel.audit.subject import Subject
from rocwheel.audit.unresolved import folders_with
from rocwheel.environment.installed_paths import path_in_package
from rocwheel.environment.known_libraries import is_cuda_library, is_toolkit_folder
from rocwheel.environment.sdk_layout import is_newer_than_layout, is_rocm_library
from rocwheel.environment.tree import Tree
from rocwheel.repair.regressions import Found, resolve_libraries, resolve_library

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rocwheel.audit.finding import Finding
    from rocwheel.audit.settings import AuditSettings
    from rocwheel.audit.subject import Process
    from rocwheel.audit.wheel_toolkits import Toolkit
    from rocwheel.environment.run_path_choice import SetRunpath
    from rocwheel.environment.tree import Distribution, InstalledFile

_OF_LIBRARIES = ("unresolved-library", "unreachable-library", "unresolved-dlopen")
"""Rules whose findings contain a library's name and, if another file loads the library, the path of that file."""

_INHERITED = "inherited-run-path"
_RULES = (
    *_OF_LIBRARIES,
    _INHERITED,
    "undefined-symbol",
    "version-of-unneeded",
    "executable-stack",
    "wrong-machine",
)


class Leftover(msgspec.Struct, frozen=True):
    """A problem in a wheel that no edit can fix, with the violated audit rule and the file's source."""

    rule: str
    text: str
    source: str
    is_of_run_path: bool
    """Whether the library exists but the run path doesn't point to it."""


class RepairedTree:
    """Packages that are installed together, with their files after ``edits``, which are keyed by file source."""

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
        """The toolkit of each wheel, keyed by the wheel's source."""
        self._resolved: dict[str, dict[str, tuple[Found, ...]]] = {}
        self._given = {other.name for other in tree.distributions}

    def undeclared(self, owner: Distribution) -> tuple[str, ...]:
        """Return the packages that a wheel loads libraries from but doesn't require yet, in order.

        If the wheel's toolkit isn't the SDK, the result omits ROCm packages that aren't given.
        """
        toolkit = self.toolkits.get(owner.source)
        used = (use.provider for use in self.subject.undeclared_uses if use.owner.source == owner.source)
        is_left_out = toolkit is not None and not toolkit.is_sdk
        return tuple(name for name in used if name in self._given or not (is_left_out and is_sdk_package(name)))

    def leftovers(self, owner: Distribution) -> tuple[Leftover, ...]:
        """Return the problems in a wheel that no edit can fix, except for libraries that the system should provide."""
        return tuple(
            Leftover(
                finding.rule,
                f"{path_in_package(finding.path, finding.file)} {finding.found}",
                finding.file,
                finding.rule in _OF_LIBRARIES and bool(folders_with(self.subject, finding.facts[0])),
            )
            for finding in self._findings
            if finding.rule != _INHERITED
            and finding.file.startswith(f"{owner.source}!")
            and not self._is_left_on_purpose(owner, finding)
        )

    def inherited(self, owner: Distribution) -> dict[str, str]:
        """Return the findings about files that find libraries only through other files, keyed by the file's source."""
        found = (one for one in self._findings if one.rule == _INHERITED and one.file.startswith(f"{owner.source}!"))
        return {one.file: f"{path_in_package(one.path, one.file)} {one.found}" for one in found}

    def _is_left_on_purpose(self, owner: Distribution, finding: Finding) -> bool:
        toolkit, process = self.toolkits.get(owner.source), self._processes.get(finding.file)
        if toolkit is None or not toolkit.is_systems or process is None or finding.rule not in _OF_LIBRARIES:
            return False
        name, user = (*finding.facts, finding.path)[:2]
        is_elsewhere_at_hand = not self.subject.sdk_folders.issuperset(folders_with(self.subject, name))
        if (is_newer_than_layout(name) or is_elsewhere_at_hand) and not toolkit.is_told:
            return False
        found = resolve_library(self.subject, owner, process, user, name)
        return found is not None and _is_kept_on_purpose(found, toolkit)

    def kept_for_system(self, owner: Distribution) -> dict[str, tuple[Found, ...]]:
        """Return the libraries that a wheel's files find only through intentionally retained run path entries.

        Keys are paths in site-packages. Users who choose the system as the toolkit request every such entry. If a
        wheel's libraries belong to another toolkit, the entries for that toolkit are considered requested.
        """
        toolkit = self.toolkits.get(owner.source)
        if toolkit is None or not toolkit.is_systems:
            return {}
        resolved = self.resolved_libraries(owner)
        kept = {
            file.path: tuple(one for one in resolved.get(file.member, ()) if _is_kept_on_purpose(one, toolkit))
            for file in self.subject.tree.files_of[owner.source]
        }
        return {path: found for path, found in kept.items() if found}

    def resolved_libraries(self, owner: Distribution) -> dict[str, tuple[Found, ...]]:
        """Return the libraries that each loadable file in a wheel finds after the repair, keyed by member name."""
        if owner.source not in self._resolved:
            self._resolved[owner.source] = resolve_libraries(self.subject, owner)
        return self._resolved[owner.source]

    @cached_property
    def _processes(self) -> dict[str, Process]:
        return {process.file.source: process for process in self.subject.processes}

    @cached_property
    def _findings(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in check(self.subject) if finding.severity is not Severity.NOTE)


def _is_kept_on_purpose(found: Found, toolkit: Toolkit) -> bool:
    if found.where != "kept":
        return False
    is_toolkits = is_rocm_library(found.library) or is_cuda_library(found.library)
    return toolkit.is_told or is_toolkits or any(map(is_toolkit_folder, found.place.split(":")))


def _edited(file: InstalledFile, edits: Mapping[str, SetRunpath]) -> InstalledFile:
    edit = edits.get(file.source)
    if edit is None or file.elf is None:
        return file
    return msgspec.structs.replace(file, elf=edit.applied_to(file.elf))
