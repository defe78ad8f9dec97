"""The manifest and checksums of a build in its folder: removed before anything changes, written again last.

So whatever stands beside a manifest is what it says, even after a build was killed.
"""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rocwheel.core.errors import InputError, read_error, write_error
from rocwheel.core.workers import raise_all
from rocwheel.core.writing import atomic_file
from rocwheel.distributions.build_manifest.provenance import is_rendered
from rocwheel.distributions.build_manifest.render import render_manifest, render_sums
from rocwheel.distributions.build_manifest.values import (
    ATTESTATIONS,
    MANIFEST_NAME,
    PREDICATE_NAME,
    STATEMENT_SUFFIX,
    SUMS_NAME,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.distributions.build_manifest.values import BuildManifest

__all__ = ["are_sums_of_a_build", "check_manifest_place", "is_own_attestation", "remove_manifest", "write_manifest"]

_REMEDY = "Move it, or change --dest-dir."
_SUM = re.compile(rb"[0-9a-f]{64}  dist/.+\.(?:whl|tar\.gz)")
_MAX_SUMS = 64 << 20


def check_manifest_place(dest_dir: Path) -> None:
    """Raise `InputError` for what stands in the place of a manifest or of its checksums, and is not of a build.

    `ProblemsError` for both. A folder of artifacts may have checksums of its own, for instance.
    """
    raise_all(str(dest_dir), list(_obstacles(dest_dir)))


def _obstacles(dest_dir: Path) -> Iterator[InputError]:
    for name in (MANIFEST_NAME, SUMS_NAME):
        path = dest_dir / name
        try:
            status = path.lstat()
        except FileNotFoundError:
            continue
        except OSError as e:
            yield read_error(path, e)
            continue
        if not stat.S_ISREG(status.st_mode):
            kind = "a symlink" if stat.S_ISLNK(status.st_mode) else "not a file"
            yield InputError(path, f"is {kind}", expected="nothing, or what an earlier build wrote", remedy=_REMEDY)
        elif name == SUMS_NAME and not _holds_sums(path, status.st_size):
            expected = "nothing, or those of an earlier build"
            yield InputError(path, "holds checksums of other files than a build's", expected=expected, remedy=_REMEDY)


def _holds_sums(path: Path, size: int) -> bool:
    try:
        return size <= _MAX_SUMS and are_sums_of_a_build(path.read_bytes())
    except OSError as e:
        raise read_error(path, e) from e


def are_sums_of_a_build(data: bytes) -> bool:
    """Return whether checksums are those of distributions of a build, all of them in ``dist``."""
    return all(_SUM.fullmatch(line) for line in data.splitlines())


def remove_manifest(dest_dir: Path) -> None:
    """Remove the attestations of an earlier build, then its manifest and checksums.

    Other files among the attestations stay. Raises `WorkError` where something can't be removed.
    """
    _remove_attestations(dest_dir / ATTESTATIONS)
    for name in (MANIFEST_NAME, SUMS_NAME):
        _remove(dest_dir / name)
    _sync(dest_dir)


def _remove_attestations(folder: Path) -> None:
    """Remove what `rocwheel attest` has written, and folders that are empty then; of a symlink, the link alone.

    What others have put there stays, such as statements that were signed.
    """
    if folder.is_symlink():
        _remove(folder)
        return
    for root, _, files in os.walk(folder, topdown=False):
        for name in files:
            is_named_so = name == PREDICATE_NAME or name.endswith(STATEMENT_SUFFIX)
            if is_named_so and is_own_attestation(Path(root, name)):
                _remove(Path(root, name))
        with suppress(OSError):  # there are other files
            Path(root).rmdir()


def is_own_attestation(path: Path) -> bool:
    """Return whether a file is an unsigned statement or predicate as `rocwheel attest` writes it, byte by byte.

    Raises `InputError` for one that can't be read.
    """
    try:
        status = path.lstat()
        return stat.S_ISREG(status.st_mode) and status.st_size <= _MAX_SUMS and is_rendered(path.read_bytes())
    except OSError as e:
        raise read_error(path, e) from e


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as e:
        raise write_error(path, e) from e


def _sync(folder: Path) -> None:
    """Have a folder's names on the disk, so that what comes later does not get there first."""
    with suppress(OSError):  # no such folder yet, or a file system that can't
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_manifest(dest_dir: Path, manifest: BuildManifest) -> Path:
    """Write the checksums, and the manifest last; return its path. Raises `WorkError` when that fails."""
    for name, data in ((SUMS_NAME, render_sums(manifest)), (MANIFEST_NAME, render_manifest(manifest))):
        with atomic_file(dest_dir / name) as file:
            file.write(data)
    return dest_dir / MANIFEST_NAME
