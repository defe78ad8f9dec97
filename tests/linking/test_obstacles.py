"""Files under a library's name that are none: where the dynamic loader stops, the model and the audit stop, too."""

from __future__ import annotations

import re
import struct
import subprocess
from typing import TYPE_CHECKING

import pytest

from rocwheel.audit.audit import audit
from rocwheel.audit.settings import AuditSettings
from rocwheel.audit.subject import Subject
from rocwheel.environment.read_tree import read_environments, read_tree
from tests.support.host import FileSystem, HostLibraries
from tests.support.libraries import Lib, build_tree, needs_compiler
from tests.support.reality import LOADER, audited_libraries, list_libraries, loaded_libraries, model_libraries
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, needs_compiler, pytest.mark.skipif(not LOADER.exists(), reason="needs glibc's loader")]

MACHINE, CLASS = (18, "<H", 40), (4, "B", 1)
EDITS: dict[str, list[tuple[int, str, int]]] = {
    "another OS ABI": [(7, "B", 64)],
    "the OS ABI of GNU": [(7, "B", 3)],
    "an ABI version": [(8, "B", 1)],
    "an ABI version of GNU's": [(7, "B", 3), (8, "B", 1)],
    "another class": [CLASS],
    "another class and OS ABI": [CLASS, (7, "B", 64)],
    "another byte order": [(5, "B", 2)],
    "another version of the identification": [(6, "B", 2)],
    "padding": [(12, "B", 1)],
    "another machine": [MACHINE],
    "another machine and OS ABI": [MACHINE, (7, "B", 64)],
    "another machine's object file": [MACHINE, (16, "<H", 1)],
    "another machine and version": [MACHINE, (20, "<I", 2)],
    "an object file": [(16, "<H", 1)],
    "a core dump": [(16, "<H", 4)],
    "a program": [(16, "<H", 2)],
    "another version": [(20, "<I", 2)],
    "program headers of another size": [(54, "<H", 55)],
}
CONTENTS = {
    "nothing": b"",
    "a short text": b"INPUT(b.so.1)\n",
    "a long text": b"x" * 200,
    "63 bytes": (b"\x7fELF" * 16)[:63],
}


def tree_with(tmp_path: Path, content: bytes | None) -> Path:
    """Return a library's tree: the library is in the second folder of the run path, and ``content`` in the first."""
    libraries = [Lib("a.so", ("b.so",), "$ORIGIN/one:$ORIGIN/two"), Lib("two/b.so"), Lib("one/c.so")]
    root = build_tree(tmp_path / "tree", *libraries)
    if content is not None:
        (root / "one/b.so").write_bytes(content)
    return root


def edited(library: Path, edits: list[tuple[int, str, int]]) -> bytes:
    data = bytearray(library.read_bytes())
    for offset, layout, value in edits:
        struct.pack_into(layout, data, offset, value)
    return bytes(data)


def complaint(path: Path) -> str:
    """Return what the loader says of the file that it stops at."""
    environment = {"LD_TRACE_LOADED_OBJECTS": "1"}
    done = subprocess.run([LOADER, path], env=environment, capture_output=True, text=True, check=False)
    match = re.search(r"error while loading shared libraries: \S*b\.so: (.*)", done.stderr)
    return match[1] if match else ""


def refusal(root: Path) -> str:
    """Return the same from the audit's model."""
    (process,) = (p for p in Subject(read_tree([root]), AuditSettings()).processes if p.file.path == "a.so")
    found = [search.stop for search in process.loader.searches if search.stop]
    return found[0].reason if found else ""


def check(root: Path) -> None:
    path, disk = root / "a.so", FileSystem()
    assert list_libraries(path) == model_libraries(path, disk, HostLibraries(disk))
    assert loaded_libraries(root, path) == audited_libraries(root)[path]
    assert complaint(path) == refusal(root)


@pytest.mark.parametrize("name", EDITS)
def test_headers_are_judged_as_the_loader_judges_them(tmp_path: Path, name: str) -> None:
    root = tree_with(tmp_path, None)
    (root / "one/b.so").write_bytes(edited(root / "two/b.so", EDITS[name]))
    check(root)


@pytest.mark.parametrize("name", CONTENTS)
def test_what_is_not_an_elf_file_stops_the_loader(tmp_path: Path, name: str) -> None:
    root = tree_with(tmp_path, CONTENTS[name])
    check(root)
    assert refusal(root) in {"file too short", "invalid ELF header"}


def test_a_folder_stops_the_loader(tmp_path: Path) -> None:
    root = tree_with(tmp_path, None)
    (root / "one/b.so").mkdir()
    (root / "one/b.so/content").write_bytes(b"")
    assert list_libraries(root / "a.so") is None
    assert refusal(root) == "cannot read file data: Is a directory"


def test_a_link_to_nowhere_is_passed_over(tmp_path: Path) -> None:
    root = tree_with(tmp_path, None)
    (root / "one/b.so").symlink_to("nowhere.so")
    check(root)
    assert audited_libraries(root)[root / "a.so"] == {"b.so": str(root / "two/b.so")}


def test_the_search_ends_at_a_link_in_a_circle(tmp_path: Path) -> None:
    root = tree_with(tmp_path, None)
    (root / "one/b.so").symlink_to("b.so")
    assert list_libraries(root / "a.so") == {"b.so": ""}
    assert refusal(root) == "Too many levels of symbolic links"


def test_a_folder_that_is_a_link_in_a_circle_is_passed_over(tmp_path: Path) -> None:
    root = build_tree(tmp_path / "tree", Lib("a.so", ("b.so",), "$ORIGIN/one:$ORIGIN/two"), Lib("two/b.so"))
    (root / "one").symlink_to("one")
    check(root)


def test_the_file_that_stops_the_loader_is_reported(tmp_path: Path) -> None:
    root = tree_with(tmp_path, b"text")
    files: dict[str, Path | bytes] = {f"demo/{path}": root / path for path in ("a.so", "one/b.so", "two/b.so")}
    wheel = make_wheel(tmp_path / "dist", "demo", files)
    found = [f for f in audit(read_environments([wheel]), AuditSettings()).findings if f.rule == "unreachable-library"]
    assert [(finding.path, finding.found, finding.remedy) for finding in found] == [
        (
            "demo/a.so",
            "needs b.so, but the loader stops its search at demo/one/b.so: file too short",
            "Remove that file, or put the folder of the library first in the run path.",
        )
    ]


def test_a_link_in_a_wheel_becomes_a_text_that_stops_the_loader(tmp_path: Path) -> None:
    root = tree_with(tmp_path, b"../two/b.so")
    files: dict[str, Path | bytes] = {f"demo/{path}": root / path for path in ("a.so", "one/b.so", "two/b.so")}
    wheel = make_wheel(tmp_path / "dist", "demo", files, links=("demo/one/b.so",))
    findings = {finding.rule for finding in audit(read_environments([wheel]), AuditSettings()).findings}
    assert {"symlink", "unreachable-library"} <= findings
