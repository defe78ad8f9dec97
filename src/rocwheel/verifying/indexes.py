"""The files of a package index in a folder compared with what its pages promise (:pep:`503`, :pep:`691`)."""

from __future__ import annotations

from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import msgspec

from rocwheel.distributions.index.pages.simple_pages import PAGES
from rocwheel.distributions.index_reading.html_page import read_html_page
from rocwheel.distributions.index_reading.json_page import read_json_page
from rocwheel.distributions.index_reading.listing import RawPage, UnreadablePageError
from rocwheel.distributions.index_reading.trust import check_file, check_variants_list, trusted_projects
from rocwheel.distributions.zip.dist_info import find_dist_info
from rocwheel.distributions.zip.reader import read_directory, read_member
from rocwheel.foundation.collecting import serialised
from rocwheel.foundation.errors import InputError
from rocwheel.foundation.files.regular_files import read_regular
from rocwheel.installed.reading.read_file import begin_large
from rocwheel.verifying.hashing import Promise, find_fault, reading_faults
from rocwheel.verifying.values import Fault, Verified

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Executor

    from rocwheel.distributions.index_reading.trust import ListedFile
    from rocwheel.foundation.progress import Progress

__all__ = ["is_index", "verify_index"]

_METADATA = ".metadata"


class _Listed(msgspec.Struct, frozen=True):
    """What the pages say of a file that lies on this disk."""

    promise: Promise
    metadata: Promise | None
    """Of the core metadata beside it."""


def is_index(folder: Path) -> bool:
    """Return whether a folder has the page of all projects of an index: one that lists some, or can't be read."""
    faults: list[Fault] = []
    return any(_projects(folder / name, faults) or faults for name in PAGES if (folder / name).is_file())


def verify_index(folder: Path, executor: Executor, progress: Progress) -> Verified:
    """Read all pages of an index, in both forms, and compare the files and core metadata that they list."""
    faults: list[Fault] = []
    pages = [folder / name for name in PAGES if (folder / name).is_file()]
    lists = {page.name: set(_projects(page, faults)) for page in pages}
    projects = sorted(set[str]().union(*lists.values()))
    for name, project in (
        (name, project) for name, found in lists.items() for project in projects if project not in found
    ):
        faults.append(Fault("unlisted", str(folder / name), f"doesn't list {project}", "what the other page lists"))
    found, elsewhere = _collect(folder, projects, [page.name for page in pages], faults)
    step = begin_large(progress, f"verifying {folder}", sum(one.promise.size or 0 for one in found))
    check = partial(_file_faults, advance=serialised(step.advance))
    for more in executor.map(check, found):
        faults += more
    progress.end()
    return Verified(
        str(folder), "index", len(found), sum(one.promise.size or 0 for one in found), tuple(faults), elsewhere
    )


def _projects(page: Path, faults: list[Fault]) -> tuple[str, ...]:
    return trusted_projects(_read_page(page, faults))


def _read_page(page: Path, faults: list[Fault]) -> RawPage:
    with reading_faults(str(page), faults):
        try:
            data = read_regular(page)
            return read_json_page(data) if page.suffix == ".json" else read_html_page(data)
        except UnreadablePageError as e:
            faults.append(Fault("damaged", str(page), str(e), "a page of a package index"))
    return RawPage()


def _collect(folder: Path, projects: list[str], names: list[str], faults: list[Fault]) -> tuple[list[_Listed], int]:
    """Return each file that pages list, once if they agree about it, and how many lie elsewhere."""
    found: dict[tuple[Path, str, str], _Listed] = {}
    elsewhere: set[str] = set()
    for project in projects:
        pages: dict[Path, list[ListedFile]] = {folder / project / name: [] for name in names}
        before = len(faults)
        for page, files in pages.items():
            files.extend(_files_of(page, faults))
        if len(faults) == before:  # a page that is damaged says less than it should
            faults += _disagreements(
                {page.name: set(map(_said, files)) for page, files in pages.items()}, folder / project
            )
        for file in chain.from_iterable(pages.values()):
            if (path := _local(file, folder)) is None:
                elsewhere.add(file.url)
                continue
            key = (path, file.sha256, file.metadata_sha256 or "")
            if key not in found or found[key].promise.size is None:  # HTML has no sizes
                found[key] = _listed(file, path)
    return list(found.values()), len(elsewhere)


def _said(file: ListedFile) -> tuple[str, str, str]:
    return file.filename, file.sha256, file.metadata_sha256 or ""


def _disagreements(said: dict[str, set[tuple[str, str, str]]], folder: Path) -> Iterator[Fault]:
    """Yield a fault for each file that one page of a project lists, and another lists otherwise or not at all."""
    everything = set[tuple[str, str, str]]().union(*said.values())
    for name, own in said.items():
        listed = {filename for filename, _, _ in own}
        for filename in sorted({filename for filename, _, _ in everything - own}):
            found = f"lists {filename} with other hashes" if filename in listed else f"doesn't list {filename}"
            yield Fault("unlisted", str(folder / name), found, "what the other page lists")


def _files_of(page: Path, faults: list[Fault]) -> Iterator[ListedFile]:
    address = page.parent.absolute().as_uri() + "/"
    raw_page = _read_page(page, faults)
    for raw in raw_page.files:
        try:
            if check_variants_list(raw, address, raw_page.base):
                continue
            file = check_file(raw, page.parent.name, address, raw_page.base)
        except InputError as e:
            faults.append(Fault("damaged", str(page), e.found, e.expected))
            continue
        if file:
            yield file


def _local(file: ListedFile, folder: Path) -> Path | None:
    """Return the path of a file on this disk, relative to the folder as it was given; none for one elsewhere."""
    parts = urlsplit(file.url)
    if parts.scheme != "file" or parts.netloc not in {"", "localhost"}:
        return None
    path = Path(unquote(parts.path))
    whole = folder.absolute()
    return folder / path.relative_to(whole) if path.is_relative_to(whole) else path


def _listed(file: ListedFile, path: Path) -> _Listed:
    metadata = Promise(path.with_name(path.name + _METADATA), file.metadata_sha256) if file.metadata_sha256 else None
    return _Listed(Promise(path, file.sha256, file.size), metadata)


def _file_faults(listed: _Listed, advance: Callable[[int], object]) -> list[Fault]:
    faults = [fault for fault in [_linked_fault(listed.promise, advance)] if fault]
    if listed.metadata is None:
        return faults
    if fault := _linked_fault(listed.metadata, id):
        return [*faults, fault]
    if not faults:
        _compare_metadata(listed, faults)
    return faults


def _linked_fault(promise: Promise, advance: Callable[[int], object]) -> Fault | None:
    """Return what is wrong with a file of an index, which may be a symlink to one: many have links to distributions."""
    try:
        path = promise.path.resolve(strict=True)
    except (OSError, RuntimeError):
        path = promise.path
    fault = find_fault(msgspec.structs.replace(promise, path=path), advance)
    return msgspec.structs.replace(fault, place=str(promise.path)) if fault else None


def _compare_metadata(listed: _Listed, faults: list[Fault]) -> None:
    """Append a fault where the metadata beside a wheel are not those in it."""
    path, beside = listed.promise.path, listed.metadata
    if path.suffix != ".whl" or beside is None:
        return
    with reading_faults(str(path), faults):
        members = {member.name: member for member in read_directory(path)}
        member = members.get(f"{find_dist_info(path, members)}/METADATA")
        if member is None or read_member(member) != read_regular(beside.path):
            faults.append(Fault("changed", str(beside.path), "is not METADATA of the wheel", "the same text"))
