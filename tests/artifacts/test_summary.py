"""What the artifacts of a catalogue amount to."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from rocwheel.artifacts.catalog import ArtifactName, Catalog, Entry, FileKind
from rocwheel.artifacts.summary import ArtifactSummary, CatalogSummary, summarise
from rocwheel.core.reading import FileRange

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
    assert _plain(summarise(CATALOG)) == {
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
def test_artifacts_are_chosen_by_component_and_target(
    component: str | None, target: str | None, expected: list[str]
) -> None:
    summary = summarise(CATALOG, component=component, target=target)
    assert [item.artifact for item in summary.artifacts] == expected


def test_the_totals_are_those_of_the_chosen() -> None:
    assert summarise(CATALOG, component="dev").bytes == 0


def test_entries_are_reported_when_asked_for() -> None:
    (summary,) = summarise(CATALOG, component="lib", with_entries=True).artifacts
    assert _plain(summary)["entries"] == [
        {"path": "lib", "kind": "directory", "mode": "755"},
        {"path": "lib/b", "kind": "file", "mode": "755", "bytes": 7},
        {"path": "lib/c", "kind": "symlink", "mode": "777", "link": "b"},
        {"path": "lib/d", "kind": "file", "mode": "644", "bytes": 3},
    ]
