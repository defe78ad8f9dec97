"""Tests of `rocwheel.device.retarget_tree`."""

from __future__ import annotations

import json
import shutil
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given, settings

from rocwheel.binary.bundles.device_code import iter_code_sources
from rocwheel.binary.bundles.storage import Storage
from rocwheel.binary.kpack.archive import Scheme, read_archive
from rocwheel.core.errors import ProblemsError, RocwheelError
from rocwheel.core.reading import FileRange, join_data
from rocwheel.device.edit_bundles import bundle_parts
from rocwheel.device.retarget_tree import RetargetOrder, retarget_archive, retarget_files
from rocwheel.targets.retarget_pairs import parse_pairs
from tests.support.command_line import rocwheel
from tests.support.damage import damaged
from tests.support.example_counts import examples
from tests.support.fat_libraries import build_fat_library
from tests.support.kpack_files import Memory, make_kpack
from tests.support.kpack_reader import Archive
from tests.support.places import FIXTURES
from tests.support.similar_code import bundle_for, code_for

if TYPE_CHECKING:
    from rocwheel.device.retarget import RetargetedTree


TENSILE = "lib/rocblas/library"
ROCFFT = "the database contains the kernels of all targets in one build; newer rocFFT has a database for each target"
UNKNOWN = "not offered to gfx1031: no rule describes how the library finds the file"
LAZY = f"{TENSILE}/TensileLibrary_lazy_gfx1030.dat"
FALLBACK = f"{TENSILE}/TensileLibrary_Type_SS_fallback_gfx1030.hsaco"
KERNEL = f"{TENSILE}/TensileLibrary_Type_SS_gfx1030.co"
TABLE = {
    "processor": "gfx1030",
    "library": ["TensileLibrary_Type_SS_gfx1030", "TensileLibrary_Type_SS_fallback"],
    "scale": 0.5,
    "text": "about gfx1030",
}


def retarget(root: Path, pairs: str, *, compress: bool = False) -> RetargetedTree:
    files = {str(path.relative_to(root)): FileRange.whole(path) for path in root.rglob("*") if path.is_file()}
    order = RetargetOrder(pairs=parse_pairs(pairs), storage=Storage(compress=compress))
    return retarget_files(files, order, root.parent / "made")


def put(root: Path, files: dict[str, bytes]) -> Path:
    for path, data in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
    return root


def archive(*keys: str) -> bytes:
    return make_kpack({("lib/libx.so", 0, "|".join(keys)): code_for("gfx1030")})


def test_an_archive_gets_a_copy_for_each_new_target(tmp_path: Path) -> None:
    made = retarget(put(tmp_path / "tree", {".kpack/x_gfx1030.kpack": archive("gfx1030")}), "gfx1030=gfx1031,gfx1036")
    assert [(file.path, file.origin, file.agent) for file in made.added] == [
        (".kpack/x_gfx1031.kpack", ".kpack/x_gfx1030.kpack", "gfx1031"),
        (".kpack/x_gfx1036.kpack", ".kpack/x_gfx1030.kpack", "gfx1036"),
    ]
    for file in made.added:
        copy = Archive(Path(file.content.path))
        assert copy.targets == [file.agent]
        assert copy.kernel("lib/libx.so#0", file.agent) == code_for(file.agent)
        assert copy.kernel("lib/libx.so#0", "gfx1030") is None


def test_bundles_in_a_library_get_new_entries(tmp_path: Path) -> None:
    build_fat_library(tmp_path / "tree/lib/libx.so", [bundle_for("gfx1030", "gfx1034"), bundle_for("gfx1030")])
    made = retarget(tmp_path / "tree", "gfx1030=gfx1031", compress=True)
    assert made.refused == ()
    data = memoryview(made.edited["lib/libx.so"].read())
    targets = [[str(target) for target in source.bundle.targets] for source in iter_code_sources(data, name="x")]
    assert targets == [["gfx1030", "gfx1031", "gfx1034"], ["gfx1030", "gfx1031"]]


def test_kernel_files_are_copied_under_the_names_that_libraries_look_up(tmp_path: Path) -> None:
    files = {
        LAZY: msgspec.msgpack.encode(TABLE),
        f"{LAZY}.zlib": zlib.compress(msgspec.msgpack.encode(TABLE)),
        KERNEL: code_for("gfx1030"),
        FALLBACK: bundle_for("gfx1030"),
        f"{TENSILE}/TensileLibrary_Type_SS_fallback.dat": b"",
    }
    made = retarget(put(tmp_path / "tree", files), "gfx1030=gfx1031")
    copies = {file.path.rpartition("/")[2]: file.content.read() for file in made.added}
    table = {
        **TABLE,
        "processor": "gfx1031",
        "library": ["TensileLibrary_Type_SS_gfx1031", "TensileLibrary_Type_SS_fallback"],
    }
    assert made.refused == ()
    assert sorted(copies) == [
        "TensileLibrary_Type_SS_fallback_gfx1031.hsaco",
        "TensileLibrary_Type_SS_gfx1031.co",
        "TensileLibrary_lazy_gfx1031.dat",
        "TensileLibrary_lazy_gfx1031.dat.zlib",
    ]
    assert msgspec.msgpack.decode(copies["TensileLibrary_lazy_gfx1031.dat"]) == table
    assert msgspec.msgpack.decode(zlib.decompress(copies["TensileLibrary_lazy_gfx1031.dat.zlib"])) == table
    assert copies["TensileLibrary_Type_SS_gfx1031.co"] == code_for("gfx1031")
    assert copies["TensileLibrary_Type_SS_fallback_gfx1031.hsaco"] == bundle_for("gfx1031")


def test_a_folder_named_for_the_target_is_copied(tmp_path: Path) -> None:
    files = {"lib/hipblaslt/library/gfx1030/extop_gfx1030.co": code_for("gfx1030")}
    made = retarget(put(tmp_path / "tree", files), "gfx1030=gfx1032")
    assert [file.path for file in made.added] == ["lib/hipblaslt/library/gfx1032/extop_gfx1032.co"]


def refusals(made: RetargetedTree) -> list[str]:
    assert not made.added
    assert not made.edited
    return [str(refusal) for refusal in made.refused]


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        (
            "share/miopen/db/gfx1030_36.kdb",
            "MIOpen looks up kernels and solutions in its databases by target and compute units",
        ),
        ("lib/rocfft/rocfft_kernel_cache_gfx1030.db", "the database stores its kernels by target"),
        ("lib/libMIOpenCKx_gfx1030.so", "MIOpen opens the file only for the targets that its build lists"),
    ],
)
def test_files_not_looked_up_only_by_name_are_listed_with_the_reason(tmp_path: Path, path: str, reason: str) -> None:
    made = retarget(put(tmp_path / "tree", {path: b"data"}), "gfx1030=gfx1031")
    assert refusals(made) == [f"{path}: not offered to gfx1031: {reason}"]


def test_existing_files_of_the_new_target_are_unchanged(tmp_path: Path) -> None:
    files = {
        KERNEL: code_for("gfx1030"),
        KERNEL.replace("1030", "1031"): code_for("gfx1031"),
        ".kpack/x_gfx1030.kpack": archive("gfx1030"),
        ".kpack/x_gfx1031.kpack": b"KPAK",
    }
    (tmp_path / "tree").mkdir()
    files.pop(".kpack/x_gfx1031.kpack")
    files[".kpack/x_gfx1031.kpack"] = make_kpack({("lib/libx.so", 0, "gfx1031"): code_for("gfx1031")})
    assert refusals(retarget(put(tmp_path / "tree", files), "gfx1030=gfx1031")) == [
        ".kpack/x_gfx1030.kpack: gfx1031 has its own code, .kpack/x_gfx1031.kpack",
        f"{KERNEL}: not offered to gfx1031: the target has its own files, such as {KERNEL.replace('1030', '1031')}",
    ]


def test_a_library_without_room_is_listed_with_the_suggestion_to_compress(tmp_path: Path) -> None:
    size = len(bundle_for("gfx1030"))
    build_fat_library(tmp_path / "tree/lib/libx.so", [bundle_for("gfx1030")])
    [refusal] = refusals(retarget(tmp_path / "tree", "gfx1030=extended"))
    assert refusal.startswith("lib/libx.so: needs ")
    assert refusal.endswith("Compress the device code to make room (--compress).")
    assert size < 20_000


def test_an_incomplete_copy_is_not_made(tmp_path: Path) -> None:
    codes = {("lib/libx.so", 0, "gfx1030"): code_for("gfx1030"), ("lib/libx.so", 1, "gfx1030"): code_for("gfx1034")}
    files = {
        ".kpack/x_gfx1030.kpack": make_kpack(codes), KERNEL: code_for("gfx1030"), LAZY: b"\xc1",
    }  # fmt: skip
    [archive, table] = refusals(retarget(put(tmp_path / "tree", files), "gfx1030=gfx1031"))
    assert archive.startswith(
        ".kpack/x_gfx1030.kpack: has code for gfx1034; expected code that gfx1031 runs as gfx1030"
    )
    assert table.startswith(f"{LAZY}: can't be read (")


@pytest.mark.parametrize(
    ("path", "data", "reason"),
    [
        ("lib/rocfft/library/rocfft_kernels_gfx1030.hsaco", bundle_for("gfx1030"), UNKNOWN),
        ("lib/other/library/kernels_gfx1030.co", code_for("gfx1030"), UNKNOWN),
        ("lib/other/table_gfx1030.dat", b"table", UNKNOWN),
        (
            "lib/rocfft_kernel_cache.db",
            b"gfx1030" + bytes(9),
            f"lists gfx1030 but not gfx1031: {ROCFFT}",
        ),
        (
            "lib/hipblaslt/library/hipblasltExtOpLibrary.dat",
            msgspec.msgpack.encode({"gfx1030": {}}),
            "lists gfx1030 but not gfx1031: the file maps each target to its kernels",
        ),
    ],
)
def test_a_file_that_rocwheel_cannot_adapt_to_the_new_target_is_reported(
    tmp_path: Path, path: str, data: bytes, reason: str
) -> None:
    made = retarget(put(tmp_path / "tree", {path: data}), "gfx1030=gfx1031")
    assert refusals(made) == [f"{path}: {reason}"]
    assert made.lacking == {"gfx1031": (path,)}


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("lib/rocfft_kernel_cache.db", b"gfx1030\0gfx1031"),
        ("lib/rocblas/library/TensileManifest.txt", b"Kernels_gfx1030.co"),
        ("lib/other/table_gfx1031.dat", b"gfx1030"),
    ],
)
def test_a_file_that_needs_no_copy_is_not_mentioned(tmp_path: Path, path: str, data: bytes) -> None:
    assert refusals(retarget(put(tmp_path / "tree", {path: data}), "gfx1030=gfx1031")) == []


def test_bundles_of_a_library_without_matching_code_are_counted(tmp_path: Path) -> None:
    build_fat_library(tmp_path / "tree/lib/libx.so", [bundle_for("gfx1030"), bundle_for("gfx1034")])
    made = retarget(tmp_path / "tree", "gfx1030=gfx1031", compress=True)
    assert [str(refusal) for refusal in made.refused] == [
        "lib/libx.so: 1 of 2 bundles has no code for gfx1030, so no code for gfx1031"
    ]


def test_an_archive_that_is_not_named_for_its_target_is_listed(tmp_path: Path) -> None:
    made = retarget(put(tmp_path / "tree", {".kpack/all.kpack": archive("gfx1030")}), "gfx1030=gfx1031")
    assert refusals(made) == [".kpack/all.kpack: is an archive with code for gfx1030, but isn't named for it"]


def test_files_without_matching_code_are_not_mentioned(tmp_path: Path) -> None:
    build_fat_library(tmp_path / "tree/lib/libx.so", [bundle_for("gfx1034")])
    files = {"readme_gfx1030.txt": b"text", KERNEL.replace("1030", "1034"): code_for("gfx1034")}
    assert refusals(retarget(put(tmp_path / "tree", files), "gfx1030=gfx1031")) == []


def test_all_damaged_files_are_reported(tmp_path: Path) -> None:
    damage = b"KPAK" + bytes(96)
    files = {".kpack/x_gfx1030.kpack": damage, ".kpack/y_gfx1030.kpack": damage}
    with pytest.raises(ProblemsError) as caught:
        retarget(put(tmp_path / "tree", files), "gfx1030=gfx1031")
    assert [str(problem).partition(":")[0] for problem in caught.value.problems] == [*files]


ARCHIVE = ".kpack/x_gfx1030.kpack"
KERNELS = "lib/rocblas/library/Kernels.so-000-gfx1030.hsaco"


def tree(root: Path) -> Path:
    build_fat_library(root / "lib/libx.so.1", [bundle_for("gfx1030")])
    (root / "lib/libx.so").symlink_to("libx.so.1")
    for path, data in {
        ARCHIVE: make_kpack({("lib/liby.so", 0, "gfx1030"): code_for("gfx1030")}),
        KERNELS: bundle_for("gfx1030"),
        "share/miopen/db/gfx1030_36.kdb": b"database",
        "readme.txt": b"text",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
    (root / ARCHIVE).chmod(0o600)
    return root


def test_a_folder_is_copied_with_code_for_more_gpus(tmp_path: Path) -> None:
    output = tmp_path / "out"
    done = rocwheel(
        "device", "retarget", "gfx1030=gfx1031", str(tree(tmp_path / "in")), "-o", str(output), "--compress"
    )
    assert done.returncode == 0
    assert done.stdout.splitlines() == [f"{output}: 1 file edited, 2 files added, 4 files copied"]
    assert "warning: share/miopen/db/gfx1030_36.kdb: not offered to gfx1031: MIOpen looks up kernels" in done.stderr
    assert sorted(str(path.relative_to(output)) for path in output.rglob("*") if not path.is_dir()) == [
        ".kpack/x_gfx1030.kpack",
        ".kpack/x_gfx1031.kpack",
        "lib/libx.so",
        "lib/libx.so.1",
        "lib/rocblas/library/Kernels.so-000-gfx1030.hsaco",
        "lib/rocblas/library/Kernels.so-000-gfx1031.hsaco",
        "readme.txt",
        "share/miopen/db/gfx1030_36.kdb",
    ]
    assert Archive(output / ".kpack/x_gfx1031.kpack").kernel("lib/liby.so#0", "gfx1031") == code_for("gfx1031")
    assert (output / ".kpack/x_gfx1031.kpack").stat().st_mode & 0o777 == 0o600
    for gpu, status in (("gfx1031", 0), ("gfx1032", 1)):
        assert rocwheel("targets", "runs-on", gpu, str(output / "lib/libx.so.1")).returncode == status


def test_the_report_on_a_folder_lists_each_new_file_with_its_origin(tmp_path: Path) -> None:
    source = str(tree(tmp_path / "in"))
    done = rocwheel(
        "device", "retarget", "gfx1030=gfx1031", source, "-o", str(tmp_path / "out"), "--compress", "--json"
    )
    report = json.loads(done.stdout)
    assert report["schema"] == "rocwheel.device-retarget/1"
    assert report["edited"] == ["lib/libx.so.1"]
    assert report["added"][0] == {"path": ".kpack/x_gfx1031.kpack", "origin": ARCHIVE, "target": "gfx1031"}
    assert report["copied"] == 4


def test_libraries_in_a_folder_are_trimmed_and_programs_are_edited_in_place(tmp_path: Path) -> None:
    source, output = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    for name in ("v22/libtwo.plain.so", "hip/realcompress", "v22/saxpy.hipfb"):
        shutil.copy(FIXTURES / name, source)
    done = rocwheel(
        "device", "retarget", "gfx1030=gfx1031", str(source), "-o", str(output), "--compress", "--trim", "--json"
    )
    report = json.loads(done.stdout)
    assert report["edited"] == ["libtwo.plain.so", "realcompress", "saxpy.hipfb"]
    [warning] = report["warnings"]
    assert warning == (
        "not trimmed: realcompress: offset 0x0: a program or an object file; expected a shared library. Leave the "
        "file unchanged. In a wheel, the free space adds almost nothing to the size."
    )
    sizes = {path.name: (path.stat().st_size, (output / path.name).stat().st_size) for path in source.iterdir()}
    assert sizes["libtwo.plain.so"] == (46592, 17920)
    assert sizes["realcompress"] == (37720, 37720)
    assert rocwheel("targets", "runs-on", "gfx1031", str(output / "libtwo.plain.so")).returncode == 0


def test_an_archive_is_retargeted_to_another_gpu(tmp_path: Path) -> None:
    source, output = tree(tmp_path / "in") / ARCHIVE, tmp_path / "x_gfx1032.kpack"
    done = rocwheel("device", "retarget", "gfx1030=gfx1032", str(source), "-o", str(output))
    assert done.stdout == f"{output}: the code from {source}, for gfx1032\n"
    assert Archive(output).kernel("lib/liby.so#0", "gfx1032") == code_for("gfx1032")


@pytest.mark.parametrize(
    ("pair", "said"),
    [
        (
            "gfx1030=gfx1031,gfx1032",
            "can't be retargeted to gfx1031, gfx1032 at the same time; expected one archive for each target",
        ),
        ("gfx1034=gfx1035", "no code for gfx1034 to offer to other GPUs; expected one of its targets gfx1030"),
    ],
)
def test_an_archive_that_cannot_be_retargeted_is_refused(tmp_path: Path, pair: str, said: str) -> None:
    source = tree(tmp_path / "in") / ARCHIVE
    done = rocwheel("device", "retarget", pair, str(source), "-o", str(tmp_path / "out.kpack"))
    assert done.returncode == 2
    assert said in done.stderr
    assert not (tmp_path / "out.kpack").exists()


def test_an_archive_is_not_written_under_a_name_for_the_wrong_gpu(tmp_path: Path) -> None:
    source, output = tree(tmp_path / "in") / ARCHIVE, tmp_path / "x_gfx1030.kpack"
    done = rocwheel("device", "retarget", "gfx1030=gfx1031", str(source), "-o", str(output))
    assert done.returncode == 2
    assert done.stderr == (
        f"error: {output}: is named for gfx1030, so runtimes wouldn't find the code for gfx1031; "
        "expected a name with gfx1031. Name the archive x_gfx1031.kpack.\n"
    )
    assert not output.exists()


def test_no_output_is_left_when_a_folder_has_a_damaged_file(tmp_path: Path) -> None:
    source = tree(tmp_path / "in")
    (source / ARCHIVE).write_bytes(b"KPAK" + bytes(96))
    done = rocwheel("device", "retarget", "gfx1030=gfx1031", str(source), "-o", str(tmp_path / "out"))
    assert done.returncode == 2
    assert f"error: {ARCHIVE}: offset 0x4: a kpack archive with version 0" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_retargeted_archives_can_be_joined_with_their_split_library(tmp_path: Path) -> None:
    build_fat_library(tmp_path / "in/lib/libx.so", [bundle_for("gfx1030", "gfx1034"), bundle_for("gfx1030")])
    out, more, fat = tmp_path / "out", tmp_path / "more", tmp_path / "fat"
    for words in (
        ["split", tmp_path / "in", "-o", out],
        ["retarget", "gfx1030=gfx1031", out / "gfx1030", "-o", more],
        ["join", out / "host", out / "gfx1034", more, "-o", fat],
    ):
        assert rocwheel("device", *map(str, words)).returncode == 0
    data = memoryview((fat / "lib/libx.so").read_bytes())
    found = [
        {str(part.target): join_data(part.payload) for part in bundle_parts(source.view, source.bundle) if part.target}
        for source in iter_code_sources(data, name="libx.so")
    ]
    assert found == [
        {target: code_for(target) for target in ("gfx1030", "gfx1034", "gfx1031")},
        {target: code_for(target) for target in ("gfx1030", "gfx1031")},
    ]


CODE = (FIXTURES / "elf/gfx906.co").read_bytes()
ARCHIVES = [make_kpack({("lib/libx.so", unit, "gfx906"): CODE for unit in range(2)}, scheme=s) for s in Scheme]


def keys_of(content: bytes) -> set[tuple[str, int | None, str]]:
    entries = read_archive(memoryview(content), name="x").entries
    return {(entry.binary, entry.index, entry.target) for entry in entries}


@given(damaged(ARCHIVES))
@settings(max_examples=examples(200))
def test_a_damaged_archive_is_retargeted_completely_or_refused_with_its_name(content: bytes) -> None:
    [pair] = parse_pairs("gfx906=gfx900", force=True)
    made = Memory()
    try:
        retarget_archive(memoryview(content), made, pair, name="x.kpack")
    except RocwheelError as e:
        assert str(e).startswith("x.kpack")  # noqa: PT017
    else:
        assert keys_of(made.getvalue()) == {(*key, "gfx900") for *key, target in keys_of(content) if target == "gfx906"}
