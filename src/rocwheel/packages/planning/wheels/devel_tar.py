"""The devel tar: everything that builds against the SDK need, as links where a runtime package has the file."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from rocwheel.artifacts.artifact import FileKind
from rocwheel.artifacts.catalog import Entry, PrefixIndex, describe_end, resolve_link
from rocwheel.packages.plan import Dropped, TarEntry

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rocwheel.packages.layout.selection import PrefixEntries
    from rocwheel.packages.planning.members import MemberMaker
    from rocwheel.packages.planning.place_packages import PlacedPackage

__all__ = ["DevelTar"]


class DevelTar:
    """Decides what stands at each path of the devel tree.

    A file that a runtime package ships becomes a symlink to it, relative to its own folder, across site-packages. A
    shared library's other names become symlinks to its SONAME. Other symlinks stay as they are; everything else is a
    file.
    """

    def __init__(
        self, root: str, selected: PrefixEntries, prefix: PrefixIndex, runtime: Sequence[PlacedPackage]
    ) -> None:
        self.root = root
        self.dropped: list[Dropped] = []
        self.linked: set[str] = set()
        self._selected = selected
        self._mirrored: dict[str, PlacedPackage] = {}
        self._prefix = prefix
        self._shipped = {path: package for package in runtime for path in package.placement.files}
        self._other_names = {
            path: place for package in runtime for path, place in package.placement.other_names.items()
        }

    def mirror(self, package: PlacedPackage, paths: Iterable[str]) -> None:
        """Have the tree link to further files of a runtime package, at these paths relative to its prefix.

        They take the place of other names of libraries.
        """
        for path in paths:
            self._shipped[path] = self._mirrored[path] = package
            self._other_names.pop(path, None)

    def entries(self, maker: MemberMaker) -> list[TarEntry]:
        """Return the members of the tar, sorted by path; fill `dropped`, and `linked` with keys of packages."""
        links = {entry.path: entry for entry in self._links()}
        files = {posixpath.join(self.root, path): entry for path, entry in self._own_files()}
        # A file finds its libraries in the tree itself, be they files or links to what other packages ship.
        maker = maker.among([*links, *files])
        members = (maker.file(path, entry) for path, entry in files.items())
        found = links | {member.path: TarEntry(member.path, member.mode, file=member) for member in members}
        return [found[path] for path in sorted(found)]

    def _links(self) -> Iterator[TarEntry]:
        for path, entry in self._selected.items():
            if path in self._other_names:
                place = self._other_names[path]
                yield self._link(path, posixpath.relpath(place, posixpath.dirname(path)))
                if place in self._shipped:
                    yield self._shipped_link(place)
            elif path in self._shipped:
                yield self._shipped_link(path)
            elif entry.kind is FileKind.SYMLINK:
                yield from self._source_link(entry)
        yield from map(self._shipped_link, self._mirrored)

    def _own_files(self) -> Iterator[tuple[str, Entry]]:
        for path, entry in self._selected.items():
            if entry.kind is FileKind.FILE and path not in self._other_names and path not in self._shipped:
                yield path, entry

    def _shipped_link(self, path: str) -> TarEntry:
        package = self._shipped[path]
        self.linked.add(package.key)
        target = posixpath.join(package.platform_module, path)
        return self._link(path, posixpath.relpath(target, posixpath.dirname(posixpath.join(self.root, path))))

    def _source_link(self, entry: Entry) -> Iterator[TarEntry]:
        resolution = resolve_link(self._prefix, entry.path)
        leads_to_kept = resolution.entry is None or self._is_kept(resolution.path)
        if resolution.outcome.is_found and leads_to_kept and entry.link is not None:
            yield self._link(entry.path, entry.link)
        else:
            self.dropped.append(Dropped(entry.path, str(entry.artifact), f"a symlink {describe_end(resolution)}"))

    def _is_kept(self, path: str) -> bool:
        return path in self._selected or path in self._shipped

    def _link(self, path: str, text: str) -> TarEntry:
        return TarEntry(posixpath.join(self.root, path), 0o777, link=text)
