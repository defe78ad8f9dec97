"""Versions that a library has lost: the loader's answer, and the audit's."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rocwheel.audit.audit import audit
from rocwheel.audit.settings import Configuration
from rocwheel.installed.read_tree import read_tree
from tests.support.libraries import Lib, build_tree, needs_compiler

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = needs_compiler

F = "int f(void) { return 1; }"
# The reference is bound when the library is loaded, since its address is in the data.
USER = "extern int f(void); int (*pointer)(void) = f;"
BY_Y = "int y(void); int f(void) { return y(); }"
Y = Lib("y.so", source="int y(void) { return 1; }", script="Y1 { y; };")

# What stands in place of the library of version V1 at run time, and whether the loader aborts.
CASES = {
    "the version": ([Lib("x.so", source=F, script="V1 { f; };")], False),
    "no versions": ([Lib("x.so", source=F)], True),
    "versions of another library alone": ([Lib("x.so", ("y.so",), "$ORIGIN", source=BY_Y), Y], False),
    "another library before it": ([Lib("w.so", source=F), Lib("x.so", source=F)], False),
    "another library after it": ([Lib("x.so", source=F), Lib("z.so", source=F)], True),
}


def build(tmp_path: Path, libraries: list[Lib]) -> Path:
    """Return a tree whose a.so was linked with version V1 of x.so, and with others that had no symbols then."""
    linked = build_tree(tmp_path / "linked", Lib("x.so", source=F, script="V1 { f; };"), Lib("w.so"), Lib("z.so"), Y)
    root = tmp_path / "tree"
    for library in libraries:
        options = [str(linked / name) for name in library.needed]
        build_tree(root, library._replace(needed=(), options=tuple(options)))
    names = [library.path for library in libraries if library is not Y]
    options = [str(linked / name) for name in names]
    return build_tree(root, Lib("a.so", run_path="$ORIGIN", source=USER, options=tuple(options)))


@pytest.mark.parametrize("name", CASES)
def test_the_loader_aborts_where_the_audit_says_so(tmp_path: Path, name: str) -> None:
    libraries, aborts = CASES[name]
    root = build(tmp_path, libraries)
    command = [sys.executable, "-c", f"import ctypes; ctypes.CDLL({str(root / 'a.so')!r})"]
    done = subprocess.run(command, env={}, capture_output=True, text=True, check=False)
    assert (done.returncode, "check_match" in done.stderr) == ((127, True) if aborts else (0, False))
    found = [f.found for f in audit(read_tree([root]), Configuration(select=("undefined-symbol",))).findings]
    text = "asks x.so for f@V1, which has no versions at all: the loader aborts"
    assert found == ([text] if aborts else [])
