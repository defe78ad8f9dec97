"""The options that every command takes, and what 0 means for `--jobs`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.commands import COMMANDS
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_takes_json_quiet_and_verbose(name: str) -> None:
    names = {option for parameter in COMMANDS[name].params for option in parameter.opts}
    assert names >= {"--json", "--quiet", "-q", "--verbose", "-v"}


def test_no_jobs_are_one_for_each_core(run: Run, tmp_path: Path) -> None:
    make_wheel(tmp_path / "dist", "alpha", {}, tag="py3-none-any")
    assert run("index", tmp_path / "dist", "--output", tmp_path / "simple").status == 0
    words = ("--project", "alpha", "-d", tmp_path / "mirror", "-j", "0")
    done = run("index", "mirror", (tmp_path / "simple").as_uri(), *words)
    assert done.status == 0, done.stderr
    assert [path.name for path in (tmp_path / "mirror" / "dist").glob("*.whl")] == ["alpha-1.0-py3-none-any.whl"]
