"""The published wheels that the proof takes: those of ``corpus.toml``, downloaded by pip."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import msgspec

__all__ = ["PLATFORMS", "CorpusWheel", "download", "read_corpus"]

_TABLE = Path(__file__).with_name("corpus.toml")
PLATFORMS = (
    *(f"manylinux_2_{minor}_x86_64" for minor in (35, 34, 28, 27, 24)),
    *(f"{name}_x86_64" for name in ("manylinux2014", "manylinux2010", "manylinux1", "manylinux_2_17", "linux")),
)
"""What pip is asked for. It knows no other spelling of a tag, so each file of the table has one of these."""


class CorpusWheel(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """One published wheel."""

    project: str
    version: str
    file: str
    sha256: str
    python: str = "3.11"
    beside: tuple[str, ...] = ()
    """Projects of the table that one more trial installs with it, and gives by ``--with``."""
    toolkit: str = ""
    """The ``--toolkit`` of one more trial."""


class _Corpus(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    wheel: tuple[CorpusWheel, ...]


def read_corpus() -> tuple[CorpusWheel, ...]:
    """Return the wheels of the table."""
    return msgspec.toml.decode(_TABLE.read_bytes(), type=_Corpus).wheel


def download(wheel: CorpusWheel, folder: Path) -> Path:
    """Return a wheel from a folder, after downloading it if it is not there as the table has it."""
    path = folder / wheel.file
    if not path.exists():
        _fetch(wheel, folder)
    if _sha256(path) != wheel.sha256:
        message = f"{path}: its SHA-256 is not that of {_TABLE.name}: remove the file, to have it downloaded again"
        raise ValueError(message)
    return path


def _fetch(wheel: CorpusWheel, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--no-cache-dir",
        "--only-binary",
        ":all:",
    ]
    platforms = [part for platform in PLATFORMS for part in ("--platform", platform)]
    where = ["--dest", str(folder), "--python-version", wheel.python, *platforms]
    subprocess.run([*command, *where, f"{wheel.project}=={wheel.version}"], check=True)


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
