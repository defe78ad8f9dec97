"""``rocm-sdk doctor`` finds commands that name a Python which is no longer there."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

Make = Callable[..., Any]
REMEDY = "Make a new environment where this one is now, or move it back: what installers write there can't be moved"


@pytest.mark.parametrize(
    ("line", "folder"),
    [
        ("#!{python}\n", "old"),
        ("#!{python} -E\n", "old"),
        ("#!/bin/sh\n'''exec' {python} \"$0\" \"$@\"\n' '''\n", "old" * 50),
        ("#!/bin/sh\n'''exec' \"{python}\" \"$0\" \"$@\"\n' '''\n", "old place"),
        ("#!/bin/sh\n'''exec' '{python}' \"$0\" \"$@\"\n' '''\n", "old place"),
    ],
    ids=["plain", "with an option", "long", "with blanks, by pip", "with blanks, by uv"],
)
def test_commands_of_an_environment_that_was_moved_are_named(
    environment: Any, diagnose: Make, tmp_path: Path, line: str, folder: str
) -> None:
    python = tmp_path / folder / "bin" / "python3"
    script = environment.python.parent / "rocm-sdk"
    script.write_text(line.format(python=python) + "print(1)\n")
    text = f"commands of rocm can't start, as {python} is not there: rocm-sdk"
    assert diagnose(environment, 90006) == [["error", text, REMEDY]]


def test_commands_whose_python_is_there_are_fine(environment: Any, diagnose: Make) -> None:
    assert diagnose(environment, 90006) == []
