"""Artifact folders and archives, made as tests need them."""

from __future__ import annotations

import io
import lzma
import tarfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pytest

from rocwheel.core.compression import zstd

MakeArtifact = Callable[..., Path]
MakeTar = Callable[[Iterable[tarfile.TarInfo]], bytes]
MakeArchive = Callable[..., Path]


@pytest.fixture
def make_artifact(tmp_path: Path) -> MakeArtifact:
    """Make an artifact folder: a manifest, and for each path bytes (a file), text (a symlink) or None (a folder)."""

    def make(
        name: str,
        tree: Mapping[str, bytes | str | None],
        *,
        manifest: str | None = "stage\n",
        directory: str = "artifacts",
    ) -> Path:
        folder = tmp_path / directory / name
        folder.mkdir(parents=True)
        if manifest is not None:
            (folder / "artifact_manifest.txt").write_text(manifest)
        for path, content in tree.items():
            place = folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            if content is None:
                place.mkdir()
            elif isinstance(content, str):
                place.symlink_to(content)
            else:
                place.write_bytes(content)
        for place in [folder, *folder.rglob("*")]:  # Whatever the umask is.
            if not place.is_symlink():
                place.chmod(0o755 if place.is_dir() else 0o644)
        return folder

    return make


@pytest.fixture
def make_tar() -> MakeTar:
    """Make an uncompressed tar; a regular file holds as many bytes ``x`` as its size, a manifest names ``stage``."""

    def make(members: Iterable[tarfile.TarInfo]) -> bytes:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for member in members:
                is_manifest = member.name.endswith("artifact_manifest.txt") and member.isreg()
                data = b"stage\n" if is_manifest else b"x" * member.size
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
        return buffer.getvalue()

    return make


@pytest.fixture
def make_archive(tmp_path: Path) -> MakeArchive:
    """Compress the bytes of a tar, with the compression that the name of the archive says."""

    def make(name: str, tar: bytes, *, directory: str = "artifacts") -> Path:
        path = tmp_path / directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(lzma.compress(tar) if name.endswith(".xz") else zstd.compress(tar))
        return path

    return make


MakeDeb = Callable[..., Path]


def ar_archive(members: Mapping[str, bytes]) -> bytes:
    """Return an ar archive, as dpkg-deb lays it out."""
    archive = b"!<arch>\n"
    for name, data in members.items():
        archive += b"%-16s%-12d%-6d%-6d%-8s%-10d`\n" % (name.encode(), 0, 0, 0, b"100644", len(data))
        archive += data + b"\n" * (len(data) % 2)
    return archive


def deb_tar(tree: Mapping[str, bytes | str | tarfile.TarInfo]) -> bytes:
    """Return a tar: for each path bytes (a file), text (a symlink) or a header to take as it is."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path, content in tree.items():
            info = content if isinstance(content, tarfile.TarInfo) else tarfile.TarInfo(path)
            data = content if isinstance(content, bytes) else b""
            if isinstance(content, str):
                info.type, info.linkname = tarfile.SYMTYPE, content
            elif isinstance(content, bytes):
                info.size, info.mode = len(data), 0o755 if path.startswith("./usr/bin/") else 0o644
            tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


@pytest.fixture
def make_deb(tmp_path: Path) -> MakeDeb:
    """Make a Debian package by hand.

    ``fields`` are further lines of its control file, ``shlibs`` is the file of that name; ``members`` replaces or, with
    None, drops parts of the ar archive.
    """

    def make(
        package: str,
        tree: Mapping[str, bytes | str | tarfile.TarInfo],
        *,
        version: str = "5.2.3-8",
        architecture: str = "amd64",
        fields: str = "",
        shlibs: str = "",
        members: Mapping[str, bytes | None] = {},
    ) -> Path:
        control = f"Package: {package}\nVersion: {version}\nArchitecture: {architecture}\n{fields}"
        control_files: dict[str, bytes | str | tarfile.TarInfo] = {
            "./control": f"{control}Description: text\n more text\n".encode(),
        }
        if shlibs:
            control_files["./shlibs"] = shlibs.encode()
        parts: dict[str, bytes | None] = {
            "debian-binary": b"2.0\n",
            "control.tar": deb_tar(control_files),
            "data.tar": deb_tar(tree),
            **members,
        }
        path = tmp_path / "debs" / f"{package}_{version}_{architecture}.deb"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(ar_archive({name: data for name, data in parts.items() if data is not None}))
        return path

    return make
