"""Wheels of real files, described in a line or two: linked libraries, device code of the fixtures, changed archives."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.support.libraries import Lib, build_tree
from tests.support.places import FIXTURES
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["FIXTURES", "Pack", "adding", "bundles", "changed", "pack", "repacked", "without"]

_PAGE = 4096


class Pack(NamedTuple):
    """A wheel: its libraries and other files by place in site-packages, its metadata, and what is done to it last."""

    libraries: tuple[Lib, ...] = ()
    files: Mapping[str, bytes] = {}
    name: str = "demo"
    tag: str = "py3-none-manylinux_2_5_x86_64"
    requires: tuple[str, ...] = ()
    is_purelib: bool = False
    finish: Callable[[Path], Path] = lambda path: path


def pack(folder: Path, described: Pack) -> Path:
    """Build the wheel and return its path."""
    tree = build_tree(folder / f"{described.name}-tree", *described.libraries)
    files: dict[str, Path | bytes] = {library.path: tree / library.path for library in described.libraries}
    return described.finish(
        make_wheel(
            folder / "dist",
            described.name,
            files | dict(described.files),
            tag=described.tag,
            requires=described.requires,
            is_purelib=described.is_purelib,
        )
    )


def adding(name: str, data: bytes = b"", mode: int = 0o100644) -> Callable[[Path], Path]:
    """Return what adds a member that RECORD doesn't list."""

    def finish(path: Path) -> Path:
        with zipfile.ZipFile(path, "a") as archive:
            entry = zipfile.ZipInfo(name)
            entry.external_attr = mode << 16
            archive.writestr(entry, data)
        return path

    return finish


def without(*names: str) -> Callable[[Path], Path]:
    """Return what leaves out the members with one of these file names."""

    def finish(path: Path) -> Path:
        with zipfile.ZipFile(path) as archive:
            kept = [(info, archive.read(info)) for info in archive.infolist() if Path(info.filename).name not in names]
        with zipfile.ZipFile(path, "w") as archive:
            for info, data in kept:
                archive.writestr(info, data)
        return path

    return finish


def repacked(change: Callable[[zipfile.ZipInfo, bytes], bytes]) -> Callable[[Path], Path]:
    """Return what packs a wheel again, each member with the entry and the bytes that ``change`` leaves."""

    def finish(path: Path) -> Path:
        with zipfile.ZipFile(path) as archive:
            members = [(info, archive.read(info)) for info in archive.infolist()]
        with zipfile.ZipFile(path, "w") as archive:
            for info, data in members:
                archive.writestr(info, change(info, data))
        return path

    return finish


def bundles(*names: str) -> bytes:
    """Return several files of bundles of the fixtures as one, each on a page of its own, as linkers put them."""
    read = [(FIXTURES / name).read_bytes() for name in names]
    return b"".join(data + bytes(-len(data) % _PAGE) for data in read)


def changed(name: str, before: bytes, after: bytes) -> bytes:
    """Return a fixture with the last place of some bytes changed to as many others."""
    data = (FIXTURES / name).read_bytes()
    start = data.rindex(before)
    return data[:start] + after + data[start + len(before) :]
