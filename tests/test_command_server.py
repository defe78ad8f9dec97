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
def test_a_forked_command_exits_and_prints_like_a_new_interpreter(words: list[str], status: int) -> None:
    forked, new = rocwheel(*words), rocwheel(*words, environ=OTHER_HASHES)
    assert (forked.returncode, forked.stdout, forked.stderr) == (new.returncode, new.stdout, new.stderr)
    assert forked.returncode == status


def test_only_settings_read_at_interpreter_startup_require_a_new_interpreter() -> None:
    assert rocwheel("version").args == ["rocwheel", "version"]
    assert rocwheel("version", environ={"ROCWHEEL_CACHE_DIR": "/x"}).args == ["rocwheel", "version"]
    assert rocwheel("version", environ=OTHER_HASHES).args[1:] == ["-m", "rocwheel", "version"]
    assert rocwheel("version", before=["env"]).args[0] == "env"


def test_a_forked_command_uses_the_given_folder_and_variables(tmp_path: Path) -> None:
    done = rocwheel("cache", "info", cwd=tmp_path, environ={"ROCWHEEL_CACHE_DIR": str(tmp_path / "mine")})
    assert f"{tmp_path}/mine" in done.stdout
    (tmp_path / os.fsdecode(b"\xff")).mkdir()
    done = rocwheel("inspect", "nothing", cwd=tmp_path / os.fsdecode(b"\xff"))
    assert done.stderr.startswith("error: nothing: can't be read (No such file or directory).")
