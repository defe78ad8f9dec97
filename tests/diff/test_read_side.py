"""Tests of what is read of each kind of input."""

from __future__ import annotations

import tarfile
from contextlib import contextmanager, suppress
from io import BytesIO
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.core.errors import InputError, ProblemsError
from rocwheel.demo import SAMPLE_SDK
from rocwheel.diff.sides import open_side, read_entry_points
from rocwheel.index.write_index import write_index
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rocwheel.diff.sides import Side


@contextmanager
def opened(path: Path) -> Iterator[Side]:
    with open_side(path) as side:
        yield side


def make_sdist(path: Path, files: dict[str, bytes]) -> Path:
    """Write an sdist with files below its one folder."""
    with tarfile.open(path, "w:gz") as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(f"demo-1.0/{name}")
            info.size = len(data)
            tar.addfile(info, BytesIO(data))
    return path


def test_an_sdist_is_read_as_a_distribution(tmp_path: Path) -> None:
    info = b"Metadata-Version: 2.4\nName: Demo\nVersion: 1.0\nRequires-Dist: numpy\n"
    with opened(make_sdist(tmp_path / "demo-1.0.tar.gz", {"PKG-INFO": info, "a.py": b"12"})) as side:
        [package] = side.packages
    assert (package.name, package.version, package.metadata.requires) == ("demo", "1.0", ("numpy",))
    assert [(item.path, item.size) for item in package.items] == [("PKG-INFO", len(info)), ("a.py", 2)]


def test_artifacts_are_read_as_the_merged_prefix() -> None:
    with opened(SAMPLE_SDK) as side:
        [package] = side.packages
        paths = [item.path for item in package.items]
    assert package.name == ""
    assert len(paths) == len(set(paths)) > 10
    assert not any(path.startswith("/") or "_lib_" in path.partition("/")[0] for path in paths)


def test_a_build_includes_the_distributions_in_family_folders(tmp_path: Path) -> None:
    make_wheel(tmp_path / "dist" / "gfx94X", "alpha", {}, tag="py3-none-any")
    make_wheel(tmp_path / "dist", "beta", {}, tag="py3-none-any")
    make_wheel(tmp_path / "dist" / "simple", "gamma", {}, tag="py3-none-any")
    with opened(tmp_path) as side:
        assert [package.name for package in side.packages] == ["beta", "alpha"]


def test_an_index_is_read_as_the_distributions_listed_on_its_pages(tmp_path: Path) -> None:
    make_wheel(tmp_path / "dist", "alpha", {"alpha.py": b"1"}, tag="py3-none-any")
    write_index(tmp_path / "dist", tmp_path / "dist/simple")
    make_wheel(tmp_path / "dist", "unlisted", {}, tag="py3-none-any")
    with opened(tmp_path / "dist/simple") as side:
        assert [(package.name, "alpha.py" in {i.path for i in package.items}) for package in side.packages] == [
            ("alpha", True)
        ]


def test_a_folder_with_an_unrelated_html_page_is_read_as_files(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<a href='guide/'>guide</a>")
    with opened(tmp_path) as side:
        assert [item.path for package in side.packages for item in package.items] == ["index.html"]


def test_every_unreadable_package_is_named(tmp_path: Path) -> None:
    for name in ("a-1.0-py3-none-any.whl", "b-1.0-py3-none-any.whl"):
        (tmp_path / name).write_bytes(b"no wheel")
    with pytest.raises(ProblemsError, match="2 problems"), opened(tmp_path):
        pass


def test_entry_points_are_read_as_groups_and_names() -> None:
    text = b"[console_scripts]\nA-b = x:main\n[x.y]\nn = z\n"
    assert read_entry_points("w", text) == ("console_scripts: A-b", "x.y: n")


@given(st.one_of(st.binary(max_size=200), st.text(alphabet="[]=:# \tab\n\r", max_size=80).map(str.encode)))
def test_any_entry_points_are_read_or_refused(data: bytes) -> None:
    found: tuple[str, ...] = ()
    with suppress(InputError):
        found = read_entry_points("w", data)
    assert all(": " in text for text in found)
