"""Compares the files in a package index in a folder with its pages (:pep:`503`, :pep:`691`)."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from rocwheel.core.errors import InputError
from rocwheel.core.messages import count
from rocwheel.core.reading import read_regular
from rocwheel.core.workers import serialized
from rocwheel.index.pages import METADATA_SUFFIX, RawPage
from rocwheel.index.source import local_pages, read_local_page
from rocwheel.index.trust import UnreadablePageError, check_file, check_variants_list, trusted_projects
from rocwheel.stores.urls import local_path
from rocwheel.verify.files import Fault, Promise, Verified, find_fault, reading_faults, size_of
from rocwheel.verify.remote import check_listed
from rocwheel.wheels.zip_directory import find_dist_info, read_directory
from rocwheel.wheels.zip_reader import read_member

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from concurrent.futures import Executor

    from rocwheel.core.progress import Progress
    from rocwheel.index.trust import ListedFile


class ListedHere(msgspec.Struct, frozen=True):
    """A local file, with the data about it from pages. All these pages have the same data."""

    promise: Promise
    metadata: Promise | None
    """The record of the core metadata next to the file."""
    pages: tuple[Path, ...]
    sized: tuple[Path, ...] = ()
    """The pages that list the file's size."""


class CheckedFiles(msgspec.Struct, frozen=True):
    """The faults in an index's files and pages."""

    faults: tuple[Fault, ...]
    blamed: frozenset[tuple[Path, str]]
    """The folders of faulty pages, each with the name of the file about which the pages have wrong data."""


class _Checked(msgspec.Struct, frozen=True):
    listed: ListedHere
    faults: tuple[Fault, ...] = ()
    """The faults of the file itself."""
    of_pages: tuple[Fault, ...] = ()
    """The faults of the pages if the file matches its hash."""


def check_files(listed: Sequence[ListedHere], executor: Executor, advance: Callable[[int], object]) -> CheckedFiles:
    """Compare each file with all pages that list it.

    If a file matches at least one page, the file is correct, and all pages with other data are faulty.
    """
    by_file: dict[Path, list[_Checked]] = defaultdict(list)
    for one in executor.map(partial(_check, advance=advance), listed):
        by_file[one.listed.promise.path].append(one)
    faults: list[Fault] = []
    blamed: set[tuple[Path, str]] = set()
    for path, group in by_file.items():
        of_pages = [fault for one in group for fault in (*one.of_pages, *_of_pages(one, group))]
        blamed |= {(Path(fault.place).parent, path.name) for fault in of_pages}
        of_file = [] if of_pages else [fault for one in group for fault in one.faults]
        faults += dict.fromkeys([*of_pages, *of_file])
    return CheckedFiles(tuple(faults), frozenset(blamed))


def _of_pages(one: _Checked, group: Sequence[_Checked]) -> Iterator[Fault]:
    """Yield a fault for each page with wrong data about a file for which another page has the correct data."""
    good = next((other.listed for other in group if not other.faults), None)
    if good is None or not any(fault.kind == "changed" for fault in one.faults):
        return
    name, listed = good.promise.path.name, one.listed
    if listed.promise.sha256 != good.promise.sha256:
        found, right = f"{name} with the SHA-256 {listed.promise.sha256}", good.promise.sha256
    elif listed.metadata and good.metadata:
        found, right = f"core metadata of {name} with the SHA-256 {listed.metadata.sha256}", good.metadata.sha256
    else:
        return
    for page in listed.pages:
        yield Fault("changed", str(page), f"lists {found}", f"{right}")


def _check(listed: ListedHere, advance: Callable[[int], object]) -> _Checked:
    fault = _linked_fault(listed.promise, advance)
    of_pages = tuple(_size_faults(listed)) if fault and fault.kind == "changed" else ()
    if fault and not of_pages:
        return _Checked(listed, (fault,))
    return _Checked(listed, tuple(_metadata_faults(listed)), of_pages)


def _size_faults(listed: ListedHere) -> Iterator[Fault]:
    """Yield a fault for each page with the wrong size of a file that matches its hash."""
    promise = listed.promise
    if promise.size is None or _linked_fault(msgspec.structs.replace(promise, size=None), id):
        return
    size = promise.path.stat().st_size
    if size == promise.size:
        return
    found, expected = f"lists {promise.path.name} with {count(promise.size, 'byte')}", f"{size}"
    for page in listed.sized:
        yield Fault("changed", str(page), found, expected)


def _metadata_faults(listed: ListedHere) -> list[Fault]:
    if listed.metadata is None:
        return []
    if fault := _linked_fault(listed.metadata, id):
        return [fault]
    faults: list[Fault] = []
    _compare_metadata(listed, faults)
    return faults


def _linked_fault(promise: Promise, advance: Callable[[int], object]) -> Fault | None:
    """Return the fault of a file in the index.

    The file may be a symbolic link, because many indexes link to distributions.
    """
    try:
        path = promise.path.resolve(strict=True)
    except (OSError, RuntimeError):
        path = promise.path
    fault = find_fault(msgspec.structs.replace(promise, path=path), advance)
    return msgspec.structs.replace(fault, place=str(promise.path)) if fault else None


def _compare_metadata(listed: ListedHere, faults: list[Fault]) -> None:
    """Append a fault if the metadata next to a wheel differs from the metadata in the wheel."""
    path, beside = listed.promise.path, listed.metadata
    if path.suffix != ".whl" or beside is None:
        return
    with reading_faults(str(path), faults):
        members = {member.name: member for member in read_directory(path)}
        member = members.get(f"{find_dist_info(path, members)}/METADATA")
        if member is None or read_member(member) != read_regular(beside.path):
            faults.append(Fault("changed", str(beside.path), "doesn't match the wheel's METADATA", "the same contents"))


class _Disagreement(msgspec.Struct, frozen=True):
    """A project's page whose data about a file differs from the other form of the page."""

    page: Path
    filename: str
    is_listed: bool
    """Whether the page lists the file with different hashes."""

    @property
    def fault(self) -> Fault:
        """The fault as it appears in the report."""
        found = f"lists {self.filename} with different hashes" if self.is_listed else f"doesn't list {self.filename}"
        return Fault("unlisted", str(self.page), found, "the same contents as the other page")


def verify_index(folder: Path, executor: Executor, progress: Progress, *, has_links: bool = False) -> Verified:
    """Read all pages of an index in both forms, and compare the listed files and core metadata.

    If a file matches one page but not the other, the fault is attributed to the other page. With ``has_links``, files
    on other servers are also downloaded and compared. Raises the store's errors if a server doesn't respond.
    """
    faults: list[Fault] = []
    pages = local_pages(folder)
    collected = _Collected(folder)
    for project in _all_projects(pages, faults):
        collected.add([folder / project / page.name for page in pages], faults)
    found = list(collected.listed.values())
    size = sum(_size_of(one.promise) for one in found)
    progress.begin(f"verifying {folder}", size)
    checked = check_files(found, executor, serialized(progress.advance))
    progress.end()
    blamed = checked.blamed
    unblamed = [
        one for one in collected.disagreements if not (one.is_listed and (one.page.parent, one.filename) in blamed)
    ]
    faults += [*(one.fault for one in unblamed), *checked.faults]
    elsewhere = list(collected.elsewhere.values())
    if not has_links:
        return Verified(str(folder), "index", len(found), size, tuple(faults), len(elsewhere))
    of_links, size_of_links = check_listed(elsewhere, executor, progress, str(folder))
    total = len(found) + len(elsewhere)
    return Verified(str(folder), "index", total, size + size_of_links, (*faults, *of_links))


def _size_of(promise: Promise) -> int:
    """Return the listed size, or the size of the file if no size is listed."""
    return size_of(promise.path) if promise.size is None else promise.size


def _all_projects(pages: Iterable[Path], faults: list[Fault]) -> list[str]:
    lists = {page: set(trusted_projects(_read_page(page, faults))) for page in pages}
    projects = sorted(set[str]().union(*lists.values()))
    faults += [
        Fault("unlisted", str(page), f"doesn't list {project}", "the same contents as the other page")
        for page, found in lists.items()
        for project in projects
        if project not in found
    ]
    return projects


def _read_page(page: Path, faults: list[Fault]) -> RawPage:
    with reading_faults(str(page), faults):
        try:
            return read_local_page(page)
        except UnreadablePageError as e:
            faults.append(Fault("damaged", str(page), str(e), "a page of a package index"))
    return RawPage()


class _Collected:
    """The contents of the pages of all projects."""

    def __init__(self, folder: Path) -> None:
        self.listed: dict[tuple[Path, str, str], ListedHere] = {}
        """Each listed file, or several entries for a file if the pages have different data."""
        self.elsewhere: dict[tuple[str, str], ListedFile] = {}
        """The files on other servers or in other folders, keyed by URL and hash.

        A file's size is known if any page lists it.
        """
        self.disagreements: list[_Disagreement] = []
        self._folder = folder

    def add(self, pages: Iterable[Path], faults: list[Fault]) -> None:
        """Read the pages of a project, and append their problems to ``faults``."""
        before = len(faults)
        said = {page: list(_files_of(page, faults)) for page in pages}
        if len(faults) == before:  # a damaged page may lack entries
            self.disagreements += _disagreements({page: set(map(_said, files)) for page, files in said.items()})
        for page, files in said.items():
            for file in files:
                self._add_file(page, file)

    def _add_file(self, page: Path, file: ListedFile) -> None:
        path = _local(file, self._folder)
        if path is None:
            key = (file.url, file.sha256)
            if key not in self.elsewhere or file.size is not None:  # HTML pages have no sizes
                self.elsewhere[key] = file
            return
        here = (path, file.sha256, file.metadata_sha256 or "")
        one = self.listed.get(here) or ListedHere(Promise(path, file.sha256), _metadata(file, path), ())
        if one.promise.size is None:  # HTML pages have no sizes
            one = msgspec.structs.replace(one, promise=Promise(path, file.sha256, file.size))
        sized = one.sized if file.size is None else (*one.sized, page)
        self.listed[here] = msgspec.structs.replace(one, pages=(*one.pages, page), sized=sized)


def _said(file: ListedFile) -> tuple[str, str, str]:
    return file.filename, file.sha256, file.metadata_sha256 or ""


def _disagreements(said: dict[Path, set[tuple[str, str, str]]]) -> Iterator[_Disagreement]:
    everything = set[tuple[str, str, str]]().union(*said.values())
    for page, own in said.items():
        listed = {filename for filename, _, _ in own}
        for filename in sorted({filename for filename, _, _ in everything - own}):
            yield _Disagreement(page, filename, filename in listed)


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
    """Return the path of a local file, relative to the given folder, or `None` for other files."""
    parts = urlsplit(file.url)
    if parts.scheme != "file" or parts.netloc not in {"", "localhost"}:
        return None
    path = Path(local_path(parts.path))
    whole = folder.absolute()
    return folder / path.relative_to(whole) if path.is_relative_to(whole) else path


def _metadata(file: ListedFile, path: Path) -> Promise | None:
    return Promise(path.with_name(path.name + METADATA_SUFFIX), file.metadata_sha256) if file.metadata_sha256 else None
