"""Whose ROCm a wheel's libraries are taken from: the SDK's packages, or what a machine has.

A repair goes by it, and so does an audit that names a repair as the remedy. Without a word from the user, it is judged
by the libraries that the wheel needs.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Literal

import msgspec

from rocwheel.artifacts.sdk_names import is_sdk_package
from rocwheel.core.messages import first_of
from rocwheel.environment.known_libraries import (
    is_beside_sdk,
    is_cuda_library,
    is_rocm_folder,
    is_shared_by_toolkits,
    is_toolkit_folder,
    is_versioned_by_rocm,
)
from rocwheel.environment.requirements import required_distributions
from rocwheel.environment.sdk_layout import find_sdk_library, other_versions, sdk_folders, sdk_selector

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from rocwheel.audit.settings import AuditSettings
    from rocwheel.environment.tree import Distribution, Tree

ToolkitOption = Literal["auto", "sdk", "system"]
"""What users ask for; ``auto`` is judged by the libraries that the wheel needs."""


class OpenedNames(enum.Enum):
    """What is known about the libraries that a file opens by name."""

    NOTHING = "nothing"
    """It opens none."""
    FOUND = "found"
    """Its strings name them, and each is in a package or on every system."""
    NAMED = "named"
    """Its strings name some. Others are put together at run time, or no package at hand has them."""
    ANYTHING = "anything"
    """Its strings name none: the names come from elsewhere."""


class Toolkit(msgspec.Struct, frozen=True):
    """Where a wheel's toolkit comes from."""

    is_sdk: bool
    """Whether run paths may be led to the SDK's packages."""
    is_told: bool = False
    """Whether a user said so."""
    reason: str = ""
    """Why a wheel's toolkit is not the SDK's: the libraries by which that is judged."""

    keeps: bool = False
    """Whether run paths keep every folder that may have libraries, since a user said so."""

    @property
    def trusts_layout(self) -> bool:
        """Whether the SDK's packages, which the wheel will require, have what the SDK's layout says."""
        return self.is_sdk and not self.keeps

    def gives_up(self, folder: str, opens: OpenedNames) -> bool:
        """Return whether a file that finds all that it needs gives up a folder that may have what it opens by name.

        The folder is absolute or relative to site-packages. The SDK's packages stand in for the folders of ROCm where
        the file's strings name what it opens, and for those of every toolkit where a user said so.
        """
        if not self.trusts_layout or opens is OpenedNames.FOUND:
            return self.trusts_layout
        is_rocms = is_rocm_folder(folder) and (opens is OpenedNames.NAMED or self.is_told)
        return is_rocms or (self.is_told and is_toolkit_folder(folder))

    @property
    def is_systems(self) -> bool:
        """Whether the wheel is left to the machine's toolkits: a user said so, or its libraries do."""
        return not self.is_sdk and (self.is_told or bool(self.reason))

    @property
    def repair_command(self) -> str:
        """The repair that leads the wheel to the SDK's packages, and why it takes an option where it does."""
        if self.is_sdk:
            return "rocwheel repair"
        why = f"is for {self.reason}" if self.reason else "needs no other library of ROCm"
        return f"'rocwheel repair --toolkit sdk' (the wheel {why}; otherwise a repair leaves it to the system)"


def judge_toolkit(
    tree: Tree, owner: Distribution, settings: AuditSettings, used_by: Callable[[Distribution], Collection[str]]
) -> Toolkit:
    """Return the toolkit of a wheel in an environment.

    That is the SDK if the wheel needs libraries of ROCm, the SDK has each of them under the very SONAME, and the wheel
    needs none of CUDA or requires the SDK already, or loads libraries of its packages at hand: a repair has it require
    those, and the repaired wheel is judged alike. A wheel for several toolkits, for another version of ROCm, or for
    parts of it that the SDK lacks, is thereby left to the system's: no process mixes two.

    ``used_by`` returns the names of the packages that a wheel loads libraries from and doesn't require.
    """
    needed = _needed_from_others(tree, owner, settings)
    known = _sdk_libraries(tree)
    if others := {name: found for name in needed if (found := _other_versions(tree, name, known))}:
        shown = first_of([f"{name} (the SDK has {', '.join(found)})" for name, found in others.items()])
        return Toolkit(is_sdk=False, reason=f"another version of ROCm, judging by {shown}")
    cuda = [name for name in needed if is_cuda_library(name)]
    if cuda and not _uses_sdk(tree, owner, used_by):
        return Toolkit(is_sdk=False, reason=f"CUDA, judging by {first_of(cuda)}")
    beside = [name for name in needed if is_beside_sdk(name) and name not in tree.libraries]
    if beside and not _uses_sdk(tree, owner, used_by):
        return Toolkit(is_sdk=False, reason=f"a machine's ROCm, judging by {first_of(beside)}, which no SDK has")
    is_rocm = any((name in known or find_sdk_library(name)) and not is_shared_by_toolkits(name) for name in needed)
    return Toolkit(is_rocm or _uses_sdk(tree, owner, used_by))


def sdk_library_folders(tree: Tree) -> frozenset[str]:
    """Return the folders of the SDK's packages, to which no repair leads a wheel for another toolkit."""
    given = {other.source for other in tree.distributions if is_sdk_package(other.name)}
    at_hand = {file.folder for file in tree.files if file.distribution in given}
    return frozenset(at_hand | {folder.folder for folder in sdk_folders()})


def _needed_from_others(tree: Tree, owner: Distribution, settings: AuditSettings) -> list[str]:
    """Return what a wheel's files need or open by name, and what the wheel doesn't have itself, each once."""
    files = [file for file in tree.files_of[owner.source] if file.is_loadable and file.elf]
    own = {file.name for file in files}
    names = (name for file in files if file.elf for name in (*file.elf.wanted, *settings.opened_by(file.path)))
    return [name for name in dict.fromkeys(names) if name not in own]


def _sdk_libraries(tree: Tree) -> frozenset[str]:
    """Return the file names of the libraries in the SDK's packages at hand."""
    given = {other.source for other in tree.distributions if is_sdk_package(other.name)}
    return frozenset(name for name, files in tree.libraries.items() if any(f.distribution in given for f in files))


def _other_versions(tree: Tree, name: str, known: Collection[str]) -> list[str]:
    """Return the other versions that the SDK has of a library of ROCm, where nothing at hand nor the SDK has it.

    Libraries of other projects that the SDK brings say nothing of the release: their versions follow those projects.
    """
    if name in tree.libraries or not is_versioned_by_rocm(name):
        return []
    given = {other.name for other in tree.distributions}
    layout = find_sdk_library(name)
    if layout is not None and layout.distribution not in given:
        return []
    assumed = [other for other in other_versions(name) if _is_assumed(other, given)]
    return sorted({*assumed, *(other for other in other_versions(name, known) if other in known)})


def _is_assumed(soname: str, given: Iterable[str]) -> bool:
    layout = find_sdk_library(soname)
    return layout is not None and layout.distribution not in given


def _uses_sdk(tree: Tree, owner: Distribution, used_by: Callable[[Distribution], Collection[str]]) -> bool:
    """Return whether a wheel requires the SDK, or loads a library of the SDK's packages at hand."""
    required = required_distributions(tree, owner)
    if sdk_selector().distribution in required or any(map(is_sdk_package, required)):
        return True
    given = {other.name for other in tree.distributions if is_sdk_package(other.name)}
    return bool(given) and not given.isdisjoint(used_by(owner))
