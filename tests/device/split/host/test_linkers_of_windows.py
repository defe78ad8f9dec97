"""DLLs as linkers make them by many options: split and joined they are what they were, and load all the while."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.bundles.storage import Storage
from rocwheel.binary.pe.facts import read_pe
from rocwheel.binary.pe.layout import find_layout_faults
from rocwheel.device.edit_file import rewrite_device_code
from rocwheel.device.split.join_tree import join_tree
from rocwheel.device.split.split_tree import SplitOrder, split_tree
from rocwheel.device.split.splitting import SplitChoice
from tests.support.places import ROOT
from tests.support.wine import windows_path

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.tools import RunTool
    from tests.support.wine import Compiler, Wine

pytestmark = pytest.mark.slow

SOURCE, CODE = ROOT / "scripts/pe_fixtures/two.c", ROOT / "tests/fixtures/pe/two.obj"
CLANG = ["clang-16", "--target=x86_64-pc-windows-msvc", "-g", "-gcodeview", "-ffreestanding", "-O1"]
LLD = ["lld-link-16", "/nodefaultlib", "/dll", "/noentry"]
GNU = ["x86_64-w64-mingw32-gcc", "-O1", "-shared", "-Wl,--no-insert-timestamp"]
LINKS = {
    "debug information in another file": [*LLD, "/debug", "/pdb:x.pdb"],
    "larger file alignment": [*LLD, "/filealign:4096"],
    "symbols and long names of sections": [*LLD, "/debug:dwarf", "/debug:symtab", "/lldmingw"],
    "one address and no relocations": [*LLD, "/fixed"],
    "GNU with a C runtime": [*GNU, "-s"],
    "GNU with debug information": [*GNU, "-g", "-Wl,--build-id"],
}
FAULTS: tuple[object, ...] = ()


def link(words: list[str], library: Path, run_tool: RunTool) -> None:
    folder = library.parent
    folder.mkdir(parents=True)
    if words[0] == GNU[0]:
        run_tool([*words, "-o", str(library), str(SOURCE), str(CODE)])
        return
    unit = folder.parent / "two.obj"
    run_tool([*CLANG, "-c", "-o", str(unit), str(SOURCE)])
    made = [f"/out:{library}", f"/implib:{folder.parent / 'two.lib'}", str(unit), str(CODE)]
    run_tool([*(word.replace("x.pdb", str(folder.parent / "x.pdb")) for word in words), *made])


def faults_of(path: Path) -> tuple[object, ...]:
    data = path.read_bytes()
    return find_layout_faults(data, read_pe(data, name=path.name), name=path.name)


@pytest.mark.parametrize("words", LINKS.values(), ids=LINKS.keys())
def test_it_is_the_same_after_all_and_answers_in_between(
    words: list[str], run_tool: RunTool, wine: Wine, compile_for_windows: Compiler, tmp_path: Path
) -> None:
    library = tmp_path / "made/tree/a.dll"
    link(words, library, run_tool)
    split_tree(library.parent, tmp_path / "split", SplitOrder(choice=SplitChoice()))
    host = tmp_path / "split/host"
    devices = [tmp_path / "split" / target for target in ("gfx906", "gfx90a", "gfx1030")]
    join_tree(host, devices, tmp_path / "joined")
    trimmed = tmp_path / "trimmed.dll"
    rewrite_device_code(library, trimmed, None, Storage(compress=True), trim=True)
    assert (tmp_path / "joined/a.dll").read_bytes() == library.read_bytes()
    assert [faults_of(path) for path in (library, host / "a.dll", trimmed)] == [FAULTS] * 3
    program = compile_for_windows.program(ROOT / "tests/support/programs/ask_library.c", tmp_path / "ask.exe")
    answers = [wine.run(program, windows_path(path)).stdout.split() for path in (library, host / "a.dll", trimmed)]
    assert [words[:2] for words in answers] == [[b"35", b"48495046"], [b"35", b"4b504948"], [b"35", b"48495046"]]
