"""Good archives that harnesses begin with: ar, Debian packages, tars and ZIP, of every kind of member."""

from __future__ import annotations

import gzip
import io
import lzma
import tarfile
import zipfile
from typing import TYPE_CHECKING

from tests.support.raw_zip import RawMember, deflated, raw_zip, with_large_record
from trials.fuzz.seeds.files import sample

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "CONTROL",
    "ar_of",
    "ar_seeds",
    "artifact_seeds",
    "deb_seeds",
    "kinds_seeds",
    "linking_seeds",
    "sdist_seeds",
    "tar_seeds",
    "zip_seeds",
]


def ar_of(members: Mapping[str, bytes]) -> bytes:
    """Return an ar archive of these members."""
    archive = b"!<arch>\n"
    for name, data in members.items():
        archive += (
            f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(data):<10}`\n".encode() + data + b"\n" * (len(data) % 2)
        )
    return archive


def _tar_of(files: Mapping[str, bytes], form: int = tarfile.GNU_FORMAT, link: str = "") -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=form) as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
        if link:
            info = tarfile.TarInfo(f"{link}.so")
            info.type, info.linkname = tarfile.SYMTYPE, "target"
            tar.addfile(info)
    return _shorter(file.getvalue())


def _shorter(tar: bytes) -> bytes:
    """Return a tar without all but two of the zero blocks at its end."""
    end = -(-len(tar.rstrip(b"\0")) // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE
    return tar[:end] + bytes(2 * tarfile.BLOCKSIZE)


CONTROL = _tar_of(
    {"./control": b"Package: a\nVersion: 1-1\nArchitecture: amd64\nDepends: b (>= 1) | c\nDescription: t\n"}
)
"""The tar of a package's control files."""
_LONG = "d" * 90 + "/" + "e" * 60
_LONG_LINKS = {tarfile.GNU_FORMAT: 101, tarfile.USTAR_FORMAT: 100}
"""Characters: GNU has a member of its own for more than a header holds."""


def ar_seeds() -> list[bytes]:
    """Return archives with long names, in the ways of GNU and of Microsoft, and with members of odd sizes."""
    long = ar_of({"/": bytes(4), "//": b"a_very_long_member_name.o/\n", "/0": b"\x7fELF", "b.o/": b"abc"})
    of_microsoft = ar_of(
        {"/": bytes(4), "//": b"a_very_long_member.obj\0another_long.obj\0", "/23": b"abc", "/0": b"d"}
    )
    return [long, of_microsoft, ar_of({"a.o/": b"x" * 9, "b.o/": b""})]


def deb_seeds() -> list[bytes]:
    """Return packages, plain and compressed."""
    data = _tar_of({"./usr/lib/x.so": b"\x7fELF" + bytes(60)}, link="./usr/lib/y")
    packed = {"control.tar.gz": gzip.compress(CONTROL), "data.tar.xz": lzma.compress(data)}
    return [
        ar_of({"debian-binary": b"2.0\n", **parts}) for parts in ({"control.tar": CONTROL, "data.tar": data}, packed)
    ]


def tar_seeds() -> list[bytes]:
    """Return tars of files and a symlink, in each format."""
    files = {"./usr/lib/x": b"abc", f"./{_LONG}": b"d"}
    return [_tar_of(files, form, "./usr/l") for form in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT, tarfile.USTAR_FORMAT)]


def kinds_seeds() -> list[bytes]:
    """Return tars of each kind of member: folders, programs, links of both kinds, absolute ones and long ones."""
    return [_tar_of_kinds(form) for form in (tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT)]


def _tar_of_kinds(form: int) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=form) as tar:
        tar.addfile(_info("./usr/bin/", tarfile.DIRTYPE, 0o755))
        tar.addfile(_info("./usr/bin/a", tarfile.REGTYPE, 0o4775, size=3), io.BytesIO(b"abc"))
        tar.addfile(_info("./usr/bin/b", tarfile.LNKTYPE, 0o755, link="./usr/bin/a"))
        tar.addfile(_info("./etc/c", tarfile.SYMTYPE, 0o777, link="/usr/bin/a"))
        tar.addfile(_info("./etc/d", tarfile.SYMTYPE, 0o644, link="e" * _LONG_LINKS[form]))
    return _shorter(file.getvalue())


def _info(name: str, kind: bytes, mode: int, *, link: str = "", size: int = 0) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.mode, info.linkname, info.size = kind, mode, link, size
    return info


def artifact_seeds() -> list[bytes]:
    """Return the tars of artifacts, made and of the sample SDK."""
    files = {"artifact_manifest.txt": b"math/blas\n", "math/blas/lib/x.so": b"abc", f"math/blas/{_LONG}": b"d"}
    made = [_tar_of(files, form, "math/blas/lib/l") for form in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)]
    return made + [_shorter(lzma.decompress(data)) for data in sample("*_generic.tar.xz", largest=3000)[:3]]


def sdist_seeds() -> list[bytes]:
    """Return the tars of sdists."""
    files = {"rocm-1.0/PKG-INFO": b"Metadata-Version: 2.2\nName: rocm\nVersion: 1.0\n", "rocm-1.0/src/a.py": b"x = 1\n"}
    return [_tar_of(files, form) for form in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)]


def linking_seeds() -> list[bytes]:
    """Return sdists with links: to the top folder, and out of a deeper one."""
    start = _tar_of({"r-1/PKG-INFO": b"Name: r\n", "r-1/d/e/f": b""}, link="r-1/l")[: -2 * tarfile.BLOCKSIZE]
    return [
        start + _tar_of({"r-1/a": b"x"}, link="r-1/d/e/m"),
        start + _tar_of({"r-1/target/a": b"x", "r-1/target/PKG-INFO": b"Name: s\n"}),
        _tar_of({"./r-1/PKG-INFO": b"Name: r\n"}, tarfile.PAX_FORMAT, link="r-1/target"),
    ]


def zip_seeds() -> list[bytes]:
    """Return ZIP archives, with members written at once and as a stream."""
    found = []
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", method) as archive:
            archive.writestr("a/b.py", b"x = 1\n" * 30)
            archive.writestr("a-1.dist-info/RECORD", b"")
            archive.writestr("\N{LATIN SMALL LETTER E WITH ACUTE}", b"e")
        found.append(file.getvalue())
    streamed = RawMember(b"a/b.py", b"x = 1\n" * 30, deflated(b"x = 1\n" * 30), 8, flags=8)
    return [*found, with_large_record(raw_zip(RawMember(b"a/"), streamed, RawMember(b"a-1.dist-info/RECORD")))]
