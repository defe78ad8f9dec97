"""Artifact folders and archives, made as tests need them."""

from __future__ import annotations

import io
import lzma
import tarfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pytest

from rocwheel.binary.zstd import zstd

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
        return folder

    return make


@pytest.fixture
def make_tar() -> MakeTar:
    """Make an uncompressed tar; a regular file holds as many bytes ``x`` as its size, a manifest names ``stage``."""

    def make(members: Iterable[tarfile.TarInfo]) -> bytes:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for member in members:
                data = b"stage\n" if member.name.endswith("artifact_manifest.txt") else b"x" * member.size
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
        return buffer.getvalue()

    return make


@pytest.fixture
def make_archive(tmp_path: Path) -> MakeArchive:
    """Compress the bytes of a tar, with the compression that the name of the archive tells."""

    def make(name: str, tar: bytes, *, directory: str = "artifacts") -> Path:
        path = tmp_path / directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(lzma.compress(tar) if name.endswith(".xz") else zstd.compress(tar))
        return path

    return make
