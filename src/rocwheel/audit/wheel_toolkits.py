"""Determines which toolkit provides a wheel's ROCm libraries: the SDK's packages, or the machine's toolkit.

Repairs use this result, and so do audits that recommend a repair. Unless the user chooses a toolkit, the wheel's needed
libraries determine it.
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
from rocwheel.environment.sdk_layout import (
    find_sdk_library,
    is_newer_than_layout,
    other_versions,
    sdk_folders,
    sdk_selector,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from rocwheel.audit.settings import AuditSettings
    from rocwheel.environment.tree import Distribution, Tree

ToolkitOption = Literal["auto", "sdk", "system"]
"""The user's choice. With ``auto``, the wheel's needed libraries determine the toolkit."""


class OpenedNames(enum.Enum):
    """What the audit knows about the libraries that a file opens by name."""

    NOTHING = "nothing"
    """The file opens no libraries."""
    FOUND = "found"
    """The file's strings contain the names of all libraries, and each library is in a package or on every system."""
    NAMED = "named"
    """The file's strings contain the names of some libraries.

    The other names are composed at run time, or no given package contains the libraries.
    """
    ANYTHING = "anything"
    """The file's strings contain no library names, so the names come from another file."""


class Toolkit(msgspec.Struct, frozen=True):
    """The source of a wheel's ROCm libraries."""

    is_sdk: bool
    """Whether run paths may point to the SDK's packages."""
    is_told: bool = False
    """Whether the user chose the toolkit."""
    reason: str = ""
    """The reason for a toolkit other than the SDK: the toolkit, and the libraries that led to this result."""

    is_newer: bool = False
    """Whether the libraries are from a newer ROCm release than the known layout, and no SDK package is given."""
    keeps: bool = False
    """Whether the user chose to keep all run path entries for folders that might have libraries."""

    @property
    def trusts_layout(self) -> bool:
        """Whether the repaired wheel can rely on the SDK's layout, because it will require the SDK's packages."""
        return self.is_sdk and not self.keeps

    def gives_up(self, folder: str, opens: OpenedNames) -> bool:
        """Return whether a repair removes a folder in which a file may open libraries by name.

        The file finds all its dependencies without that folder. The folder is absolute or relative to site-packages.
        The SDK's packages replace the folders of ROCm if the file's strings contain the names of the libraries. If the
        user chose the SDK, the packages replace the folders of every toolkit.
        """
        if not self.trusts_layout or opens is OpenedNames.FOUND:
            return self.trusts_layout
        is_rocms = is_rocm_folder(folder) and (opens is OpenedNames.NAMED or self.is_told)
        return is_rocms or (self.is_told and is_toolkit_folder(folder))

    @property
    def is_systems(self) -> bool:
        """Whether the wheel uses the machine's toolkits, because of the user's choice or the wheel's libraries."""
        return not self.is_sdk and (self.is_told or bool(self.reason))

    @property
    def repair_command(self) -> str:
        """The command that repairs the wheel to use the SDK's packages, with the reason for its option."""
        if self.is_sdk:
            return "'rocwheel repair'"
        why = f"is for {self.reason}" if self.reason else "needs no other ROCm library"
        default = "without this option, a repair uses the system's libraries"
        return f"'rocwheel repair --toolkit sdk' (the wheel {why}; {default})"


def judge_toolkit(
    tree: Tree, owner: Distribution, settings: AuditSettings, used_by: Callable[[Distribution], Collection[str]]
) -> Toolkit:
    """Return a wheel's toolkit in an environment.

    The toolkit is the SDK if the wheel needs ROCm libraries, and the SDK contains each of them with exactly the same
    SONAME. In addition, the wheel must need no CUDA library, already require the SDK, or load libraries from given SDK
    packages. A repair adds these packages to the wheel's requirements, so the repaired wheel gets the same result.

    Other wheels use the system's toolkit: wheels for several toolkits, for a different ROCm version, or for parts of
    ROCm that the SDK lacks. A process never uses libraries from two toolkits.

    ``used_by`` returns the names of the packages from which a wheel loads libraries without requiring the packages.
    """
    needed = _needed_from_others(tree, owner, settings)
    known = _sdk_libraries(tree)
    if others := {name: found for name in needed if (found := _other_versions(tree, name, known))}:
        shown = first_of([f"{name} (the SDK has {', '.join(found)})" for name, found in others.items()])
        is_newer = any(is_newer_than_layout(name) and not known & {*found} for name, found in others.items())
        which = "a newer ROCm version than rocwheel's list of SDK libraries" if is_newer else "another version of ROCm"
        return Toolkit(is_sdk=False, reason=f"{which} because of {shown}", is_newer=is_newer)
    cuda = [name for name in needed if is_cuda_library(name)]
    if cuda and not _uses_sdk(tree, owner, used_by):
        return Toolkit(is_sdk=False, reason=f"CUDA because of {first_of(cuda)}")
    beside = [name for name in needed if is_beside_sdk(name) and name not in tree.libraries]
    if beside and not _uses_sdk(tree, owner, used_by):
        return Toolkit(is_sdk=False, reason=f"a system's ROCm because of {first_of(beside)}, which no SDK contains")
    is_rocm = any((name in known or find_sdk_library(name)) and not is_shared_by_toolkits(name) for name in needed)
    return Toolkit(is_rocm or _uses_sdk(tree, owner, used_by))


def sdk_library_folders(tree: Tree) -> frozenset[str]:
    """Return the folders of the SDK's packages. A repair doesn't add them to wheels for another toolkit."""
    given = {other.source for other in tree.distributions if is_sdk_package(other.name)}
    at_hand = {file.folder for file in tree.files if file.distribution in given}
    return frozenset(at_hand | {folder.folder for folder in sdk_folders()})


def _needed_from_others(tree: Tree, owner: Distribution, settings: AuditSettings) -> list[str]:
    """Return the distinct libraries that a wheel's files need or open by name, but that the wheel doesn't contain."""
    files = [file for file in tree.files_of[owner.source] if file.is_loadable and file.elf]
    own = {file.name for file in files}
    names = (name for file in files if file.elf for name in (*file.elf.wanted, *settings.opened_by(file.path)))
    return [name for name in dict.fromkeys(names) if name not in own]


def _sdk_libraries(tree: Tree) -> frozenset[str]:
    """Return the file names of the libraries in the given SDK packages."""
    given = {other.source for other in tree.distributions if is_sdk_package(other.name)}
    return frozenset(name for name, files in tree.libraries.items() if any(f.distribution in given for f in files))


def _other_versions(tree: Tree, name: str, known: Collection[str]) -> list[str]:
    """Return the other versions, in the SDK, of a ROCm library that neither the given packages nor the SDK contains.

    The SDK also contains libraries from other projects. The version numbers of these libraries are those of the
    upstream projects, not of the ROCm release.
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
    """Return whether a wheel requires the SDK, or loads a library from a given SDK package."""
    required = required_distributions(tree, owner)
    if sdk_selector().distribution in required or any(map(is_sdk_package, required)):
        return True
    given = {other.name for other in tree.distributions if is_sdk_package(other.name)}
    return bool(given) and not given.isdisjoint(used_by(owner))
