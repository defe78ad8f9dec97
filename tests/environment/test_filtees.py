"""Libraries that are loaded in front of others (DT_FILTER, DT_AUXILIARY), as the loader does it."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rocwheel.audit.audit import audit
from rocwheel.audit.settings import AuditSettings
from rocwheel.audit.subject import Subject
from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.binary.elf.facts import Filtee, read_elf
from rocwheel.environment.read_tree import read_environments, read_tree
from rocwheel.environment.run_path_advice import advise
from rocwheel.environment.run_path_choice import SetRunpath, library_places, run_path_edit
from tests.support.host import FileSystem, HostLibraries
from tests.support.libraries import Lib, build_tree, needs_compiler
from tests.support.reality import LOADER, list_libraries, model_libraries
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, needs_compiler, pytest.mark.skipif(not LOADER.exists(), reason="needs glibc's loader")]

FILTER, AUXILIARY = "-Wl,-F,", "-Wl,-f,"
FILTEES = [Lib("lib/f.so", ("d.so",), "$ORIGIN"), Lib("lib/d.so"), Lib("lib/b.so", ("e.so",), "$ORIGIN/deep")]


def user(*options: str, needed: tuple[str, ...] = ("b.so",), run_path: str = "$ORIGIN/lib") -> Lib:
    return Lib("a.so", needed, run_path, options=options)


# What a library loads is listed for one that needs it: the loader doesn't list what comes before the first file.
CASES = {
    "a filter": [user(f"{FILTER}f.so"), *FILTEES],
    "an auxiliary one": [user(f"{AUXILIARY}f.so"), *FILTEES],
    "one that is absent": [user(f"{AUXILIARY}absent.so"), *FILTEES],
    "a path": [user(f"{AUXILIARY}$ORIGIN/lib/f.so"), *FILTEES],
    "one that is needed, too": [user(f"{AUXILIARY}f.so", needed=("b.so", "f.so")), *FILTEES],
    "a text in its place": [user(f"{AUXILIARY}t.so"), *FILTEES],
    "its needs come before those of what waits": [
        user(f"{FILTER}f.so"),
        Lib("lib/f.so", ("c.so",), "$ORIGIN/one"),
        Lib("lib/b.so", ("c.so",), "$ORIGIN/two"),
        Lib("lib/one/c.so"),
        Lib("lib/two/c.so"),
    ],
    "two, in their order": [
        user(f"{AUXILIARY}f.so", f"{AUXILIARY}g.so"),
        Lib("lib/f.so", ("c.so",), "$ORIGIN/one"),
        Lib("lib/g.so", ("c.so",), "$ORIGIN/two"),
        Lib("lib/b.so"),
        Lib("lib/one/c.so"),
        Lib("lib/two/c.so"),
    ],
    "one that waits already comes to the front": [
        user(f"{AUXILIARY}f.so", needed=("b.so", "f.so")),
        Lib("lib/f.so", ("c.so",), "$ORIGIN/one"),
        Lib("lib/b.so", ("c.so",), "$ORIGIN/two"),
        Lib("lib/one/c.so"),
        Lib("lib/two/c.so"),
    ],
}


@pytest.mark.deep
@pytest.mark.parametrize("name", CASES)
def test_the_model_loads_the_same_libraries_as_the_loader(tmp_path: Path, name: str) -> None:
    root = build_tree(tmp_path / "tree", Lib("top.so", ("a.so",), "$ORIGIN"), *CASES[name])
    (root / "lib/t.so").write_text("text")
    disk = FileSystem()
    real = list_libraries(root / "top.so")
    assert real is not None
    assert real == model_libraries(root / "top.so", disk, HostLibraries(disk))


def test_a_text_file_in_place_of_a_filtee_prevents_loading(tmp_path: Path) -> None:
    root = build_tree(tmp_path / "tree", Lib("top.so", ("a.so",), "$ORIGIN"), user(f"{FILTER}t.so"), *FILTEES)
    (root / "lib/t.so").write_text("text")
    disk = FileSystem()
    assert list_libraries(root / "top.so") is None
    assert model_libraries(root / "top.so", disk, HostLibraries(disk)) is None


def test_a_missing_filtee_prevents_loading(tmp_path: Path) -> None:
    root = build_tree(tmp_path / "tree", user(f"{FILTER}absent.so", f"{AUXILIARY}also.so", needed=()))
    command = [sys.executable, "-c", f"import ctypes; ctypes.CDLL({str(root / 'a.so')!r})"]
    done = subprocess.run(command, env={}, capture_output=True, text=True, check=False)
    assert "absent.so: cannot open shared object file" in done.stderr
    found = [finding.found for finding in audit(read_environments([root]), AuditSettings(select=("un*",))).findings]
    assert found == [
        ("needs absent.so, but neither the packages, the SDK, nor the allowed system libraries include it")
    ]


def test_filtees_are_read_with_their_kind(tmp_path: Path) -> None:
    root = build_tree(tmp_path / "tree", user(f"{FILTER}f.so", f"{AUXILIARY}g.so", needed=()))
    elf = read_elf((root / "a.so").read_bytes(), name="a.so")
    assert set(elf.filtees) == {Filtee("f.so", is_optional=False), Filtee("g.so", is_optional=True)}


def test_symbols_in_filtees_are_found(tmp_path: Path) -> None:
    function = "int f(void) { return 1; }"
    libraries = [Lib("a.so", ("b.so",), "$ORIGIN", source="int f(void); int g(void) { return f(); }")]
    libraries += [Lib("b.so", run_path="$ORIGIN", options=(f"{FILTER}c.so",)), Lib("c.so", source=function)]
    root = build_tree(tmp_path / "tree", *libraries)
    command = [sys.executable, "-c", f"import ctypes; ctypes.CDLL({str(root / 'a.so')!r}, 2)"]
    assert subprocess.run(command, env={}, check=False).returncode == 0
    assert not audit(read_environments([root]), AuditSettings(select=("undefined-symbol",))).findings
    assert len(Subject(read_tree([root]), AuditSettings()).processes) == 3


def test_the_suggested_run_path_includes_the_folders_of_filtees(tmp_path: Path) -> None:
    root = build_tree(tmp_path / "tree", user(f"{FILTER}f.so", f"{AUXILIARY}absent.so", run_path=""), *FILTEES)
    wheel = make_wheel(tmp_path / "dist", "demo", {f"demo/{path}": root / path for path in ("a.so", "lib/f.so")})
    elf = read_elf((root / "a.so").read_bytes(), name="a.so")
    advice = advise(root / "a.so", "demo/", [str(wheel)])
    assert [(entry.entry, entry.libraries) for entry in advice.entries] == [("$ORIGIN/lib", ("f.so",))]
    assert advice.missing == ("b.so",)
    edit = run_path_edit(elf, "demo", ("demo/lib",), library_places(["demo/lib/f.so"]), RunpathTag.RUNPATH)
    assert edit == SetRunpath("$ORIGIN/lib", RunpathTag.RUNPATH)
