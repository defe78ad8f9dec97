"""Commands on split files as AMD's tool lays them out: marker and program headers at the end of the file."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.elf.facts import read_elf
from rocwheel.binary.elf.header import PT_INTERP, PT_PHDR
from rocwheel.binary.kpack.markers import Marker, read_split_library
from tests.support.fat_libraries import build_fat_library, make_bundle
from tests.support.host_files import bundles_of, link_program
from tests.support.kpack_reader import load_unit, units_of
from tests.support.moved_headers import split_with_moved_headers
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run
    from tests.support.tools import RunTool

pytestmark = pytest.mark.slow
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
    assert run("device", "split", fat, "--dest-dir", tmp_path / "ours").status == 0
    marker = Marker(PATH, ("../.kpack/libx.so_@GFXARCH@.kpack",))
    split_with_moved_headers(fat / PATH, tmp_path / "tree" / PATH, marker, [0, 1])
    for target in ("gfx906", "gfx90a"):
        shutil.copytree(tmp_path / "ours" / target, tmp_path / "tree", dirs_exist_ok=True)
    return tmp_path / "tree"


def require_loadable(library: Path, run_tool: RunTool) -> None:
    for tool in (["readelf", "-aW"], ["llvm-readelf-22", "-a"]):
        run_tool([*tool, str(library)], is_silent=True)
    subprocess.run([sys.executable, "-c", "import ctypes, sys; ctypes.CDLL(sys.argv[1])", str(library)], check=True)


def test_the_sample_is_what_loaders_and_readers_take(tree: Path, run_tool: RunTool) -> None:
    require_loadable(tree / PATH, run_tool)
    codes = [load_unit(tree / PATH, unit, ["gfx906"], old=True) for unit in units_of(tree / PATH)]
    assert [isinstance(code, bytes) for code in codes] == [True, True]


def test_its_code_is_followed_to_archives(run: Run, tree: Path) -> None:
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


def test_splitting_it_again_changes_nothing(run: Run, tree: Path, tmp_path: Path) -> None:
    assert run("device", "split", tree, "--dest-dir", tmp_path / "again").status == 0
    assert (tmp_path / "again/host" / PATH).read_bytes() == (tree / PATH).read_bytes()


def test_its_code_can_be_joined(run: Run, run_tool: RunTool, tree: Path, fat: Path, tmp_path: Path) -> None:
    assert run("device", "join", tree, "--dest-dir", tmp_path / "joined").status == 0
    joined = tmp_path / "joined" / PATH
    require_loadable(joined, run_tool)
    extract = ("device", "extract", "--target", "gfx90a")
    for name, library in (("old", fat / PATH), ("new", joined)):
        assert run(*extract, library, "--dest-dir", tmp_path / name).status == 0
    codes = [sorted(path.read_bytes() for path in (tmp_path / name).iterdir()) for name in ("old", "new")]
    assert codes[0] == codes[1]
    assert len(bundles_of(memoryview(joined.read_bytes()))) == 2


def test_joined_it_can_be_split_again(run: Run, run_tool: RunTool, tree: Path, tmp_path: Path) -> None:
    run("device", "join", tree, "--dest-dir", tmp_path / "joined")
    assert run("device", "split", tmp_path / "joined", "--dest-dir", tmp_path / "again").status == 0
    require_loadable(tmp_path / "again/host" / PATH, run_tool)
    assert sorted(path.name for path in (tmp_path / "again").iterdir()) == ["gfx906", "gfx90a", "host"]


def test_its_run_path_can_be_set(run: Run, run_tool: RunTool, tree: Path, tmp_path: Path) -> None:
    assert run("runpath", "set", "$ORIGIN", tree / PATH, "--dest-dir", tmp_path / "new").status == 0
    new = tmp_path / "new/libx.so"
    require_loadable(new, run_tool)
    assert "$ORIGIN" in run("runpath", "show", new).stdout.split()
    old = read_split_library(memoryview((tree / PATH).read_bytes()), name="x")
    found = read_split_library(memoryview(new.read_bytes()), name="x")
    assert old is not None
    assert found is not None
    assert [(u.index, u.marker) for u in found.units] == [(u.index, u.marker) for u in old.units]


def test_a_wheel_with_it_can_be_repaired(run: Run, tree: Path, tmp_path: Path) -> None:
    files = {f"x/{path.relative_to(tree)}": path for path in tree.rglob("*") if path.is_file()}
    wheel = make_wheel(tmp_path / "wheels", "x", files)
    assert run("repair", wheel, "--dest-dir", tmp_path / "repaired").status == 0
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
    assert run("device", "split", fat, "--dest-dir", tmp_path / "ours").status == 0
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


def test_the_program_has_its_headers_where_old_kernels_look(program: Path, run_tool: RunTool) -> None:
    elf = read_elf((program / PROGRAM).read_bytes(), name="x")
    [headers] = [segment for segment in elf.segments if segment.type == PT_PHDR]
    assert headers.address == headers.offset > max(s.end for s in elf.segments if s.type == PT_INTERP)
    assert started(program / PROGRAM) == ["1 1 8", "4b504948", "4b504948"]
    run_tool(["readelf", "-aW", str(program / PROGRAM)], is_silent=True)


def test_splitting_the_program_again_changes_nothing(run: Run, program: Path, tmp_path: Path) -> None:
    assert run("device", "split", program, "--dest-dir", tmp_path / "again").status == 0
    assert (tmp_path / "again/host" / PROGRAM).read_bytes() == (program / PROGRAM).read_bytes()


def test_the_program_is_inspected(run: Run, program: Path) -> None:
    done = run("inspect", program / PROGRAM)
    assert done.status == 0
    assert "kpacked fat binary, 2 wrappers, its code in " in done.stdout


def test_the_program_is_joined_and_runs(run: Run, program: Path, tmp_path: Path) -> None:
    assert run("device", "join", program, "--dest-dir", tmp_path / "joined").status == 0
    joined = tmp_path / "joined" / PROGRAM
    assert started(joined) == ["1 1 8", "48495046", "48495046"]
    extract = ("device", "extract", "--target", "gfx906")
    for name, path in (("old", tmp_path / "program" / PROGRAM), ("new", joined)):
        assert run(*extract, path, "--dest-dir", tmp_path / name).status == 0
    codes = [sorted(path.read_bytes() for path in (tmp_path / name).iterdir()) for name in ("old", "new")]
    assert codes[0] == codes[1]
    assert run("device", "split", tmp_path / "joined", "--dest-dir", tmp_path / "again").status == 0
    assert started(tmp_path / "again/host" / PROGRAM) == ["1 1 8", "4b504948", "4b504948"]
