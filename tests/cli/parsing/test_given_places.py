"""Files and folders that commands can't use, in the words of all messages about files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run

pytestmark = pytest.mark.slow

ABSENT = "can't be read (No such file or directory). Check that it exists and may be read."
COMMANDS = [
    ("device", "list", "{}"),
    ("device", "prune", "{}", "--keep", "gfx906", "--output", "out"),
    ("device", "bundle", "{}", "--output", "out"),
    ("targets", "runs-on", "gfx906", "{}"),
    ("targets", "coherent", "{}"),
    ("targets", "check", "--root", "{}"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_what_is_not_there_is_named_with_what_to_do(run: Run, tmp_path: Path, command: tuple[str, ...]) -> None:
    place = str(tmp_path / "none")
    finished = run(*(part.format(place) for part in command))
    assert finished == (2, "", f"error: {place}: {ABSENT}\n")


def test_it_is_in_the_json_too(run: Run, tmp_path: Path) -> None:
    first, second = tmp_path / "one", tmp_path / "two"
    document = json.loads(run("targets", "runs-on", "gfx906", first, second, "--json").stdout)
    assert document["schema"] == "rocwheel.errors/1"
    assert [error["text"] for error in document["errors"]] == [f"{first}: {ABSENT}", f"{second}: {ABSENT}"]


def test_a_folder_in_the_place_of_a_file_is_refused(run: Run, tmp_path: Path) -> None:
    expected = (
        f"error: {tmp_path}: can't be read (Is a directory); expected a Makefile, a shell script, a workflow or "
        "Python. Name a file, not a folder.\n"
    )
    assert run("jax", "translate", "--file", tmp_path) == (2, "", expected)


def test_a_file_in_the_place_of_a_folder_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    expected = f"error: {tmp_path}/file: is not a folder. Name a folder.\n"
    assert run("targets", "check", "--root", tmp_path / "file") == (2, "", expected)
