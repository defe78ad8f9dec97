"""``rocwheel device split`` and ``join`` as a user runs them."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.support.fat_libraries import build_fat_library, make_bundle
from tests.support.kpack_reader import load_unit, units_of
from tests.support.places import FIXTURES
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run

pytestmark = pytest.mark.slow

DEB_MEMBER = b"debian-binary".ljust(16) + b"0".ljust(32) + b"4".ljust(10) + b"`\n2.0\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a tree with a fat library of two units, the second of which lacks a target."""
    build_fat_library(tmp_path / "tree/lib/libx.so", [make_bundle(0, "gfx906 gfx90a"), make_bundle(1, "gfx906")])
    (tmp_path / "tree/lib/odd_gfx906.hsaco").write_bytes(b"")
    return tmp_path / "tree"


def warnings_in(err: str) -> list[str]:
    return [line for line in err.splitlines() if line.startswith("warning: ")]


def test_folders_and_what_stays_are_printed(run: Run, tree: Path, tmp_path: Path) -> None:
    status, out, _ = run("device", "split", tree, "--dest-dir", tmp_path / "out")
    assert status == 0
    assert out.replace(str(tmp_path), "").splitlines()[:2] == [
        "stays in the host folder: lib/odd_gfx906.hsaco: a kernel file that no rule knows",
        "/out/host: 2 files, 1 library split, on disk 29.8 kB -> 13.5 kB",
    ]
    assert [line.split(",")[0] for line in out.replace(str(tmp_path), "").splitlines()[2:]] == [
        "/out/gfx906: 2 archives",
        "/out/gfx90a: 1 archive",
    ]


def test_a_level_for_code_that_is_not_compressed_is_refused(run: Run, tree: Path, tmp_path: Path) -> None:
    done = run("device", "split", tree, "--dest-dir", tmp_path / "out", "--scheme", "none", "--level", "5")
    message = "error: --level: is for code that is compressed, and --scheme none stores it; expected --scheme"
    assert (done.status, done.stderr) == (2, f"{message} zstd-per-kernel\n")
    assert not (tmp_path / "out").exists()


def test_a_dry_run_prints_the_document_and_writes_nothing(run: Run, tree: Path, tmp_path: Path) -> None:
    status, out, _ = run("device", "split", tree, "--dest-dir", tmp_path / "out", "--dry-run", "--json")
    document = json.loads(out)
    assert (status, document["schema"], document["targets"]) == (
        0,
        "rocwheel.device-split/1",
        [
            {"target": "gfx906", "archives": 2, "files": 0, "size": None},
            {"target": "gfx90a", "archives": 1, "files": 0, "size": None},
        ],
    )
    assert not (tmp_path / "out").exists()


def test_joining_some_targets_says_which_are_missing(run: Run, tree: Path, tmp_path: Path) -> None:
    run("device", "split", tree, "--dest-dir", tmp_path / "out")
    status, out, _ = run(
        "device", "join", tmp_path / "out/host", tmp_path / "out/gfx906", "--dest-dir", tmp_path / "fat"
    )
    assert status == 0
    assert out.replace(str(tmp_path), "").splitlines() == [
        "/fat/lib/libx.so: 2 bundles, 5.0 kB for gfx906, in a file of 29.8 kB; missing: gfx90a",
        "/fat: 1 library joined, 1 other file copied",
    ]


def test_a_dry_run_prints_no_sizes_of_archives(run: Run, tree: Path, tmp_path: Path) -> None:
    kernels = tree / "lib/rocblas/library/Kernels_gfx1030.hsaco"
    kernels.parent.mkdir(parents=True)
    kernels.write_bytes(bytes(3000))
    status, out, _ = run("device", "split", tree, "--dest-dir", tmp_path / "out", "--dry-run")
    assert status == 0
    assert out.replace(str(tmp_path), "").splitlines()[1:] == [
        "/out/host: 2 files, 1 library split, on disk 29.8 kB -> 13.5 kB",
        "/out/gfx906: 2 archives",
        "/out/gfx90a: 1 archive",
        "/out/gfx1030: 1 file, 3.0 kB",
    ]


def test_libraries_without_code_for_a_target_that_is_asked_for_are_named(run: Run, tree: Path, tmp_path: Path) -> None:
    build_fat_library(tree / "lib/liby.so", [make_bundle(0, "gfx1030")])
    order = ("--targets", "gfx90a,gfx1030", "--dest-dir", tmp_path / "out")
    status, _, err = run("device", "split", tree, *order)
    assert (status, warnings_in(err)) == (
        0,
        ["warning: no code for gfx90a in lib/liby.so", "warning: no code for gfx1030 in lib/libx.so"],
    )
    status, out, _ = run("device", "split", tree, *order, "--dry-run", "--json")
    assert json.loads(out)["lacking"] == [
        {"target": "gfx90a", "paths": ["lib/liby.so"]},
        {"target": "gfx1030", "paths": ["lib/libx.so"]},
    ]


def test_a_library_that_was_left_without_code_is_joined_with_empty_bundles(
    run: Run, tree: Path, tmp_path: Path
) -> None:
    build_fat_library(tree / "lib/liby.so", [make_bundle(0, "gfx1030")])
    run("device", "split", tree, "--targets", "gfx90a", "--dest-dir", tmp_path / "out")
    status, out, _ = run(
        "device", "join", tmp_path / "out/host", tmp_path / "out/gfx90a", "--dest-dir", tmp_path / "fat"
    )
    assert (status, out.replace(str(tmp_path), "").splitlines()) == (
        0,
        [
            "/fat/lib/libx.so: 2 bundles, 2.5 kB for gfx90a, in a file of 25.8 kB",
            "/fat/lib/liby.so: 1 bundle, no device code, in a file of 17.5 kB",
            "/fat: 2 libraries joined, 1 other file copied",
        ],
    )


def test_markers_that_lead_nowhere_are_named_when_a_split_tree_is_split(run: Run, tree: Path, tmp_path: Path) -> None:
    run("device", "split", tree, "--dest-dir", tmp_path / "out")
    status, out, err = run("device", "split", tmp_path / "out/host", "--dest-dir", tmp_path / "again")
    assert (status, warnings_in(err.replace(str(tmp_path), "")), out.splitlines()[-1]) == (
        0,
        [
            (
                "warning: /out/host/lib/libx.so: was split before, and none of these archives of its code is there: "
                "../.kpack/libx.so_@GFXARCH@.kpack, ../.kpack/libx.so-part2_@GFXARCH@.kpack"
            ),
        ],
        f"{tmp_path}/again/host: 2 files, no library split",
    )


def test_a_device_that_is_not_there_is_named(run: Run, tree: Path, tmp_path: Path) -> None:
    run("device", "split", tree, "--dest-dir", tmp_path / "out")
    places = [str(tmp_path / name) for name in ("nothere", "neither")]
    status, _, err = run("device", "join", tmp_path / "out/host", *places, "--dest-dir", tmp_path / "fat")
    assert status == 2
    assert [f"{place}: can't be read (No such file or directory)" in err for place in places] == [True, True]
    assert not (tmp_path / "fat").exists()


def test_a_device_that_is_a_file_is_refused_with_what_to_give_instead(run: Run, tree: Path, tmp_path: Path) -> None:
    run("device", "split", tree, "--dest-dir", tmp_path / "out")
    archive = tmp_path / "out/gfx906/.kpack/libx.so_gfx906.kpack"
    library = tmp_path / "out/host/lib/libx.so"
    wheel = make_wheel(tmp_path, "x", {})
    host = tmp_path / "out/host"
    status, _, err = run("device", "join", host, archive, library, wheel, "--dest-dir", tmp_path / "fat")
    assert status == 2
    assert err.replace(str(tmp_path), "").splitlines()[1:] == [
        (
            "  /out/gfx906/.kpack/libx.so_gfx906.kpack: is an archive by itself; expected a folder of a target. "
            "Give the folder that is laid over the host, such as /out/gfx906."
        ),
        "  /out/host/lib/libx.so: is not a folder; expected a folder of a target",
        (
            "  /x-1.0-py3-none-linux_x86_64.whl: is a wheel; expected a folder of a target. "
            "Give its host wheel as HOST, or unpack it."
        ),
    ]


def test_a_damaged_archive_is_named_with_its_folder(run: Run, tree: Path, tmp_path: Path) -> None:
    run("device", "split", tree, "--dest-dir", tmp_path / "out")
    archive = tmp_path / "out/gfx906/.kpack/libx.so_gfx906.kpack"
    archive.write_bytes(archive.read_bytes()[:-30])
    for order in (("split", tmp_path / "out"), ("join", tmp_path / "out/host", tmp_path / "out/gfx906")):
        status, _, err = run("device", *order, "--dest-dir", tmp_path / "fat")
        assert (status, err.startswith(f"error: {archive}: offset 0x")) == (2, True), err


def test_archives_that_are_missing_are_named(run: Run, tree: Path, tmp_path: Path) -> None:
    run("device", "split", tree, "--dest-dir", tmp_path / "out")
    status, _, err = run("device", "join", tmp_path / "out/host", "--dest-dir", tmp_path / "fat")
    assert status == 2
    assert "its archives are missing; expected at least one of ../.kpack/libx.so" in err.replace("\n", " ")


def test_archives_are_kept_in_the_folder_that_is_asked_for(run: Run, tree: Path, tmp_path: Path) -> None:
    kept = "usr/lib/x86_64-linux-gnu"
    (tree / kept).mkdir(parents=True)
    (tree / "lib/libx.so").rename(tree / kept / "libx.so")
    order = ("--archives", f"{kept}/rocm-kpack/", "--dest-dir", tmp_path / "out")
    assert run("device", "split", tree, *order).status == 0
    assert sorted(p.relative_to(tmp_path / "out").as_posix() for p in (tmp_path / "out").rglob("*.kpack")) == [
        f"gfx906/{kept}/rocm-kpack/libx.so-part2_gfx906.kpack",
        f"gfx906/{kept}/rocm-kpack/libx.so_gfx906.kpack",
        f"gfx90a/{kept}/rocm-kpack/libx.so_gfx90a.kpack",
    ]
    made = tmp_path / "made"
    for folder in ("host", "gfx906", "gfx90a"):
        shutil.copytree(tmp_path / "out" / folder, made, dirs_exist_ok=True)
    library = made / kept / "libx.so"
    codes = [load_unit(library, unit, ["gfx906"], old=True) for unit in units_of(library)]
    assert [isinstance(code, bytes) for code in codes] == [True, True]
    assert run("targets", "runs-on", "gfx906", library).status == 0
    assert run("device", "split", made, "--dest-dir", tmp_path / "again").status == 0
    assert (tmp_path / "again/host" / kept / "libx.so").read_bytes() == library.read_bytes()
    assert run("device", "join", made, "--dest-dir", tmp_path / "fat").status == 0
    assert list((tmp_path / "fat").rglob("*.kpack")) == []


def test_a_library_finds_archives_in_a_folder_that_was_named_by_a_link(run: Run, tree: Path, tmp_path: Path) -> None:
    (tree / "lib64").symlink_to("lib")
    assert run("device", "split", tree, "--archives", "lib64/kpack", "--dest-dir", tmp_path / "out").status == 0
    made = tmp_path / "made"
    for folder in ("host", "gfx906"):
        shutil.copytree(tmp_path / "out" / folder, made, dirs_exist_ok=True, symlinks=True)
    for library in ("lib/libx.so", "lib64/libx.so"):
        assert run("targets", "runs-on", "gfx906", made / library).status == 0
    assert (made / "lib/kpack/libx.so_gfx906.kpack").is_file()


def test_a_link_out_of_the_tree_is_no_folder_for_archives(run: Run, tree: Path, tmp_path: Path) -> None:
    (tree / "lib64").symlink_to("/lib")
    done = run("device", "split", tree, "--archives", "lib64/kpack", "--dest-dir", tmp_path / "out", "--dry-run")
    assert (done.status, done.stderr) == (
        2,
        (
            "error: lib64: is a symlink to '/lib', out of the tree, and archives would be below it; "
            "expected another folder for archives. Give --archives lib/kpack.\n"
        ),
    )


@pytest.mark.parametrize(
    ("content", "found"),
    [
        pytest.param(b"", "no device code to split off", id="empty"),
        pytest.param(b"\xfd7zXZ\0", "no device code to split off", id="tar.xz"),
        pytest.param(b"!<arch>\n" + DEB_MEMBER, "a Debian package, which 'dpkg-deb --extract' unpacks", id="deb"),
        pytest.param(b"!<thin>\n", "a thin archive", id="thin"),
    ],
)
@pytest.mark.parametrize("options", [(), ("--dry-run",)], ids=str)
def test_a_file_that_is_no_binary_is_refused(
    run: Run, tmp_path: Path, content: bytes, found: str, options: tuple[str, ...]
) -> None:
    (tmp_path / "x").write_bytes(content)
    done = run("device", "split", tmp_path / "x", "--dest-dir", tmp_path / "out", *options)
    message = f"error: {tmp_path}/x: {found}; expected a fat binary, a wheel or a folder\n"
    assert (done.status, done.stdout, done.stderr) == (2, "", message)
    assert not (tmp_path / "out").exists()


def test_a_library_without_device_code_and_an_empty_folder_are_split_as_they_are(run: Run, tmp_path: Path) -> None:
    shutil.copy(FIXTURES / "elf/libplain.so", tmp_path / "libplain.so")
    done = run("device", "split", tmp_path / "libplain.so", "--dest-dir", tmp_path / "one")
    assert (done.status, done.stdout) == (0, f"{tmp_path}/one/host: 1 file, no library split\n")
    (tmp_path / "empty").mkdir()
    done = run("device", "split", tmp_path / "empty", "--dest-dir", tmp_path / "none")
    assert (done.status, done.stdout) == (0, f"{tmp_path}/none/host: 0 files, no library split\n")


@pytest.mark.parametrize("folder", ["/abs", "../x", "a/../..", "a@GFXARCH@", "a:b"])
def test_archives_go_to_no_folder_outside_of_the_tree(run: Run, tree: Path, tmp_path: Path, folder: str) -> None:
    status, _, err = run("device", "split", tree, "--archives", folder, "--dest-dir", tmp_path / "out")
    assert status == 2
    assert err.startswith(f"error: --archives: {folder!r} names no folder for archives; expected a folder below")
    assert not (tmp_path / "out").exists()


def test_an_empty_word_is_no_folder_for_archives(run: Run, tree: Path, tmp_path: Path) -> None:
    status, _, err = run("device", "split", tree, "--archives", "", "--dest-dir", tmp_path / "out")
    assert status == 2
    assert err.startswith("error: --archives: ")
    assert not (tmp_path / "out").exists()


def test_archives_below_a_file_are_refused(run: Run, tree: Path, tmp_path: Path) -> None:
    order = ("--archives", "lib/libx.so/kpack", "--dest-dir", tmp_path / "out")
    status, _, err = run("device", "split", tree, *order)
    assert (status, err) == (
        2,
        "error: lib/libx.so: is a file, and archives would be below it; expected another folder for archives\n",
    )


def test_wheels_keep_archives_where_they_are_looked_for(run: Run, tmp_path: Path) -> None:
    (tmp_path / "x-1-py3-none-any.whl").write_bytes(b"")
    order = ("--archives", "kpack", "--dest-dir", tmp_path / "out")
    status, _, err = run("device", "split", tmp_path / "x-1-py3-none-any.whl", *order)
    assert status == 2
    assert "is a wheel; expected a file or folder for --archives" in err


def test_a_name_with_a_line_end_is_printed_in_one_line(run: Run, tmp_path: Path) -> None:
    build_fat_library(tmp_path / "tree/lib/libx\ny.so", [make_bundle(0, "gfx906")])
    done = run("device", "split", tmp_path / "tree", "--dest-dir", tmp_path / "out", "--verbose")
    assert "lib/libx\\ny.so: 1 unit" in done.stdout
    joined = run("device", "join", tmp_path / "out/host", tmp_path / "out/gfx906", "--dest-dir", tmp_path / "fat")
    assert f"{tmp_path}/fat/lib/libx\\ny.so: 1 bundle" in joined.stdout
