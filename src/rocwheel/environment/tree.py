"""Describes packages that are installed together, the conflicts among them, and the environments that they form.

Several versions of a distribution are never installed together, and neither are its wheels for different Python
versions or machines.
"""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.elf.facts import Elf, ElfTraits
from rocwheel.environment.file_reports import DeviceReport, PeReport
from rocwheel.environment.installed_paths import SITE, InstalledLayout, wheel_layout
from rocwheel.environment.loader import Obstacle, TreeDisk
from rocwheel.wheels.file_names import split_wheel_file_name, wheel_platforms
from rocwheel.wheels.platform_floor import host_machines
from rocwheel.wheels.record import RecordEntry
from rocwheel.wheels.tags import parse_platforms, split_tags

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rocwheel.binary.elf.dynamic import RunpathTag


class MetadataProblem(msgspec.Struct, frozen=True):
    """A problem with a distribution's metadata: a sentence, and facts that distinguish it from other problems."""

    found: str
    facts: tuple[str, ...]


class Distribution(msgspec.Struct, frozen=True, kw_only=True):
    """A distribution. ``source`` is the path of the wheel or of the ``.dist-info`` folder."""

    name: str
    """The normalized name."""
    version: str
    source: str
    dist_info: str
    requires: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()
    license_files: tuple[str, ...] = ()
    metadata_version: str = ""
    license: str = ""
    """The license in the metadata: an expression, a name, or a classifier."""
    tags: tuple[str, ...] = ()
    is_purelib: bool = False
    record: tuple[RecordEntry, ...] = ()
    other_digests: dict[str, bytes | None] = {}
    """The digests of the members for which RECORD has a sha384 or sha512 hash, with that algorithm.

    Damaged members and members of remote wheels have no digest.
    """
    is_wheel: bool = False
    is_context: bool = False
    """Whether the distribution is context: it is installed with the audited packages but isn't audited itself."""
    targets: tuple[str, ...] = ()
    """The GPU targets for which it declares code (``rocm_targets.json``)."""
    unlicensed: tuple[str, ...] = ()
    """The projects in the bill of materials whose license texts the distribution doesn't contain."""
    problems: tuple[MetadataProblem, ...] = ()
    invalid: tuple[MetadataProblem, ...] = ()
    """Violations of the core metadata standard in a wheel's METADATA that installers tolerate."""
    refused: tuple[MetadataProblem, ...] = ()
    """Faults in the headers of the wheel's archive that installers reject, even though the archive is readable."""
    script_problems: tuple[MetadataProblem, ...] = ()
    """The problems with the distribution's commands."""
    commands: tuple[tuple[str, str], ...] = ()
    """The names and object references of the commands that installers create for a wheel."""

    @property
    def label(self) -> str:
        """The name in findings: the wheel's file name, or the distribution's name."""
        return self.source.rpartition("/")[2] if self.is_wheel else self.name

    @property
    def name_tags(self) -> tuple[str, str, str]:
        """The Python, ABI, and platform tags in a wheel's file name. Each may be a set of tags, separated by dots."""
        if not self.is_wheel:
            return ("", "", "")
        return split_wheel_file_name(self.label).tags

    @property
    def layout(self) -> InstalledLayout:
        """The layout of the distribution's environments, to the extent that its tags or its path determine it."""
        if self.is_wheel:
            return wheel_layout(self.label)
        place = _SITE.search(self.source) if self.dist_info else None
        return InstalledLayout(place[1] if place else "")

    @property
    def is_for_musl(self) -> bool:
        """Whether a wheel is only for systems with musl, which has a different loader."""
        return self.is_wheel and all(tag.system == "musl" for tag in wheel_platforms(self.label))


_SITE = re.compile(r"(?:^|/)(lib(?:64)?/(?:python|pypy)3[^/]*/(?:site|dist)-packages)/[^/]*\Z")


class InstalledFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file. ``path`` is relative to site-packages."""

    path: str
    distribution: str
    """The source of the `Distribution`. Empty for a file without an owner."""
    source: str
    size: int
    mode: int = 0
    """All 16 bits of the Unix mode, or 0 if the archive has no mode."""
    link: str | None = None
    is_dangling: bool = False
    """Whether the file is a broken symbolic link on disk."""
    sha256: bytes | None = None
    elf: Elf | None = None
    traits: ElfTraits | None = None
    device: DeviceReport | None = None
    windows: PeReport | None = None
    """The report on a Windows DLL or program; `None` for any other file."""
    is_mach_o: bool = False
    """Whether the file is a macOS program or library. No other information is available about such files."""
    is_script: bool = False
    """Whether the file begins with ``#!``."""
    devel_paths: tuple[str, ...] = ()
    """The paths of the packed development files in the file. Only packages for Windows have such files.

    The paths are relative to site-packages. If the file is the manifest next to an archive, the paths are relative to
    the root of the file tree.
    """
    problem: str = ""
    """The reason that the file couldn't be read as the kind of binary that it appears to be."""
    mentions: frozenset[str] = frozenset()
    """Names of libraries in Python source, or in a binary that calls ``dlopen``."""
    obstacle: Obstacle | None = None
    """The reason that the dynamic loader fails at this file when it searches for a library with this name."""

    @property
    def folder(self) -> str:
        """The file's folder, relative to site-packages."""
        return self.path.rpartition("/")[0]

    @property
    def name(self) -> str:
        """The last part of the file's path."""
        return self.path.rpartition("/")[2]

    @property
    def member(self) -> str:
        """The file's name inside the wheel."""
        return self.source.removeprefix(f"{self.distribution}!")

    @property
    def has_scheme(self) -> bool:
        """Whether the member name defines the destination, such as ``x.data/platlib``.

        For other files, WHEEL defines the destination.
        """
        return self.member.partition("/")[0].endswith(".data")

    @property
    def run_path(self) -> str | None:
        """The effective run path, or `None` if the file has no run path."""
        return self.elf.run_path if self.elf else None

    @property
    def tag(self) -> RunpathTag | None:
        """The tag of the effective run path, or `None` if the file has no run path."""
        return self.elf.run_path_tag if self.elf else None

    @property
    def is_loadable(self) -> bool:
        """Whether the dynamic loader can load the file: a shared library or a dynamically linked program."""
        return self.elf is not None and self.elf.is_loadable

    @property
    def has_init_function(self) -> bool:
        """Whether the file has an initialization function, which makes the file importable (:pep:`489`, :pep:`793`)."""
        return self.traits is not None and any(
            name.startswith((b"PyInit", b"PyModExport")) for name in self.traits.exports
        )

    @property
    def is_windows_code(self) -> bool:
        """Whether the file is a DLL with machine code.

        DLLs with only .NET code run on any system. Programs don't count as Windows code, because they might be data.
        """
        return self.windows is not None and self.windows.is_dll and not self.windows.is_managed

    @property
    def is_machine_code(self) -> bool:
        """Whether the file is code for one system and its processors.

        Object files count as machine code, but GPU code doesn't.
        """
        is_elf = self.elf is not None and (self.elf.is_loadable or self.elf.machine in host_machines())
        return is_elf or self.is_windows_code or self.is_mach_o


class Tree(msgspec.Struct, frozen=True, dict=True):
    """All packages that are audited together.

    If ``is_prefix``, the tree is an install prefix, where links are allowed.
    """

    distributions: tuple[Distribution, ...]
    files: tuple[InstalledFile, ...]
    is_prefix: bool = False
    unread: frozenset[str] = frozenset()
    """The names of distributions that were specified but can't be read.

    They may contain files that other files need.
    """

    @cached_property
    def owners(self) -> dict[str, Distribution]:
        """Distributions, keyed by source."""
        return {distribution.source: distribution for distribution in self.distributions}

    @cached_property
    def by_name(self) -> dict[str, list[Distribution]]:
        """Distributions, keyed by name. A package that is specified twice has two entries."""
        found: dict[str, list[Distribution]] = {}
        for distribution in self.distributions:
            found.setdefault(distribution.name, []).append(distribution)
        return found

    @cached_property
    def audited(self) -> tuple[InstalledFile, ...]:
        """The files that are not context."""
        return tuple(file for file in self.files if not self.is_context(file))

    def is_context(self, file: InstalledFile) -> bool:
        """Return whether a file is context, which means that it belongs to a package that isn't audited itself."""
        owner = self.owners.get(file.distribution)
        return owner is not None and owner.is_context

    @cached_property
    def files_of(self) -> dict[str, tuple[InstalledFile, ...]]:
        """The files of each distribution, keyed by the distribution's source."""
        found: dict[str, list[InstalledFile]] = {distribution.source: [] for distribution in self.distributions}
        for file in self.files:
            found.setdefault(file.distribution, []).append(file)
        return {source: tuple(files) for source, files in found.items()}

    @cached_property
    def audited_distributions(self) -> tuple[Distribution, ...]:
        """The distributions that are not context."""
        return tuple(distribution for distribution in self.distributions if not distribution.is_context)

    @cached_property
    def by_path(self) -> dict[str, InstalledFile]:
        """Files, keyed by path. If several files have the same path, the first one is used."""
        return {file.path: file for file in reversed(self.files)}

    @cached_property
    def by_source(self) -> dict[str, InstalledFile]:
        """Files, keyed by source."""
        return {file.source: file for file in self.files}

    @cached_property
    def owners_of_tops(self) -> dict[str, frozenset[str]]:
        """The names of the distributions with files in a top-level folder of site-packages, keyed by folder."""
        found: dict[str, set[str]] = {}
        for source, files in self.files_of.items():
            name = self.owners[source].name if source in self.owners else ""
            for top in {file.path.partition("/")[0] for file in files}:
                found.setdefault(top, set()).add(name)
        return {top: frozenset(names) for top, names in found.items()}

    @cached_property
    def links(self) -> dict[str, str]:
        """The raw texts of symbolic links, keyed by path.

        Symbolic links in wheels are ignored, because installers turn them into text files.
        """
        wheels = {distribution.source for distribution in self.distributions if distribution.is_wheel}
        return {
            file.path: file.link for file in self.files if file.link is not None and file.distribution not in wheels
        }

    @cached_property
    def library_machines(self) -> dict[str, int]:
        """The machine of each shared library, and of each symbolic link to one, keyed by path."""
        disk = TreeDisk({file.path: file.elf for file in self.files if file.elf is not None}, self.links)
        opened = ((path, disk.open(f"{SITE}/{path}")) for path in self.by_path)
        elves = ((path, library.elf) for path, library in opened if library is not None and library.elf is not None)
        return {path: elf.machine for path, elf in elves if elf.is_shared_library}

    @cached_property
    def libraries(self) -> dict[str, tuple[InstalledFile, ...]]:
        """The shared libraries that have a file name, including links to libraries, with one result for each path.

        Keyed by file name.
        """
        found: dict[str, dict[str, InstalledFile]] = {}
        for file in self.files:
            if file.path in self.library_machines:
                found.setdefault(file.name, {}).setdefault(file.path, file)
        return {name: tuple(files.values()) for name, files in found.items()}

    @cached_property
    def is_installed(self) -> bool:
        """Whether the tree is an environment, which records its installer (INSTALLER), unlike unpacked wheels."""
        owners = self.audited_distributions
        is_left = any(f"{owner.dist_info}/INSTALLER" in self.by_path for owner in owners if owner.dist_info)
        return is_left and not any(owner.is_wheel for owner in owners)

    @cached_property
    def layout(self) -> InstalledLayout:
        """The layout of the environment, to the extent that the distributions share a layout."""
        sites = {owner.layout.site for owner in self.distributions} - {""}
        return InstalledLayout(sites.pop() if len(sites) == 1 else "")

    @cached_property
    def loadable(self) -> tuple[InstalledFile, ...]:
        """The audited files that the dynamic loader can load."""
        return tuple(file for file in self.audited if file.is_loadable)


class Conflict(msgspec.Struct, frozen=True):
    """Files that can't be installed together: they have the same path, or a file has the path of a folder.

    ``files`` are in the given order. If a folder contains several files, the first one represents them. ``found`` is a
    sentence that describes the conflict.
    """

    path: str
    files: tuple[InstalledFile, ...]
    found: str


def find_conflicts(files: Iterable[InstalledFile]) -> Iterator[Conflict]:
    """Yield a conflict for each path that several files share, and for each file whose path is also a folder."""
    by_path: dict[str, list[InstalledFile]] = defaultdict(list)
    for file in files:
        by_path[file.path].append(file)
    for path, found in sorted(by_path.items()):
        if len(found) > 1:
            alike = "the same" if len({file.sha256 for file in found}) == 1 else "different"
            yield Conflict(path, tuple(found), f"{len(found)} files have the path {path}, with {alike} contents")
    below = {folder: path for path in by_path for folder in _parents(path)}
    for path in sorted(below.keys() & by_path.keys()):
        inner = by_path[below[path]][0]
        yield Conflict(
            path, (by_path[path][0], inner), f"{path} is a file, but also the folder that contains {inner.path}"
        )


def _parents(path: str) -> Iterator[str]:
    while path := posixpath.dirname(path):
        if path == "/":
            return
        yield path


_GENERIC = ("py2", "py3", "none", "abi3")


class Environments(msgspec.Struct, frozen=True, dict=True):
    """The environments for all specified wheels."""

    everything: Tree
    """All distributions and files, including distributions that are never installed together."""
    by_leader: dict[str, Tree]
    """The environment of each audited distribution, keyed by the distribution's source."""

    @cached_property
    def each(self) -> tuple[Tree, ...]:
        """The distinct environments.

        If there is no audited distribution, all distributions and files form one environment.
        """
        return tuple({id(tree): tree for tree in self.by_leader.values()}.values()) or (self.everything,)


def split_environments(tree: Tree) -> Environments:
    """Split a tree into the environments that its wheels are for.

    An environment contains a distribution at most once.

    Each environment is created for one wheel, its leader. If there are several wheels of another distribution, the
    environment gets the wheel that is most similar to the leader. Audited wheels take precedence over context. Wheels
    for other machines are omitted. Every audited distribution is in at least one environment. A tree without such
    conflicts is a single environment.
    """
    return Environments(tree, _by_leader(tree))


def _by_leader(tree: Tree) -> dict[str, Tree]:
    groups = _by_name(tree)
    candidates = [_installable(owners) for owners in groups]
    possible = [owner for owners in candidates for owner in owners]
    leaders = [owner for owner in possible if not owner.is_context] or possible[:1]
    machines = {_machines(leader) for leader in leaders} - {frozenset()}
    if all(len(owners) == 1 for owners in groups) and len(machines) <= 1:
        return dict.fromkeys((leader.source for leader in leaders), tree)
    chosen = {leader.source: frozenset(_beside(leader, candidates)) for leader in leaders}
    every = {owner.source for owners in groups for owner in owners}
    parts = {kept: _without(tree, every - kept) for kept in dict.fromkeys(chosen.values())}
    return {source: parts[kept] for source, kept in chosen.items()}


def _by_name(tree: Tree) -> list[list[Distribution]]:
    found: dict[str, list[Distribution]] = defaultdict(list)
    for owner in tree.distributions:
        if owner.dist_info:
            found[owner.name or owner.source].append(owner)
    return list(found.values())


def _installable(owners: list[Distribution]) -> list[Distribution]:
    """Return the installable distributions that have the same name.

    Context is included only if no distribution is audited.
    """
    return [owner for owner in owners if not owner.is_context] or owners


def _beside(leader: Distribution, groups: Iterable[list[Distribution]]) -> list[str]:
    """Return the sources of a distribution and of the distributions that are installed with it on one machine.

    Each name has exactly one source.
    """
    kept, machines = [], _machines(leader)
    for owners in groups:
        fitting = [owner for owner in owners if not machines or not _machines(owner) or machines & _machines(owner)]
        if not fitting:
            continue
        chosen = leader if leader in owners else max(fitting, key=lambda owner: _likeness(leader, owner))
        kept.append(chosen.source)
        machines = machines & _machines(chosen) or machines or _machines(chosen)
    return kept


def _machines(owner: Distribution) -> frozenset[str]:
    """Return the machines in a wheel's platform tags, or complete tags without glibc. Empty means any machine."""
    platforms = parse_platforms(owner.name_tags[2]) if owner.is_wheel else ()
    return frozenset(tag.machine if tag.system == "glibc" else tag.text for tag in platforms if tag.system != "any")


def _likeness(one: Distribution, other: Distribution) -> tuple[bool, bool, bool, bool]:
    first, second = set(one.name_tags), set(other.name_tags)
    pythons = split_tags(other.name_tags[0])
    same_python = not {*split_tags(one.name_tags[0])}.isdisjoint(pythons)
    any_python = any(tag in _GENERIC for tag in (*pythons, other.name_tags[1]))
    return same_python, any_python, one.version == other.version, first == second


def _without(tree: Tree, dropped: set[str]) -> Tree:
    owners = tuple(owner for owner in tree.distributions if owner.source not in dropped)
    files = tuple(file for file in tree.files if file.distribution not in dropped)
    return msgspec.structs.replace(tree, distributions=owners, files=files)
