"""Reads one side of a comparison: its packages, their metadata, and their files."""

from __future__ import annotations

import os
import stat
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from packaging.utils import canonicalize_name

from rocwheel.artifacts.catalog import open_catalog
from rocwheel.core.errors import InputError, read_error
from rocwheel.core.reading import FileRange, require_listable
from rocwheel.core.workers import attempt_all, map_collecting, raise_all
from rocwheel.environment.dist_info import read_distribution
from rocwheel.environment.installed_paths import installed_path
from rocwheel.environment.read_tree import find_prefix, find_site_packages, is_artifact_folder
from rocwheel.index.entry import find_distributions
from rocwheel.index.source import files_of_local_index
from rocwheel.targets.declaration import DECLARATION_NAME, decode_declaration
from rocwheel.wheels.build_manifest import BUILT_FOLDER
from rocwheel.wheels.file_names import is_wheel_file_name, split_wheel_file_name
from rocwheel.wheels.metadata import CoreMetadataError, parse_core_metadata, parse_entry_points
from rocwheel.wheels.record import parse_record
from rocwheel.wheels.sdist import read_sdist
from rocwheel.wheels.zip_directory import find_dist_info, read_directory
from rocwheel.wheels.zip_reader import ZipMember, member_head, open_content, read_member

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from typing import TypeAlias

    from packaging.metadata import RawMetadata

    from rocwheel.artifacts.catalog import Entry
    from rocwheel.core.errors import RocwheelError
    from rocwheel.core.reading import Data
    from rocwheel.environment.tree import Distribution

if TYPE_CHECKING:
    Unpack: TypeAlias = Callable[[ZipMember], AbstractContextManager[FileRange]]


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a package. Sizes are in bytes. ``mode`` is the 16-bit Unix mode, or 0 if unknown."""

    path: str
    """The installed path, relative to site-packages or to the tree."""
    source: str
    """The file's name in messages."""
    size: int
    packed: int | None = None
    """The size in the wheel, or `None` if the file isn't packed."""
    mode: int = 0
    link: str | None = None
    """The target of a symlink."""
    hash: str = ""
    """The hash in RECORD for a member of a wheel. Empty if there is no RECORD."""
    content: ZipMember | FileRange | bytes | None = None

    @property
    def name(self) -> str:
        """The last part of the file's path."""
        return self.path.rpartition("/")[2]

    @property
    def is_executable(self) -> bool:
        """Whether the file's owner may execute it."""
        return bool(self.mode & 0o100)

    def head(self) -> bytes:
        """Return the file's first bytes, which identify binaries."""
        if isinstance(self.content, ZipMember):
            return member_head(self.content)
        with self.view() as data:
            return bytes(data[:64])

    @contextmanager
    def view(self, unpack: Unpack = open_content) -> Iterator[Data]:
        """Yield the file's bytes. Raises `InputError` if the file is unreadable or damaged.

        ``unpack`` yields the bytes of a wheel member.
        """
        if isinstance(self.content, ZipMember):
            with unpack(self.content) as unpacked, unpacked.view() as data:
                yield data
        elif isinstance(self.content, FileRange):
            with self.content.view() as data:
                yield data
        else:
            yield memoryview(self.content or b"")


class Metadata(msgspec.Struct, frozen=True, kw_only=True):
    """The metadata that a package declares to installers, exactly as written in its files."""

    requires: tuple[str, ...] = ()
    requires_python: str = ""
    extras: tuple[str, ...] = ()
    entry_points: tuple[str, ...] = ()
    """Each entry point as ``group: name``."""
    targets: tuple[str, ...] = ()
    """The declared GPU targets."""
    license: str = ""
    summary: str = ""
    tags: tuple[str, str, str] = ("", "", "")
    """The Python, ABI, and platform tags of a wheel. Each may be a set of tags, separated by dots."""


class Package(msgspec.Struct, frozen=True, kw_only=True):
    """A distribution, or files without a distribution."""

    name: str
    """The normalized name. Empty for files without a distribution."""
    version: str = ""
    source: str
    dist_info: str = ""
    metadata: Metadata = Metadata()
    items: tuple[Item, ...] = ()

    @property
    def label(self) -> str:
        """The package's name in messages."""
        return self.name or "files"

    @property
    def is_sdist(self) -> bool:
        """Whether the package is an sdist, whose files aren't at their installed paths."""
        return bool(self.name) and not self.dist_info

    @property
    def size(self) -> int:
        """The total size of the package's files."""
        return sum(item.size for item in self.items)

    @property
    def packed(self) -> int | None:
        """The total size of the package's files in the wheel, or `None` if the files aren't packed."""
        sizes = [item.packed for item in self.items if item.packed is not None]
        return sum(sizes) if sizes else None


class Side(msgspec.Struct, frozen=True):
    """The contents at a path."""

    path: str
    packages: tuple[Package, ...]

    @property
    def has_distributions(self) -> bool:
        """Whether there is a distribution, rather than only files."""
        return any(package.name for package in self.packages)

    @property
    def size(self) -> int:
        """The total size of all files."""
        return sum(package.size for package in self.packages)


METADATA_FILES = ("METADATA", "RECORD", "entry_points.txt", DECLARATION_NAME)
"""The files in ``.dist-info`` that are read."""
_LINK, _KIND = 0o120000, 0o170000
_AGAIN = "Build or fetch it again."


def read_wheel_package(path: Path) -> Package:
    """Return the package in a wheel. Raises `InputError` for an invalid wheel or unreadable metadata."""
    if not is_wheel_file_name(path.name):
        expected = "NAME-VERSION-PYTHON-ABI-PLATFORM.whl"
        raise InputError(
            path, "isn't named like a wheel", expected=expected, remedy="Restore the wheel's original name."
        )
    members = read_directory(path)
    dist_info = find_dist_info(path, (member.name for member in members))
    by_name = {member.name: member for member in members}
    texts = {
        name: read_member(by_name[member]) for name in METADATA_FILES if (member := f"{dist_info}/{name}") in by_name
    }
    hashes = _read_hashes(path, texts.get("RECORD", b""))
    items = tuple(_member_item(member, hashes) for member in members)
    package = Package(name="", source=str(path), dist_info=dist_info, items=items)
    return with_metadata(package, texts, tags=split_wheel_file_name(path.name).tags)


def read_sdist_package(path: Path) -> Package:
    """Return the package in an sdist. Raises `InputError` for an unreadable sdist."""
    try:
        files = read_sdist(path)
    except OSError as e:
        raise read_error(path, e) from e
    items = tuple(
        Item(path=name, source=f"{path}!{name}", size=len(data), content=data) for name, data in files.items()
    )
    if "PKG-INFO" not in files:
        raise InputError(path, "has no PKG-INFO", expected="an sdist", remedy=_AGAIN)
    return with_metadata(Package(name="", source=str(path), items=items), {"METADATA": files["PKG-INFO"]})


def with_metadata(
    package: Package, texts: Mapping[str, bytes], *, tags: tuple[str, str, str] = ("", "", "")
) -> Package:
    """Return a package with the metadata from its ``.dist-info``. ``texts`` contains the files, keyed by name.

    Raises `InputError` for unreadable metadata and for metadata without a name.
    """
    source = package.source
    fields = _read_fields(source, texts.get("METADATA", b""))
    declared = texts.get(DECLARATION_NAME)
    metadata = Metadata(
        requires=tuple(fields.get("requires_dist", ())),
        requires_python=fields.get("requires_python", ""),
        extras=tuple(fields.get("provides_extra", ())),
        entry_points=read_entry_points(source, texts.get("entry_points.txt", b"")),
        targets=decode_declaration(declared, source=f"{source}!{DECLARATION_NAME}").rocm_targets if declared else (),
        license=fields.get("license_expression", "") or fields.get("license", ""),
        summary=fields.get("summary", ""),
        tags=tags,
    )
    return Package(
        name=canonicalize_name(fields["name"]),
        version=fields.get("version", ""),
        source=source,
        dist_info=package.dist_info,
        metadata=metadata,
        items=package.items,
    )


def _read_fields(source: str, text: bytes) -> RawMetadata:
    """Return the fields of METADATA, which must have a name."""
    try:
        fields, _ = parse_core_metadata(text)
    except CoreMetadataError as e:
        raise InputError(source, f"its metadata can't be read ({e})", remedy=_AGAIN) from e
    if not fields.get("name"):
        raise InputError(source, "its metadata has no Name field", remedy=_AGAIN)
    return fields


def _read_hashes(path: Path, record: bytes) -> dict[str, str]:
    try:
        return {entry.path: entry.hash for entry in parse_record(record, path)}
    except InputError as e:
        raise InputError(path, f"its RECORD {e.found}", remedy=_AGAIN) from e


def _member_item(member: ZipMember, hashes: Mapping[str, str]) -> Item:
    return Item(
        path=installed_path(member.name),
        source=member.source,
        size=member.size,
        packed=member.packed.size,
        mode=member.mode,
        link=read_member(member).decode(errors="surrogateescape") if member.mode & _KIND == _LINK else None,
        hash=hashes.get(member.name, ""),
        content=member,
    )


def read_entry_points(source: str, data: bytes) -> tuple[str, ...]:
    """Return the entry points (entry points specification), each as ``group: name``.

    Raises `InputError` with ``source`` for invalid text.
    """
    groups = parse_entry_points(source, data)
    return tuple(f"{group}: {name}" for group, names in groups.items() for name in names)


_SKIPPED = {"__pycache__"}
_DASHES = 2
"""The number of dashes in a compatibility tag (:pep:`425`)."""
_EXPECTED = "a wheel, an sdist, a folder of wheels or sdists, an index, artifacts, an environment, or files"


class _SideReader(NamedTuple):
    """Options for reading a side: a context for open artifacts, a list for problems, and whether to read all files."""

    stack: ExitStack
    unread: list[RocwheelError] | None = None
    every: bool = False

    def convert(self, paths: list[Path], read: Callable[[Path], Package]) -> list[Package]:
        """Return the packages at several paths. Raise or record their problems."""
        if self.unread is None:
            return map_collecting("packages that can't be read", read, paths)
        return attempt_all(read, paths, self.unread)


@contextmanager
def open_side(path: Path, *, unread: list[RocwheelError] | None = None, every: bool = False) -> Iterator[Side]:
    """Yield the packages at ``path``: a wheel, an sdist, a binary, or a folder.

    Their files can be read within the block.

    A folder is an environment, a build, a set of distributions, an index, artifacts, or any other files. The first kind
    that matches applies. Only the metadata is read. Compiled Python files in folders are included only with ``every``.
    Raises `InputError` for other paths and empty paths, and `ProblemsError` for several unreadable packages. If
    ``unread`` is a list, the problems with packages in a folder are appended to it instead, and the side contains the
    other packages.
    """
    with ExitStack() as stack:
        try:
            side = Side(str(path), tuple(_read(path, _SideReader(stack, unread, every))))
        except OSError as e:
            raise read_error(e.filename or path, e) from e
        yield side


def _read(path: Path, reader: _SideReader) -> list[Package]:
    if path.is_dir():
        return _read_folder(path, reader)
    if not stat.S_ISREG(path.stat().st_mode):
        raise InputError(path, "is neither a file nor a folder", expected=_EXPECTED)
    return [_read_file(path)]


def _read_file(path: Path) -> Package:
    if path.suffix == ".whl":
        return read_wheel_package(path)
    if path.name.endswith(".tar.gz"):
        return read_sdist_package(path)
    if path.stat().st_size == 0:
        raise InputError(path, "is an empty file", expected=_EXPECTED)
    return Package(name="", source=str(path), items=(_disk_item(path, path.parent),))


def _read_folder(folder: Path, reader: _SideReader) -> list[Package]:
    require_listable(folder)
    if (site := find_site_packages(folder)) is not None:
        return _read_environment(site, reader)
    if found := find_distributions(folder / BUILT_FOLDER) or find_distributions(folder):
        return reader.convert(found, _read_file)
    if listed := _of_index(folder, reader):
        return reader.convert(listed, _read_file)
    is_artifacts = is_artifact_folder(folder)
    items = _artifact_items(folder, reader.stack) if is_artifacts else tuple(_walk(folder, every=reader.every))
    if not items:
        raise InputError(folder, "is an empty folder", expected=_EXPECTED)
    return [Package(name="", source=str(folder), items=items)]


def _of_index(folder: Path, reader: _SideReader) -> list[Path]:
    """Return the local distributions that the pages of an index list."""
    problems: list[RocwheelError] = []
    listed = sorted(files_of_local_index(folder, problems))
    if listed and reader.unread is None:
        raise_all("index pages that can't be read", problems)
    elif listed and reader.unread is not None:
        reader.unread.extend(problems)
    return listed


def _read_environment(site: Path, reader: _SideReader) -> list[Package]:
    """Return the packages in an environment. Files that no RECORD lists are in a package without a name.

    Files outside site-packages, such as programs, are included if a RECORD lists them and they are in the environment.
    """
    infos = sorted(site.glob("*.dist-info"))
    packages = reader.convert(infos, _installed)
    owners = {entry.path: info.name for info in infos for entry in _describe(info, ("RECORD",)).record}
    groups: dict[str, list[Item]] = {info.name: [] for info in infos}
    for item in (*_walk(site, every=reader.every), *_beside(site, owners, every=reader.every)):
        groups.setdefault(owners.get(item.path, ""), []).append(item)
    read = {package.dist_info for package in packages}
    rest = [item for name, items in groups.items() if name not in read for item in items]
    owned = [msgspec.structs.replace(package, items=tuple(groups[package.dist_info])) for package in packages]
    return [*owned, *([Package(name="", source=str(site), items=tuple(rest))] if rest else [])]


def _beside(site: Path, listed: Iterable[str], *, every: bool) -> Iterator[Item]:
    """Yield the files in RECORD that are outside site-packages but inside the environment."""
    prefix = str(find_prefix(site))
    for name in listed:
        if not name.startswith(("../", "/")) or "\0" in name:
            continue
        place = os.path.normpath(site.absolute() / name)
        path = Path(place)
        is_inside = path.is_relative_to(prefix) and not path.is_relative_to(site.absolute())
        if is_inside and (every or not _SKIPPED.intersection(path.parts)) and (path.is_symlink() or path.is_file()):
            yield msgspec.structs.replace(_disk_item(path, Path(prefix)), path=name)


def _installed(info: Path) -> Package:
    texts = _texts(info, METADATA_FILES)
    return with_metadata(Package(name="", source=str(info), dist_info=info.name), texts, tags=_tags(info))


def _tags(info: Path) -> tuple[str, str, str]:
    """Return the tags in the name of the installed wheel."""
    parts = [tag.split("-") for tag in _describe(info, ("WHEEL",)).tags if tag.count("-") == _DASHES]
    python, abi, platform = (".".join(dict.fromkeys(part[place] for part in parts)) for place in range(_DASHES + 1))
    return python, abi, platform


def _describe(info: Path, names: Iterable[str]) -> Distribution:
    return read_distribution(_texts(info, names), source=str(info), dist_info=info.name, is_wheel=False)


def _texts(info: Path, names: Iterable[str]) -> dict[str, bytes]:
    return {name: (info / name).read_bytes() for name in names if (info / name).is_file()}


def _walk(folder: Path, *, every: bool) -> Iterator[Item]:
    for root, folders, names in os.walk(folder, onerror=_raise):
        folders[:] = sorted(name for name in folders if every or name not in _SKIPPED)
        links = [name for name in folders if Path(root, name).is_symlink()]
        for name in sorted([*names, *links]):
            path = Path(root, name)
            if path.is_symlink() or path.is_file():
                yield _disk_item(path, folder)


def _raise(error: OSError) -> None:
    raise error


def _disk_item(path: Path, folder: Path) -> Item:
    status = path.lstat()
    is_link = stat.S_ISLNK(status.st_mode)
    return Item(
        path=path.relative_to(folder).as_posix(),
        source=str(path),
        size=status.st_size,
        mode=status.st_mode,
        link=str(path.readlink()) if is_link else None,
        content=None if is_link else FileRange.whole(path),
    )


def _artifact_items(folder: Path, stack: ExitStack) -> tuple[Item, ...]:
    """Return the files in the prefix that artifacts are merged into.

    If several files have the same path, only the first one is included.
    """
    entries = stack.enter_context(open_catalog(folder)).entries
    held = [entry for entry in entries if entry.source or entry.link is not None]
    return tuple(_entry_item(entry) for entry in {entry.path: entry for entry in reversed(held)}.values())


def _entry_item(entry: Entry) -> Item:
    return Item(
        path=entry.path,
        source=f"{entry.artifact}: {entry.path}",
        size=entry.source.size if entry.source else 0,
        mode=entry.mode,
        link=entry.link,
        content=entry.source,
    )
