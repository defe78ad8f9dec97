"""Corpora in the repository: of each harness, a few inputs of earlier runs that lead where its seeds don't."""

from __future__ import annotations

import hashlib
import io
import lzma
import tarfile
from typing import TYPE_CHECKING

from tests.support.places import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["FOLDER", "MOST_BYTES", "MOST_INPUTS", "read_corpus", "write_corpus"]

FOLDER = ROOT / "trials/fuzz/corpus"
"""Has ``NAME.tar.xz`` for each harness whose runs found more than its seeds: one file, as inputs are much alike."""
MOST_INPUTS = 30
"""Inputs of one harness."""
MOST_BYTES = 24 << 10
"""Bytes of one harness's file."""


def read_corpus(name: str, folder: Path = FOLDER) -> list[bytes]:
    """Return the inputs that are kept for a harness; none for one without a corpus."""
    path = folder / f"{name}.tar.xz"
    if not path.exists():
        return []
    with tarfile.open(path, "r:xz") as archive:
        files = [archive.extractfile(member) for member in archive]
        return [file.read() for file in files if file]


def write_corpus(name: str, inputs: Iterable[bytes], folder: Path = FOLDER) -> None:
    """Keep as many of these inputs as there may be, the first ones first; the same inputs make the same bytes."""
    chosen = list(dict.fromkeys(inputs))[:MOST_INPUTS]
    while len(packed := _packed(chosen)) > MOST_BYTES:
        chosen.pop()
    path = folder / f"{name}.tar.xz"
    if chosen:
        folder.mkdir(exist_ok=True)
        path.write_bytes(packed)
    else:
        path.unlink(missing_ok=True)


def _packed(inputs: Iterable[bytes]) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for data in sorted(inputs, key=lambda data: (len(data), data)):
            member = tarfile.TarInfo(hashlib.sha256(data).hexdigest()[:12])
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return lzma.compress(file.getvalue(), preset=9 | lzma.PRESET_EXTREME)
