"""Tests of `rocwheel.artifacts.summary`."""

from __future__ import annotations

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from rocwheel.artifacts import summary as module
from rocwheel.artifacts.artifact import ArtifactName, FileKind
from rocwheel.artifacts.catalog import Catalog, Entry, open_catalog
from rocwheel.artifacts.summary import ArtifactDigest, ArtifactSummary, CatalogSummary, digest_artifacts, summarize
from rocwheel.core.cache import EntryStore
from rocwheel.core.reading import FileRange

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


def digests(folder: Path, kept: EntryStore | None = None) -> dict[str, ArtifactDigest]:
    with open_catalog(folder) as catalog, ThreadPoolExecutor(2) as executor:
        return digest_artifacts(catalog.entries, executor, kept)


def test_the_digest_agrees_with_sha256sum(artifacts: Path) -> None:
    printed = subprocess.run(
        ["bash", "-c", SUMS], cwd=artifacts / "blas_lib_generic", capture_output=True, text=True, check=True
    )
    expected = ArtifactDigest("blas_lib_generic", 3, 9, printed.stdout.split()[0])
    assert digests(artifacts) == {"blas_lib_generic": expected}


def test_an_archive_has_the_same_digest_as_its_folder(artifacts: Path) -> None:
    expected = digests(artifacts)
    command = ["tar", "-cJf", "../blas_lib_generic.tar.xz", "artifact_manifest.txt", STAGE]
    subprocess.run(command, cwd=artifacts / "blas_lib_generic", check=True)
    subprocess.run(["rm", "-r", "blas_lib_generic"], cwd=artifacts, check=True)
    assert digests(artifacts) == expected


@pytest.mark.parametrize(
    "change", ["echo more >> lib/librocblas.so.5", "mv share/x share/y", "ln -s librocblas.so.5 lib/l"]
)
def test_a_changed_file_name_or_symlink_changes_the_digest(artifacts: Path, change: str) -> None:
    before = digests(artifacts)
    subprocess.run(["bash", "-c", change], cwd=artifacts / "blas_lib_generic" / STAGE, check=True)
    assert digests(artifacts) != before


def test_a_changed_symlink_target_changes_the_digest(artifacts: Path) -> None:
    link = artifacts / "blas_lib_generic" / STAGE / "lib/librocblas.so"
    link.symlink_to("librocblas.so.5")
    one = digests(artifacts)
    link.unlink()
    link.symlink_to("a b")
    assert digests(artifacts) != one


def age(folder: Path) -> None:
    """Let all files be older than any clock's granularity, for their stamps to tell of changes."""
    for path in folder.rglob("*"):
        os.utime(path, (1_500_000_000, 1_500_000_000), follow_symlinks=False)


def test_files_of_unchanged_artifacts_are_not_read_again(
    artifacts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = EntryStore(tmp_path / "kept")
    age(artifacts)
    monkeypatch.setattr("rocwheel.wheels.member_cache.is_settled", lambda *_: True)
    before = digests(artifacts, kept)
    with monkeypatch.context() as patch:
        patch.setattr(module, "_hash_entry", lambda _: pytest.fail("a file was read"))
        assert digests(artifacts, kept) == before
    (artifacts / "blas_lib_generic" / STAGE / "share/x").write_text("other")
    changed = digests(artifacts, kept)
    assert changed != before
    assert changed == digests(artifacts)


def test_a_recently_written_file_is_read_again(artifacts: Path, tmp_path: Path) -> None:
    kept = EntryStore(tmp_path / "kept")
    digests(artifacts, kept)
    assert not list((tmp_path / "kept").rglob("*"))


BLAS = ArtifactName("blas", "lib", "gfx90a:xnack+")
DEV = ArtifactName("blas", "dev", "generic")
CATALOG = Catalog(
    "artifacts",
    (DEV, BLAS),
    (
        Entry("lib", FileKind.DIRECTORY, BLAS, 0o755),
        Entry("lib/b", FileKind.FILE, BLAS, 0o755, source=FileRange("/b", 0, 7)),
        Entry("lib/c", FileKind.SYMLINK, BLAS, 0o777, link="b"),
        Entry("lib/d", FileKind.FILE, BLAS, 0o644, source=FileRange("/d", 0, 3)),
    ),
    None,
)


def _plain(summary: CatalogSummary | ArtifactSummary) -> Any:
    return msgspec.json.decode(msgspec.json.encode(summary))


def test_files_symlinks_and_bytes_are_counted() -> None:
    assert _plain(summarize(CATALOG)) == {
        "directory": "artifacts",
        "artifacts": [
            {"artifact": "blas_dev_generic", "name": "blas", "component": "dev", "target": "generic",
             "files": 0, "symlinks": 0, "bytes": 0},
            {"artifact": "blas_lib_gfx90a:xnack+", "name": "blas", "component": "lib", "target": "gfx90a:xnack+",
             "files": 2, "symlinks": 1, "bytes": 10},
        ],
        "files": 2,
        "symlinks": 1,
        "bytes": 10,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("component", "target", "expected"),
    [
        ("lib", None, ["blas_lib_gfx90a:xnack+"]),
        ("dev", None, ["blas_dev_generic"]),
        (None, "gfx90a", ["blas_lib_gfx90a:xnack+"]),
        (None, "gfx90a:xnack+", ["blas_lib_gfx90a:xnack+"]),
        (None, "gfx90a:xnack-", []),
        ("dev", "gfx90a", []),
    ],
)
def test_artifacts_are_selected_by_component_and_target(
    component: str | None, target: str | None, expected: list[str]
) -> None:
    components, targets = ((word,) if word else () for word in (component, target))
    summary = summarize(CATALOG, components=components, targets=targets)
    assert [item.artifact for item in summary.artifacts] == expected


def test_the_totals_cover_only_the_selected_artifacts() -> None:
    assert summarize(CATALOG, components=("dev",)).bytes == 0


def test_entries_are_listed_on_request() -> None:
    (summary,) = summarize(CATALOG, components=("lib",), with_entries=True).artifacts
    assert _plain(summary)["entries"] == [
        {"path": "lib", "kind": "directory", "mode": "755"},
        {"path": "lib/b", "kind": "file", "mode": "755", "bytes": 7},
        {"path": "lib/c", "kind": "symlink", "mode": "777", "link": "b"},
        {"path": "lib/d", "kind": "file", "mode": "644", "bytes": 3},
    ]
