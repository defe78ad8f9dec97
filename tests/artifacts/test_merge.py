"""Tests of `rocwheel.artifacts.merge`."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from signal import SIGKILL
from typing import TYPE_CHECKING

import msgspec
import pytest

from rocwheel.artifacts.merge import MergeOptions, opened_merge, write_merge
from rocwheel.artifacts.shards import MergeReport, MissingTarget
from rocwheel.core.errors import InputError, RocwheelError
from tests.support.kpack_files import make_kpack

if TYPE_CHECKING:
    from pathlib import Path


Tree = Mapping[str, bytes]
Shards = Mapping[str, Mapping[str, Tree]]
Merge = Callable[..., MergeReport]

FLAT = "lib/rocblas/library"
MANIFEST = "share/therock/therock_manifest.json"
DIST_INFO = "share/therock/dist_info.json"


@pytest.fixture
def build(tmp_path: Path) -> Callable[[Shards], list[Path]]:
    """Write shards: by the name of each, its artifacts, and the files of these below one stage folder."""

    def write(shards: Shards) -> list[Path]:
        for shard, artifacts in shards.items():
            for artifact, tree in artifacts.items():
                folder = tmp_path / shard / artifact
                folder.mkdir(parents=True)
                (folder / "artifact_manifest.txt").write_text("blas/stage\n")
                for path, content in tree.items():
                    place = folder / "blas/stage" / path
                    place.parent.mkdir(parents=True, exist_ok=True)
                    place.write_bytes(content)
        return [tmp_path / shard for shard in shards]

    return write


@pytest.fixture
def merge(build: Callable[[Shards], list[Path]], tmp_path: Path) -> Merge:
    """Return a function that merges shards, the first being the primary one, into the folder ``out``."""

    def run(shards: Shards, *may_differ: str) -> MergeReport:
        folders = build(shards)
        with opened_merge(folders, MergeOptions(str(folders[0]), may_differ)) as plan:
            return write_merge(plan, tmp_path / "out")

    return run


@pytest.fixture
def refused(merge: Merge, tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Return a function that merges shards in vain, and returns the error's text without the folder's name."""

    def run(shards: Shards, *may_differ: str) -> str:
        with pytest.raises(RocwheelError) as caught:
            merge(shards, *may_differ)
        assert not (tmp_path / "out").exists()
        return str(caught.value).replace(f"{tmp_path}/", "")

    yield run
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def written(tmp_path: Path) -> dict[str, dict[str, bytes]]:
    """Return the files of each artifact of the merged set."""
    return {
        folder.name: {
            str(path.relative_to(folder / "blas/stage")): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file() and path.name != "artifact_manifest.txt"
        }
        for folder in sorted((tmp_path / "out").iterdir())
    }


SPLIT: Shards = {
    "a": {
        "blas_lib_generic": {"lib/librocblas.so": b"host"},
        "blas_lib_gfx942": {f"{FLAT}/x_gfx942.co": b"942", f"{FLAT}/gfx942/TensileManifest.txt": b"m"},
    },
    "b": {
        "blas_lib_generic": {"lib/librocblas.so": b"host"},
        "blas_lib_gfx1100": {f"{FLAT}/x_gfx1100.dat.zlib": b"1100"},
        "blas_lib_gfx90a:xnack+": {f"{FLAT}/x_gfx90a-xnack+.hsaco": b"90a"},
    },
}


def test_host_files_are_taken_once_and_device_files_from_every_shard(merge: Merge, tmp_path: Path) -> None:
    report = merge(SPLIT)

    assert written(tmp_path) == {
        "blas_lib_generic": {"lib/librocblas.so": b"host"},
        "blas_lib_gfx1100": {f"{FLAT}/x_gfx1100.dat.zlib": b"1100"},
        "blas_lib_gfx90a": {f"{FLAT}/x_gfx90a-xnack+.hsaco": b"90a"},
        "blas_lib_gfx942": {f"{FLAT}/gfx942/TensileManifest.txt": b"m", f"{FLAT}/x_gfx942.co": b"942"},
    }
    assert report.targets == ("gfx1100", "gfx90a", "gfx942")
    assert report.differences == ()
    assert (tmp_path / "out/blas_lib_gfx942/artifact_manifest.txt").read_text() == "blas/stage\n"


def test_kernels_in_family_artifacts_go_to_the_artifacts_of_their_targets(merge: Merge, tmp_path: Path) -> None:
    merge(
        {
            "a": {"blas_lib_gfx94X-dcgpu": {"lib/librocblas.so": b"host", f"{FLAT}/gfx942/x.dat": b"942"}},
            "b": {
                "blas_lib_gfx110X-all": {
                    "lib/librocblas.so": b"host",
                    f"{FLAT}/gfx1100/x.dat": b"1100",
                    "lib/rocfft/rocfft_kernel_cache_gfx1101.db": b"",
                }
            },
        }
    )

    assert written(tmp_path) == {
        "blas_lib_generic": {"lib/librocblas.so": b"host"},
        "blas_lib_gfx1100": {f"{FLAT}/gfx1100/x.dat": b"1100"},
        "blas_lib_gfx1101": {"lib/rocfft/rocfft_kernel_cache_gfx1101.db": b""},
        "blas_lib_gfx942": {f"{FLAT}/gfx942/x.dat": b"942"},
    }


def test_a_target_and_its_strict_variant_stay_separate(merge: Merge, tmp_path: Path) -> None:
    merge(
        {
            "a": {"blas_lib_generic": {f"{FLAT}/x_gfx1250.dat": b"plain", f"{FLAT}/x_gfx1250-strict.dat": b"strict"}},
            "b": {"blas_lib_generic": {"share/miopen/db/gfx1250-strict_256.db.txt": b"db"}},
        }
    )

    assert written(tmp_path) == {
        "blas_lib_gfx1250": {f"{FLAT}/x_gfx1250.dat": b"plain"},
        "blas_lib_gfx1250-strict": {
            f"{FLAT}/x_gfx1250-strict.dat": b"strict",
            "share/miopen/db/gfx1250-strict_256.db.txt": b"db",
        },
    }


def test_a_file_for_a_different_target_than_its_artifact_is_refused(refused: Callable[..., str]) -> None:
    text = refused({"a": {"blas_lib_gfx1250": {f"{FLAT}/x_gfx1250-strict.dat": b""}}, "b": {"x_lib_generic": {}}})

    assert text == (
        f"a/blas_lib_gfx1250/blas/stage/{FLAT}/x_gfx1250-strict.dat: is for gfx1250-strict according to its name, "
        "but is in the artifact blas_lib_gfx1250, which is for gfx1250; expected one target"
    )


def test_a_kernel_file_in_two_builds_must_be_identical_and_is_kept_once(
    merge: Merge, refused: Callable[..., str], tmp_path: Path
) -> None:
    kernel = f"{FLAT}/x_gfx942.dat"
    text = refused({"a": {"blas_lib_gfx942": {kernel: b"1"}}, "b": {"blas_lib_gfx942": {kernel: b"2"}}})
    assert text == (
        f"b/blas_lib_gfx942/blas/stage/{kernel}: differs from a/blas_lib_gfx942/blas/stage/{kernel}, but both "
        "files are for gfx942; expected only one file, or identical files. Remove the target from one of the "
        "builds."
    )

    merge({"c": {"blas_lib_gfx942": {kernel: b"1"}}, "d": {"blas_lib_gfx942": {kernel: b"1"}}})
    assert written(tmp_path) == {"blas_lib_gfx942": {kernel: b"1"}}


def test_every_different_host_file_is_reported_and_nothing_is_written(refused: Callable[..., str]) -> None:
    text = refused(
        {
            "a": {"blas_lib_generic": {"lib/x": b"1", "lib/y": b"1"}},
            "b": {"blas_lib_generic": {"lib/x": b"2", "lib/y": b"2", "lib/z": b"3"}},
        }
    )

    assert text.startswith("the shards: 3 problems\n")
    assert "b/blas_lib_generic/blas/stage/lib/x: differs from a/blas_lib_generic/blas/stage/lib/x" in text
    assert "b/blas_lib_generic/blas/stage/lib/z: is a host file that the primary shard doesn't have" in text


def test_host_files_that_may_differ_come_from_the_primary_and_are_listed(merge: Merge, tmp_path: Path) -> None:
    report = merge(
        {
            "a": {"blas_lib_generic": {"lib/x": b"1", "lib/a.debug": b"1", "lib/only": b""}},
            "b": {"blas_lib_generic": {"lib/x": b"2", "lib/a.debug": b"2", "lib/z": b"3"}},
        },
        "lib/?",
    )

    assert written(tmp_path) == {"blas_lib_generic": {"lib/a.debug": b"1", "lib/only": b"", "lib/x": b"1"}}
    assert [(d.path, d.differs, d.outcome) for d in report.differences] == [
        ("lib/a.debug", "bytes", "primary's: debug information contains addresses and the build ID"),
        ("lib/only", "absent", "kept"),
        ("lib/x", "bytes", "primary's"),
        ("lib/z", "only in this shard", "left out"),
    ]


def test_different_fallback_tables_are_refused_with_the_reason(refused: Callable[..., str]) -> None:
    text = refused(
        {
            "a": {"blas_lib_generic": {f"{FLAT}/x_fallback.dat": b"1"}},
            "b": {"blas_lib_generic": {f"{FLAT}/x_fallback.dat": b"2"}},
        }
    )

    assert "a table from one build has the wrong solutions for kernels from another build" in text


def test_manifests_and_tables_of_all_targets_are_merged(merge: Merge, tmp_path: Path) -> None:
    table, listing = "lib/hipblaslt/library/hipblasltExtOpLibrary.dat", f"{FLAT}/TensileManifest.txt"
    report = merge(
        {
            "a": {"blas_lib_generic": {table: msgspec.msgpack.encode({"gfx942": [1]}), listing: b"b\na\n"}},
            "b": {"blas_lib_generic": {table: msgspec.msgpack.encode({"gfx1100": {"x": 2}}), listing: b"c\nb\n"}},
        }
    )

    files = written(tmp_path)["blas_lib_generic"]
    assert msgspec.msgpack.decode(files[table]) == {"gfx1100": {"x": 2}, "gfx942": [1]}
    assert files[listing] == b"a\nb\nc\n"
    assert [(d.path, d.outcome) for d in report.differences] == [(table, "combined"), (listing, "combined")]


@pytest.mark.parametrize(
    ("theirs", "found"),
    [
        (msgspec.msgpack.encode({"gfx942": 2}), " in the value of 'gfx942'"),
        (b"\xc1", "is not a msgpack map"),
        (b"\x81" * 100_000, "is not a msgpack map"),
    ],
)
def test_tables_that_cannot_be_merged_are_refused(refused: Callable[..., str], theirs: bytes, found: str) -> None:
    table = "lib/hipblaslt/library/hipblasltExtOpLibrary.dat"
    mine = msgspec.msgpack.encode({"gfx942": 1})
    assert found in refused({"a": {"blas_lib_generic": {table: mine}}, "b": {"blas_lib_generic": {table: theirs}}})


def test_a_text_too_large_to_merge_is_refused(refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rocwheel.artifacts.shards.LARGEST", 4)
    manifest = f"{FLAT}/TensileManifest.txt"
    found = refused({"a": {"blas_lib_generic": {manifest: b"a"}}, "b": {"blas_lib_generic": {manifest: b"long\n"}}})
    assert "TensileManifest.txt: has 5 bytes; expected at most 4 bytes in a file to merge" in found


def sdk(commit: str, run: str, targets: str) -> Tree:
    manifest = {"the_rock_commit": commit, "github_run_id": run, "rocm_version": "7.1.0"}
    return {
        MANIFEST: json.dumps(manifest).encode(),
        DIST_INFO: json.dumps({"dist_amdgpu_targets": targets, "other": 1}).encode(),
    }


def test_declared_targets_are_merged_and_run_numbers_come_from_the_primary(merge: Merge, tmp_path: Path) -> None:
    merge(
        {
            "a": {"base_lib_generic": sdk("c", "1", "gfx942"), "blas_lib_gfx942": {f"{FLAT}/x_gfx942.dat": b""}},
            "b": {"base_lib_generic": sdk("c", "2", "gfx1100"), "blas_lib_gfx1100": {f"{FLAT}/x_gfx1100.dat": b""}},
        }
    )

    files = written(tmp_path)["base_lib_generic"]
    assert json.loads(files[DIST_INFO]) == {"dist_amdgpu_targets": "gfx942;gfx1100", "other": 1}
    assert json.loads(files[MANIFEST])["github_run_id"] == "1"


def test_builds_of_different_commits_are_refused(refused: Callable[..., str]) -> None:
    text = refused({"a": {"base_lib_generic": sdk("c", "1", "")}, "b": {"base_lib_generic": sdk("d", "1", "")}})

    assert f"b/base_lib_generic/blas/stage/{MANIFEST}: has the_rock_commit 'd', but " in text


def test_a_declared_target_without_files_is_refused(refused: Callable[..., str]) -> None:
    text = refused(
        {
            "a": {"base_lib_generic": sdk("c", "1", "gfx942;gfx950"), "blas_lib_gfx942": {f"{FLAT}/a_gfx942.dat": b""}},
            "b": {"base_lib_generic": sdk("c", "1", "gfx1100"), "blas_lib_gfx1100": {f"{FLAT}/a_gfx1100.dat": b""}},
        }
    )

    assert text == (
        f"a/base_lib_generic/blas/stage/{DIST_INFO}: lists gfx950, but a has no files for it; "
        "expected a file for each target. Check that the build is complete. To merge the shards anyway, use "
        "--allow-missing."
    )


def test_a_declared_target_must_have_files_in_its_own_shard(refused: Callable[..., str]) -> None:
    text = refused(
        {
            "a": {"base_lib_generic": sdk("c", "1", "gfx942;gfx950"), "blas_lib_gfx942": {f"{FLAT}/a_gfx942.dat": b""}},
            "b": {"base_lib_generic": sdk("c", "1", "gfx950"), "blas_lib_gfx950": {f"{FLAT}/a_gfx950.dat": b""}},
        }
    )

    assert f"a/base_lib_generic/blas/stage/{DIST_INFO}: lists gfx950, but a has no files for it; " in text


def test_a_target_missing_from_an_artifact_is_reported(merge: Merge, tmp_path: Path) -> None:
    report = merge(
        {
            "a": {
                "blas_lib_gfx942": {f"{FLAT}/x_gfx942.dat": b""},
                "miopen_lib_gfx942": {"share/miopen/db/gfx942.kdb": b""},
            },
            "b": {"blas_lib_gfx1100": {f"{FLAT}/x_gfx1100.dat": b""}},
        }
    )

    assert report.missing == (MissingTarget("miopen_lib", "gfx1100", (str(tmp_path / "b"),)),)


def test_a_database_for_another_gpu_than_in_its_name_is_refused(refused: Callable[..., str], tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE cache_v1 (arch TEXT)")
        database.execute("INSERT INTO cache_v1 VALUES ('gfx906')")
    database.close()
    cache = "lib/rocfft/rocfft_kernel_cache_gfx942.db"

    text = refused({"a": {"fft_lib_generic": {cache: path.read_bytes()}}, "b": {"x_lib_generic": {}}})

    assert f"{cache}: is named for gfx942, but contains code for gfx906" in text


def test_unrecognized_kernel_files_are_listed(merge: Merge) -> None:
    report = merge(
        {"a": {"blas_lib_generic": {"lib/hipblaslt/library/gfx1250v0/x.co": b""}}, "b": {"x_lib_generic": {}}}
    )

    assert report.unknown == ("lib/hipblaslt/library/gfx1250v0/x.co",)


def test_the_result_can_consist_of_hard_links(build: Callable[[Shards], list[Path]], tmp_path: Path) -> None:
    folders = build(SPLIT)
    with opened_merge(folders, MergeOptions(str(folders[0]))) as plan:
        write_merge(plan, tmp_path / "out", hard_links=True)

    kernel = f"blas_lib_gfx942/blas/stage/{FLAT}/x_gfx942.co"
    assert (tmp_path / "out" / kernel).samefile(tmp_path / "a" / kernel)


def test_a_primary_outside_the_shards_is_refused(build: Callable[[Shards], list[Path]], tmp_path: Path) -> None:
    folders = build(SPLIT)
    with (
        pytest.raises(RocwheelError, match="which is not one of the shards"),
        opened_merge(folders, MergeOptions(str(tmp_path))),
    ):
        pass


def test_a_single_shard_is_refused(build: Callable[[Shards], list[Path]]) -> None:
    folders = build(SPLIT)
    with (
        pytest.raises(RocwheelError, match="are all in the same folder"),
        opened_merge([folders[0], folders[0]], MergeOptions(str(folders[0]))),
    ):
        pass


def test_an_output_folder_inside_a_shard_is_refused(build: Callable[[Shards], list[Path]]) -> None:
    folders = build(SPLIT)
    with opened_merge(folders, MergeOptions(str(folders[0]))) as plan:
        for folder in folders:
            with pytest.raises(
                InputError,
                match=r"out: is a folder in .*, which this command copies; expected a folder outside ",
            ):
                write_merge(plan, folder / "deep/out")
            assert not (folder / "deep").exists()


def test_a_component_without_device_code_gets_no_target_artifacts(merge: Merge, tmp_path: Path) -> None:
    plain = {"hip_lib_generic": {"lib/libamdhip64.so": b"host"}}
    merge({shard: {**SPLIT[shard], **plain} for shard in SPLIT})
    made = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert made == ["blas_lib_generic", "blas_lib_gfx1100", "blas_lib_gfx90a", "blas_lib_gfx942", "hip_lib_generic"]
    assert all((tmp_path / "out" / name / "artifact_manifest.txt").read_text() == "blas/stage\n" for name in made)


def test_kpack_archives_of_a_target_come_from_the_shard_with_the_target(merge: Merge, tmp_path: Path) -> None:
    archives = {name: make_kpack({("lib/x.so", 0, name): b"code"}) for name in ("gfx906", "gfx1030", "gfx1031")}
    shards = {
        shard: {"blas_lib_generic": {"lib/x.so": b"host"}, f"blas_lib_{name}": {f".kpack/x_{name}.kpack": content}}
        for (name, content), shard in zip(archives.items(), "abc", strict=True)
    }
    merge(shards)
    assert written(tmp_path) == {
        "blas_lib_generic": {"lib/x.so": b"host"},
        **{f"blas_lib_{name}": {f".kpack/x_{name}.kpack": content} for name, content in archives.items()},
    }


def test_a_killed_merge_leaves_no_output_folder(build: Callable[[Shards], list[Path]], tmp_path: Path) -> None:
    folders = build(SPLIT)
    program = f"""
import sys, time
from pathlib import Path
import rocwheel.artifacts.merge as module
write = module.write_artifact
def slow(*arguments, **options):
    write(*arguments, **options)
    print("written", flush=True)
    time.sleep(60)
module.write_artifact = slow
with module.opened_merge({folders!r}, module.MergeOptions({str(folders[0])!r})) as plan:
    module.write_merge(plan, Path({str(tmp_path / "out")!r}))
""".replace("PosixPath", "Path")
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"written\n"
    os.kill(process.pid, SIGKILL)
    process.wait()
    process.stdout.close()

    assert not (tmp_path / "out").exists()
    with opened_merge(folders, MergeOptions(str(folders[0]))) as plan:
        write_merge(plan, tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "out"]
