"""Where the audit finds DLLs, compared with where Wine's loader does, which follows Windows' documented rules."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from rocwheel.audit.dll_uses import DllPlace, DllUse, find_dll_uses
from rocwheel.audit.settings import AuditSettings
from rocwheel.environment.read_tree import read_tree
from rocwheel.environment.windows_files import WindowsFiles
from tests.support.pe_files import pe_file
from tests.support.places import ROOT
from tests.support.wine import windows_path

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.wine import Compiler, Wine

pytestmark = pytest.mark.slow

FOLDERS = ("bin", "lib/one", "lib/two")
NAMES = [f"d{number}.dll" for number in range(9)]
LOST = {DllPlace.NOWHERE, DllPlace.OUT_OF_REACH}
SOURCE = "int f(void); int main(void) { return f(); }\n"


@pytest.fixture(scope="module")
def loader(compile_for_windows: Compiler, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a program that loads DLLs as Python does, from a folder of its own."""
    path = tmp_path_factory.mktemp("python") / "load_dlls.exe"
    return compile_for_windows.program(ROOT / "tests/support/programs/load_dlls.c", path, "-municode")


def write_tree(folder: Path, seed: int) -> Path:
    """Write DLLs into three folders that import each other, in some case, and now and then one that is nowhere."""
    random = Random(seed)
    for name in NAMES:
        imports = random.sample(NAMES, random.choice([0, 0, 1, 1, 2]))
        imports += ["absent.dll"] if random.random() < 0.15 else []
        spelled = [random.choice([one, one.upper(), one.title()]) for one in imports]
        path = folder / random.choice(FOLDERS) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pe_file(name, *spelled))
    return folder


def uses_in(folder: Path) -> dict[str, list[DllUse]]:
    """Return path to the imports of each DLL, as the audit finds them."""
    tree = read_tree([folder])
    uses: dict[str, list[DllUse]] = {file.path: [] for file in tree.files}
    for use in find_dll_uses(WindowsFiles(tree), tree, AuditSettings()):
        uses[use.user.path].append(use)
    return uses


def closure(uses: dict[str, list[DllUse]], path: str) -> Iterator[DllUse]:
    """Yield the imports of a DLL, of those that it imports, and so on."""
    seen, waiting = {path}, [path]
    while waiting:
        for use in uses[waiting.pop()]:
            yield use
            if use.provider is not None and use.provider.path not in seen:
                seen.add(use.provider.path)
                waiting.append(use.provider.path)


def loads(wine: Wine, loader: Path, folder: Path, path: str) -> str:
    """Return what Python's way to load a DLL comes to, once the folder "bin" is added."""
    done = wine.run(loader, "add", windows_path(folder / "bin"), "load", windows_path(folder / path))
    return done.stdout.decode().strip().partition(": ")[2]


@pytest.mark.parametrize("seed", range(4))
def test_the_audit_and_the_wine_loader_agree_on_which_dlls_are_found(
    wine: Wine, loader: Path, tmp_path: Path, seed: int
) -> None:
    folder = write_tree(tmp_path, seed)
    (folder / "bin").mkdir(exist_ok=True)
    uses = uses_in(folder)
    expected = {}
    for path, own in uses.items():
        if any(use.where in LOST for use in own):
            expected[path] = "error 126"
        elif not any(use.where in LOST for use in closure(uses, path)):
            expected[path] = "loaded"
    assert set(expected.values()) == {"loaded", "error 126"}
    assert {path: loads(wine, loader, folder, path) for path in expected} == expected


def test_a_dll_without_imported_functions_may_be_missing(wine: Wine, loader: Path, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/a.dll").write_bytes(pe_file("a.dll", unused=("absent.dll",)))
    assert uses_in(tmp_path) == {"bin/a.dll": []}
    assert loads(wine, loader, tmp_path, "bin/a.dll") == "loaded"


@pytest.mark.parametrize(
    ("place", "has_driver", "code"),
    [
        pytest.param("bin", False, 7, id="beside it"),
        pytest.param("bin", True, 7, id="beside it and in System32"),
        pytest.param("other", True, 9, id="elsewhere and in System32"),
    ],
)
def test_a_program_gets_the_dll_next_to_the_program_or_the_driver_dll(
    wine: Wine, compile_for_windows: Compiler, tmp_path: Path, place: str, has_driver: bool, code: int
) -> None:
    for folder, value in ((place, 7), ("driver", 9)):
        source = tmp_path / f"{folder}.c"
        source.write_text(f"__declspec(dllexport) int f(void) {{ return {value}; }}\n")
        compile_for_windows.program(source, tmp_path / "tree" / folder / "amdhip64_9.dll", "-shared")
    main = tmp_path / "main.c"
    main.write_text(SOURCE)
    tree = tmp_path / "tree"
    driver = (tree / "driver/amdhip64_9.dll").rename(tmp_path / "driver.dll")
    program = compile_for_windows.program(main, tree / "bin/tool.exe", tree / place / "amdhip64_9.dll")
    (use,) = [use for use in uses_in(tree)["bin/tool.exe"] if use.name == "amdhip64_9.dll"]
    assert use.where is (DllPlace.OWN if place == "bin" else DllPlace.DRIVER)
    there = wine.system32 / "amdhip64_9.dll"
    if has_driver:
        there.write_bytes(driver.read_bytes())
    try:
        assert wine.run(program).returncode == code
    finally:
        there.unlink(missing_ok=True)
