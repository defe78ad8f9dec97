"""The files of an index compared with what its pages say of them, and whether a file or a page is at fault."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.distributions.zip.directory import read_directory
from rocwheel.distributions.zip.dist_info import find_dist_info
from rocwheel.distributions.zip.reader import read_member
from rocwheel.foundation.files.reading.regular_files import read_regular
from rocwheel.foundation.messages.counting import count
from rocwheel.verifying.hashing import Promise, find_fault, reading_faults
from rocwheel.verifying.values import Fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from concurrent.futures import Executor

__all__ = ["CheckedFiles", "ListedHere", "check_files"]


class ListedHere(msgspec.Struct, frozen=True):
    """What pages say of a file that lies on this disk: all that say the same."""

    promise: Promise
    metadata: Promise | None
    """Of the core metadata beside it."""
    pages: tuple[Path, ...]
    sized: tuple[Path, ...] = ()
    """Those of the pages that tell its size."""


class CheckedFiles(msgspec.Struct, frozen=True):
    """What is wrong with files of an index, and with what its pages say of them."""

    faults: tuple[Fault, ...]
    blamed: frozenset[tuple[Path, str]]
    """The folders of pages that are at fault themselves, each with the name of the file that they are wrong about."""


class _Checked(msgspec.Struct, frozen=True):
    listed: ListedHere
    faults: tuple[Fault, ...] = ()
    """Of the file."""
    of_pages: tuple[Fault, ...] = ()
    """Of pages, where the file is what its hash says."""


def check_files(listed: Sequence[ListedHere], executor: Executor, advance: Callable[[int], object]) -> CheckedFiles:
    """Compare each file with all that pages say of it.

    One that is as some page says is good, and the pages that say otherwise are at fault.
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
    """Yield a fault of each page that describes a file wrongly, if another page describes it rightly."""
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
        yield Fault("changed", str(page), f"lists {found}", f"{right}, which it has")


def _check(listed: ListedHere, advance: Callable[[int], object]) -> _Checked:
    fault = _linked_fault(listed.promise, advance)
    of_pages = tuple(_size_faults(listed)) if fault and fault.kind == "changed" else ()
    if fault and not of_pages:
        return _Checked(listed, (fault,))
    return _Checked(listed, tuple(_metadata_faults(listed)), of_pages)


def _size_faults(listed: ListedHere) -> Iterator[Fault]:
    """Yield a fault of each page that has another size of a file, which is as its hash says."""
    promise = listed.promise
    if promise.size is None or _linked_fault(msgspec.structs.replace(promise, size=None), id):
        return
    size = promise.path.stat().st_size
    if size == promise.size:
        return
    found, expected = f"lists {promise.path.name} with {count(promise.size, 'byte')}", f"{size}, which it has"
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
    """Return what is wrong with a file of an index, which may be a symlink to one: many have links to distributions."""
    try:
        path = promise.path.resolve(strict=True)
    except (OSError, RuntimeError):
        path = promise.path
    fault = find_fault(msgspec.structs.replace(promise, path=path), advance)
    return msgspec.structs.replace(fault, place=str(promise.path)) if fault else None


def _compare_metadata(listed: ListedHere, faults: list[Fault]) -> None:
    """Append a fault where the metadata beside a wheel are not those in it."""
    path, beside = listed.promise.path, listed.metadata
    if path.suffix != ".whl" or beside is None:
        return
    with reading_faults(str(path), faults):
        members = {member.name: member for member in read_directory(path)}
        member = members.get(f"{find_dist_info(path, members)}/METADATA")
        if member is None or read_member(member) != read_regular(beside.path):
            faults.append(Fault("changed", str(beside.path), "is not METADATA of the wheel", "the same text"))
