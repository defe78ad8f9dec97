"""Copies of folders and archives that are offered to more GPUs, by the command line."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.bundles.device_code import iter_code_sources
from rocwheel.core.reading import join_data
from rocwheel.device.editing.bundle import bundle_parts
from tests.support.command_line import rocwheel
from tests.support.fat_libraries import build_fat_library
from tests.support.kpack_files import make_kpack
from tests.support.kpack_reader import Archive
from tests.support.places import FIXTURES
from tests.support.similar_code import bundle_for, code_for

if TYPE_CHECKING:
    from pathlib import Path

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


def test_a_folder_is_copied_with_its_code_for_more_gpus(tmp_path: Path) -> None:
    output = tmp_path / "out"
    done = rocwheel(
        "device", "retarget", "gfx1030=gfx1031", str(tree(tmp_path / "in")), "-o", str(output), "--compress"
    )
    assert done.returncode == 0
    assert done.stdout.splitlines() == [f"{output}: 1 file edited, 2 files added, 4 files copied"]
    assert "warning: share/miopen/db/gfx1030_36.kdb: not offered to gfx1031: its databases hold" in done.stderr
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


def test_a_folder_s_report_says_what_was_made_of_what(tmp_path: Path) -> None:
    source = str(tree(tmp_path / "in"))
    done = rocwheel(
        "device", "retarget", "gfx1030=gfx1031", source, "-o", str(tmp_path / "out"), "--compress", "--json"
    )
    report = json.loads(done.stdout)
    assert report["schema"] == "rocwheel.device-retarget/1"
    assert report["edited"] == ["lib/libx.so.1"]
    assert report["added"][0] == {"path": ".kpack/x_gfx1031.kpack", "origin": ARCHIVE, "target": "gfx1031"}
    assert report["copied"] == 4


def test_libraries_of_a_folder_are_trimmed_and_programs_are_edited_in_place(tmp_path: Path) -> None:
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
        "not trimmed: realcompress: offset 0x0: a program or an object file; expected a shared library. The free space "
        "can't be taken out of it; in a wheel it costs next to nothing."
    )
    sizes = {path.name: (path.stat().st_size, (output / path.name).stat().st_size) for path in source.iterdir()}
    assert sizes["libtwo.plain.so"] == (46592, 17920)
    assert sizes["realcompress"] == (37720, 37720)
    assert rocwheel("targets", "runs-on", "gfx1031", str(output / "libtwo.plain.so")).returncode == 0


def test_an_archive_becomes_one_for_the_other_gpu(tmp_path: Path) -> None:
    source, output = tree(tmp_path / "in") / ARCHIVE, tmp_path / "x_gfx1032.kpack"
    done = rocwheel("device", "retarget", "gfx1030=gfx1032", str(source), "-o", str(output))
    assert done.stdout == f"{output}: the code of {source}, for gfx1032\n"
    assert Archive(output).kernel("lib/liby.so#0", "gfx1032") == code_for("gfx1032")


@pytest.mark.parametrize(
    ("pair", "said"),
    [
        ("gfx1030=gfx1031,gfx1032", "can't be for gfx1031, gfx1032 at once; expected an archive for each target"),
        ("gfx1034=gfx1035", "no code for gfx1034 to offer to other GPUs; expected one of its targets gfx1030"),
    ],
)
def test_an_archive_that_can_t_become_another_is_refused(tmp_path: Path, pair: str, said: str) -> None:
    source = tree(tmp_path / "in") / ARCHIVE
    done = rocwheel("device", "retarget", pair, str(source), "-o", str(tmp_path / "out.kpack"))
    assert done.returncode == 2
    assert said in done.stderr
    assert not (tmp_path / "out.kpack").exists()


def test_an_archive_is_not_written_under_the_name_of_another_gpu(tmp_path: Path) -> None:
    source, output = tree(tmp_path / "in") / ARCHIVE, tmp_path / "x_gfx1030.kpack"
    done = rocwheel("device", "retarget", "gfx1030=gfx1031", str(source), "-o", str(output))
    assert done.returncode == 2
    assert done.stderr == (
        f"error: {output}: is named for gfx1030, so no runtime would find the code for gfx1031 in it; "
        "expected a name with gfx1031. Call it x_gfx1031.kpack.\n"
    )
    assert not output.exists()


def test_nothing_is_left_when_a_folder_has_a_damaged_file(tmp_path: Path) -> None:
    source = tree(tmp_path / "in")
    (source / ARCHIVE).write_bytes(b"KPAK" + bytes(96))
    done = rocwheel("device", "retarget", "gfx1030=gfx1031", str(source), "-o", str(tmp_path / "out"))
    assert done.returncode == 2
    assert f"error: {ARCHIVE}: offset 0x4: a kpack archive of version 0" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_retargeted_archives_of_a_split_library_are_joined_with_it(tmp_path: Path) -> None:
    build_fat_library(tmp_path / "in/lib/libx.so", [bundle_for("gfx1030", "gfx1034"), bundle_for("gfx1030")])
    out, more, fat = tmp_path / "out", tmp_path / "more", tmp_path / "fat"
    for words in (
        ["split", tmp_path / "in", "-d", out],
        ["retarget", "gfx1030=gfx1031", out / "gfx1030", "-o", more],
        ["join", out / "host", out / "gfx1034", more, "-d", fat],
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
