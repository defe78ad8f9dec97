"""The files of a package index in a folder compared with what its pages promise (:pep:`503`, :pep:`691`)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import msgspec

from rocwheel.distributions.index_reading.listing import RawPage, UnreadablePageError
from rocwheel.distributions.index_reading.local_index import local_pages, read_local_page
from rocwheel.distributions.index_reading.trust import check_file, check_variants_list, trusted_projects
from rocwheel.foundation.collecting import serialised
from rocwheel.foundation.errors import InputError
from rocwheel.installed.reading.read_file import begin_large
from rocwheel.verifying.hashing import Promise, reading_faults
from rocwheel.verifying.index_files import ListedHere, check_files
from rocwheel.verifying.values import Fault, Verified

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from concurrent.futures import Executor

    from rocwheel.distributions.index_reading.trust import ListedFile
    from rocwheel.foundation.progress import Progress

__all__ = ["verify_index"]

_METADATA = ".metadata"


class _Disagreement(msgspec.Struct, frozen=True):
    """A page of a project that does not say of a file what the other one says."""

    page: Path
    filename: str
    is_listed: bool
    """Whether it lists the file, with other hashes."""

    @property
    def fault(self) -> Fault:
        """The fault as it is reported."""
        found = f"lists {self.filename} with other hashes" if self.is_listed else f"doesn't list {self.filename}"
        return Fault("unlisted", str(self.page), found, "what the other page lists")


def verify_index(folder: Path, executor: Executor, progress: Progress) -> Verified:
    """Read all pages of an index, in both forms, and compare the files and core metadata that they list.

    Where a file is what one page says, and the other page says something else, the fault is of that page.
    """
    faults: list[Fault] = []
    pages = local_pages(folder)
    collected = _Collected(folder)
    for project in _all_projects(pages, faults):
        collected.add([folder / project / page.name for page in pages], faults)
    found = list(collected.listed.values())
    size = sum(_size_of(one.promise) for one in found)
    step = begin_large(progress, f"verifying {folder}", size)
    checked = check_files(found, executor, serialised(step.advance))
    progress.end()
    disagreements = (one for one in collected.disagreements if not _is_told(one, checked.blamed))
    faults += [*(one.fault for one in disagreements), *checked.faults]
    return Verified(str(folder), "index", len(found), size, tuple(faults), len(collected.elsewhere))


def _size_of(promise: Promise) -> int:
    """Return what pages say, else how many bytes the file has; none for one that is missing, which is told itself."""
    if promise.size is not None:
        return promise.size
    try:
        return promise.path.stat().st_size
    except OSError:
        return 0


def _is_told(one: _Disagreement, blamed: frozenset[tuple[Path, str]]) -> bool:
    return one.is_listed and (one.page.parent, one.filename) in blamed


def _all_projects(pages: Iterable[Path], faults: list[Fault]) -> list[str]:
    lists = {page: set(trusted_projects(_read_page(page, faults))) for page in pages}
    projects = sorted(set[str]().union(*lists.values()))
    faults += [
        Fault("unlisted", str(page), f"doesn't list {project}", "what the other page lists")
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
    """What the pages of all projects say."""

    def __init__(self, folder: Path) -> None:
        self.listed: dict[tuple[Path, str, str], ListedHere] = {}
        """Each file that pages list, once if they agree about it."""
        self.elsewhere: set[str] = set()
        """Addresses of files that lie elsewhere."""
        self.disagreements: list[_Disagreement] = []
        self._folder = folder

    def add(self, pages: Iterable[Path], faults: list[Fault]) -> None:
        """Read the pages of a project; what is wrong with them is appended to ``faults``."""
        before = len(faults)
        said = {page: list(_files_of(page, faults)) for page in pages}
        if len(faults) == before:  # a page that is damaged says less than it should
            self.disagreements += _disagreements({page: set(map(_said, files)) for page, files in said.items()})
        for page, files in said.items():
            for file in files:
                self._add_file(page, file)

    def _add_file(self, page: Path, file: ListedFile) -> None:
        path = _local(file, self._folder)
        if path is None:
            self.elsewhere.add(file.url)
            return
        key = (path, file.sha256, file.metadata_sha256 or "")
        one = self.listed.get(key) or ListedHere(Promise(path, file.sha256), _metadata(file, path), ())
        if one.promise.size is None:  # HTML has no sizes
            one = msgspec.structs.replace(one, promise=Promise(path, file.sha256, file.size))
        sized = one.sized if file.size is None else (*one.sized, page)
        self.listed[key] = msgspec.structs.replace(one, pages=(*one.pages, page), sized=sized)


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
    """Return the path of a file on this disk, relative to the folder as it was given; none for one elsewhere."""
    parts = urlsplit(file.url)
    if parts.scheme != "file" or parts.netloc not in {"", "localhost"}:
        return None
    path = Path(unquote(parts.path))
    whole = folder.absolute()
    return folder / path.relative_to(whole) if path.is_relative_to(whole) else path


def _metadata(file: ListedFile, path: Path) -> Promise | None:
    return Promise(path.with_name(path.name + _METADATA), file.metadata_sha256) if file.metadata_sha256 else None
