"""Words of the command line, and names of folders, that are not in UTF-8: an error that says which, nothing written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rocwheel.index.write_index import write_index
from tests.support.command_line import rocwheel
from tests.support.wheels import make_wheel

pytestmark = pytest.mark.slow

NAME = "alpha-1.0-py3-none-any.whl"


@pytest.fixture
def dist(tmp_path: Path) -> Path:
    make_wheel(tmp_path / "dist", "alpha", {"a.py": b""}, tag="py3-none-any", is_purelib=True)
    write_index(tmp_path / "dist", tmp_path / "simple")
    return tmp_path / "dist"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("index", "yank", f"DIST/{NAME}", "--reason", "\udcff"),
            f"DIST/{NAME}: the reason '\\udcff' is not in UTF-8.",
        ),
        (
            ("publish", "DIST", "STORE", "--output", "s\udcff"),
            "--output: is 's\\udcff'; expected a folder",
        ),
        (("index", "mirror", "INDEX", "--project", "\udcff", "-d", "STORE"), "\\udcff: is no project of INDEX/."),
    ],
    ids=["yank", "publish", "mirror"],
)
def test_words_that_are_not_in_utf8_are_named(dist: Path, tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    places = {"DIST": str(dist), "STORE": str(tmp_path / "store"), "INDEX": (tmp_path / "simple").as_uri()}

    def filled(text: str) -> str:
        for word, place in places.items():
            text = text.replace(word, place)
        return text

    done = rocwheel(*map(filled, words))
    assert done.returncode == 2
    assert filled(message) in done.stderr
    assert not (tmp_path / "store").exists()


def test_a_family_whose_name_is_not_in_utf8_is_named(dist: Path, tmp_path: Path) -> None:
    folder = os.fsdecode(os.fsencode(dist) + b"/f\xff")
    Path(folder).mkdir()
    os.link(dist / NAME, f"{folder}/{NAME}")
    before = sorted((tmp_path / "simple").rglob("*"))
    done = rocwheel("index", dist)
    assert done.returncode == 2
    assert done.stderr.endswith(
        f"error: {dist}/f\\udcff: has a name that is not in UTF-8, which no address of an index can have. Rename it.\n"
    )
    assert sorted((tmp_path / "simple").rglob("*")) == before
