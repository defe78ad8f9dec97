"""Plans wheels with development files: a tar with the files that builds need, and links to files in other packages."""

from __future__ import annotations

import json
import posixpath
from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from rocwheel.artifacts.artifact import FileKind
from rocwheel.artifacts.catalog import Entry, PrefixIndex, describe_end, resolve_link
from rocwheel.binary.platform import Platform
from rocwheel.build.plan import Dropped, TarEntry, TarMember, TextMember
from rocwheel.build.planning.wheels import forwarding_members, make_wheel, module_files
from rocwheel.core.errors import InputError
from rocwheel.core.symlinks import Symlinks, WalkEnd

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rocwheel.build.placement import PrefixEntries
    from rocwheel.build.plan import Member, PlannedWheel
    from rocwheel.build.planning.licensed_components import LicensedFiles
    from rocwheel.build.planning.packages import MemberMaker, PackageGroup, PlacedPackage


_TAR_SUFFIX = {"none": "", "xz": ".xz", "zst": ".zst"}


def plan_devel_wheel(
    group: PackageGroup, package: PlacedPackage, selected: PrefixEntries, prefix: PrefixIndex, licensed: LicensedFiles
) -> tuple[PlannedWheel, list[Dropped]]:
    """Plan the wheel that contains the devel tar. Also return the entries that the tar can't contain."""
    spec, modules = group.recipe_of(package), module_files(group, package)
    tree = DevelTar(package.platform_module, selected, prefix, tuple(group.by_key.values()))
    for overlaid in group.overlaid:
        forwarding = forwarding_members(group, overlaid)
        tree.mirror(overlaid, [member.path.removeprefix(f"{overlaid.platform_module}/") for member in forwarding])
    tar, texts, lost = _devel_tar(group, package, tree.entries(group.member_maker(package)))
    members: list[Member] = [tar]
    members += [TextMember(f"{package.module}/{path}", text) for path, text in (modules | texts).items()]
    linked = tree.linked | set(spec.requires)
    requires = [placed.distribution for key, placed in group.by_key.items() if key in linked]
    wheel = make_wheel(group, package, members, licensed, requires)
    dropped = [Dropped(one.path, str(selected[one.link].artifact), f"a symlink {one.reason}") for one in lost]
    return wheel, [*tree.dropped, *dropped]


def _devel_tar(
    group: PackageGroup, package: PlacedPackage, entries: Sequence[TarEntry]
) -> tuple[TarMember, dict[str, str], tuple[LostLink, ...]]:
    """Return the devel tar, the text files next to it, and lost links.

    On Windows, links are listed in a text file instead of the tar.
    """
    compression = group.basis.options.devel_compression
    texts: dict[str, str] = {}
    links: dict[str, str] = {}
    lost: tuple[LostLink, ...] = ()
    if group.basis.facts.platform is Platform.WINDOWS:
        others = (
            posixpath.join(package.platform_module, path)
            for package in group.by_key.values()
            for path in package.placement.paths
        )
        parted = part_links(package.platform_module, entries, others)
        entries, links, lost = parted.files, parted.links, parted.lost
        texts = {LINKS_NAME: render_links(links)}
    name = f"{package.module}/_devel.tar{_TAR_SUFFIX[compression]}"
    linked = tuple(posixpath.join(package.platform_module, path) for path in links)
    return TarMember(name, compression, tuple(entries), linked), texts, lost


class DevelTar:
    """Decides the contents of each path in the devel tree.

    A file that a runtime package ships becomes a relative symlink to that file elsewhere in site-packages. Other names
    of a shared library become symlinks to its SONAME. Other symlinks stay unchanged, and all other entries are files.
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
        """Add links to more files of a runtime package. ``paths`` are relative to the package's prefix.

        These links take precedence over links for other names of libraries.
        """
        for path in paths:
            self._shipped[path] = self._mirrored[path] = package
            self._other_names.pop(path, None)

    def entries(self, maker: MemberMaker) -> list[TarEntry]:
        """Return the members of the tar, sorted by path. Fill `dropped`, and fill `linked` with package keys."""
        links = {entry.path: entry for entry in self._links()}
        elsewhere = {*self._other_names, *self._shipped}
        own = {path: entry for path, entry in self._selected.items() if entry.kind is FileKind.FILE}
        files = {posixpath.join(self.root, path): entry for path, entry in own.items() if path not in elsewhere}
        # A file finds its libraries in the tree itself, either as files or as links to files in other packages.
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

    def _shipped_link(self, path: str) -> TarEntry:
        package = self._shipped[path]
        self.linked.add(package.key)
        target = posixpath.join(package.platform_module, path)
        return self._link(path, posixpath.relpath(target, posixpath.dirname(posixpath.join(self.root, path))))

    def _source_link(self, entry: Entry) -> Iterator[TarEntry]:
        resolution = resolve_link(self._prefix, entry.path)
        end = resolution.path
        leads_to_kept = resolution.entry is None or end in self._selected or end in self._shipped
        if resolution.outcome.is_found and leads_to_kept and entry.link is not None:
            yield self._link(entry.path, entry.link)
        else:
            self.dropped.append(Dropped(entry.path, str(entry.artifact), f"a symlink {describe_end(resolution)}"))

    def _link(self, path: str, text: str) -> TarEntry:
        return TarEntry(posixpath.join(self.root, path), 0o777, link=text)


LINKS_NAME = "_links.json"
"""The name of a file next to the archive. That file lists the paths in the expanded tree whose files are elsewhere."""
_MOST_ROWS = 1_000_000
"""The maximum number of links.

If linked folders contain links to folders, a few links can expand to billions of paths.
"""


class LostLink(msgspec.Struct, frozen=True):
    """A symlink that can't be replaced by a file."""

    path: str
    """The path in the tree."""
    link: str
    """The path of the symlink itself, relative to the tree.

    This path differs from ``path`` if a link points to the symlink's folder.
    """
    reason: str
    """The reason, phrased to follow the words "a symlink"."""


class PartedLinks(msgspec.Struct, frozen=True):
    """The files and the links of a devel tree, and the links that can't be resolved."""

    files: tuple[TarEntry, ...]
    """The regular files."""
    links: dict[str, str]
    """Other files of the tree, keyed by path. Each value is the path of a regular file in site-packages."""
    lost: tuple[LostLink, ...]


def part_links(root: str, entries: Iterable[TarEntry], others: Iterable[str] = ()) -> PartedLinks:
    """Separate the files of a devel tree from its links, and resolve the links to regular files.

    ``root`` is the tree's folder in site-packages, and ``others`` are the files of other packages there. A link to a
    folder is replaced by links to the folder's files, so that installing needs only hard links or copies. Links that
    dangle, loop, or point to a parent folder are lost. Raises `InputError` if links expand to too many paths.
    """
    listed = {entry.path: entry for entry in entries}
    files = tuple(entry for entry in listed.values() if entry.link is None)
    texts = {path: entry.link for path, entry in listed.items() if entry.link is not None}
    site = _Site(texts, {*others, *(entry.path for entry in files)})
    links: dict[str, str] = {}
    lost: list[LostLink] = []
    for path in texts:
        for place, end in site.expand(path):
            below = _below(root, place)
            if isinstance(end, str):
                links[below] = end
            else:
                lost.append(LostLink(below, _below(root, end[0]), end[1]))
            if len(links) + len(lost) > _MOST_ROWS:
                found = f"is one of several symlinks that together expand to more than {_MOST_ROWS:,} files"
                raise InputError(path, found, remedy="Leave out links to folders with leave-out in the recipe.")
    return PartedLinks(files, dict(sorted(links.items())), tuple(lost))


def render_links(links: Mapping[str, str]) -> str:
    """Return the text of the file that lists the links."""
    return json.dumps({"links": links}, indent=1) + "\n"


def _below(root: str, path: str) -> str:
    # This is much faster than posixpath.relpath, which matters because links can expand to millions of paths.
    return path.removeprefix(f"{root}/")


class _Place(msgspec.Struct, frozen=True):
    """A path in the expanded tree, the path that it resolves to so far, and the links that were followed."""

    place: str
    path: str
    crossed: tuple[str, ...]
    """The folders of the links that were followed."""


class _Site:
    """The contents of site-packages: symlinks with their targets, and regular files."""

    def __init__(self, texts: Mapping[str, str], files: set[str]) -> None:
        self._files = files
        self._children: dict[str, set[str]] = defaultdict(set)
        for path in (*texts, *files):
            self._enter(path)
        self._texts = {path: WalkEnd.OUTSIDE if text.startswith("/") else text for path, text in texts.items()}
        self._symlinks = Symlinks(self._texts.get, self._children.__contains__)

    def _enter(self, path: str) -> None:
        while path:
            folder, _, name = path.rpartition("/")
            if name in self._children[folder]:
                return
            self._children[folder].add(name)
            path = folder

    def expand(self, link: str) -> Iterator[tuple[str, str | tuple[str, str]]]:
        """Expand a link, and yield each resulting path with its regular file, or with the lost link and the reason."""
        stack = [_Place(link, link, ())]
        while stack:
            here = stack.pop()
            if here.path in self._texts:
                here, lost = self._cross(here)
                if lost:
                    yield here.place, lost
                    continue
            if here.path in self._files:
                yield here.place, here.path
            else:
                names = sorted(self._children[here.path], reverse=True)
                folder = here.path and f"{here.path}/"
                stack += [_Place(f"{here.place}/{name}", f"{folder}{name}", here.crossed) for name in names]

    def _cross(self, at: _Place) -> tuple[_Place, tuple[str, str] | None]:
        """Return the location that a link points to, or the link and the reason why it is lost.

        The location is a file, or a folder that doesn't contain the link.
        """
        walk = self._symlinks.follow(at.path)
        end, crossed = walk.path, (*at.crossed, at.path.rpartition("/")[0])
        if walk.end is not WalkEnd.REACHED or (end not in self._files and end not in self._children):
            return at, (at.path, _LOST[walk.end].format(end))
        if not end or any(f"{one}/".startswith(f"{end}/") for one in crossed):
            return at, (at.path, f"to {end or 'site-packages'}, a folder that contains the symlink")
        return _Place(at.place, end, crossed), None


_LOST = {
    WalkEnd.REACHED: "to {}, where there is no file",
    WalkEnd.MISSING: "to a path below {}, which is not a folder",
    WalkEnd.LOOP: "that loops at {}",
    WalkEnd.ABOVE: "that leaves site-packages at {}",
    WalkEnd.OUTSIDE: "that leaves site-packages at {}",
}
"""Phrases that follow the words "a symlink" in messages.

The placeholder is the path where the link couldn't be followed any further.
"""
