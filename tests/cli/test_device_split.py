"""``rocwheel device split`` and ``join``."""

from __future__ import annotations

import json
import shutil
import zipfile
from typing import TYPE_CHECKING

import pytest

from tests.support.fat_libraries import build_fat_library, make_bundle
from tests.support.kpack_reader import load_unit, units_of
from tests.support.places import FIXTURES
from tests.support.variant_wheels import variant_document
from tests.support.wheels import make_wheel, members, write_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run


DEB_MEMBER = b"debian-binary".ljust(16) + b"0".ljust(32) + b"4".ljust(10) + b"`\n2.0\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a tree with a fat library of two units, the second of which lacks a target."""
    build_fat_library(tmp_path / "tree/lib/libx.so", [make_bundle(0, "gfx906 gfx90a"), make_bundle(1, "gfx906")])
    (tmp_path / "tree/lib/odd_gfx906.hsaco").write_bytes(b"")
    return tmp_path / "tree"


def warnings_in(err: str) -> list[str]:
    return [line for line in err.splitlines() if line.startswith("warning: ")]


@pytest.mark.slow
def test_split_prints_the_output_folders_and_the_files_left_unsplit(run: Run, tree: Path, tmp_path: Path) -> None:
    status, out, _ = run("device", "split", tree, "--output", tmp_path / "out")
    assert status == 0
    assert out.replace(str(tmp_path), "").splitlines()[:2] == [
        "stays in the host folder: lib/odd_gfx906.hsaco: a kernel file that no rule covers",
        "/out/host: 2 files, 1 library split, on disk 29.9 kB -> 13.6 kB",
    ]
    assert [line.split(",")[0] for line in out.replace(str(tmp_path), "").splitlines()[2:]] == [
        "/out/gfx906: 2 archives",
        "/out/gfx90a: 1 archive",
    ]


@pytest.mark.slow
def test_a_level_is_refused_for_an_uncompressed_scheme(run: Run, tree: Path, tmp_path: Path) -> None:
    done = run("device", "split", tree, "--output", tmp_path / "out", "--scheme", "none", "--level", "5")
    message = "error: --level: is for compressed code, but --scheme none doesn't compress code; expected --scheme"
    assert (done.status, done.stderr) == (2, f"{message} zstd-per-kernel\n")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_dry_run_prints_json_and_writes_nothing(run: Run, tree: Path, tmp_path: Path) -> None:
    status, out, _ = run("device", "split", tree, "--output", tmp_path / "out", "--dry-run", "--json")
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


@pytest.mark.slow
def test_joining_some_of_the_targets_reports_the_missing_ones(run: Run, tree: Path, tmp_path: Path) -> None:
    run("device", "split", tree, "--output", tmp_path / "out")
    status, out, _ = run("device", "join", tmp_path / "out/host", tmp_path / "out/gfx906", "--output", tmp_path / "fat")
    assert status == 0
    assert out.replace(str(tmp_path), "").splitlines() == [
        "/fat/lib/libx.so: 2 bundles, 5.0 kB for gfx906, in a file of 29.9 kB; missing: gfx90a",
        "/fat: 1 library joined, 1 other file copied",
    ]


@pytest.mark.slow
def test_a_dry_run_prints_no_archive_sizes(run: Run, tree: Path, tmp_path: Path) -> None:
    kernels = tree / "lib/rocblas/library/Kernels_gfx1030.hsaco"
    kernels.parent.mkdir(parents=True)
    kernels.write_bytes(bytes(3000))
    status, out, _ = run("device", "split", tree, "--output", tmp_path / "out", "--dry-run")
    assert status == 0
    assert out.replace(str(tmp_path), "").splitlines()[1:] == [
        "/out/host: 2 files, 1 library split, on disk 29.9 kB -> 13.6 kB",
        "/out/gfx906: 2 archives",
        "/out/gfx90a: 1 archive",
        "/out/gfx1030: 1 file, 3.0 kB",
    ]


@pytest.mark.slow
def test_libraries_without_code_for_a_requested_target_are_reported(run: Run, tree: Path, tmp_path: Path) -> None:
    build_fat_library(tree / "lib/liby.so", [make_bundle(0, "gfx1030")])
    order = ("--targets", "gfx90a,gfx1030", "--output", tmp_path / "out")
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


@pytest.mark.slow
def test_a_library_without_code_for_the_target_is_joined_with_empty_bundles(
    run: Run, tree: Path, tmp_path: Path
) -> None:
    build_fat_library(tree / "lib/liby.so", [make_bundle(0, "gfx1030")])
    run("device", "split", tree, "--targets", "gfx90a", "--output", tmp_path / "out")
    status, out, _ = run("device", "join", tmp_path / "out/host", tmp_path / "out/gfx90a", "--output", tmp_path / "fat")
    assert (status, out.replace(str(tmp_path), "").splitlines()) == (
        0,
        [
            "/fat/lib/libx.so: 2 bundles, 2.5 kB for gfx90a, in a file of 25.8 kB",
            "/fat/lib/liby.so: 1 bundle, no device code, in a file of 17.6 kB",
            "/fat: 2 libraries joined, 1 other file copied",
        ],
    )


@pytest.mark.slow
def test_splitting_again_reports_markers_without_archives(run: Run, tree: Path, tmp_path: Path) -> None:
    run("device", "split", tree, "--output", tmp_path / "out")
    status, out, err = run("device", "split", tmp_path / "out/host", "--output", tmp_path / "again")
    assert (status, warnings_in(err.replace(str(tmp_path), "")), out.splitlines()[-1]) == (
        0,
        [
            (
                "warning: /out/host/lib/libx.so: was split before, but none of the archives with its code exist: "
                "../.kpack/libx.so_@GFXARCH@.kpack, ../.kpack/libx.so-part2_@GFXARCH@.kpack"
            ),
        ],
        f"{tmp_path}/again/host: 2 files, no library split",
    )


@pytest.mark.slow
def test_a_missing_device_folder_is_reported(run: Run, tree: Path, tmp_path: Path) -> None:
    run("device", "split", tree, "--output", tmp_path / "out")
    places = [str(tmp_path / name) for name in ("nothere", "neither")]
    status, _, err = run("device", "join", tmp_path / "out/host", *places, "--output", tmp_path / "fat")
    assert status == 2
    assert [f"{place}: can't be read (No such file or directory)" in err for place in places] == [True, True]
    assert not (tmp_path / "fat").exists()


@pytest.mark.slow
def test_a_file_given_as_a_device_folder_is_refused_with_a_remedy(run: Run, tree: Path, tmp_path: Path) -> None:
    run("device", "split", tree, "--output", tmp_path / "out")
    archive = tmp_path / "out/gfx906/.kpack/libx.so_gfx906.kpack"
    library = tmp_path / "out/host/lib/libx.so"
    wheel = make_wheel(tmp_path, "x", {})
    host = tmp_path / "out/host"
    status, _, err = run("device", "join", host, archive, library, wheel, "--output", tmp_path / "fat")
    assert status == 2
    assert err.replace(str(tmp_path), "").splitlines()[1:] == [
        (
            "  /out/gfx906/.kpack/libx.so_gfx906.kpack: is a standalone archive; expected the folder of a target. "
            "Specify the folder to merge into the host folder, such as /out/gfx906."
        ),
        "  /out/host/lib/libx.so: isn't a folder; expected the folder of a target",
        (
            "  /x-1.0-py3-none-linux_x86_64.whl: is a wheel; expected the folder of a target. "
            "Specify the host wheel as HOST, or unpack this wheel."
        ),
    ]


@pytest.mark.slow
def test_a_damaged_archive_is_reported_with_its_folder(run: Run, tree: Path, tmp_path: Path) -> None:
    run("device", "split", tree, "--output", tmp_path / "out")
    archive = tmp_path / "out/gfx906/.kpack/libx.so_gfx906.kpack"
    archive.write_bytes(archive.read_bytes()[:-30])
    for order in (("split", tmp_path / "out"), ("join", tmp_path / "out/host", tmp_path / "out/gfx906")):
        status, _, err = run("device", *order, "--output", tmp_path / "fat")
        assert (status, err.startswith(f"error: {archive}: offset 0x")) == (2, True), err


@pytest.mark.slow
def test_missing_archives_are_reported(run: Run, tree: Path, tmp_path: Path) -> None:
    run("device", "split", tree, "--output", tmp_path / "out")
    status, _, err = run("device", "join", tmp_path / "out/host", "--output", tmp_path / "fat")
    assert status == 2
    assert "the archives with its code are missing; expected at least one of ../.kpack/libx.so" in err.replace(
        "\n", " "
    )


@pytest.mark.slow
def test_archives_are_written_to_the_requested_folder(run: Run, tree: Path, tmp_path: Path) -> None:
    kept = "usr/lib/x86_64-linux-gnu"
    (tree / kept).mkdir(parents=True)
    (tree / "lib/libx.so").rename(tree / kept / "libx.so")
    order = ("--archives", f"{kept}/rocm-kpack/", "--output", tmp_path / "out")
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
    assert run("device", "split", made, "--output", tmp_path / "again").status == 0
    assert (tmp_path / "again/host" / kept / "libx.so").read_bytes() == library.read_bytes()
    assert run("device", "join", made, "--output", tmp_path / "fat").status == 0
    assert list((tmp_path / "fat").rglob("*.kpack")) == []


@pytest.mark.slow
def test_a_library_finds_archives_in_a_folder_given_through_a_symlink(run: Run, tree: Path, tmp_path: Path) -> None:
    (tree / "lib64").symlink_to("lib")
    assert run("device", "split", tree, "--archives", "lib64/kpack", "--output", tmp_path / "out").status == 0
    made = tmp_path / "made"
    for folder in ("host", "gfx906"):
        shutil.copytree(tmp_path / "out" / folder, made, dirs_exist_ok=True, symlinks=True)
    for library in ("lib/libx.so", "lib64/libx.so"):
        assert run("targets", "runs-on", "gfx906", made / library).status == 0
    assert (made / "lib/kpack/libx.so_gfx906.kpack").is_file()


@pytest.mark.slow
def test_an_archives_folder_outside_the_tree_through_a_symlink_is_refused(run: Run, tree: Path, tmp_path: Path) -> None:
    (tree / "lib64").symlink_to("/lib")
    done = run("device", "split", tree, "--archives", "lib64/kpack", "--output", tmp_path / "out", "--dry-run")
    assert (done.status, done.stderr) == (
        2,
        (
            "error: lib64: is a symlink to '/lib', outside the tree, but the split puts archives below it; "
            "expected another folder for archives. Specify --archives lib/kpack.\n"
        ),
    )


@pytest.mark.slow
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
def test_a_file_that_is_not_a_binary_is_refused(
    run: Run, tmp_path: Path, content: bytes, found: str, options: tuple[str, ...]
) -> None:
    (tmp_path / "x").write_bytes(content)
    done = run("device", "split", tmp_path / "x", "--output", tmp_path / "out", *options)
    message = f"error: {tmp_path}/x: {found}; expected a fat binary, a wheel, or a folder\n"
    assert (done.status, done.stdout, done.stderr) == (2, "", message)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--dry-run",)], ids=str)
def test_a_library_or_folder_without_device_code_is_refused(run: Run, tmp_path: Path, options: tuple[str, ...]) -> None:
    (tmp_path / "tree").mkdir()
    shutil.copy(FIXTURES / "elf/libplain.so", tmp_path / "tree/libplain.so")
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "tree", tmp_path / "tree/libplain.so", tmp_path / "empty"):
        done = run("device", "split", path, "--output", tmp_path / "out", *options)
        message = (
            f"error: {path}: has no device code to split off; expected a fat binary, a wheel, or a folder with device "
            "code. Check the path. To copy files without device code, use cp.\n"
        )
        assert (done.status, done.stdout, done.stderr) == (2, "", message)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_folder_of_wheels_is_refused_with_the_wheels_to_split_instead(run: Run, tmp_path: Path) -> None:
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist/demo-1-py3-none-any.whl").write_bytes(b"")
    done = run("device", "split", tmp_path / "dist", "--output", tmp_path / "out")
    assert (done.status, done.stderr) == (
        2,
        (
            f"error: {tmp_path}/dist: has no device code to split off; expected a fat binary, a wheel, or a folder "
            "with device code. To split the wheels in this folder, pass them instead of the folder: "
            f"{tmp_path}/dist/demo-1-py3-none-any.whl\n"
        ),
    )


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["/abs", "../x", "a/../..", "a@GFXARCH@", "a:b"])
def test_an_archives_folder_outside_the_tree_is_refused(run: Run, tree: Path, tmp_path: Path, folder: str) -> None:
    status, _, err = run("device", "split", tree, "--archives", folder, "--output", tmp_path / "out")
    assert status == 2
    assert err.startswith(f"error: --archives: {folder!r} isn't a folder for archives; expected a folder in")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_an_empty_archives_folder_name_is_refused(run: Run, tree: Path, tmp_path: Path) -> None:
    status, _, err = run("device", "split", tree, "--archives", "", "--output", tmp_path / "out")
    assert status == 2
    assert err.startswith("error: --archives: ")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_an_archives_folder_below_a_file_is_refused(run: Run, tree: Path, tmp_path: Path) -> None:
    order = ("--archives", "lib/libx.so/kpack", "--output", tmp_path / "out")
    status, _, err = run("device", "split", tree, *order)
    assert (status, err) == (
        2,
        "error: lib/libx.so: is a file, but the split puts archives below it; expected another folder for archives\n",
    )


@pytest.mark.slow
def test_the_archives_option_is_refused_for_wheels(run: Run, tmp_path: Path) -> None:
    (tmp_path / "x-1-py3-none-any.whl").write_bytes(b"")
    order = ("--archives", "kpack", "--output", tmp_path / "out")
    status, _, err = run("device", "split", tmp_path / "x-1-py3-none-any.whl", *order)
    assert status == 2
    assert "is a wheel; expected a file or folder for --archives" in err


@pytest.mark.slow
def test_a_file_name_with_a_newline_is_printed_on_one_line(run: Run, tmp_path: Path) -> None:
    build_fat_library(tmp_path / "tree/lib/libx\ny.so", [make_bundle(0, "gfx906")])
    done = run("device", "split", tmp_path / "tree", "--output", tmp_path / "out", "--verbose")
    assert "lib/libx\\ny.so: 1 unit" in done.stdout
    joined = run("device", "join", tmp_path / "out/host", tmp_path / "out/gfx906", "--output", tmp_path / "fat")
    assert f"{tmp_path}/fat/lib/libx\\ny.so: 1 bundle" in joined.stdout


LIBRARY = FIXTURES / "v22/libtwo.plain.so"


@pytest.mark.slow
def test_wheels_are_split_into_host_and_device_wheels(run: Run, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "demo", {"demo/libtwo.so": LIBRARY})
    other = make_wheel(tmp_path, "more", {"more/libtwo.so": LIBRARY})
    out = tmp_path / "out"
    status, text, err = run("device", "split", wheel, other, "--output", out)
    assert (status, "warning" in err) == (0, False)
    assert [line.partition(", ")[0] for line in text.splitlines()[:4]] == [
        f"{out}/{wheel.name}: 1 library split",
        f"{out}/demo_device_gfx906-1.0-py3-none-linux_x86_64.whl: 1 archive",
        f"{out}/demo_device_gfx90a-1.0-py3-none-linux_x86_64.whl: 1 archive",
        f"{out}/demo_device_gfx1030-1.0-py3-none-linux_x86_64.whl: 1 archive",
    ]
    assert len(list(out.iterdir())) == 8


@pytest.mark.slow
def test_a_gpu_is_supported_if_its_device_wheel_is_given(run: Run, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "demo", {"demo/libtwo.so": LIBRARY})
    out = tmp_path / "out"
    run("device", "split", wheel, "--output", out, "--quiet")
    host, device = out / wheel.name, next(out.glob("*gfx1030*"))
    same = "(the same processor with the same features)"
    status, text, err = run("targets", "runs-on", "gfx1030", host, device)
    assert (status, err) == (0, "")
    assert (
        text.splitlines()[0]
        == f"{host}!demo/libtwo.so: gfx1030 on a stock runtime since ROCm 7.14: uses gfx1030 in 2 bundles {same}"
    )
    status, text, err = run("targets", "runs-on", "gfx906", host, device)
    assert (status, err) == (1, "")
    assert text.splitlines()[0].startswith(
        f"{host}!demo/libtwo.so: gfx906 on a stock runtime since ROCm 7.14: finds nothing in 2 bundles"
    )
    status, text, err = run("targets", "runs-on", "gfx906", host)
    why = "finds nothing in 2 bundles (no archive at .kpack/libtwo.so_@GFXARCH@.kpack)"
    assert (status, text.splitlines()[0]) == (
        1,
        f"{host}!demo/libtwo.so: gfx906 on a stock runtime since ROCm 7.14: {why}",
    )


@pytest.mark.slow
def test_json_describes_the_split_of_a_wheel(run: Run, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "demo", {"demo/libtwo.so": LIBRARY})
    status, text, err = run("device", "split", wheel, "--output", tmp_path / "out", "-t", "gfx906", "--json")
    document = json.loads(text)
    [report] = document["wheels"]
    assert (status, err, document["schema"]) == (0, "", "rocwheel.device-split-wheels/1")
    assert (report["size"], report["overlay_root"], report["libraries"]) == (
        wheel.stat().st_size,
        "demo",
        ["demo/libtwo.so"],
    )
    assert [(device["target"], device["archives"], device["files"]) for device in report["devices"]] == [
        ("gfx906", 1, 0)
    ]


@pytest.mark.slow
def test_wheel_options_are_refused_for_folders(run: Run, tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    status, _, err = run("device", "split", tmp_path / "tree", "--overlay-root", "x", "--output", tmp_path / "out")
    assert (status, err) == (2, f"error: {tmp_path}/tree: isn't a wheel; expected wheels for --overlay-root\n")
    wheel = make_wheel(tmp_path, "demo", {"demo/libtwo.so": LIBRARY})
    status, _, err = run("device", "split", tmp_path / "tree", wheel, "--output", tmp_path / "out")
    found = "is passed together with other paths; expected a single file or folder, or wheels"
    assert (status, err) == (2, f"error: {wheel}: {found}\n")


@pytest.mark.slow
def test_split_wheels_can_be_joined_again(run: Run, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "demo", {"demo/libtwo.so": LIBRARY})
    out = tmp_path / "out"
    run("device", "split", wheel, "--output", out, "--quiet")
    devices = sorted(out.glob("demo_device*"))
    status, text, err = run("device", "join", out / wheel.name, *devices, "--output", tmp_path / "fat", "--json")
    report = json.loads(text)
    assert (status, err, report["schema"], report["libraries"]) == (
        *(0, "", "rocwheel.device-join-wheel/1"),
        ["demo/libtwo.so"],
    )
    assert members(tmp_path / "fat" / wheel.name).keys() == members(wheel).keys()


@pytest.mark.slow
def test_splitting_again_leaves_one_consistent_set_and_reports_removed_wheels(run: Run, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "demo", {"demo/libtwo.so": LIBRARY})
    out = tmp_path / "out"
    assert run("device", "split", wheel, "--output", out).status == 0
    asked = run("device", "split", wheel, "--output", out, "-t", "gfx906", "--dry-run")
    assert asked.stdout.splitlines()[0].startswith("would be removed, because it is from an earlier split: ")
    status, text, err = run("device", "split", wheel, "--output", out, "-t", "gfx906")
    assert (status, "warning" in err) == (0, False)
    assert text.splitlines()[:3] == [
        f"removed, because it is from an earlier split: {out}/demo_device_gfx1030-1.0-py3-none-linux_x86_64.whl",
        f"removed, because it is from an earlier split: {out}/demo_device_gfx90a-1.0-py3-none-linux_x86_64.whl",
        "replaced 2 wheels from an earlier split",
    ]
    assert len(list(out.iterdir())) == 2


@pytest.mark.slow
def test_wheels_split_by_another_tool_can_be_mended(run: Run, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "demo", {"demo/libtwo.so": LIBRARY})
    out = tmp_path / "out"
    run("device", "split", wheel, "--output", out, "--quiet")
    done = run("device", "split", "--mend", *sorted(out.iterdir()), "--output", tmp_path / "mended")
    first, *_ = done.stdout.splitlines()
    assert (done.status, first.partition(",")[0]) == (0, f"{tmp_path}/mended/{wheel.name}: no library split")
    assert len(list((tmp_path / "mended").iterdir())) == 4


@pytest.mark.slow
@pytest.mark.parametrize("option", ["--device-requires-dist", "--host-requires-dist"])
def test_a_malformed_requirement_is_refused_before_any_file_is_read(run: Run, tmp_path: Path, option: str) -> None:
    (tmp_path / "x-1-py3-none-any.whl").write_bytes(b"no wheel")
    order = (option, "bad ===", "--output", tmp_path / "out")
    status, _, err = run("device", "split", tmp_path / "x-1-py3-none-any.whl", *order)
    assert status == 2
    assert err.startswith(f"error: {option}: 'bad ===' is a malformed Requires-Dist (")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.parametrize("command", ["split", "join"])
def test_a_wheel_whose_metadata_differs_from_its_file_name_is_refused(run: Run, tmp_path: Path, command: str) -> None:
    made = make_wheel(tmp_path / "in", "demo", {"demo/libtwo.so": LIBRARY})
    wheel = made.rename(tmp_path / "demo-2.0-py3-none-linux_x86_64.whl")
    status, _, err = run("device", command, wheel, "--output", tmp_path / "out")
    found = "its metadata has the version '1.0'; expected '2.0', as in the file name"
    assert (status, err, (tmp_path / "out").exists()) == (2, f"error: {wheel}: {found}\n", False)


@pytest.mark.slow
def test_two_wheels_with_the_same_name_are_refused(run: Run, tmp_path: Path) -> None:
    wheels = [make_wheel(tmp_path / name, "demo", {"demo/libtwo.so": LIBRARY}) for name in ("a", "b")]
    status, _, err = run("device", "split", *wheels, "--output", tmp_path / "out")
    assert (status, err) == (
        2,
        f"error: {wheels[1]}: has the same name as {wheels[0]}; expected each wheel only once\n",
    )
    assert not (tmp_path / "out").exists()


@pytest.fixture
def parted(run: Run, tmp_path: Path) -> tuple[Path, Path]:
    """Return a host wheel and the device wheel of gfx1030, away from the others."""
    wheel = make_wheel(tmp_path, "demo", {"demo/libtwo.so": LIBRARY})
    run("device", "split", wheel, "--output", tmp_path / "out", "-t", "gfx1030", "--quiet")
    [device] = (tmp_path / "out").glob("demo_device*")
    return tmp_path / "out" / wheel.name, device


@pytest.mark.slow
def test_list_resolves_the_code_of_a_host_wheel_in_its_device_wheels(run: Run, parted: tuple[Path, Path]) -> None:
    host, device = parted
    document = json.loads(run("device", "list", host, device, "--json").stdout)
    files = {file["path"]: file["device"]["entries"] for file in document["files"]}
    assert (document["schema"], document["problems"]) == ("rocwheel.device-list-paths/1", [])
    archive = f"{device}!demo/.kpack/libtwo.so_gfx1030.kpack"
    assert {path: [entry["target"] for entry in entries] for path, entries in files.items()} == {
        f"{host}!demo/libtwo.so": ["gfx1030"] * 2,
        archive: ["gfx1030"] * 2,
    }
    status, text, err = run("device", "list", device, host)
    assert (status, err) == (0, "")
    assert f"{host}!demo/libtwo.so: " in text


@pytest.mark.slow
def test_inspect_resolves_the_code_of_a_host_wheel_in_its_device_wheels(run: Run, parted: tuple[Path, Path]) -> None:
    document = json.loads(run("inspect", *parted, "--json").stdout)
    [library] = [file for file in document["files"] if file["path"].endswith("libtwo.so")]
    assert library["device"]["targets_in_all_bundles"] == ["gfx1030"]
    alone = json.loads(run("inspect", parted[0], "--json").stdout)
    assert alone["files"][0]["device"]["targets_in_all_bundles"] == []


@pytest.mark.slow
def test_extract_resolves_the_code_of_a_host_wheel_in_its_device_wheels(
    run: Run, parted: tuple[Path, Path], tmp_path: Path
) -> None:
    done = run("device", "extract", *parted[::-1], "-t", "gfx1030", "-o", tmp_path / "code")
    assert (done.status, done.stderr) == (0, "")
    assert run("device", "extract", LIBRARY, "-t", "gfx1030", "-o", tmp_path / "fat").status == 0
    made = sorted((tmp_path / "code").rglob("*.co"))
    assert [str(path.relative_to(tmp_path / "code")) for path in made] == [
        "demo/libtwo.so.0.gfx1030.co",
        "demo/libtwo.so.1.gfx1030.co",
    ]
    originals = sorted((tmp_path / "fat").rglob("*.co"))
    assert [path.read_bytes() for path in made] == [path.read_bytes() for path in originals]


@pytest.mark.slow
def test_extracting_two_files_to_the_same_names_is_refused(run: Run, tmp_path: Path) -> None:
    wheels = [make_wheel(tmp_path / name, "demo", {"demo/libtwo.so": LIBRARY}) for name in ("a", "b")]
    done = run("device", "extract", *wheels, "-o", tmp_path / "code")
    found = f"its code would overwrite the code from {wheels[0]}!demo/libtwo.so. Extract from one file at a time."
    assert (done.status, done.stderr) == (2, f"error: {wheels[1]}!demo/libtwo.so: {found}\n")
    assert not (tmp_path / "code").exists()


@pytest.mark.slow
def test_kernels_of_host_and_device_wheels_are_listed_once(run: Run, parted: tuple[Path, Path]) -> None:
    document = json.loads(run("device", "list", "--kernels", *parted, "--json").stdout)
    assert [(code["target"], len(code["kernels"])) for code in document["codes"]] == [("gfx1030", 1)] * 2


@pytest.mark.slow
@pytest.mark.parametrize("place", ["demo-1.0.dist-info/LICENSE.txt", "demo/NOTICE"])
def test_audit_finds_the_license_in_every_split_wheel(run: Run, tmp_path: Path, place: str) -> None:
    info = "demo-1.0.dist-info"
    files = {
        "demo/libtwo.so": LIBRARY.read_bytes(),
        place: b"a license",
        f"{info}/METADATA": b"Metadata-Version: 2.1\nName: demo\nVersion: 1.0\nLicense: MIT\n\n",
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-linux_x86_64\n",
    }
    wheel = write_wheel(tmp_path / "demo-1.0-py3-none-linux_x86_64.whl", info, files)
    assert run("device", "split", wheel, "--output", tmp_path / "out", "--quiet").status == 0
    found = json.loads(run("audit", tmp_path / "out", "--select", "license-missing", "--json").stdout)
    assert (found["findings"], len(list((tmp_path / "out").iterdir()))) == ([], 4)


@pytest.mark.slow
def test_an_unpacked_wheel_is_split_into_unpacked_wheels(run: Run, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "demo", {"demo/libtwo.so": LIBRARY})
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "folder")
    done = run("device", "split", tmp_path / "folder", "--output", tmp_path / "out", "-t", "gfx906", "-q")
    assert (done.status, done.stdout, done.stderr) == (0, "", "")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["demo-1.0", "demo_device_gfx906-1.0"]
    assert [path.name for path in (tmp_path / "out/demo_device_gfx906-1.0").rglob("*_gfx906.kpack")] == [
        "libtwo.so_gfx906.kpack"
    ]
    mended = run("device", "split", tmp_path / "folder", "--mend", "--output", tmp_path / "no")
    assert mended.stderr == f"error: {tmp_path}/folder: is an unpacked wheel; expected another folder for --mend\n"


@pytest.mark.slow
def test_an_unpacked_wheel_can_have_the_file_name_of_the_wheel(run: Run, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "demo", {"demo/libtwo.so": LIBRARY})
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "unpacked" / wheel.name)
    done = run("device", "split", tmp_path / "unpacked" / wheel.name, "-o", tmp_path / "out", "-t", "gfx906", "-q")
    assert (done.status, done.stdout, done.stderr) == (0, "", "")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["demo-1.0", "demo_device_gfx906-1.0"]


@pytest.mark.slow
@pytest.mark.parametrize(("suffix", "named"), [("-gfx90a", " (gfx90a)"), ("", "")], ids=["label", "plain name"])
def test_a_wheel_variant_is_refused_with_a_remedy(run: Run, tmp_path: Path, suffix: str, named: str) -> None:
    texts = {"demo-1.0.dist-info/variant.json": json.dumps(variant_document("gfx90a", ["gfx90a"])).encode()}
    made = make_wheel(tmp_path, "demo", {"demo/libtwo.so": LIBRARY, **texts})
    wheel = made.rename(tmp_path / f"demo-1.0-py3-none-linux_x86_64{suffix}.whl")
    status, out, err = run("device", "split", wheel, "--output", tmp_path / "out")
    assert (status, out) == (2, "")
    assert err == (
        f"error: {wheel}: is a wheel variant{named}, which contains its own code; expected a wheel without a "
        "variant. Split the wheel without a variant, and create variants of its device wheels with `rocwheel "
        "index --variants`.\n"
    )
    assert not (tmp_path / "out").exists()
