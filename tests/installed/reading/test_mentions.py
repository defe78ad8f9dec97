"""Names of libraries in sources and binaries."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rocwheel.environment.dist_info import mentioned_in_binary, mentioned_in_source
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
def test_a_source_mentions_libraries_by_their_names_or_the_beginnings(text: bytes, names: set[str]) -> None:
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
    ],
)
def test_a_source_mentions_what_tells_the_loader_of_folders(text: bytes, names: set[str]) -> None:
    assert mentioned_in_source(text) == names


PARTS = ("lib", ".so", ".", "so", "1", "a", "-", "+", "_", "x", " ", "/", '"', "é")
PLAIN_SEARCH = re.compile(rb"[\w+-]*\.so\b[.0-9]*|\blib[\w+-]{2,}")
"""The names as one expression, too slow for long texts."""


@given(st.lists(st.sampled_from(PARTS), max_size=40).map("".join))
@example("libx.so.1libyy.so")
@example("ab-libxy.so")
@example("liblibxy .so")
@example("xy.so.1.so1 -libab-lib.so.so")
def test_a_source_is_searched_as_by_one_expression(text: str) -> None:
    data = text.encode()
    assert mentioned_in_source(data) == {name.decode(errors="replace") for name in PLAIN_SEARCH.findall(data)}


@given(
    st.lists(st.one_of(st.binary(max_size=300), st.sampled_from([b"lib", b".so", b"\0"])), max_size=20).map(b"".join)
)
def test_whatever_the_bytes_are_names_are_parts_of_them(data: bytes) -> None:
    for name in mentioned_in_source(data):
        assert name.encode() in data
        assert ".so" in name or name.startswith("lib")
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


def test_long_runs_of_letters_in_a_source_are_searched() -> None:
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
def test_a_binary_mentions_libraries_as_strings_of_c(data: bytes, names: set[str]) -> None:
    assert mentioned_in_binary(memoryview(data)) == names


@pytest.mark.parametrize("place", range((4 << 20) - 20, (4 << 20) + 20))
def test_a_name_is_found_wherever_a_large_binary_is_cut_for_reading(place: int) -> None:
    data = bytes(place) + b"libdemo.so.1" + bytes(1 << 20)
    assert mentioned_in_binary(memoryview(data)) == {"libdemo.so.1"}


def test_the_sources_of_wheels_and_folders_have_their_mentions(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "demo", {"demo/__init__.py": b'CDLL("libdemo.so.1")'})
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.py").write_text('CDLL("libdemo.so.1")')
    for path, name in ((wheel, "demo/__init__.py"), (folder, "a.py")):
        file = read_tree([path]).by_path[name]
        assert file.mentions == {"libdemo.so.1"}
