"""Whose ROCm a wheel is made for, judging by the libraries that it needs: the SDK's packages, or what a machine has.

A repair goes by it, and so does an audit that names a repair as the remedy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rocwheel.core.messages import first_of
from rocwheel.installed.requirements import required_distributions
from rocwheel.linking.known.sdk_layout import find_sdk_library, other_versions, sdk_folders, sdk_selector
from rocwheel.linking.known.sdk_names import is_sdk_package
from rocwheel.linking.known.toolkits import is_beside_sdk, is_cuda_library, is_shared_by_toolkits, is_versioned_by_rocm

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from rocwheel.audit.settings import AuditSettings
    from rocwheel.installed.tree import Distribution, Tree

__all__ = ["WheelToolkit", "judge_toolkit", "sdk_library_folders"]


class WheelToolkit(NamedTuple):
    """Where a wheel's toolkit comes from, judging by its libraries."""

    is_sdk: bool
    """Whether run paths may be led to the SDK's packages."""
    reason: str = ""
    """Which other toolkit the wheel is for, and by which libraries that is judged."""

    @property
    def repair_command(self) -> str:
        """The repair that leads the wheel to the SDK's packages, and why it takes an option where it does."""
        if self.is_sdk:
            return "rocwheel repair"
        why = f"is for {self.reason}" if self.reason else "needs no other library of ROCm"
        return f"'rocwheel repair --toolkit sdk' (the wheel {why}; otherwise a repair leaves it to the system)"


def judge_toolkit(tree: Tree, owner: Distribution, settings: AuditSettings) -> WheelToolkit:
    """Return the toolkit of a wheel in an environment.

    That is the SDK if the wheel needs libraries of ROCm, the SDK has each of them under the very SONAME, and the wheel
    needs none of CUDA or requires the SDK already. A wheel for several toolkits, for another version of ROCm, or for
    parts of it that the SDK lacks, is thereby left to the system's: no process mixes two.
    """
    needed = _needed_from_others(tree, owner, settings)
    known = _sdk_libraries(tree)
    if others := {name: found for name in needed if (found := _other_versions(tree, name, known))}:
        shown = first_of([f"{name} (the SDK has {', '.join(found)})" for name, found in others.items()])
        return WheelToolkit(is_sdk=False, reason=f"another version of ROCm, judging by {shown}")
    cuda = [name for name in needed if is_cuda_library(name)]
    if cuda and not _requires_sdk(tree, owner):
        return WheelToolkit(is_sdk=False, reason=f"CUDA, judging by {first_of(cuda)}")
    beside = [name for name in needed if is_beside_sdk(name) and name not in tree.libraries]
    if beside and not _requires_sdk(tree, owner):
        return WheelToolkit(is_sdk=False, reason=f"a machine's ROCm, judging by {first_of(beside)}, which no SDK has")
    is_rocm = any((name in known or find_sdk_library(name)) and not is_shared_by_toolkits(name) for name in needed)
    return WheelToolkit(is_rocm or _requires_sdk(tree, owner))


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


def _requires_sdk(tree: Tree, owner: Distribution) -> bool:
    required = required_distributions(tree, owner)
    return sdk_selector().distribution in required or any(map(is_sdk_package, required))
