"""Symbols in large trees are looked up without waste; versions that a library has lost stop the loader."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from rocwheel.audit.audit import audit
from rocwheel.audit.rules.undefined_symbols import Definitions, Scopes
from rocwheel.audit.settings import AuditSettings
from rocwheel.audit.subject import Process, Subject
from rocwheel.binary.elf.symbols import Linkage, SymbolReference
from rocwheel.environment.read_tree import read_environments
from tests.support.libraries import Lib, build_tree, needs_compiler
from tests.support.trees import data, find, library, package, tree

if TYPE_CHECKING:
    from pathlib import Path

    from rocwheel.environment.tree import InstalledFile


class CountingLinkages(dict[str, Linkage]):
    """Counts who is asked for a symbol."""

    asked: Counter[str]

    def __getitem__(self, path: str) -> Linkage:
        self.asked[path] += 1
        return super().__getitem__(path)


def test_only_files_that_define_the_symbol_are_inspected() -> None:
    linkages = CountingLinkages({f"{index}.so": Linkage(frozenset({b"f%d" % index})) for index in range(100)})
    linkages.asked = Counter()
    linkages["old.so"] = Linkage(frozenset({b"f7@V1", b"other"}), (b"V1",))
    reference = SymbolReference("f7")
    definitions = Definitions(linkages, [reference])
    assert definitions.has(reference, linkages.keys())
    assert not definitions.has(reference, {"8.so", "old.so"})
    assert linkages.asked == {"7.so": 1, "old.so": 1}


class CountingSubject(Subject):
    """Counts which files are loaded."""

    started: Counter[str]

    def start(self, file: InstalledFile) -> Process:
        """Count, and load."""
        self.started[file.path] += 1
        return super().start(file)


def test_files_declared_as_loaded_before_many_others_are_loaded_once_for_all() -> None:
    files = [library("demo/core.so", defines=["f"]), *(library(f"demo/p{index}.so") for index in range(20))]
    settings = AuditSettings(loaded_by={"demo/p*.so": ("demo/*.so",)})
    subject = CountingSubject(tree((package(), files)), settings)
    subject.started = Counter()
    scopes = Scopes(subject)
    paths = {path for process in subject.processes for path in scopes.of(process).paths}
    assert len(paths) == 21
    assert set(subject.started.values()) == {2}


def test_references_are_checked_for_both_of_two_files_at_one_path() -> None:
    user = library("demo/a.so", "libf.so", references=(SymbolReference("f"),), runpath="$ORIGIN")
    own = [library("demo/libf.so", defines=["f"]), data("demo/a.so"), user]
    assert [finding.rule for finding in find(tree((package(), own)), select=("undefined-symbol",))] == []


F_SOURCE = "int f(void) { return 1; }"
# The reference is bound when the library is loaded, since its address is in the data.
USER = "extern int f(void); int (*pointer)(void) = f;"
BY_Y = "int y(void); int f(void) { return y(); }"
Y = Lib("y.so", source="int y(void) { return 1; }", script="Y1 { y; };")

# What stands in place of the library of version V1 at run time, and whether the loader aborts.
VERSION_CASES = {
    "the version": ([Lib("x.so", source=F_SOURCE, script="V1 { f; };")], False),
    "no versions": ([Lib("x.so", source=F_SOURCE)], True),
    "versions of another library alone": ([Lib("x.so", ("y.so",), "$ORIGIN", source=BY_Y), Y], False),
    "another library before it": ([Lib("w.so", source=F_SOURCE), Lib("x.so", source=F_SOURCE)], False),
    "another library after it": ([Lib("x.so", source=F_SOURCE), Lib("z.so", source=F_SOURCE)], True),
}


def build_versions(tmp_path: Path, parts: list[Lib]) -> Path:
    """Return a tree whose a.so was linked with version V1 of x.so, and with others that had no symbols then."""
    linked = build_tree(
        tmp_path / "linked", Lib("x.so", source=F_SOURCE, script="V1 { f; };"), Lib("w.so"), Lib("z.so"), Y
    )
    root = tmp_path / "tree"
    for part in parts:
        options = [str(linked / name) for name in part.needed]
        build_tree(root, part._replace(needed=(), options=tuple(options)))
    names = [part.path for part in parts if part is not Y]
    options = [str(linked / name) for name in names]
    return build_tree(root, Lib("a.so", run_path="$ORIGIN", source=USER, options=tuple(options)))


@needs_compiler
@pytest.mark.parametrize("name", VERSION_CASES)
def test_the_loader_aborts_in_the_cases_that_the_audit_reports(tmp_path: Path, name: str) -> None:
    libraries, aborts = VERSION_CASES[name]
    root = build_versions(tmp_path, libraries)
    command = [sys.executable, "-c", f"import ctypes; ctypes.CDLL({str(root / 'a.so')!r})"]
    done = subprocess.run(command, env={}, capture_output=True, text=True, check=False)
    assert (done.returncode, "check_match" in done.stderr) == ((127, True) if aborts else (0, False))
    found = [f.found for f in audit(read_environments([root]), AuditSettings(select=("undefined-symbol",))).findings]
    text = "needs f@V1 from x.so, which has no symbol versions: the loader aborts"
    assert found == ([text] if aborts else [])


@needs_compiler
def test_the_loader_refuses_a_library_that_has_the_symbol_without_the_version(tmp_path: Path) -> None:
    source = f"{F_SOURCE} int g(void) {{ return 2; }}"
    root = build_versions(tmp_path, [Lib("x.so", source=source, script="V2 { g; };")])
    command = [sys.executable, "-c", f"import ctypes; ctypes.CDLL({str(root / 'a.so')!r})"]
    done = subprocess.run(command, env={}, capture_output=True, text=True, check=False)
    assert (done.returncode, "version `V1' not found" in done.stderr) == (1, True)
    found = [f.found for f in audit(read_environments([root]), AuditSettings(select=("undefined-symbol",))).findings]
    assert found == ["needs f@V1 from x.so, which doesn't have that version: the loader rejects the file"]
