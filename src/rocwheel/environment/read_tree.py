"""Reads the packages that a user passes: wheels, folders of wheels, environments, artifacts, or any folder of files."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from packaging.utils import canonicalize_name

from rocwheel.artifacts.catalog import open_catalog
from rocwheel.artifacts.fetching import CHECKSUM_FILES
from rocwheel.artifacts.reading import find_artifacts
from rocwheel.binary.elf.facts import Elf, ElfTraits, read_elf, read_elf_traits
from rocwheel.binary.kind import HEAD_SIZE, has_facts, is_cut_elf, is_elf, is_empty_library, is_kpack, is_mach_o, is_pe
from rocwheel.core.errors import InputError, RocwheelError, WorkError, each_problem, read_error
from rocwheel.core.messages import absent_remedy, find_below, quoted
from rocwheel.core.progress import SILENT, Progress, tracked
from rocwheel.core.reading import FileRange, iter_pieces
from rocwheel.core.remote_file import source_of
from rocwheel.core.workers import ReadContext, Readers, attempt_all, map_sized, open_workers, raise_all
from rocwheel.environment.devel_paths import (
    is_devel_archive,
    is_devel_manifest,
    read_archive_paths,
    read_manifest_paths,
)
from rocwheel.environment.dist_info import (
    ENTRY_POINTS,
    INFO_FILES,
    MOST_MODULE,
    find_script_problems,
    is_source,
    mentioned_in_binary,
    mentioned_in_source,
    read_commands,
    read_distribution,
)
from rocwheel.environment.file_reports import read_device_report, read_pe_report
from rocwheel.environment.installed_paths import installed_path, wheel_layout
from rocwheel.environment.loader import find_obstacle
from rocwheel.environment.package_targets import find_selectors, read_selector_extras, read_selector_facts
from rocwheel.environment.sdk_layout import sdk_selector
from rocwheel.environment.tree import (
    Distribution,
    Environments,
    InstalledFile,
    MetadataProblem,
    Tree,
    split_environments,
)
from rocwheel.environment.windows_files import is_for_windows
from rocwheel.wheels.build_manifest import MANIFEST_NAME
from rocwheel.wheels.checking import find_layout_problems
from rocwheel.wheels.content import Digest
from rocwheel.wheels.file_names import SDIST_SUFFIX, is_wheel_file_name, name_and_version
from rocwheel.wheels.record import STRONG_HASHES
from rocwheel.wheels.zip_directory import find_dist_info, read_archive
from rocwheel.wheels.zip_reader import (
    ZipMember,
    digest_member,
    hash_member,
    iter_member,
    member_head,
    open_content,
    open_unpacked,
    read_member,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rocwheel.artifacts.catalog import Entry
    from rocwheel.core.progress import Progress
    from rocwheel.core.reading import Data


def with_head(file: InstalledFile, head: bytes) -> InstalledFile:
    """Return the file with data from its first `HEAD_SIZE` bytes: whether it stops the loader, and its kind."""
    problem = "is empty; expected a shared library" if is_empty_library(file.path, head) else file.problem
    return msgspec.structs.replace(
        file,
        obstacle=find_obstacle(head),
        problem=problem,
        is_mach_o=is_mach_o(head),
        is_script=head.startswith(b"#!"),
    )


def is_worth_reading(head: bytes | Data) -> bool:
    """Return whether `with_binary_facts` may find data in a file that starts with these bytes."""
    return has_facts(head) or is_cut_elf(head) or is_kpack(head)


def with_binary_facts(
    file: InstalledFile, data: Data, *, headers_only: bool = False, whole: bool = True
) -> InstalledFile:
    """Return the file with data from its contents.

    Damage to the file or its device code is recorded as a problem with the file.

    With ``headers_only``, only the headers of device code are read. Without ``whole``, bytes that only affect checksums
    aren't read.
    """
    try:
        if is_pe(data):
            file = msgspec.structs.replace(file, windows=read_pe_report(data, name=file.source, whole=whole))
        elf, traits = _read_host_facts(data, file.source)
        if elf is not None and elf.imports_dlopen:
            file = msgspec.structs.replace(file, mentions=mentioned_in_binary(data))
        file = msgspec.structs.replace(file, elf=elf, traits=traits)
        device = read_device_report(data, name=file.source, headers_only=headers_only)
        return msgspec.structs.replace(file, device=device)
    except WorkError:
        raise
    except InputError as e:
        return msgspec.structs.replace(file, problem=e.fault)


def _read_host_facts(data: Data, name: str) -> tuple[Elf | None, ElfTraits | None]:
    if not is_elf(data):
        return None, None
    elf = read_elf(data, name=name)
    return elf, read_elf_traits(data, name=name) if elf.is_host_code else None


class WheelReading(msgspec.Struct, frozen=True, kw_only=True):
    """Options for reading the members of wheels. By default, threads of this process read all members."""

    readers: Readers | None = None
    """Other readers for the members, such as the workers of a cluster."""
    unpack: Callable[[ZipMember], AbstractContextManager[tuple[FileRange, Digest]]] = open_unpacked
    digest: Callable[[ZipMember], Digest] = digest_member
    """This function and the next function may cache results, as in `UnpackedMembers`. ``readers`` don't use them."""
    headers_only: bool = False
    """Whether to skip decompressing device code. ``readers`` always decompress all of it."""


_MOST_SOURCE = 4 << 20
"""The maximum size of source files, in bytes. Larger files are treated as data that opens no libraries."""
_SMALL = 256 << 10
"""The maximum size of packed members that are fetched together, in bytes.

Below this size, the request takes longer than the transfer of the data.
"""
_MOST_PREFETCHED = 64 << 20
_BY_DEFAULT = WheelReading()


def read_wheels(
    paths: Sequence[Path], *, context: bool = False, progress: Progress = SILENT, how: WheelReading = _BY_DEFAULT
) -> tuple[list[Distribution], list[InstalledFile]]:
    """Read several wheels. ``how`` defines how members are unpacked and hashed.

    Damage to a member is recorded as a problem with its file. Raises `InputError` for a file that isn't a wheel or
    isn't named like a wheel, and for damaged metadata.
    """
    opened = [_open_wheel(path, context=context) for path in paths]
    files: list[InstalledFile] = []
    if how.readers is not None:
        every = [
            (str(path), msgspec.structs.replace(member, packed=member.packed.for_any_machine()))
            for path, (_, members) in zip(paths, opened, strict=True)
            for member in members
        ]
        progress.begin("reading wheels", sum(member.size for _, member in every))
        for file in how.readers.map(_read_pair, every, _tell):
            progress.advance(file.size)
            files.append(file)
        return [distribution for distribution, _ in opened], files
    with open_workers() as executor:
        for path, (_, members) in zip(paths, opened, strict=True):
            progress.begin(f"reading {path.name}", sum(member.size for member in members))
            _prefetch_small(path, members)
            read = map_sized(executor, partial(_read_file, str(path), how=how), members, lambda member: member.size)
            for file in read:
                progress.advance(file.size)
                files.append(file)
    return [distribution for distribution, _ in opened], files


def _prefetch_small(path: Path, members: Iterable[ZipMember]) -> None:
    """Fetch the small members of a remote wheel that will be read, many at a time."""
    source = source_of(path)
    if source is None:
        return
    ranges, room = [], _MOST_PREFETCHED
    for member in members:
        size = member.packed.size
        if size <= min(_SMALL, room) and _is_read(member):
            ranges.append((member.packed.offset, member.packed.offset + size))
            room -= size
    source.prefetch(ranges)


def _is_read(member: ZipMember) -> bool:
    """Return whether more than the start of a member is read. Damage to the start is reported later."""
    try:
        return is_source(member.name) or is_worth_reading(member_head(member))
    except InputError:
        return False


def _open_wheel(path: Path, *, context: bool) -> tuple[Distribution, tuple[ZipMember, ...]]:
    _check_wheel_name(path)
    archive = read_archive(path)
    members = archive.members
    _require_one_devel_archive(path, members)
    dist_info = find_dist_info(path, (member.name for member in members))
    by_name = {member.name: member for member in members}
    texts = {name: read_member(by_name[found]) for name in INFO_FILES if (found := f"{dist_info}/{name}") in by_name}
    distribution = read_distribution(texts, source=str(path), dist_info=dist_info, is_wheel=True, is_context=context)
    # Problems in the headers that installers reject. If only one member has the problem, the text includes its name.
    named = ((str(error.source).partition("!")[2], error) for error in archive.refused)
    refused = tuple(
        MetadataProblem(f"{member}: {error.fault}" if member else error.fault, (member, error.found))
        for member, error in named
    )
    others = {row.path: row.algorithm for row in distribution.record if row.algorithm in STRONG_HASHES - {"sha256"}}
    digests = {name: _try_hash(by_name[name], algorithm) for name, algorithm in others.items() if name in by_name}
    layout = tuple(_layout_problems(path, by_name))
    distribution = msgspec.structs.replace(
        distribution, refused=refused, other_digests=digests, problems=(*distribution.problems, *layout)
    )
    scripts = by_name.get(f"{dist_info}/{ENTRY_POINTS}")
    if scripts is not None:
        distribution = msgspec.structs.replace(distribution, commands=read_commands(read_member(scripts)))
    if scripts is not None and not context:
        placed = {installed_path(member.name, distribution.layout): member for member in members}
        problems = find_script_problems(read_member(scripts), placed, lambda place: _read_source(placed[place]))
        distribution = msgspec.structs.replace(distribution, script_problems=tuple(problems))
    return distribution, members


def _require_one_devel_archive(path: Path, members: Iterable[ZipMember]) -> None:
    """Raise `InputError` for several archives with development files. The size limit applies to each archive."""
    archives = [member.name for member in members if is_devel_archive(member.name)]
    if len(archives) > 1:
        found = f"has {len(archives)} archives of development files, such as {quoted(archives[0])}"
        raise InputError(path, found, expected="only one", remedy="Build or download it again.")


def _layout_problems(path: Path, members: Mapping[str, ZipMember]) -> Iterator[MetadataProblem]:
    """Yield the problems in a wheel's layout. Audits report members with the same path as conflicts."""
    for error in find_layout_problems(path, members, frozenset(members.values())):
        member = str(error.source).removeprefix(str(path)).lstrip("!")
        if not error.found.startswith(("is installed to the same path", "is a file, but also")):
            yield MetadataProblem(f"{member} {error.fault}".strip(), ("layout", member, error.found))


def _try_hash(member: ZipMember, algorithm: str) -> bytes | None:
    """Return a member's hash, or `None` for a damaged member, which is reported later, and for a remote member."""
    try:
        return None if member.packed.is_remote else hash_member(member, algorithm)
    except WorkError:
        raise
    except InputError:
        return None


def _read_source(member: ZipMember) -> bytes | None:
    """Return the text of a module, or `None` for a large or damaged module. Damage is reported for that file."""
    try:
        return read_member(member) if member.size <= MOST_MODULE else None
    except WorkError:
        raise
    except InputError:
        return None


def _tell(wheel_and_member: tuple[str, ZipMember]) -> ReadContext:
    _, member = wheel_and_member
    return ReadContext(member.source, member.size, member.packed.path)


def _read_pair(wheel_and_member: tuple[str, ZipMember]) -> InstalledFile:
    return _read_file(*wheel_and_member, how=_BY_DEFAULT)


def _read_file(wheel: str, member: ZipMember, how: WheelReading) -> InstalledFile:
    """Return the data of a member. Damage is recorded as a problem with the file, so that reading continues."""
    file = InstalledFile(
        path=installed_path(member.name, wheel_layout(wheel.rpartition("/")[2])),
        distribution=wheel,
        source=member.source,
        size=member.size,
        mode=member.mode,
    )
    try:
        return _with_devel_paths(_with_content(file, member, how), member)
    except WorkError:
        raise
    except InputError as e:
        return msgspec.structs.replace(file, problem=e.fault)


def _check_wheel_name(path: Path) -> None:
    """Raise `InputError` for a file name without the five parts of a wheel name, or six with a build number."""
    if not is_wheel_file_name(path.name):
        expected = "NAME-VERSION-PYTHON-ABI-PLATFORM.whl"
        raise InputError(
            path, "isn't named like a wheel", expected=expected, remedy="Restore the wheel's original name."
        )


def _with_content(file: InstalledFile, member: ZipMember, how: WheelReading) -> InstalledFile:
    head = member_head(member)
    # Installers write a text file instead of a link.
    file = with_head(file, head)
    if file.mode & 0o170000 == 0o120000:
        return msgspec.structs.replace(file, link=read_member(member).decode(errors="replace"))
    if is_source(member.name) and member.size <= _MOST_SOURCE:
        text = read_member(member)
        mentions = mentioned_in_source(text)
        return msgspec.structs.replace(file, sha256=hashlib.sha256(text).digest(), mentions=mentions)
    if member.packed.is_remote:
        return _with_facts_alone(file, member, head, how)
    if not is_worth_reading(head):
        return msgspec.structs.replace(file, sha256=how.digest(member).sha256)
    with how.unpack(member) as (unpacked, digest), unpacked.view() as data:
        file = msgspec.structs.replace(file, sha256=digest.sha256)
        return with_binary_facts(file, data, headers_only=how.headers_only)


def _with_devel_paths(file: InstalledFile, member: ZipMember) -> InstalledFile:
    """Return a file with the paths of its packed development files. Remote archives are not read."""
    if not wheel_layout(file.distribution.rpartition("/")[2]).is_windows:
        return file
    if is_devel_manifest(file.path):
        return msgspec.structs.replace(file, devel_paths=read_manifest_paths(file.source, read_member(member)))
    if is_devel_archive(file.path) and not member.packed.is_remote:
        paths = read_archive_paths(file.source, iter_member(member), member.packed.size)
        return msgspec.structs.replace(file, devel_paths=paths)
    return file


def _with_facts_alone(file: InstalledFile, member: ZipMember, head: bytes, how: WheelReading) -> InstalledFile:
    """Return a member of a remote wheel without a hash, because hashing would fetch more data."""
    if not is_worth_reading(head):
        return file
    with open_content(member) as unpacked, unpacked.view() as data:
        return with_binary_facts(file, data, headers_only=how.headers_only, whole=False)


_SKIPPED = {"__pycache__"}


def find_site_packages(folder: Path) -> Path | None:
    """Return ``folder`` if it is a site-packages folder, or the site-packages folder of its environment."""
    return next(iter(find_all_site_packages(folder)), None)


def find_all_site_packages(folder: Path) -> tuple[Path, ...]:
    """Return the distinct site-packages folders of the environment in ``folder``.

    Symbolic links to a folder are ignored.

    An environment has a site-packages folder for each of its Python versions, and sometimes another one in ``lib64``.
    On Windows, the folder is in ``Lib``.
    """
    if any(folder.glob("*.dist-info")):
        return (folder,)
    found: dict[str, Path] = {}
    for path in sorted([*folder.glob("lib*/python3*/site-packages"), *folder.glob("Lib/site-packages")]):
        found.setdefault(os.path.realpath(path), path)
    return tuple(found.values())


def find_prefix(site: Path) -> Path:
    """Return the root folder of an environment. Scripts and data are next to its ``lib`` folder."""
    whole = site.absolute()
    return whole.parents[2] if whole.name == "site-packages" and whole.parent.name.startswith("python") else whole


def is_artifact_folder(folder: Path) -> bool:
    """Return whether a folder contains artifacts, as folders or archives."""
    try:
        return bool(find_artifacts(folder).artifacts)
    except (InputError, OSError):
        return False


def read_folder(
    folder: Path, *, context: bool = False, progress: Progress = SILENT
) -> tuple[list[Distribution], list[InstalledFile]]:
    """Read an installed environment or any other folder. Files belong to the distributions whose RECORD lists them.

    With ``context``, all other files belong to a distribution without a name. Raises `InputError` for paths that can't
    be read.
    """
    try:
        return _read_folder(folder, progress, context=context)
    except OSError as e:
        raise read_error(e.filename or folder, e) from e


def _read_folder(folder: Path, progress: Progress, *, context: bool) -> tuple[list[Distribution], list[InstalledFile]]:
    site = find_site_packages(folder) or folder
    distributions = [_installed(path, context=context) for path in sorted(site.glob("*.dist-info"))]
    owners = {entry.path: owner.source for owner in distributions for entry in owner.record}
    if not distributions or context:
        distributions.append(Distribution(name="", version="", source=str(site), dist_info="", is_context=context))
    default = str(site) if context or not owners else ""
    paths = list(_walk(site))
    progress.begin(f"reading {folder}", sum(path.lstat().st_size for path in paths))
    files = []
    for path in paths:
        files.append(_read_path(path, site, owners, default))
        progress.advance(files[-1].size)
    files += _programs(site, owners)
    packers = {owner.source for owner in distributions if is_for_windows(owner)}
    return distributions, [_with_devel_files(file) if file.distribution in packers else file for file in files]


def _programs(site: Path, owners: dict[str, str]) -> Iterator[InstalledFile]:
    """Yield the distributions' programs and libraries that are in an environment but outside site-packages."""
    prefix = Path(os.path.realpath(find_prefix(site)))
    for place in sorted(place for place in owners if place.startswith("../")):
        path = site / place
        if path.is_file() and not path.is_symlink() and Path(os.path.realpath(path)).is_relative_to(prefix):
            status = path.stat()
            plain = os.path.normpath(path)
            source = plain if os.path.realpath(plain) == os.path.realpath(path) else str(path)
            file = InstalledFile(
                path=place, distribution=owners[place], source=source, size=status.st_size, mode=status.st_mode
            )
            if (found := _with_facts(file, FileRange.whole(path), hashed=True)).elf is not None:
                yield found


def _with_devel_files(file: InstalledFile) -> InstalledFile:
    """Return a file with the paths of its packed development files. Damage is recorded as a problem with the file."""
    if file.link is not None or not (is_devel_archive(file.path) or is_devel_manifest(file.path)):
        return file
    source = FileRange.whole(Path(file.source))
    try:
        if is_devel_manifest(file.path):
            paths = read_manifest_paths(file.source, source.read())
        else:
            with source.view() as data:
                paths = read_archive_paths(file.source, iter_pieces(data), source.size)
    except WorkError:
        raise
    except InputError as e:
        return msgspec.structs.replace(file, problem=e.fault)
    return msgspec.structs.replace(file, devel_paths=paths)


def _installed(path: Path, *, context: bool) -> Distribution:
    texts = {name: (path / name).read_bytes() for name in INFO_FILES if (path / name).is_file()}
    owner = read_distribution(texts, source=str(path), dist_info=path.name, is_wheel=False, is_context=context)
    scripts = path / ENTRY_POINTS
    if context or not scripts.is_file():
        return owner
    placed = {row.path for row in owner.record}

    def read(place: str) -> bytes | None:
        module = path.parent / place
        return module.read_bytes() if module.is_file() and module.stat().st_size <= MOST_MODULE else None

    problems = find_script_problems(scripts.read_bytes(), placed, read)
    return msgspec.structs.replace(owner, script_problems=tuple(problems))


def _walk(folder: Path) -> Iterator[Path]:
    """Yield the files and symbolic links in a folder and its subfolders.

    Unlike ``rglob()``, raise errors for unreadable folders.
    """

    def fail(error: OSError) -> None:
        raise error

    walked = os.walk(folder, onerror=fail)
    for path in sorted(Path(root, name) for root, folders, files in walked for name in (*folders, *files)):
        if (path.is_file() or path.is_symlink()) and not _SKIPPED.intersection(path.parts):
            yield path


def _read_path(path: Path, site: Path, owners: dict[str, str], default: str) -> InstalledFile:
    place = path.relative_to(site).as_posix()
    status = path.lstat()
    file = InstalledFile(
        path=place,
        distribution=owners.get(place, default),
        source=str(path),
        size=status.st_size,
        mode=status.st_mode,
    )
    if path.is_symlink():
        if (link := _link_text(path, site)) is not None:
            return msgspec.structs.replace(file, link=link, is_dangling=not path.exists())
        status = path.stat()
        file = msgspec.structs.replace(file, size=status.st_size, mode=status.st_mode)
    return _with_facts(file, FileRange.whole(path), hashed=bool(owners))


def _link_text(path: Path, site: Path) -> str | None:
    """Return a symbolic link's text, relative if its target is in ``site``, or `None` if the target is outside.

    The dynamic loader treats a symbolic link to a file outside ``site`` as a file with the link's name.
    """
    text = path.readlink()
    # Unlike resolve(), realpath() accepts circular symlinks.
    target = Path(os.path.realpath(path))
    if target.is_relative_to(os.path.realpath(site)):
        return os.path.relpath(target, os.path.realpath(path.parent)) if text.is_absolute() else str(text)
    return None if target.is_file() else str(text)


def _with_facts(file: InstalledFile, source: FileRange, *, hashed: bool) -> InstalledFile:
    with source.view() as data:
        if hashed:
            file = msgspec.structs.replace(file, sha256=_sha256(data))
        file = with_head(file, bytes(data[:HEAD_SIZE]))
        if is_worth_reading(data[:HEAD_SIZE]):
            return with_binary_facts(file, data)
        if is_source(file.path):
            return msgspec.structs.replace(file, mentions=mentioned_in_source(bytes(data)))
        return file


def _sha256(data: Data) -> bytes:
    digest = hashlib.sha256()
    for piece in iter_pieces(data):
        digest.update(piece)
    return digest.digest()


def read_artifact_folder(
    folder: Path, *, context: bool = False, progress: Progress = SILENT
) -> tuple[list[Distribution], list[InstalledFile]]:
    """Read the artifacts in a folder as a single merged install prefix.

    Each file belongs to its artifact.
    """
    with open_catalog(folder, progress=progress) as catalog:
        sizes = [entry.source.size if entry.source else 0 for entry in catalog.entries]
        entries = tracked(progress, f"reading {folder}", catalog.entries, sizes)
        files = [file for entry in entries if (file := _read_entry(entry)) is not None]
        names = [str(name) for name in catalog.artifacts]
    distributions = [
        Distribution(name=name, version="", source=name, dist_info="", is_context=context) for name in names
    ]
    return distributions, files


def _read_entry(entry: Entry) -> InstalledFile | None:
    if entry.source is None and entry.link is None:
        return None
    name = f"{entry.artifact}: {entry.path}"
    file = InstalledFile(
        path=entry.path,
        distribution=str(entry.artifact),
        source=name,
        size=entry.source.size if entry.source else 0,
        mode=entry.mode,
        link=entry.link,
    )
    if entry.source is None:
        return file
    try:
        return _with_facts(file, entry.source, hashed=False)
    except WorkError:
        raise
    except InputError as e:
        return msgspec.structs.replace(file, problem=e.found)


UNREADABLE = "paths that can't be read"
_ARCHIVES = (".tar", ".tar.gz", ".tar.bz2", ".tar.xz", ".tar.zst", ".tgz", ".zip", ".deb")
_BESIDE = (*CHECKSUM_FILES, MANIFEST_NAME)
"""Files that a build writes next to such archives."""
_NOTHING, _SUBJECTS = "contains neither packages nor libraries", "wheels, an environment, or artifacts"

_Part = tuple[list[Distribution], list[InstalledFile]]


def read_environments(
    paths: Sequence[Path],
    with_packages: Sequence[Path] = (),
    *,
    progress: Progress = SILENT,
    unread: list[RocwheelError] | None = None,
    how: WheelReading = _BY_DEFAULT,
) -> Environments:
    """Read ``paths`` and ``with_packages`` in the same way as `read_tree`, and split the result into environments."""
    return split_environments(read_tree(paths, with_packages, progress=progress, unread=unread, how=how))


def read_tree(
    paths: Sequence[Path],
    with_packages: Sequence[Path] = (),
    *,
    progress: Progress = SILENT,
    unread: list[RocwheelError] | None = None,
    how: WheelReading = _BY_DEFAULT,
) -> Tree:
    """Read ``paths`` into a tree, with ``with_packages`` as its context.

    A path is a wheel, a folder of wheels, an installed environment, a folder of artifacts, or any folder of files. If
    several paths point to a file, it is read only once. A file is audited if any of ``paths`` points to it. The context
    also includes the SDK's selector, an sdist, in a folder of wheels or directly in ``with_packages``.

    Raises `InputError` for any other path, and for a context folder without a package or library. Raises
    `ProblemsError` for several such paths. If ``unread`` is a list, errors about ``paths`` are appended to it, and the
    tree consists of the other paths, if any. ``how`` defines how the members of wheels are read.
    """
    audited = real_paths(paths)
    selectors = sdk_selectors(paths, with_packages)
    context = {real: path for real, path in real_paths(with_packages).items() if real not in audited}
    context = {real: path for real, path in context.items() if path not in selectors}
    problems: list[RocwheelError] = []
    refused: list[RocwheelError] = []
    parts = attempt_all(lambda path: _read(path, progress, how, context=False), audited.values(), problems)
    beside = attempt_all(lambda path: _read(path, progress, how, context=True), context.values(), refused)
    progress.end()
    has_failed = any(isinstance(problem, WorkError) for problem in each_problem(problems))
    if unread is None or refused or not parts or has_failed:
        raise_all(UNREADABLE, [*problems, *refused])
    if unread is not None:
        unread += problems
    parts += beside
    distributions = tuple(distribution for found, _ in parts for distribution in found)
    distributions += tuple(map(_read_selector, selectors))
    files = tuple(file for _, found in parts for file in found)
    is_prefix = bool(distributions) and not any(distribution.dist_info for distribution in distributions)
    return Tree(distributions, files, is_prefix, _unread_names(audited.values(), distributions))


def sdk_selectors(paths: Iterable[Path], with_packages: Iterable[Path]) -> list[Path]:
    """Return the SDK's selectors in these folders of wheels, and the selectors in ``with_packages`` itself."""
    places = (*(path for path in paths if path.is_dir()), *with_packages)
    return list(dict.fromkeys(sdist for path in places for sdist in _selectors(path)))


def _selectors(path: Path) -> list[Path]:
    """Return the SDK's selectors, which are sdists: the path itself, or the sdists directly in a folder of wheels."""
    names = f"{sdk_selector().distribution}-*{SDIST_SUFFIX}"
    paths = sorted(path.glob(names)) if path.is_dir() and _wheels(path) else [path]
    return find_selectors(one for one in paths if fnmatchcase(one.name, names))


def _read_selector(path: Path) -> Distribution:
    """Return the selector in an sdist as context: it has no files, and requires the packages for all GPUs."""
    facts = read_selector_facts(path)
    return Distribution(
        name=facts.name,
        version=facts.version,
        source=str(path),
        dist_info="",
        requires=facts.requirements,
        extras=read_selector_extras(path),
        is_context=True,
    )


def _unread_names(paths: Iterable[Path], read: Iterable[Distribution]) -> frozenset[str]:
    """Return the distribution names of the wheels that weren't read, based on their file names."""
    sources = {distribution.source for distribution in read}
    wheels = (path.name for path in paths if str(path) not in sources and is_wheel_file_name(path.name))
    return frozenset(canonicalize_name(name_and_version(name)[0]) for name in wheels)


def real_paths(paths: Iterable[Path]) -> dict[str, Path]:
    """Return the first given path of each wheel and of each other folder, keyed by real path.

    A folder of wheels represents its wheels. Raises `InputError` for a path that the system rejects.
    """
    found: dict[str, Path] = {}
    for path in paths:
        for place in _wheels(path) or [path]:
            found.setdefault(os.path.realpath(place), place)
    return found


def _wheels(path: Path) -> list[Path]:
    try:
        return sorted(path.glob("*.whl")) if path.is_dir() else []
    except OSError as e:
        raise read_error(path, e) from e


def _other_command(path: Path) -> str:
    """Return advice on which command to use for a file that isn't a wheel."""
    if path.name.endswith(".tar.gz"):
        return "Audit the wheels that you build from the sdist."
    return "For other files, use rocwheel inspect."


def _read(path: Path, progress: Progress, how: WheelReading, *, context: bool) -> _Part:
    if path.is_file():
        if path.suffix != ".whl":
            raise InputError(path, "isn't a wheel", expected="a wheel or a folder", remedy=_other_command(path))
        return read_wheels([path], context=context, progress=progress, how=how)
    if not path.is_dir():
        found = "is neither a file nor a folder" if path.exists() else "doesn't exist"
        raise InputError(path, found, expected="a wheel or a folder", remedy=absent_remedy(path))
    if path.suffix == ".whl":
        raise InputError(path, "is a folder", expected="a wheel", remedy="Rename the folder, or move it.")
    if find_site_packages(path) is None and is_artifact_folder(path):
        return read_artifact_folder(path, context=context, progress=progress)
    distributions, files = read_folder(path, context=context, progress=progress)
    if not files:
        raise InputError(path, "is an empty folder", expected="wheels, an environment, artifacts, or files")
    if not any(owner.dist_info for owner in distributions) and not any(file.elf for file in files):
        _require_no_archives(path, files)
        _require_no_wheels_below(path)
        if context:
            raise InputError(path, _NOTHING, expected=_SUBJECTS)
    return distributions, files


def _require_no_archives(path: Path, files: Iterable[InstalledFile]) -> None:
    """Raise `InputError` for a folder that contains only sdists or other archives, because they aren't read."""
    names = sorted(file.path for file in files if file.path not in _BESIDE)
    if names and all(name.endswith(_ARCHIVES) for name in names):
        remedy = "Pass the folder that contains the wheels, or unpack the archives."
        raise InputError(path, f"contains only archives, such as {quoted(names[0])}", expected=_SUBJECTS, remedy=remedy)


def _require_no_wheels_below(path: Path) -> None:
    """Raise `InputError` for the parent folder of a folder of wheels, because the other files in it don't matter."""
    if below := find_below(path, lambda found: found.suffix == ".whl"):
        raise InputError(path, _NOTHING, expected=_SUBJECTS, remedy=f"There are wheels in {below}.")
