"""``rocwheel demo`` as a user sees it; its steps are in the tests of the floor below."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rocwheel.build.building import BuildResult
from rocwheel.demo import DemoReport

if TYPE_CHECKING:
    from tests.support.command_line import Run


import json
import subprocess
from typing import TYPE_CHECKING

from tests.support.command_line import rocwheel

REPORT = DemoReport(BuildResult("7.0.0", (), ()), "file:///simple", "/env", "rocm==7.0.0", "OK: 7 checks\n")


def test_the_self_test_is_printed_unless_quiet(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rocwheel.cli.build.run_demo", lambda *_, **__: REPORT)
    assert "OK: 7 checks" in run("demo").stdout
    assert run("demo", "--quiet") == (0, "", "")


def test_an_interrupt_reports_the_files_that_remain(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("rocwheel.cli.build.run_demo", interrupt)
    finished = run("demo", "-d", Path("here"))
    assert finished == (130, "", "finished files stay in here\ninterrupted\n")


@pytest.mark.deep
@pytest.mark.slow
def test_the_demo_produces_a_tested_environment(tmp_path: Path) -> None:
    done = rocwheel("demo", "--json", "--quiet", "--dest-dir", str(tmp_path))
    report = json.loads(done.stdout)
    assert report["schema"] == "rocwheel.demo/1"
    assert ", 0 failed, " in report["test_output"]
    tool = tmp_path / "env/bin/rocm-sdk"
    assert subprocess.run([tool, "version"], capture_output=True, text=True, check=True).stdout == "7.0.0\n"
