"""Archives: ar, Debian packages, tars of artifacts and sdists, and ZIP."""

from __future__ import annotations

import gzip
import io
import re
import tarfile
import tempfile
import zipfile
import zlib
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from rocwheel.artifacts.archives import read_artifact_archive
from rocwheel.artifacts.artifact import ArtifactName
from rocwheel.artifacts.deb import open_deb
from rocwheel.binary.bundles.device_code import iter_ar_members
from rocwheel.binary.code_objects import DeviceCodeError
from rocwheel.binary.kind import AR_MAGIC
from rocwheel.core.errors import InputError
from rocwheel.core.scratch import open_temporary
from rocwheel.device.trim_static import plan_archive_trim, require_trimmable_archive
from rocwheel.environment.package_targets import read_deb_facts
from rocwheel.wheels.sdist import read_sdist, read_sdist_file
from rocwheel.wheels.zip_directory import read_directory
from rocwheel.wheels.zip_reader import iter_member
from trials.fuzz.beside.ar_members import compare_members
from trials.fuzz.beside.tar_headers import TarMember, compare_tar
from trials.fuzz.beside.zip_stream import stream_names
from trials.fuzz.harness import Harness, require
from trials.fuzz.seeds.archives import (
    CONTROL,
    ar_of,
    ar_seeds,
    artifact_seeds,
    deb_seeds,
    kinds_seeds,
    linking_seeds,
    sdist_seeds,
    tar_seeds,
    zip_seeds,
)
from trials.fuzz.seeds.files import on_disk

if TYPE_CHECKING:
    from rocwheel.artifacts.deb import DebMember
    from rocwheel.wheels.zip_reader import ZipMember

_MOST_UNPACKED = 1 << 24
_NAME = ArtifactName("blas", "lib", "generic")
_ZIP_TOKENS = (b"PK\1\2", b"PK\3\4", b"PK\5\6", b"PK\6\6", b"PK\6\7", b"PK\7\x08", b"\1\0\x10\0", b"up\x09\0")
_TAR_TOKENS = (b"ustar\x0000", b"ustar  \0", b"././@LongLink", b"path=", b"size=", b"GNU.sparse.major=1", b"0000644\0")


def _ar(data: bytes) -> None:
    members = iter_ar_members(memoryview(data), name="input")
    # Callers look at the magic.
    for member in compare_members(members, data) if data.startswith(AR_MAGIC) else members:
        require(8 <= member.offset <= member.offset + member.size <= len(data), "a member outside of the archive")
    if not data.startswith(AR_MAGIC):
        return
    try:
        require_trimmable_archive(memoryview(data), name="input")
    except InputError:
        return
    whole = plan_archive_trim(memoryview(data), {}, name="input")
    require(whole.size <= len(data) + 1, "an archive that does not change is larger than before")


def _require_inside(path: str) -> None:
    require(not path.startswith("/") and ".." not in path.split("/"), f"path {path!r}")


def _deb(data: bytes) -> None:
    path = on_disk(data, "input.deb")
    with open_deb(path) as deb:
        for member in deb.members():
            _require_inside(member.path)
            if member.content and member.size < _MOST_UNPACKED:
                while member.content.read(1 << 16):
                    pass
    read_deb_facts(path)


def _deb_data(data: bytes) -> None:
    """Take an input as the tar of files within a package that is good otherwise, and compare its members."""
    whole = ar_of({"debian-binary": b"2.0\n", "control.tar": CONTROL, "data.tar": data})
    path = on_disk(whole, "input.deb")
    with open_deb(path) as deb:
        compare_tar(map(_tar_member, deb.members()), data)
    read_deb_facts(path)


def _tar_member(member: DebMember) -> TarMember:
    _require_inside(member.path)
    content = member.content.read() if member.content else b""
    # POSIX lets folders have a size, for which no bytes stand.
    if member.content:
        require(len(content) == member.size, f"{member.path!r} has {len(content)} bytes of {member.size}")
    link = member.link or member.same_as or ""
    return TarMember(member.path, member.kind.value, member.mode, len(content), link, content)


def _artifact(data: bytes) -> None:
    with open_temporary() as tar:
        tar.write(data)
        artifact = read_artifact_archive(on_disk(b"", "input.tar"), _NAME, tar)
        for member in artifact.members:
            _require_inside(member.path)
    _compare_tar(data, {member.path for member in artifact.members})


def _compare_tar(data: bytes, found: set[str]) -> None:
    """Require that what is found is in the tar by the standard library, too."""
    try:
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            names = [f"/{name.rstrip('/')}" for name in tar.getnames()]
    except (tarfile.TarError, ValueError, EOFError):
        return
    folders = {f"{parent}" for name in names for parent in PurePosixPath(name).parents}
    unknown = sorted(name for name in found if not any(one.endswith(f"/{name}") for one in (*names, *folders)))
    require(not unknown, f"members that tarfile doesn't have: {unknown}")


def _sdist(data: bytes) -> None:
    """Take an input as the tar within an sdist."""
    files = read_sdist(on_disk(gzip.compress(data, 1), "input.tar.gz"))
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        for member in tar:
            if member.isfile():
                content = tar.extractfile(member)
                name = member.name.partition("/")[2]
                require(content and files[name] == content.read(), f"{name!r} has other bytes than tarfile reads")


def _sdist_metadata(data: bytes) -> None:
    """Take an input as the tar within an sdist, and require that it has the metadata that it leaves when unpacked."""
    found = read_sdist_file(on_disk(gzip.compress(data, 1), "input.tar.gz"), "PKG-INFO", to_end=True)
    if found is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        try:
            with tarfile.open(fileobj=io.BytesIO(data)) as tar:
                if hasattr(tarfile, "data_filter"):
                    tar.extractall(folder, filter="data")
                else:  # before Python 3.11.4: nothing that could lead out of the folder
                    for one in tar:
                        if one.isfile() and re.fullmatch(r"[\w.-]*\w[\w.-]*/PKG-INFO", one.name):
                            tar.extract(one, folder)
        except (tarfile.TarError, OSError, ValueError, KeyError, EOFError, RecursionError):
            return
        for path in Path(folder).glob("*/PKG-INFO"):
            require(path.read_bytes() == found, f"it leaves {path.relative_to(folder)}, of other bytes than were read")


def _gzipped(data: bytes) -> None:
    read_sdist(on_disk(data, "input.tar.gz"))


def _zip(data: bytes) -> None:
    """Read every member, and compare names and bytes with zipfile, and names with what a stream would give."""
    path = on_disk(data, "input.whl")
    members = read_directory(path)
    are_whole = [_is_whole(data, member) for member in members]
    streamed = stream_names(data)
    if all(are_whole) and streamed is not None:
        found = sorted(name.decode("cp437") for name in streamed if not name.endswith(b"/"))
        names = sorted(_name_bytes(info).decode("cp437") for info in _infos(data) if not info.filename.endswith("/"))
        require(found == names, f"a stream gives {found}, the directory {names}")


def _name_bytes(info: zipfile.ZipInfo) -> bytes:
    """Return the name of a member as it is in the directory."""
    return info.orig_filename.encode("utf-8" if info.flag_bits & 0x800 else "cp437")


def _infos(data: bytes) -> list[zipfile.ZipInfo]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return archive.infolist()


def _is_whole(data: bytes, member: ZipMember) -> bool:
    """Return whether a member can be unpacked, to what zipfile unpacks."""
    if member.size > _MOST_UNPACKED:
        return False
    try:
        content = b"".join(iter_member(member))
    except InputError:
        return False
    _compare_member(data, member.name, content)
    return True


def _compare_member(data: bytes, name: str, content: bytes) -> None:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            other = archive.read(name)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError, ValueError, RuntimeError):
        return
    require(other == content, f"{name!r} has other bytes than zipfile reads")


HARNESSES = (
    Harness("archives.ar", _ar, ar_seeds, (DeviceCodeError,), (b"`\n", b"//", b"/SYM64/", b"!<arch>\n")),
    Harness("archives.deb", _deb, deb_seeds, tokens=(b"`\n", b"data.tar.zst", b"control.tar.bz2", *_TAR_TOKENS)),
    Harness("archives.deb_files", _deb_data, lambda: [*tar_seeds(), *kinds_seeds()], tokens=_TAR_TOKENS),
    Harness("archives.artifact", _artifact, artifact_seeds, tokens=_TAR_TOKENS),
    Harness("archives.sdist", _sdist, sdist_seeds, tokens=_TAR_TOKENS),
    Harness(
        "archives.sdist_metadata",
        _sdist_metadata,
        lambda: [*sdist_seeds(), *linking_seeds()],
        tokens=(*_TAR_TOKENS, b"PKG-INFO", b"../", b"linkpath=PKG-INFO"),
    ),
    Harness("archives.gzip", _gzipped, lambda: [gzip.compress(one, mtime=0) for one in sdist_seeds()]),
    Harness("archives.zip", _zip, zip_seeds, tokens=_ZIP_TOKENS),
)
"""See `trials.fuzz.harness.Harness`."""
