"""From placements to the members of wheels: paths in site-packages, modes, run path edits."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.core.writing import plain_mode
from rocwheel.linking.run_path_choice import LibraryPlaces, library_places, run_path_edit
from rocwheel.packages.plan import FileMember, StubMember
from rocwheel.packages.planning.basis import PlanBasis

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.artifacts.catalog import Entry
    from rocwheel.linking.run_path_choice import SetRunpath
    from rocwheel.packages.planning.place_packages import PlacedPackage

__all__ = ["MemberMaker", "installed_places"]


class MemberMaker(msgspec.Struct, frozen=True):
    """Makes members of the placed files of one package."""

    basis: PlanBasis
    places: LibraryPlaces
    """Where the shared libraries of all packages are that are installed together."""
    search: tuple[str, ...]
    """Folders in which the package's run paths lead anyway, relative to site-packages."""

    def file(self, path: str, entry: Entry) -> FileMember:
        """Return the member for a file that is installed at ``path``, relative to site-packages.

        Raises `ValueError` for an entry that is no file.
        """
        if entry.source is None:
            message = f"{entry.path} is not a file"
            raise ValueError(message)
        edit = self._edit(path, entry)
        release = self.basis.compress_for if entry.source in self.basis.facts.targets else None
        mode, trim = plain_mode(entry.mode), self.basis.options.device_code == "trim" and release is not None
        return FileMember(path, mode, entry.source, str(entry.artifact), entry.path, edit, release, trim)

    def members(self, package: PlacedPackage) -> list[FileMember | StubMember]:
        """Return the members for everything that a package ships."""
        root = package.platform_module
        files = (self.file(posixpath.join(root, path), file.entry) for path, file in package.placement.files.items())
        stubs = (
            StubMember(posixpath.join(root, path), stub.target, stub.machine, str(stub.entry.artifact))
            for path, stub in package.placement.stubs.items()
        )
        return [*files, *stubs]

    def among(self, paths: Iterable[str]) -> MemberMaker:
        """Return a maker for files that also find libraries at these paths, relative to site-packages."""
        return msgspec.structs.replace(self, places=self.places.joined(library_places(paths)))

    def _edit(self, path: str, entry: Entry) -> SetRunpath | None:
        elf = self.basis.facts.elf(entry)
        if elf is None or not elf.is_loadable:
            return None
        tag = RunpathTag(self.basis.recipe.run_path_tag)
        return run_path_edit(elf, posixpath.dirname(path), self.search, self.places, tag)


def installed_places(packages: Iterable[PlacedPackage]) -> LibraryPlaces:
    """Index where the files of some packages stand once these are installed together."""
    return library_places(
        posixpath.join(package.platform_module, path) for package in packages for path in package.placement.files
    )
