"""Artifacts are merged and fetched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trials.faults.case import Case
from trials.faults.cases.inputs import copy_sample

if TYPE_CHECKING:
    from pathlib import Path

    from trials.faults.case import Place

__all__ = ["CASES"]


def _shards(place: Place) -> None:
    """Make two builds with a host file, and a database for a GPU each."""
    for shard, target in (("a", "gfx906"), ("b", "gfx1030")):
        files = {"generic/stage/lib/librocblas.so": "host", f"{target}/stage/share/miopen/db/{target}.kdb": target}
        for path, text in files.items():
            file = place.given / shard / f"blas_lib_{path}"
            file.parent.mkdir(parents=True)
            file.write_text(text)
            folder = place.given / shard / f"blas_lib_{path.partition('/')[0]}"
            (folder / "artifact_manifest.txt").write_text("stage\n")


def _merge(place: Place) -> tuple[str | Path, ...]:
    first, second = place.given / "a", place.given / "b"
    return ("artifacts", "merge", first, second, "--primary", first, "--dest-dir", place.out)


def _store(place: Place) -> None:
    copy_sample(place.given, "base_lib*", "blas_lib_generic*", "blas_lib_gfx906*")


def _fetch(place: Place) -> tuple[str | Path, ...]:
    return ("artifacts", "fetch", place.given, "--dest-dir", place.out, "--jobs", "1")


CASES = (Case("merge", _merge, _shards), Case("fetch", _fetch, _store))
