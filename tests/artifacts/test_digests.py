"""Digests of artifacts: what sha256sum prints of an artifact's folder, also for its archive."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from rocwheel.artifacts.catalog import open_catalog
from rocwheel.artifacts.digests import ArtifactDigest, digest_artifacts

if TYPE_CHECKING:
    from pathlib import Path

STAGE = "math-libs/BLAS/rocBLAS/stage"
SUMS = "find * -type f ! -name artifact_manifest.txt -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum"


@pytest.fixture
def artifacts(tmp_path: Path) -> Path:
    folder = tmp_path / "artifacts" / "blas_lib_generic"
    for path, text in (("lib/librocblas.so.5", "library"), ("lib/a b", ""), ("share/x", "é")):
        file = folder / STAGE / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (folder / "artifact_manifest.txt").write_text(STAGE)
    return folder.parent


def digests(folder: Path) -> dict[str, ArtifactDigest]:
    with open_catalog(folder) as catalog, ThreadPoolExecutor(2) as executor:
        return digest_artifacts(catalog.entries, executor)


def test_the_digest_is_what_sha256sum_makes_of_the_folder(artifacts: Path) -> None:
    printed = subprocess.run(
        ["bash", "-c", SUMS], cwd=artifacts / "blas_lib_generic", capture_output=True, text=True, check=True
    )
    expected = ArtifactDigest("blas_lib_generic", 3, 9, printed.stdout.split()[0])
    assert digests(artifacts) == {"blas_lib_generic": expected}


def test_an_archive_has_the_digest_of_its_folder(artifacts: Path) -> None:
    expected = digests(artifacts)
    command = ["tar", "-cJf", "../blas_lib_generic.tar.xz", "artifact_manifest.txt", STAGE]
    subprocess.run(command, cwd=artifacts / "blas_lib_generic", check=True)
    subprocess.run(["rm", "-r", "blas_lib_generic"], cwd=artifacts, check=True)
    assert digests(artifacts) == expected


@pytest.mark.parametrize(
    "change", ["echo more >> lib/librocblas.so.5", "mv share/x share/y", "ln -s librocblas.so.5 lib/l"]
)
def test_another_file_name_or_symlink_makes_another_digest(artifacts: Path, change: str) -> None:
    before = digests(artifacts)
    subprocess.run(["bash", "-c", change], cwd=artifacts / "blas_lib_generic" / STAGE, check=True)
    assert digests(artifacts) != before


def test_symlinks_to_other_places_make_other_digests(artifacts: Path) -> None:
    link = artifacts / "blas_lib_generic" / STAGE / "lib/librocblas.so"
    link.symlink_to("librocblas.so.5")
    one = digests(artifacts)
    link.unlink()
    link.symlink_to("a b")
    assert digests(artifacts) != one
