"""Tests of `rocwheel.environment.dist_info`."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING
from zipfile import ZipFile

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rocwheel.environment.dist_info import find_script_problems, mentioned_in_binary, mentioned_in_source
from rocwheel.environment.read_tree import read_tree
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (b'ctypes.CDLL("libdemo.so.1")', {"libdemo.so.1"}),
        (b"load(os.path.join(HERE, '_ops.so'))", {"_ops.so"}),
        (b'f"{folder}/libdemo-{version}.so"', {"libdemo-", ".so"}),
        (b"LoadLibrary('libdemo')", {"libdemo"}),
        (b"find_library('demo')", set()),
        (b"the library is so good", set()),
    ],
)
def test_library_names_and_their_prefixes_are_found_in_source(text: bytes, names: set[str]) -> None:
    found = mentioned_in_source(text)
    assert names <= found
    assert not {name for name in found if "good" in name or "find" in name}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (b"os.add_dll_directory(folder)", {"add_dll_directory"}),
        (b"x = -rocm_sdk.count", {"rocm_sdk"}),
        (b'CDLL("rocm_sdk.so")', {"rocm_sdk", "rocm_sdk.so"}),
        (b"rocm_sdk_core", set()),
        (b'WinDLL(join(libs, "re2.dll"))', {"re2.dll"}),
        (b"[r'bin\\python3.12.dll', 'x.dlls', '.dll']", {"python3.12.dll"}),
    ],
)
def test_calls_that_add_loader_folders_are_found_in_source(text: bytes, names: set[str]) -> None:
    assert mentioned_in_source(text) == names


PARTS = ("lib", ".so", ".", "so", "1", "a", "-", "+", "_", "x", " ", "/", '"', "é")
PLAIN_SEARCH = re.compile(rb"[\w+-]*\.so\b[.0-9]*|\blib[\w+-]{2,}")
"""The names as one expression, too slow for long texts."""


@given(st.lists(st.sampled_from(PARTS), max_size=40).map("".join))
@example("libx.so.1libyy.so")
@example("ab-libxy.so")
@example("liblibxy .so")
@example("xy.so.1.so1 -libab-lib.so.so")
def test_searching_a_source_matches_a_single_regular_expression(text: str) -> None:
    data = text.encode()
    assert mentioned_in_source(data) == {name.decode(errors="replace") for name in PLAIN_SEARCH.findall(data)}


@given(
    st.lists(st.one_of(st.binary(max_size=300), st.sampled_from([b"lib", b".so", b"\0"])), max_size=20).map(b"".join)
)
def test_mentioned_names_are_always_part_of_the_data(data: bytes) -> None:
    for name in mentioned_in_source(data):
        assert name.encode() in data
        assert ".so" in name or ".dll" in name or name.startswith("lib") or name in {"add_dll_directory", "rocm_sdk"}
    for name in mentioned_in_binary(memoryview(data)):
        assert name.encode() + b"\0" in data
        assert ".so" in name


LONG_RUNS = """
from rocwheel.environment.dist_info import mentioned_in_source
data = b"0123456789abcdef" * 65536
for text in (data, b"lib" * 300_000, b"-lib" * 300_000, b"a" * 1_000_000 + b".so.1", b".so" * 300_000):
    mentioned_in_source(text)
print(sorted(mentioned_in_source(data + b"'libdemo.so.1'")), mentioned_in_source(b"a" * 1_000_000 + b".so.1"))
"""


def test_a_source_with_long_runs_of_letters_is_searched_quickly() -> None:
    searched = subprocess.run([sys.executable, "-c", LONG_RUNS], capture_output=True, text=True, check=True, timeout=60)
    assert searched.stdout == f"['libdemo.so.1'] frozenset({{'{'a' * 128}.so.1'}})\n"


@pytest.mark.parametrize(
    ("data", "names"),
    [
        (b"\0libdemo.so.1\0", {"libdemo.so.1"}),
        (b"\0/opt/x/lib/libdemo.so\0more", {"libdemo.so"}),
        (b"cannot open %s.so: no", set()),
        (b"libdemo.so.1", set()),
        (b"\0" + b"a" * 200 + b".so\0", {"a" * 128 + ".so"}),
    ],
)
def test_library_names_in_a_binary_are_found_as_c_strings(data: bytes, names: set[str]) -> None:
    assert mentioned_in_binary(memoryview(data)) == names


@pytest.mark.parametrize("place", range((4 << 20) - 20, (4 << 20) + 20))
def test_a_name_across_a_chunk_boundary_of_a_large_binary_is_found(place: int) -> None:
    data = bytes(place) + b"libdemo.so.1" + bytes(1 << 20)
    assert mentioned_in_binary(memoryview(data)) == {"libdemo.so.1"}


def test_mentions_are_read_from_sources_in_wheels_and_folders(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "demo", {"demo/__init__.py": b'CDLL("libdemo.so.1")'})
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.py").write_text('CDLL("libdemo.so.1")')
    for path, name in ((wheel, "demo/__init__.py"), (folder, "a.py")):
        file = read_tree([path]).by_path[name]
        assert file.mentions == {"libdemo.so.1"}


MODULE = b"def main(): pass\nclass App:\n    def run(): pass\nif True:\n    other = main\nfrom x import y as z\n"


def problems(reference: str, module: bytes = MODULE) -> list[str]:
    texts = {"demo/__init__.py": b"", "demo/_cli.py": module, "demo/_built.pyd": b"MZ"}
    text = f"[console_scripts]\nroc-obj = {reference}\n".encode()
    return [problem.found for problem in find_script_problems(text, texts, texts.__getitem__)]


@pytest.mark.parametrize(
    "reference",
    [
        "demo._cli:main",
        "demo._cli:App.run",
        "demo._cli:other",
        "demo._cli : z",
        "demo._cli:main [extra]",
        "demo._built:main",
        "elsewhere._cli:main",
    ],
)
def test_commands_whose_function_exists_or_cannot_be_determined_have_no_problem(reference: str) -> None:
    assert problems(reference) == []


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        ("demo._cli:absent", "the command 'roc-obj' calls absent in demo/_cli.py, which doesn't define it"),
        ("demo:main", "the command 'roc-obj' calls main in demo/__init__.py, which doesn't define it"),
        ("demo.absent:main", "the command 'roc-obj' calls a function in demo.absent, which isn't in the package"),
        ("demo._cli", "the command 'roc-obj' has no function: expected module:function, found 'demo._cli'"),
        ("rm -rf", "the command 'roc-obj' has no function: expected module:function, found 'rm -rf'"),
    ],
)
def test_commands_whose_function_is_missing_have_a_problem(reference: str, found: str) -> None:
    assert problems(reference) == [found]


@pytest.mark.parametrize(
    "module",
    [b"from x import *", b"def __getattr__(name): ...", b"globals()['main'] = 1", b"not Python at all"],
)
def test_modules_that_define_names_only_at_run_time_are_not_judged(module: bytes) -> None:
    assert problems("demo._cli:main", module) == []


def test_a_module_larger_than_256_kib_is_not_judged() -> None:
    (found,) = problems("demo._cli:main", b"x" * (256 << 10))
    assert found == "the command 'roc-obj' calls main in demo/_cli.py, which doesn't define it"
    assert problems("demo._cli:main", b"x" * (256 << 10) + b"\n") == []


def judged(commands: dict[str, str], texts: dict[str, bytes]) -> tuple[list[str], list[str]]:
    """Return which commands have a problem, and which modules were read."""
    read = []

    def note(path: str) -> bytes:
        read.append(path)
        return texts[path]

    lines = "".join(f"{name} = {reference}\n" for name, reference in commands.items())
    found = list(find_script_problems(f"[console_scripts]\n{lines}".encode(), texts, note))
    return [problem.facts[1] for problem in found], read


def test_only_one_mib_of_modules_is_judged_in_the_order_of_the_commands() -> None:
    texts = {f"m{number}.py": b"#" * (256 << 10) for number in range(6)}
    problematic, read = judged({f"c{number}": f"m{number}:main" for number in range(6)}, texts)
    assert problematic == ["c0", "c1", "c2", "c3"]
    assert read == ["m0.py", "m1.py", "m2.py", "m3.py"]


def test_a_module_with_several_commands_is_read_once() -> None:
    assert judged({"a": "m:one", "b": "m:two"}, {"m.py": b"def one(): pass"}) == (["b"], ["m.py"])


def test_a_malformed_entry_points_file_is_one_problem() -> None:
    (problem,) = find_script_problems(b"demo", (), lambda _: b"")
    assert problem.found == "its entry_points.txt can't be read (MissingSectionHeaderError)"


INFO = {
    "METADATA": "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n",
    "entry_points.txt": "[console_scripts]\nroc-obj = demo._cli:roc_obj\n",
    "RECORD": "demo/__init__.py,,\ndemo/_cli.py,,\n",
}


def test_wheels_and_environments_report_the_same_problems(tmp_path: Path) -> None:
    files = {"demo/__init__.py": "", "demo/_cli.py": MODULE.decode()}
    files |= {f"demo-1.0.dist-info/{name}": text for name, text in INFO.items()}
    wheel = tmp_path / "demo-1.0-py3-none-any.whl"
    with ZipFile(wheel, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    with ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    for path in (wheel, tmp_path / "site"):
        (owner, *_) = read_tree([path]).distributions
        assert [problem.found for problem in owner.script_problems] == [
            "the command 'roc-obj' calls roc_obj in demo/_cli.py, which doesn't define it"
        ]


def test_a_damaged_module_does_not_stop_the_reading(tmp_path: Path) -> None:
    wheel = tmp_path / "demo-1.0-py3-none-any.whl"
    with ZipFile(wheel, "w") as archive:
        archive.writestr("demo/_cli.py", MODULE)
        for name, text in INFO.items():
            archive.writestr(f"demo-1.0.dist-info/{name}", text)
    data = wheel.read_bytes()
    at = data.index(MODULE)
    wheel.write_bytes(data[:at] + b"#" + data[at + 1 :])
    tree = read_tree([wheel])
    assert tree.distributions[0].script_problems == ()
    assert tree.by_path["demo/_cli.py"].problem
