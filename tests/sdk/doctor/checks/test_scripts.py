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
        ("#! {python}\n", "old"),
        ("#!/bin/sh\n'''exec' {python} \"$0\" \"$@\"\n' '''\n", "old" * 50),
        ("#!/bin/sh\n'''exec' \"{python}\" \"$0\" \"$@\"\n' '''\n", "old place"),
        ("#!/bin/sh\n'''exec' '{python}' \"$0\" \"$@\"\n' '''\n", "old place"),
    ],
    ids=["plain", "with an option", "with a blank", "long", "with blanks, by pip", "with blanks, by uv"],
)
def test_commands_of_an_environment_that_was_moved_are_named(
    environment: Any, diagnose: Make, tmp_path: Path, line: str, folder: str
) -> None:
    python = tmp_path / folder / "bin" / "python3"
    script = environment.python.parent / "rocm-sdk"
    script.write_text(line.format(python=python) + "print(1)\n")
    text = f"commands of rocm can't start, as {python} is not there: rocm-sdk"
    assert diagnose(environment, 90006) == [["error", text, REMEDY]]


@pytest.mark.parametrize(
    "line",
    [
        "#!/bin/sh\n'''exec' '{quoted}/bin/python' \"$0\" \"$@\"\n' '''\n",
        "#!/bin/sh\n'''exec' \"$(dirname -- \"$0\")/python\" \"$0\" \"$@\"\n' '''\n",
        "#!/usr/bin/env no-such-python\n",
        "#!/bin/sh\n'''exec' '\n",
        "\x7fELF",
    ],
    ids=["with an apostrophe", "relocatable", "by env", "unreadable", "a program"],
)
def test_commands_whose_interpreter_is_there_or_unknown_are_fine(
    environment: Any, diagnose: Make, tmp_path: Path, line: str
) -> None:
    place = tmp_path / "o'brien x"
    (place / "bin").mkdir(parents=True)
    (place / "bin/python").touch()
    quoted = str(place).replace("'", "'\"'\"'")
    (environment.python.parent / "rocm-sdk").write_text(line.format(quoted=quoted))
    assert diagnose(environment, 90006) == []


def test_a_name_that_no_file_has_is_told_by_the_check_of_files_alone(environment: Any, diagnose: Make) -> None:
    record = next(environment.site.glob("rocm-7*.dist-info")) / "RECORD"
    record.write_text(record.read_text() + "../../../bin/a\0b,,\n")
    assert diagnose(environment, 90006) == []


def test_commands_whose_python_is_there_are_fine(environment: Any, diagnose: Make) -> None:
    assert diagnose(environment, 90006) == []
