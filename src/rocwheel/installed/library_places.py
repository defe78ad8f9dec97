"""Where libraries are: those of the packages at hand, and those of the SDK and of torch where these are assumed.

Audit, repair and the making of wheels all ask here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.linking.hwcaps import searched_folders
from rocwheel.linking.known.package_libraries import known_package_folders
from rocwheel.linking.known.sdk_layout import sdk_folders
from rocwheel.linking.run_path_choice import LibraryPlaces

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rocwheel.binary.elf.facts import Elf
    from rocwheel.installed.tree import Tree
    from rocwheel.linking.hwcaps import CpuLevel
    from rocwheel.linking.known.sdk_layout import SdkFolder
    from rocwheel.linking.loader import SystemLibraries

__all__ = ["assumed_package_folders", "assumed_sdk_folders", "missing_libraries", "places_for_machine"]


def assumed_sdk_folders(tree: Tree, *, closed: bool | None = None) -> tuple[SdkFolder, ...]:
    """Return the folders of those SDK packages that are not at hand, but are taken to be installed with the tree.

    There are none where ``closed`` says that the tree is all there is. With None, an installed environment is closed.
    """
    if tree.is_installed if closed is None else closed:
        return ()
    given = {owner.name for owner in tree.distributions}
    return tuple(folder for folder in sdk_folders() if folder.distribution not in given)


def assumed_package_folders(tree: Tree, *, closed: bool | None = None) -> tuple[SdkFolder, ...]:
    """Return the folders of known packages outside the SDK, such as torch, that files need and that are not at hand.

    A package counts if files need one of its libraries that no package has. For ``closed`` see `assumed_sdk_folders`.
    """
    if tree.is_installed if closed is None else closed:
        return ()
    given = {owner.name for owner in tree.distributions}
    needed = {name for file in tree.files if file.elf for name in file.elf.wanted} - tree.libraries.keys()
    return tuple(
        folder
        for folder in known_package_folders()
        if folder.distribution not in given and not needed.isdisjoint(folder.libraries)
    )


def places_for_machine(
    tree: Tree, assumed: Iterable[SdkFolder], machine: int, cpu_level: CpuLevel = "x86-64"
) -> LibraryPlaces:
    """Return where libraries are: in the folders of the tree first, then in the ``assumed`` folders.

    Libraries for another machine than ``machine``, its number in ELF, don't count: the loader passes over them.
    Folders for some processors alone are left out: the loader looks into them by itself. A library that lies nowhere
    else is, for a processor of ``cpu_level``, in the folder above.
    """
    machines = tree.library_machines
    found = {
        name: dict.fromkeys(searched_folders((f.folder for f in files if machines[f.path] == machine), cpu_level))
        for name, files in tree.libraries.items()
    }
    for folder in assumed:
        for name in folder.libraries:
            found.setdefault(name, {}).setdefault(folder.folder)
    providers = {name: tuple(folders) for name, folders in found.items() if folders}
    known = {folder for folders in providers.values() for folder in folders} | {file.folder for file in tree.files}
    return LibraryPlaces(providers, frozenset(known))


def missing_libraries(
    elf: Elf, dlopen: Sequence[str], places: LibraryPlaces, system: SystemLibraries
) -> tuple[str, ...]:
    """Return what a file needs, or opens by name (``dlopen``), and neither the packages nor the system has.

    A filtee that the file does without counts only where it is needed or opened as well.
    """
    optional = {filtee.name for filtee in elf.filtees if filtee.is_optional} - {*elf.needed, *dlopen}
    names = [name for name in dict.fromkeys([*elf.wanted, *dlopen]) if name not in optional]
    return tuple(name for name in names if name not in places.providers and system.find(name, elf.machine) is None)
