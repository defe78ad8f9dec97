"""Names of libraries in sources and binaries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rocwheel.installed.reading.mentions import mentioned_in_binary, mentioned_in_source
from rocwheel.installed.reading.read_tree import read_tree
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
