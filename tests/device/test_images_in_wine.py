"""DLLs with device code, changed in every way there is, load in Wine and answer as they did before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.bundles.storage import Storage
from rocwheel.binary.code_objects import parse_target_id
from rocwheel.binary.kind import BUNDLE_MAGIC, COMPRESSED_MAGIC
from rocwheel.device.edit_bundles import Prune
from rocwheel.device.edit_file import rewrite_device_code
from rocwheel.device.split.join_tree import join_tree
from rocwheel.device.split.split_tree import SplitOrder, split_tree
from rocwheel.device.split.splitting import SplitChoice
from tests.support.places import ROOT
from tests.support.wine import windows_path

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.wine import Compiler, Wine

pytestmark = pytest.mark.slow

FIXTURES = ROOT / "tests/fixtures/pe"
HIPF, HIPK = "48495046 0", "4b504948"
PLAIN = int.from_bytes(BUNDLE_MAGIC[:8], "little")
COMPRESSED = int.from_bytes(COMPRESSED_MAGIC + b"\2\0\1\0", "little")
MARKER = int.from_bytes(b"\x84\xabkernel", "little")
"""How a marker begins: a map of four, and the first key, a text of eleven bytes."""
WHOLE = f"35 {HIPF} {PLAIN:016x} {HIPF} {PLAIN:016x}"
SPLIT = f"35 {HIPK} 0 {MARKER:016x} {HIPK} 1 {MARKER:016x}"
KEPT = Prune(keep=(parse_target_id("gfx906"),))


def ask(wine: Wine, compiler: Compiler, tmp_path: Path, *libraries: Path) -> list[str]:
    """Return what each library says, all loaded by one process."""
    program = compiler.program(ROOT / "tests/support/programs/ask_library.c", tmp_path / "ask.exe")
    done = wine.run(program, *map(windows_path, libraries))
    return done.stdout.decode().splitlines()


def libraries_in(tmp_path: Path) -> tuple[Path, Path]:
    """Return libraries by two linkers, in a tree like that of a package."""
    folder = tmp_path / "tree/bin"
    folder.mkdir(parents=True)
    for name in ("two.dll", "two-gnu.dll"):
        (folder / name).write_bytes((FIXTURES / name).read_bytes())
    return folder / "two.dll", folder / "two-gnu.dll"


def test_unmodified_libraries_load(wine: Wine, compile_for_windows: Compiler, tmp_path: Path) -> None:
    assert ask(wine, compile_for_windows, tmp_path, *libraries_in(tmp_path)) == [WHOLE, WHOLE]


def test_split_libraries_load_and_their_wrappers_point_to_markers(
    wine: Wine, compile_for_windows: Compiler, tmp_path: Path
) -> None:
    names = [path.name for path in libraries_in(tmp_path)]
    split_tree(tmp_path / "tree", tmp_path / "split", SplitOrder(choice=SplitChoice()))
    hosts = [tmp_path / "split/host/bin" / name for name in names]
    assert ask(wine, compile_for_windows, tmp_path, *hosts) == [SPLIT, SPLIT]


def test_joined_libraries_load_like_the_originals(wine: Wine, compile_for_windows: Compiler, tmp_path: Path) -> None:
    names = [path.name for path in libraries_in(tmp_path)]
    split_tree(tmp_path / "tree", tmp_path / "split", SplitOrder(choice=SplitChoice()))
    devices = [tmp_path / "split" / target for target in ("gfx906", "gfx90a", "gfx1030")]
    join_tree(tmp_path / "split/host", devices, tmp_path / "joined")
    joined = [tmp_path / "joined/bin" / name for name in names]
    assert ask(wine, compile_for_windows, tmp_path, *joined) == [WHOLE, WHOLE]


@pytest.mark.parametrize("trim", [False, True], ids=["in place", "trimmed"])
def test_pruned_libraries_load_like_the_originals(
    wine: Wine, compile_for_windows: Compiler, tmp_path: Path, *, trim: bool
) -> None:
    made = []
    for path in libraries_in(tmp_path):
        made.append(tmp_path / path.name)
        rewrite_device_code(path, made[-1], KEPT, Storage(), trim=trim)
    assert ask(wine, compile_for_windows, tmp_path, *made) == [WHOLE, WHOLE]


@pytest.mark.parametrize("trim", [False, True], ids=["in place", "trimmed"])
def test_compressed_libraries_load_with_compressed_bundles(
    wine: Wine, compile_for_windows: Compiler, tmp_path: Path, *, trim: bool
) -> None:
    made = []
    for path in libraries_in(tmp_path):
        made.append(tmp_path / path.name)
        rewrite_device_code(path, made[-1], None, Storage(compress=True), trim=trim)
    compressed = WHOLE.replace(f"{PLAIN:016x}", f"{COMPRESSED:016x}")
    assert ask(wine, compile_for_windows, tmp_path, *made) == [compressed, compressed]


def test_a_program_with_device_code_runs_after_every_kind_of_edit(
    wine: Wine, compile_for_windows: Compiler, tmp_path: Path
) -> None:
    """It has the sections of a C runtime before and behind the code: imports, thread-local data, constructors."""
    sources = [ROOT / "scripts/pe_fixtures/two.c", FIXTURES / "two.obj"]
    program = compile_for_windows.program(
        ROOT / "tests/support/programs/ask_itself.c", tmp_path / "tree/bin/ask.exe", *sources
    )
    split_tree(tmp_path / "tree", tmp_path / "split", SplitOrder(choice=SplitChoice()))
    devices = [tmp_path / "split" / target for target in ("gfx906", "gfx90a", "gfx1030")]
    join_tree(tmp_path / "split/host", devices, tmp_path / "joined")
    trimmed = tmp_path / "trimmed.exe"
    rewrite_device_code(program, trimmed, KEPT, Storage(), trim=True)
    programs = [program, tmp_path / "split/host/bin/ask.exe", tmp_path / "joined/bin/ask.exe", trimmed]
    done = [wine.run(one, "a word") for one in programs]
    assert [(one.stdout.decode().strip(), one.returncode) for one in done] == [
        (WHOLE, 2), (SPLIT, 2), (WHOLE, 2), (WHOLE, 2),
    ]  # fmt: skip
    sizes = [one.stat().st_size for one in programs]
    assert sizes[1] < sizes[3] < sizes[0]
