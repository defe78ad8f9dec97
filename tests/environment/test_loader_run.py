"""Tests of `rocwheel.environment.loader`."""

from __future__ import annotations

import os
import platform
import random
import re
import shutil
import struct
import subprocess
from pathlib import Path
from typing import get_args

import pytest
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.enums import ENUM_D_TAG
from elftools.elf.sections import SymbolTableSection

from rocwheel.audit.audit import audit
from rocwheel.audit.settings import AuditSettings
from rocwheel.audit.subject import Subject
from rocwheel.environment.loader import How, Loader
from rocwheel.environment.read_tree import read_environments, read_tree
from rocwheel.environment.run_path_entries import CpuLevel
from tests.support.host import FileSystem, HostLibraries, read_loader_cache
from tests.support.libraries import Lib, build_tree, needs_compiler
from tests.support.reality import (
    LOADER,
    audited_libraries,
    has_cpu_level,
    list_libraries,
    loadable_files,
    loaded_libraries,
    model_libraries,
    model_undefined_symbols,
    undefined_symbols,
)
from tests.support.wheels import make_wheel

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
def test_elf_headers_are_judged_like_the_loader_does(tmp_path: Path, name: str) -> None:
    root = tree_with(tmp_path, None)
    (root / "one/b.so").write_bytes(edited(root / "two/b.so", EDITS[name]))
    check(root)


@pytest.mark.parametrize("name", CONTENTS)
def test_a_file_that_is_not_elf_stops_the_loader(tmp_path: Path, name: str) -> None:
    root = tree_with(tmp_path, CONTENTS[name])
    check(root)
    assert refusal(root) in {"file too short", "invalid ELF header"}


def test_a_folder_with_the_name_of_the_library_stops_the_loader(tmp_path: Path) -> None:
    root = tree_with(tmp_path, None)
    (root / "one/b.so").mkdir()
    (root / "one/b.so/content").write_bytes(b"")
    assert list_libraries(root / "a.so") is None
    assert refusal(root) == "cannot read file data: Is a directory"


def test_a_dangling_symlink_is_skipped(tmp_path: Path) -> None:
    root = tree_with(tmp_path, None)
    (root / "one/b.so").symlink_to("nowhere.so")
    check(root)
    assert audited_libraries(root)[root / "a.so"] == {"b.so": str(root / "two/b.so")}


def test_a_symlink_loop_ends_the_search(tmp_path: Path) -> None:
    root = tree_with(tmp_path, None)
    (root / "one/b.so").symlink_to("b.so")
    assert list_libraries(root / "a.so") == {"b.so": ""}
    assert refusal(root) == "Too many levels of symbolic links"


def test_a_folder_that_is_a_symlink_loop_is_skipped(tmp_path: Path) -> None:
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
            "Remove that file, or move the library's folder to the start of the run path.",
        )
    ]


def test_a_symlink_in_a_wheel_becomes_a_text_file_that_stops_the_loader(tmp_path: Path) -> None:
    root = tree_with(tmp_path, b"../two/b.so")
    files: dict[str, Path | bytes] = {f"demo/{path}": root / path for path in ("a.so", "one/b.so", "two/b.so")}
    wheel = make_wheel(tmp_path / "dist", "demo", files, links=("demo/one/b.so",))
    findings = {finding.rule for finding in audit(read_environments([wheel]), AuditSettings()).findings}
    assert {"symlink", "unreachable-library"} <= findings


LLVM = Path("/usr/lib/llvm-15")


def answers(path: Path) -> tuple[dict[str, str] | None, dict[str, str] | None]:
    disk = FileSystem()
    return list_libraries(path), model_libraries(path, disk, HostLibraries(disk))


CASES = {
    "run path of the file": [Lib("a.so", ("b.so",), "$ORIGIN/lib"), Lib("lib/b.so")],
    "nothing found": [Lib("a.so", ("b.so",), "$ORIGIN/lib"), Lib("other/b.so")],
    "RPATH is inherited": [
        Lib("a.so", ("b.so",), "$ORIGIN/lib", is_rpath=True),
        Lib("lib/b.so", ("c.so",)),
        Lib("lib/c.so"),
    ],
    "RUNPATH is not inherited": [Lib("a.so", ("b.so",), "$ORIGIN/lib"), Lib("lib/b.so", ("c.so",)), Lib("lib/c.so")],
    "RPATH is not inherited below a RUNPATH": [
        Lib("a.so", ("b.so",), "$ORIGIN/lib", is_rpath=True),
        Lib("lib/b.so", ("c.so",), "$ORIGIN/nothing"),
        Lib("lib/c.so"),
    ],
    "RPATH goes past an object with a RUNPATH": [
        Lib("a.so", ("b.so",), "$ORIGIN/lib:$ORIGIN/deep", is_rpath=True),
        Lib("lib/b.so", ("c.so",), "$ORIGIN/../mid"),
        Lib("mid/c.so", ("d.so",)),
        Lib("deep/d.so"),
    ],
    "own needs before those of dependencies": [
        Lib("a.so", ("b.so", "c.so"), "$ORIGIN/lib"),
        Lib("lib/b.so", ("c.so",), "$ORIGIN/private"),
        Lib("lib/c.so"),
        Lib("lib/private/c.so"),
    ],
    "a dependency's run path does not help its user": [
        Lib("a.so", ("b.so", "c.so"), "$ORIGIN/lib"),
        Lib("lib/b.so", ("c.so",), "$ORIGIN/private"),
        Lib("lib/private/c.so"),
    ],
    "a SONAME that is loaded already": [
        Lib("a.so", ("b.so", "c.so"), "$ORIGIN/lib"),
        Lib("lib/b.so", soname="c.so"),
        Lib("lib/c.so"),
    ],
    "the first entry wins": [Lib("a.so", ("b.so",), "$ORIGIN/one:$ORIGIN/two"), Lib("two/b.so"), Lib("one/b.so")],
    "up through a folder that is absent": [Lib("a.so", ("b.so",), "$ORIGIN/absent/../lib"), Lib("lib/b.so")],
    "braces": [Lib("a.so", ("b.so",), "${ORIGIN}/lib"), Lib("lib/b.so")],
    "relative entry": [Lib("a.so", ("b.so",), "lib"), Lib("lib/b.so")],
    "a name with a slash": [Lib("a.so", ("$ORIGIN/lib/b.so",)), Lib("lib/b.so")],
    "a library of the system": [Lib("a.so", ("libz.so.1",))],
    "the system's after one's own": [Lib("a.so", ("libz.so.1",), "$ORIGIN"), Lib("libz.so.1")],
    "a circle": [Lib("a.so", ("b.so",), "$ORIGIN"), Lib("b.so", ("a.so", "c.so"), "$ORIGIN"), Lib("c.so", ("b.so",))],
}


@pytest.mark.deep
@pytest.mark.parametrize("name", CASES)
def test_the_model_loads_the_same_libraries_as_the_loader(tmp_path: Path, name: str) -> None:
    root = build_tree(tmp_path / "tree", *CASES[name])
    real, model = answers(root / "a.so")
    assert real == model
    assert audited_libraries(root)[root / "a.so"] == loaded_libraries(root, root / "a.so")


def test_a_name_that_was_already_opened_is_found_again(tmp_path: Path) -> None:
    libraries = [Lib("lib/b.so", ("x.so",)), Lib("lib/x.so", soname="y.so")]
    root = build_tree(tmp_path / "tree", Lib("a.so", ("x.so", "b.so"), "$ORIGIN/lib"), *libraries)
    # With --list the loader fails where anything is missing.
    assert subprocess.run([LOADER, "--list", root / "a.so"], env={}, capture_output=True, check=False).returncode == 0
    loader = Loader(disk := FileSystem(), HostLibraries(disk))
    library = disk.open(root / "a.so")
    assert library is not None
    loader.load(library)
    assert loader.missing == []


def test_a_token_ends_at_the_end_of_its_name(tmp_path: Path) -> None:
    root = build_tree(tmp_path / "tree", Lib("a.so", ("b.so",), "$ORIGINAL/lib"))
    build_tree(tmp_path / "treeAL", Lib("lib/b.so"))
    real, model = answers(root / "a.so")
    assert real == model == {"b.so": ""}


def add_runpath(path: Path, start: int) -> None:
    """Give a library with a RPATH a RUNPATH, too: what stands behind the first ``start`` bytes of the RPATH."""
    with path.open("r+b") as file:
        dynamic = ELFFile(file).get_section_by_name(".dynamic")
        assert isinstance(dynamic, DynamicSection)
        entries = [(tag.entry.d_tag, tag.entry.d_val) for tag in dynamic.iter_tags()]
        rpath = dict(entries)["DT_RPATH"]
        # The linker leaves some entries free at the end.
        file.seek(dynamic["sh_offset"] + 16 * (len(entries) - 1))
        file.write(struct.pack("<QQ", ENUM_D_TAG["DT_RUNPATH"], rpath + start))


def test_an_rpath_in_a_file_with_a_runpath_is_not_inherited(tmp_path: Path) -> None:
    root = build_tree(
        tmp_path / "tree",
        Lib("a.so", ("b.so",), "$ORIGIN/deep:$ORIGIN/lib", is_rpath=True),
        Lib("lib/b.so", ("c.so",)),
        Lib("deep/c.so"),
    )
    assert answers(root / "a.so")[0] == {"b.so": f"{root}/lib/b.so", "c.so": f"{root}/deep/c.so"}
    add_runpath(root / "a.so", len("$ORIGIN/deep:"))
    real, model = answers(root / "a.so")
    assert real == model == {"b.so": f"{root}/lib/b.so", "c.so": ""}


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(12))
def test_the_model_agrees_with_the_loader_on_random_libraries(tmp_path: Path, seed: int) -> None:
    random_ = random.Random(seed)
    names = [f"libtest{letter}.so" for letter in "abcdef"]
    folders = ["one", "two", "three"]
    libraries = []
    for name in names:
        for folder in random_.sample(folders, random_.randint(1, 2)):
            entries = random_.sample([*(f"$ORIGIN/../{other}" for other in folders), "$ORIGIN", "/nowhere"], 2)
            needed = tuple(random_.sample(names, random_.randint(0, 3)))
            libraries.append(Lib(f"{folder}/{name}", needed, ":".join(entries), random_.random() < 0.5))
    root = build_tree(tmp_path / "tree", *libraries)
    audited = audited_libraries(root)
    for library in libraries:
        real, model = answers(root / library.path)
        assert (real or {}) == model == audited[root / library.path]


HWCAPS = "glibc-hwcaps/x86-64-v"
FOR_PROCESSORS = [
    Lib("a.so", ("b.so", "c.so", "d.so", "e.so"), "$ORIGIN/one:$ORIGIN/two"),
    *(Lib(f"one/{HWCAPS}{number}/b.so", ("f.so",), "$ORIGIN") for number in (2, 3, 4)),
    Lib("one/b.so", ("f.so",), "$ORIGIN"),
    Lib("one/f.so"),
    Lib(f"one/{HWCAPS}3/f.so"),
    Lib(f"two/{HWCAPS}4/c.so"),
    Lib("one/c.so"),
    Lib(f"two/{HWCAPS}2/d.so"),
    Lib(f"one/{HWCAPS}3/e.so"),
]


@pytest.mark.deep
@pytest.mark.skipif(LOADER.name != "ld-linux-x86-64.so.2", reason="other machines have no such levels")
@pytest.mark.parametrize("level", get_args(CpuLevel))
@pytest.mark.parametrize("is_rpath", [False, True], ids=["RUNPATH", "RPATH"])
def test_libraries_for_newer_processors_are_preferred(tmp_path: Path, level: CpuLevel, is_rpath: bool) -> None:
    if not has_cpu_level(level):
        pytest.skip(f"needs a processor of {level}")
    root = build_tree(tmp_path / "tree", *(library._replace(is_rpath=is_rpath) for library in FOR_PROCESSORS))
    disk = FileSystem()
    model = model_libraries(root / "a.so", disk, HostLibraries(disk), level)
    assert list_libraries(root / "a.so", level) == model
    assert model is not None
    assert ("" if level == "x86-64" else f"{root}/two/{HWCAPS}2/d.so") == model["d.so"]


USES = "int f(void); int g(void); int use(void) { return f() + g(); }"
F, G = "int f(void) { return 1; }", "int g(void) { return 1; }"
UNDEFINED: dict[str, tuple[list[Lib], set[str]]] = {
    "all defined": ([Lib("a.so", ("b.so",), "$ORIGIN", source=USES), Lib("b.so", source=F + G)], set()),
    "one lacks": ([Lib("a.so", ("b.so",), "$ORIGIN", source=USES), Lib("b.so", source=F)], {"g"}),
    "nothing is needed": ([Lib("a.so", source=USES)], {"f", "g"}),
    "by what a dependency needs": (
        [Lib("a.so", ("b.so",), "$ORIGIN", source=USES), Lib("b.so", ("c.so",), "$ORIGIN"), Lib("c.so", source=F + G)],
        set(),
    ),
    "weak references": ([Lib("a.so", source=f"{USES}\n#pragma weak f\n")], {"g"}),
    "weak definitions": (
        [
            Lib("a.so", ("b.so",), "$ORIGIN", source=USES),
            Lib("b.so", source=F + G + "\n#pragma weak f\n#pragma weak g\n"),
        ],
        set(),
    ),
    "hidden definitions": (
        [
            Lib("a.so", ("b.so",), "$ORIGIN", source=USES),
            Lib("b.so", source=F + '__attribute__((visibility("hidden"))) ' + G),
        ],
        {"g"},
    ),
    "default versions": (
        [
            Lib("a.so", ("b.so",), "$ORIGIN", source=USES),
            Lib("b.so", source=F + G, script="V1 { global: f; }; V2 { global: g; } V1;"),
        ],
        set(),
    ),
    "older versions": (
        [
            Lib("a.so", ("b.so",), "$ORIGIN", source=USES),
            Lib(
                "b.so",
                source="int f1(void) { return 1; } int g1(void) { return 1; }"
                '__asm__(".symver f1,f@V1\\n.symver g1,g@V2");',
                script="V1 { global: f; }; V2 { global: g; } V1;",
            ),
        ],
        {"g"},
    ),
    "data and thread-local data": (
        [
            Lib(
                "a.so",
                ("b.so",),
                "$ORIGIN",
                source="extern int d, e; extern __thread int t; int *p = &d, *q = &e; int *r(void) { return &t; }",
                options=("-fPIC",),
            ),
            Lib("b.so", source="int d = 1; __thread int t;", options=("-fPIC",)),
        ],
        {"__tls_get_addr", "e"},
    ),
}


@pytest.mark.deep
@pytest.mark.parametrize("name", UNDEFINED)
@pytest.mark.parametrize("style", ["gnu", "sysv"])
def test_undefined_symbols_match_those_that_the_loader_reports(tmp_path: Path, name: str, style: str) -> None:
    libraries, undefined = UNDEFINED[name]
    hashed = [library._replace(options=(*library.options, f"-Wl,--hash-style={style}")) for library in libraries]
    path = build_tree(tmp_path / "tree", *hashed) / "a.so"
    disk = FileSystem()
    real, model = undefined_symbols(path), model_undefined_symbols(path, disk, HostLibraries(disk))
    assert real == model == undefined


def without_value(path: Path, name: str) -> None:
    """Set a dynamic symbol's value to 0, which the loader takes for no definition."""
    with path.open("r+b") as file:
        table = ELFFile(file).get_section_by_name(".dynsym")
        assert isinstance(table, SymbolTableSection)
        index = [symbol.name for symbol in table.iter_symbols()].index(name)
        file.seek(table["sh_offset"] + index * table["sh_entsize"] + 8)
        file.write(bytes(8))


def test_a_symbol_without_a_value_is_not_a_definition(tmp_path: Path) -> None:
    libraries = [Lib("a.so", ("b.so",), "$ORIGIN", source=USES), Lib("b.so", source=F + G)]
    path = build_tree(tmp_path / "tree", *libraries) / "a.so"
    without_value(path.with_name("b.so"), "f")
    disk = FileSystem()
    assert undefined_symbols(path) == model_undefined_symbols(path, disk, HostLibraries(disk)) == {"f"}


def test_a_symlink_to_the_file_changes_its_origin(tmp_path: Path) -> None:
    root = build_tree(tmp_path / "tree", Lib("real/a.so", ("b.so",), "$ORIGIN"), Lib("real/b.so"))
    (root / "a.so").symlink_to("real/a.so")
    real, model = answers(root / "a.so")
    assert real == model == {"b.so": ""}


def test_a_file_that_is_already_loaded_under_another_name_is_not_loaded_again(tmp_path: Path) -> None:
    root = build_tree(tmp_path / "tree", Lib("a.so", ("b.so", "c.so"), "$ORIGIN"), Lib("b.so", soname="z.so"))
    os.link(root / "b.so", root / "c.so")
    loader = Loader(disk := FileSystem(), HostLibraries(disk))
    library = disk.open(root / "a.so")
    assert library is not None
    loader.load(library)
    assert [Path(loaded.library.path).name for loaded in loader.objects] == ["a.so", "b.so"]
    loader.load(library)
    assert len(loader.objects) == 2
    assert list_libraries(root / "a.so") is not None


def test_a_library_opened_by_name_is_searched_like_a_needed_library(tmp_path: Path) -> None:
    root = build_tree(tmp_path / "tree", Lib("a.so", (), "$ORIGIN/lib"), Lib("lib/b.so", ("c.so",)))
    loader = Loader(disk := FileSystem(), HostLibraries(disk))
    library = disk.open(root / "a.so")
    assert library is not None
    loader.load(library)
    search = loader.open_name("b.so")
    assert (search.how, search.entry) == (How.RUNPATH, "$ORIGIN/lib")
    assert [missing.name for missing in loader.missing] == ["c.so"]


def compare_all(folders: list[Path]) -> int:
    disk = FileSystem()
    system = HostLibraries(disk)
    compared = 0
    for path in (path for folder in folders for path in loadable_files(folder, disk)):
        real = list_libraries(path)
        if real is not None:
            model = model_libraries(path, disk, system)
            assert (path, real) == (path, model)
            assert (path, undefined_symbols(path)) == (path, model_undefined_symbols(path, disk, system))
            compared += 1
    return compared


@pytest.mark.skipif(not LLVM.is_dir(), reason="needs llvm-15")
def test_the_model_agrees_with_the_loader_on_all_of_llvm() -> None:
    assert compare_all([LLVM]) > 50


@pytest.mark.corpus
def test_the_model_agrees_with_the_loader_on_everything_installed_on_the_machine() -> None:
    assert compare_all([Path("/usr/lib"), Path("/usr/bin"), Path("/opt")]) > 1000


def test_the_audit_agrees_with_the_loader_on_the_installed_sample_sdk(installed_sample: Path) -> None:
    answers = audited_libraries(installed_sample)
    assert len(answers) > 5
    for path, audited in answers.items():
        assert (path, audited) == (path, loaded_libraries(installed_sample, path))


def test_programs_in_the_data_of_a_wheel_find_the_same_libraries_as_when_installed(tmp_path: Path) -> None:
    libraries = (
        Lib("tool.so", ("libx.so.1", "libn.so"), "$ORIGIN/../lib"),
        Lib("libx.so.1", ("liby.so",), "$ORIGIN/python3.11/site-packages/demo"),
        Lib("liby.so"),
    )
    built = build_tree(tmp_path / "built", *libraries)
    places = {"tool.so": ("scripts", "bin/tool.so"), "libx.so.1": ("data/lib", "lib/libx.so.1")}
    places["liby.so"] = ("platlib/demo", "lib/python3.11/site-packages/demo/liby.so")
    members = {f"demo-1.0.data/{folder}/{name}": built / name for name, (folder, _) in places.items()}
    wheel = make_wheel(tmp_path / "dist", "demo", members, tag="cp311-cp311-linux_x86_64")
    for name, (_, place) in places.items():
        (tmp_path / "env" / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(built / name, tmp_path / "env" / place)
    (process,) = (p for p in Subject(read_tree([wheel]), AuditSettings()).processes if p.file.name == "tool.so")
    found = {search.name: search.found is not None for search in process.loader.searches}
    real = list_libraries(tmp_path / "env/bin/tool.so") or {}
    assert found == {name: path != "" for name, path in real.items()} == {
        "libx.so.1": True, "liby.so": True, "libn.so": False
    }  # fmt: skip


def test_the_model_agrees_with_the_loader_on_the_installed_sample_sdk(installed_sample: Path) -> None:
    assert shutil.which("gcc")
    assert compare_all([installed_sample]) > 5


def loader_cache(*entries: tuple[str, str, int]) -> bytes:
    """Return a cache of names, paths and processor bits, of libraries for x86-64."""
    texts = b"".join(f"{name}\0{path}\0".encode() for name, path, _ in entries)
    start = offset = 48 + 24 * len(entries)
    rows = b""
    for name, path, hardware in entries:
        rows += struct.pack("<iIIIQ", 0x0303, offset, offset + len(name) + 1, 0, hardware)
        offset += len(name) + len(path) + 2
    return struct.pack("<20sII20x", b"glibc-ld.so.cache1.1", len(entries), offset - start) + rows + texts


def test_processor_specific_entries_in_the_loader_cache_are_skipped(tmp_path: Path) -> None:
    entries = [("libx.so.1", "/hw/libx.so.1", 1 << 62), ("libx.so.1", "/a/libx.so.1", 0), ("libx.so.1", "/b/x", 0)]
    (tmp_path / "cache").write_bytes(loader_cache(*entries))
    assert read_loader_cache(tmp_path / "cache", 62) == {"libx.so.1": "/a/libx.so.1"}
    assert read_loader_cache(tmp_path / "absent", 62) == {}


def test_the_system_loader_cache_can_be_read() -> None:
    cache = Path("/etc/ld.so.cache")
    if not cache.exists():
        pytest.skip("needs glibc's loader cache")
    found = read_loader_cache(cache, {"x86_64": 62, "aarch64": 183}[platform.machine()])
    assert Path(found["libc.so.6"]).exists()
