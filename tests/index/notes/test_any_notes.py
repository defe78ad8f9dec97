"""Notes of earlier runs that somebody has changed, or a disk: the index is whole, and nothing else is touched."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rocwheel.core.errors import RocwheelError
from rocwheel.index.folder_notes import KNOWN_NAME, NOTES
from rocwheel.index.write_index import write_index
from tests.support.damage import damaged
from tests.support.example_counts import examples
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE = [
    "",
    ".",
    "..",
    "../dist",
    "../dist/",
    "alpha",
    "/etc",
    "a\0b",
    "con",
    "é\n",
    "x" * 300,
    "../../outside",
    "\ud800",
]
TEXTS = st.sampled_from(HOSTILE) | st.text(max_size=5)
LISTS = st.lists(TEXTS, max_size=4)
WRITTEN = st.dictionaries(TEXTS, LISTS, max_size=3)
NOTED = {
    KNOWN_NAME: st.fixed_dictionaries(
        {},
        optional={
            "checks": st.integers(),
            "written": WRITTEN,
            "yanked": st.dictionaries(TEXTS, TEXTS, max_size=3),
            "extras": LISTS,
            "folders": LISTS,
            "placement": TEXTS,
            "machine": LISTS,
            "files": st.dictionaries(TEXTS, st.lists(TEXTS | st.integers(), max_size=5), max_size=3),
        },
    ),
    NOTES[1]: st.fixed_dictionaries({"written": WRITTEN, "extras": LISTS}),
    NOTES[2]: st.fixed_dictionaries({"families": LISTS}),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with distributions, their index, and files outside of both."""
    folder = tmp_path_factory.mktemp("place")
    make_wheel(folder / "dist", "alpha", {"alpha.py": b""}, tag="py3-none-any", is_purelib=True)
    make_wheel(folder / "dist/gfx90a", "beta", {"beta.py": b""}, tag="py3-none-any", is_purelib=True)
    (folder / "outside").mkdir()
    (folder / "outside/index.html").write_text("of somebody else")
    (folder / "simple/mine").mkdir(parents=True)
    (folder / "simple/mine/index.html").write_text("of somebody else")
    write_index(folder / "dist", folder / "simple")
    return folder


@pytest.fixture(scope="module")
def notes(place: Path) -> dict[str, bytes]:
    """Return what good runs note."""
    write_index(place / "dist", place / "simple")
    known = (place / "simple" / KNOWN_NAME).read_bytes()
    begun = b'{"written":{"alpha":["index.html","index.json"]},"extras":["packages.html"]}'
    return {
        KNOWN_NAME: known,
        NOTES[1]: begun,
        NOTES[2]: b'{"families":["gfx90a"]}',
    }


def content(folder: Path) -> dict[str, bytes]:
    """Return all files but notes, by their paths."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name not in NOTES]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def require_whole_index(place: Path, name: str, notes: bytes) -> None:
    """Assert that a run over these notes leaves everything as it was, or refuses them by name."""
    before = content(place)
    (place / "simple" / name).write_bytes(notes)
    try:
        write_index(place / "dist", place / "simple")
    except RocwheelError as e:
        assert str(place) in str(e)  # noqa: PT017  # either way is right
        (place / "simple" / name).unlink(missing_ok=True)
    finally:
        after = content(place)
        if after != before:  # for the next example
            shutil.rmtree(place / "simple", ignore_errors=True)
    assert after == before


@settings(max_examples=examples(25))
@given(st.sampled_from(NOTES).flatmap(lambda name: st.tuples(st.just(name), NOTED[name])))
@example((NOTES[2], {"families": [""]}))
@example((NOTES[2], {"families": ["a\0b", "mine"]}))
@example(
    (NOTES[1], {"written": {"mine": ["index.html"], "..": ["outside/index.html"]}, "extras": ["../outside/index.html"]})
)
@example((KNOWN_NAME, {"written": {"": ["mine"]}, "extras": ["mine/index.html", ""], "machine": ["gfx1"]}))
def test_modified_notes_still_leave_a_complete_index(place: Path, noted: tuple[str, dict[str, Any]]) -> None:
    name, document = noted
    require_whole_index(place, name, json.dumps(document).encode())


@settings(max_examples=examples(25))
@given(st.data())
def test_damaged_notes_still_leave_a_complete_index(place: Path, notes: dict[str, bytes], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(NOTES))
    require_whole_index(place, name, data.draw(damaged([notes[name]])))
