"""Plans wheels of development files: a tar of what builds against the SDK need, with links to other packages."""

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
    """Plan the wheel with the devel tar; also return the entries that can't be in it."""
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
    """Return the devel tar, the texts next to it, and lost links. On Windows, the texts list the links, not the tar."""
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
    """Decides what is at each path of the devel tree.

    A file that a runtime package ships becomes a symlink to it across site-packages, relative to its own folder. Other
    names of a shared library become symlinks to its SONAME. Other symlinks stay unchanged; everything else is a file.
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
        """Add links to more files of a runtime package, at these paths relative to its prefix.

        They replace other names of libraries.
        """
        for path in paths:
            self._shipped[path] = self._mirrored[path] = package
            self._other_names.pop(path, None)

    def entries(self, maker: MemberMaker) -> list[TarEntry]:
        """Return the members of the tar, sorted by path; fill `dropped`, and `linked` with package keys."""
        links = {entry.path: entry for entry in self._links()}
        elsewhere = {*self._other_names, *self._shipped}
        own = {path: entry for path, entry in self._selected.items() if entry.kind is FileKind.FILE}
        files = {posixpath.join(self.root, path): entry for path, entry in own.items() if path not in elsewhere}
        # A file finds its libraries in the tree itself, as files or as links to what other packages ship.
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
"""A file next to the archive, with the paths in the expanded tree of files that are elsewhere."""
_MOST_ROWS = 1_000_000
"""Links to folders that contain links to folders double with each level: a few lines could fill any memory."""


class LostLink(msgspec.Struct, frozen=True):
    """A symlink that can't become a file."""

    path: str
    """Its path in the tree."""
    link: str
    """The symlink itself, relative to the tree. It differs if other folders lead to the folder that contains it."""
    reason: str
    """Words that follow "a symlink"."""


class PartedLinks(msgspec.Struct, frozen=True):
    """A devel tree in two parts, and the links that fit neither."""

    files: tuple[TarEntry, ...]
    """The regular files."""
    links: dict[str, str]
    """Other files by path in the tree, each with the path of a regular file in site-packages."""
    lost: tuple[LostLink, ...]


def part_links(root: str, entries: Iterable[TarEntry], others: Iterable[str] = ()) -> PartedLinks:
    """Return the files of a devel tree separately from its links, which are resolved to regular files.

    ``root`` is the tree's folder in site-packages, and ``others`` are the files of other packages there. A link to a
    folder becomes the folder's files, so that hard links or copies can be made directly. Links that dangle, loop, or
    lead to a parent folder are lost. Raises `InputError` for links that multiply.
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
                found = f"is a symlink with which those of the tree become more than {_MOST_ROWS:,} files"
                raise InputError(path, found, remedy="Leave links to folders out by the recipe (leave-out).")
    return PartedLinks(files, dict(sorted(links.items())), tuple(lost))


def render_links(links: Mapping[str, str]) -> str:
    """Return the text of the manifest."""
    return json.dumps({"links": links}, indent=1) + "\n"


def _below(root: str, path: str) -> str:
    # Much faster than posixpath.relpath, because links can expand to millions of paths.
    return path.removeprefix(f"{root}/")


class _Place(msgspec.Struct, frozen=True):
    """A path of the expanded tree, what is there before links are followed, and the links on the way."""

    place: str
    path: str
    crossed: tuple[str, ...]
    """The folders of the links on the way."""


class _Site:
    """Site-packages: symlinks by path with their targets, and regular files."""

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
        """Yield each path that a link becomes, with the path of its regular file, or the lost link and the reason."""
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
        """Return where a link leads, or the link and why it is lost.

        It ends at a file or at a folder outside the link.
        """
        walk = self._symlinks.follow(at.path)
        end, crossed = walk.path, (*at.crossed, at.path.rpartition("/")[0])
        if walk.end is not WalkEnd.REACHED or (end not in self._files and end not in self._children):
            return at, (at.path, _LOST[walk.end].format(end))
        if not end or any(f"{one}/".startswith(f"{end}/") for one in crossed):
            return at, (at.path, f"to {end or 'site-packages'}, a folder that it is in itself")
        return _Place(at.place, end, crossed), None


_LOST = {
    WalkEnd.REACHED: "to {}, where no file is",
    WalkEnd.MISSING: "to what would be below {}, which is no folder",
    WalkEnd.LOOP: "that loops at {}",
    WalkEnd.ABOVE: "that leads out of site-packages at {}",
    WalkEnd.OUTSIDE: "that leads out of site-packages at {}",
}
"""Words that follow "a symlink", with the path where following it ended."""
