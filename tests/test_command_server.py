"""Commands that are forked for tests: they do what commands of new interpreters do."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.support.command_line import rocwheel

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

OTHER_HASHES = {"PYTHONHASHSEED": "1"}
"""What makes a command get a new interpreter."""


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["version"], 0),
        (["targets", "expand", "gfx94X-all"], 0),
        (["device", "--help"], 0),
        (["inspect", "no such file"], 2),
        (["no-such-command"], 2),
    ],
    ids=str,
)
def test_a_forked_command_ends_and_prints_as_one_of_a_new_interpreter(words: list[str], status: int) -> None:
    forked, new = rocwheel(*words), rocwheel(*words, environ=OTHER_HASHES)
    assert (forked.returncode, forked.stdout, forked.stderr) == (new.returncode, new.stdout, new.stderr)
    assert forked.returncode == status


def test_only_what_an_interpreter_reads_at_its_start_takes_a_new_one() -> None:
    assert rocwheel("version").args == ["rocwheel", "version"]
    assert rocwheel("version", environ={"ROCWHEEL_CACHE_DIR": "/x"}).args == ["rocwheel", "version"]
    assert rocwheel("version", environ=OTHER_HASHES).args[1:] == ["-m", "rocwheel", "version"]
    assert rocwheel("version", before=["env"]).args[0] == "env"


def test_a_forked_command_has_the_folder_and_the_variables_that_it_is_given(tmp_path: Path) -> None:
    done = rocwheel("cache", "info", cwd=tmp_path, environ={"ROCWHEEL_CACHE_DIR": str(tmp_path / "mine")})
    assert f"{tmp_path}/mine" in done.stdout
    (tmp_path / os.fsdecode(b"\xff")).mkdir()
    done = rocwheel("inspect", "nothing", cwd=tmp_path / os.fsdecode(b"\xff"))
    assert done.stderr.startswith("error: nothing: can't be read (No such file or directory).")
