"""Hostile inputs of every kind that a command takes: a function for each that makes it in an empty folder."""

from __future__ import annotations

import csv
import gzip
import hashlib
import html
import io
import lzma
import os
import socket
import stat
import tarfile
import warnings
import zipfile
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from rocwheel.wheels.record import spell_hash
from tests.hostile.members import LONG_NAME, MARKUP, MEMBERS, NEWLINE, NOTHING, Member, tar_of
from tests.support.artifacts import artifact
from tests.support.bombs import tar_block
from tests.support.hostile_files import deb_of
from tests.support.places import FIXTURES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    Make = Callable[[Path], None]

__all__ = ["INPUTS", "NAMES"]

NAMES = {
    "wheel": "a-1.0-py3-none-linux_x86_64.whl",
    "sdist": "a-1.0.tar.gz",
    "deb": "libamdhip64-6_1.0_amd64.deb",
    "archive": "core-hip_lib_generic.tar.xz",
    "tree": "core-hip_lib_generic",
    "page": "simple",
}
"""What the input of each kind is called in its folder."""

DEBIAN = "libamdhip64-6"
DEB = "./usr/lib/x86_64-linux-gnu/"
LIBRARY = (FIXTURES / "v22/libtwo.plain.so").read_bytes()
MEBIBYTE = 1 << 20
BOMB = 1 << 30
INFO = "a-1.0.dist-info"
BRACKETS = b"EXTRAS = {'a': [('b; " + b"(" * 5000 + b"', '')]}"
METADATA = b"Metadata-Version: 2.1\nName: a\nVersion: 1.0\n"
MODULES = (4 * MEBIBYTE, 4 * MEBIBYTE, *[MEBIBYTE // 4] * 40)
NO_MORE: Mapping[str, bytes] = MappingProxyType({})
NOT_IN_ZIPS = ("a hard link out", "a name of bytes that are no text")
"""ZIP has no hard links, and the library that writes it no names that are no text."""
WHEEL = b"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-linux_x86_64\n"
BUILD_INFO = b"""VERSION = "1.0"
LAYOUT = "neutral"
DEFAULT_FAMILY = ""
FAMILIES = {}
EXTRAS = {}
LIBRARIES = {}
SELECTED = {}
REQUIRES = []
UNLOADABLE = []
PLATFORMS = ["linux"]
PACKAGES = {"meta": {"dist": "rocm", "module": "rocm_sdk", "platform_module": ""}}
"""


def _write_wheel(folder: Path, members: list[Member], more: Mapping[str, bytes] = NO_MORE) -> None:
    """Write a wheel that is as it should be, but for its members and what more there is."""
    files = {f"{INFO}/METADATA": METADATA, f"{INFO}/WHEEL": WHEEL, "a/libgood.so": LIBRARY, **more}
    found = [(zipfile.ZipInfo(name), data) for name, data in files.items()] + [_zipped(member) for member in members]
    rows = {info.filename: (spell_hash(hashlib.sha256(data).digest()), len(data)) for info, data in found}
    text = io.StringIO()
    csv.writer(text).writerows([*((name, *row) for name, row in rows.items()), (f"{INFO}/RECORD", "", "")])
    with zipfile.ZipFile(folder / NAMES["wheel"], "w", zipfile.ZIP_DEFLATED) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a name that is there twice
        archive.writestr(f"{INFO}/RECORD", text.getvalue())
        for info, data in found:
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, data)


def _zipped(member: Member) -> tuple[zipfile.ZipInfo, bytes]:
    info = zipfile.ZipInfo(member.name if member.name.startswith("/") else "a/" + member.name)
    kinds = {tarfile.SYMTYPE: stat.S_IFLNK, tarfile.CHRTYPE: stat.S_IFCHR, tarfile.FIFOTYPE: stat.S_IFIFO}
    info.external_attr = (kinds.get(member.kind, stat.S_IFREG) | member.mode) << 16
    return info, member.link.encode() or member.data


def _wheel_bomb(folder: Path) -> None:
    with zipfile.ZipFile(folder / NAMES["wheel"], "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, data in ((f"{INFO}/METADATA", METADATA), (f"{INFO}/WHEEL", WHEEL), (f"{INFO}/RECORD", b"")):
            archive.writestr(name, data)
        with archive.open("a/bomb.so", "w", force_zip64=True) as member:
            member.write(b"\x7fELF\2\1\1")
            for _ in range(BOMB // (64 * MEBIBYTE)):
                member.write(bytes(64 * MEBIBYTE))


def _wheel_of_commands(folder: Path) -> None:
    """Write a wheel with commands of modules that are small in the wheel, and hundreds of times their size as trees."""
    modules = [Member(f"m{number}.py", b"a," * (size // 2)) for number, size in enumerate(MODULES)]
    commands = "".join(f"c{number} = a.m{number}:a\n" for number in range(len(MODULES)))
    _write_wheel(folder, modules, {f"{INFO}/entry_points.txt": f"[console_scripts]\n{commands}".encode()})


def _changed_wheel(change: Callable[[bytearray], None], folder: Path) -> None:
    _write_wheel(folder, [Member("one.so", LIBRARY), Member("two.so", LIBRARY)])
    data = bytearray((folder / NAMES["wheel"]).read_bytes())
    change(data)
    (folder / NAMES["wheel"]).write_bytes(data)


def _entries(data: bytearray, mark: bytes) -> list[int]:
    """Return where headers are."""
    found, at = [], data.find(mark)
    while at >= 0:
        found.append(at)
        at = data.find(mark, at + 4)
    return found


def _encrypt(data: bytearray) -> None:
    for at in _entries(data, b"PK\3\4"):
        data[at + 6] |= 1
    for at in _entries(data, b"PK\1\2"):
        data[at + 8] |= 1


def _overlap(data: bytearray) -> None:
    first, second = _entries(data, b"PK\1\2")[-2:]
    data[second + 42 : second + 46] = data[first + 42 : first + 46]


def _lie(field: int, size: int, data: bytearray) -> None:
    for at in _entries(data, b"PK\1\2")[-2:]:
        data[at + field : at + field + 4] = size.to_bytes(4, "little")


def _nul(data: bytearray) -> None:
    data[:] = data.replace(b"a/one.so", b"a/o\0e.so")


def _no_text(data: bytearray) -> None:
    """Have a name be other bytes than the UTF-8 that its flag says."""
    data[:] = data.replace(b"a/one.so", b"a/\xff\xfee.so")
    for mark, flags in ((b"PK\3\4", 7), (b"PK\1\2", 9)):
        for at in _entries(data, mark)[-2:-1]:
            data[at + flags] |= 8


def _write_sdist(folder: Path, members: list[Member], build_info: bytes = BUILD_INFO) -> None:
    first = [Member("a-1.0/PKG-INFO", METADATA), Member("a-1.0/rocm_sdk/_build_info.py", build_info)]
    data = tar_of("a-1.0/", members, first)
    (folder / NAMES["sdist"]).write_bytes(gzip.compress(data, 1))


def _write_deb(folder: Path, members: list[Member]) -> None:
    first = [Member(f"{DEB}libamdhip64.so.6", LIBRARY)]
    (folder / NAMES["deb"]).write_bytes(deb_of(lzma.compress(tar_of(DEB, members, first), preset=0), DEBIAN))


def _write_archive(folder: Path, members: list[Member]) -> None:
    first = [Member("artifact_manifest.txt", b"stage\n"), Member("stage/lib/libtwo.so", LIBRARY)]
    (folder / NAMES["archive"]).write_bytes(lzma.compress(tar_of("stage/lib/", members, first), preset=0))
    artifact(folder, "rand_lib_generic", {"lib/librocrand.so.1": b"x"})  # every set of packages has some of each kind


def _packed_zeros(compress: Callable[[bytes], bytes]) -> bytes:
    return compress(bytes(64 * MEBIBYTE)) * (BOMB // (64 * MEBIBYTE))


def _sdist_bomb(folder: Path) -> None:
    start = tar_block(tarfile.REGTYPE, METADATA, name="a-1.0/PKG-INFO")
    bomb = tarfile.TarInfo("a-1.0/bomb")
    bomb.size = BOMB
    pack = partial(gzip.compress, compresslevel=1)
    (folder / NAMES["sdist"]).write_bytes(pack(start + bomb.tobuf()) + _packed_zeros(pack) + pack(bytes(1024)))


def _tar_bomb(prefix: str, first: bytes) -> bytes:
    bomb = tarfile.TarInfo(f"{prefix}bomb")
    bomb.size = BOMB
    pack = partial(lzma.compress, preset=0)
    return pack(first + bomb.tobuf()) + _packed_zeros(pack) + pack(bytes(1024))


def _deb_bomb(folder: Path) -> None:
    first = tar_block(tarfile.REGTYPE, LIBRARY, name=f"{DEB}libamdhip64.so.6")
    (folder / NAMES["deb"]).write_bytes(deb_of(_tar_bomb(DEB, first), DEBIAN))


def _archive_bomb(folder: Path) -> None:
    manifest = tar_block(tarfile.REGTYPE, b"stage\n", name="artifact_manifest.txt")
    (folder / NAMES["archive"]).write_bytes(_tar_bomb("stage/lib/", manifest))


def _tree(fill: Callable[[Path], object], folder: Path) -> None:
    stage = artifact(folder, NAMES["tree"], {"lib/libtwo.so": LIBRARY, ".info/version": b"1.0\n"})
    artifact(folder, "rand_lib_generic", {"lib/librocrand.so.1": b"x"})  # every set of packages has some of each kind
    fill(stage / "lib")


def _deep(lib: Path) -> None:
    # Deeper than a path can be long: made by descriptors.
    descriptor = os.open(lib, os.O_RDONLY)
    for part in LONG_NAME.split("/"):
        os.mkdir(part, dir_fd=descriptor)
        inner = os.open(part, os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = inner
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=descriptor))
    os.close(descriptor)


def _socket(lib: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        here = os.open(".", os.O_RDONLY)
        os.chdir(lib)
        try:
            server.bind("socket")
        finally:
            os.fchdir(here)
            os.close(here)


def _sparse(lib: Path) -> None:
    with (lib / "libsparse.so").open("wb") as file:
        file.write(LIBRARY[:64])
        file.truncate(BOMB)


def _set_user_id(lib: Path) -> None:
    (lib / "libtwo.so").chmod(0o6755)


def _many(lib: Path) -> None:
    for name in ("case.so", "CASE.so", "\u0430pple", "apple", "e\u0301", "\u00e9", "con.so", "nul"):
        (lib / name).write_bytes(LIBRARY)


TREES: dict[str, Callable[[Path], object]] = {
    NOTHING: lambda _: None,
    "a link out": lambda lib: (lib / "out.so").symlink_to("../" * 30 + "etc/passwd"),
    "an absolute link": lambda lib: (lib / "out.so").symlink_to("/etc/passwd"),
    "a folder that is a link out": lambda lib: (lib / "out").symlink_to("/etc"),
    "a link to itself": lambda lib: (lib / "self.so").symlink_to("self.so"),
    "a link to its own folder": lambda lib: (lib / "again").symlink_to("."),
    "a device": lambda lib: os.mknod(lib / "zero.so", stat.S_IFCHR | 0o666, os.makedev(1, 5)),
    "a pipe": lambda lib: os.mkfifo(lib / "pipe.so"),
    "a socket": _socket,
    "a newline in a name": lambda lib: (lib / f"{NEWLINE}.so").write_bytes(LIBRARY),
    "markup in a name": lambda lib: (lib / f"{MARKUP.replace('/', '|')}.so").write_bytes(LIBRARY),
    "a name of bytes that are no text": lambda lib: (lib / "bytes-\udcff.so").write_bytes(LIBRARY),
    "a right-to-left name": lambda lib: (lib / "safe\u202eos.gnp.so").write_bytes(LIBRARY),
    "a name of 4,096 bytes": _deep,
    "names that differ in case, look-alikes": _many,
    "a file of 1 GiB without content": _sparse,
    "a set-user-id library": _set_user_id,
    "a folder in place of a library": lambda lib: (lib / "libdir.so").mkdir(),
}


def _page(links: str, folder: Path) -> None:
    place = folder / NAMES["page"] / "a"
    place.mkdir(parents=True)
    _write_wheel(place, [])
    digest = hashlib.sha256((place / NAMES["wheel"]).read_bytes()).hexdigest()
    links = _anchor(NAMES["wheel"], digest=digest) + links
    (place / "index.html").write_bytes(
        f"<!DOCTYPE html><html><body>{links}</body></html>".encode("utf-8", "surrogateescape")
    )


def _anchor(href: str, text: str = "", digest: str = "0" * 64) -> str:
    return f'<a href="{html.escape(href)}#sha256={digest}">{html.escape(text or href)}</a>'


PAGES = {
    NOTHING: "",
    "a file whose name climbs": _anchor("../../../../a-2.0-py3-none-any.whl", "../../../../a-2.0-py3-none-any.whl"),
    "an encoded name that climbs": _anchor("..%2f..%2f..%2fa-2.0-py3-none-any.whl"),
    "a file of this machine": _anchor("file:///etc/passwd", "a-2.0-py3-none-any.whl"),
    "a link that runs code": _anchor("javascript:alert(1)", "a-2.0-py3-none-any.whl"),
    "a newline in a name": _anchor("a-2.0\n-py3-none-any.whl"),
    "markup in a name": _anchor(f"a-2.0-{MARKUP}-py3-none-any.whl"),
    "NUL in a name": _anchor("a-2.0%00-py3-none-any.whl"),
    "a name of 4,096 bytes": _anchor(f"a-2.0-{'n' * 4060}-py3-none-any.whl"),
    "look-alikes": _anchor("\u0430-1.0-py3-none-any.whl"),
    "a version of 100,000 digits": _anchor(f"a-{'1' * 100_000}-py3-none-any.whl"),
    "1,000 links": "".join(_anchor(f"a-{number}-py3-none-any.whl") for number in range(1000)),
    "tags that nothing closes": "<a href='" * 200_000,
    "a base elsewhere": '<base href="file:///etc/">' + _anchor("passwd", "a-2.0-py3-none-any.whl"),
    "a hash that is none": _anchor("a-2.0-py3-none-any.whl", digest="../x"),
    "bytes that are no text": "\udcff\udcfe" * 1000,
}

INPUTS: dict[str, dict[str, Make]] = {
    "wheel": {name: partial(_write_wheel, members=MEMBERS[name]) for name in MEMBERS if name not in NOT_IN_ZIPS}
    | {
        "a name of bytes that are no text": partial(_changed_wheel, _no_text),
        "a bomb of 1 GiB": _wheel_bomb,
        "members that overlap": partial(_changed_wheel, _overlap),
        "encrypted members": partial(_changed_wheel, _encrypt),
        "unpacked sizes that are too small": partial(_changed_wheel, partial(_lie, 24, 1)),
        "unpacked sizes of 4 GiB": partial(_changed_wheel, partial(_lie, 24, 0xFFFFFFF0)),
        "packed sizes of 4 GiB": partial(_changed_wheel, partial(_lie, 20, 0xFFFFFFF0)),
        "NUL in a name": partial(_changed_wheel, _nul),
        "commands of modules that are large as trees": _wheel_of_commands,
    },
    "sdist": {name: partial(_write_sdist, members=members) for name, members in MEMBERS.items()}
    | {
        "a bomb of 1 GiB": _sdist_bomb,
        "5,000 brackets in a requirement": partial(
            _write_sdist, members=[], build_info=BUILD_INFO.replace(b"EXTRAS = {}", BRACKETS)
        ),
    },
    "deb": {name: partial(_write_deb, members=members) for name, members in MEMBERS.items()}
    | {"a bomb of 1 GiB": _deb_bomb},
    "archive": {name: partial(_write_archive, members=members) for name, members in MEMBERS.items()}
    | {"a bomb of 1 GiB": _archive_bomb},
    "tree": {name: partial(_tree, fill) for name, fill in TREES.items()},
    "page": {name: partial(_page, links) for name, links in PAGES.items()},
}
