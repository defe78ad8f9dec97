"""Reading what is on disk: an installed environment, a folder of artifacts, or any folder of files."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.artifacts.catalog import open_catalog
from rocwheel.artifacts.reading import find_artifacts
from rocwheel.binary.kind import HEAD_SIZE
from rocwheel.core.errors import InputError, WorkError, read_error
from rocwheel.core.progress import SILENT, Progress, tracked
from rocwheel.core.reading import FileRange, iter_pieces
from rocwheel.installed.devel_paths import (
    is_devel_archive,
    is_devel_manifest,
    read_archive_paths,
    read_manifest_paths,
)
from rocwheel.installed.reading.check_scripts import MOST_MODULE, find_script_problems
from rocwheel.installed.reading.mentions import is_source, mentioned_in_source
from rocwheel.installed.reading.read_dist_info import ENTRY_POINTS, INFO_FILES, read_distribution
from rocwheel.installed.reading.read_file import advanced, is_worth_reading, with_binary_facts, with_head
from rocwheel.installed.tree import Distribution, InstalledFile
from rocwheel.installed.windows_files import is_for_windows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.artifacts.catalog import Entry
    from rocwheel.core.reading import Data

__all__ = [
    "find_all_site_packages",
    "find_prefix",
    "find_site_packages",
    "is_artifact_folder",
    "read_artifact_folder",
    "read_folder",
]

_SKIPPED = {"__pycache__"}


def find_site_packages(folder: Path) -> Path | None:
    """Return the site-packages folder that ``folder`` is, or that the environment in ``folder`` has."""
    return next(iter(find_all_site_packages(folder)), None)


def find_all_site_packages(folder: Path) -> tuple[Path, ...]:
    """Return each site-packages folder of the environment in ``folder`` once, however many links lead there.

    An environment has one for each version of Python that it was made for, and some have one in ``lib64`` as well. On
    Windows it has one, in ``Lib``.
    """
    if any(folder.glob("*.dist-info")):
        return (folder,)
    found: dict[str, Path] = {}
    for path in sorted([*folder.glob("lib*/python3*/site-packages"), *folder.glob("Lib/site-packages")]):
        found.setdefault(os.path.realpath(path), path)
    return tuple(found.values())


def find_prefix(site: Path) -> Path:
    """Return what the files of an environment are below: scripts and data lie beside ``lib``."""
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
    """Read an installed environment, or any folder: its files belong to the distributions whose RECORD names them.

    In context, the other files belong to a distribution without a name. Raises `InputError` for what can't be read.
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
    files = [advanced(progress, _read_path(path, site, owners, default)) for path in paths]
    files += _programs(site, owners)
    packers = {owner.source for owner in distributions if is_for_windows(owner)}
    return distributions, [_with_devel_paths(file) if file.distribution in packers else file for file in files]


def _programs(site: Path, owners: dict[str, str]) -> Iterator[InstalledFile]:
    """Yield the programs and libraries that distributions have in an environment outside of site-packages."""
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


def _with_devel_paths(file: InstalledFile) -> InstalledFile:
    """Return a file with the development files that it has packed; damage is a problem of the file."""
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
    problems = find_script_problems(scripts.read_bytes(), placed, lambda place: _read_source(path.parent / place))
    return msgspec.structs.replace(owner, script_problems=tuple(problems))


def _read_source(path: Path) -> bytes | None:
    """Return a module's text; none for one that is absent, and for a large one."""
    return path.read_bytes() if path.is_file() and path.stat().st_size <= MOST_MODULE else None


def _walk(folder: Path) -> Iterator[Path]:
    for path in sorted(_members(folder)):
        if (path.is_file() or path.is_symlink()) and not _SKIPPED.intersection(path.parts):
            yield path


def _members(folder: Path) -> Iterator[Path]:
    """Yield all that lies below a folder; unlike ``rglob()``, fail for a folder that can't be read."""
    for root, folders, files in os.walk(folder, onerror=_raise):
        yield from (Path(root, name) for name in (*folders, *files))


def _raise(error: OSError) -> None:
    raise error


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
    """Return the text of a symlink, relative if its target is inside ``site``; None if it leads to a file outside.

    To the dynamic loader a link to a file outside is a file under the link's name.
    """
    text = path.readlink()
    # Unlike resolve(), realpath() accepts links that lead in a circle.
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
    """Read the artifacts of a folder as the one install prefix that they merge into.

    Each file belongs to the artifact that it comes from.
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
