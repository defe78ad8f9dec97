"""The action for GitHub workflows: its steps run as a workflow runs them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.places import ROOT

pytestmark = pytest.mark.slow

ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
CORE = "rocm_sdk_core-7.0.0-py3-none-manylinux_2_17_x86_64.whl"
LIBRARIES = "rocm_sdk_libraries-7.0.0-py3-none-manylinux_2_5_x86_64.whl"


@pytest.fixture
def temp(tmp_path: Path) -> Path:
    """Return the runner's folder of temporary files, after the step that installs rocwheel there."""
    command = tmp_path / "runner temp/rocwheel/bin/rocwheel"
    command.parent.mkdir(parents=True)
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m rocwheel "$@"\n')
    command.chmod(0o755)
    return tmp_path / "runner temp"


def test_wheels_without_errors_pass_and_the_sarif_path_is_output(temp: Path, sample_dist: Path) -> None:
    done, outputs = run_audit(temp, paths=str(sample_dist))
    assert (done.returncode, outputs) == (0, {"sarif": f"{temp}/rocwheel.sarif"})
    assert json.loads(Path(outputs["sarif"]).read_text())["version"] == "2.1.0"


def test_errors_fail_the_step_but_the_sarif_path_is_still_output(temp: Path, sample_dist: Path) -> None:
    done, outputs = run_audit(
        temp, paths=str(sample_dist), options="--expect=runpath=$ORIGIN/none\n--select=run-path-*"
    )
    assert (done.returncode, outputs) == (1, {"sarif": f"{temp}/rocwheel.sarif"})
    (run,) = json.loads(Path(outputs["sarif"]).read_text())["runs"]
    assert {result["ruleId"] for result in run["results"]} == {"run-path-unexpected"}


def test_unreadable_input_fails_without_a_sarif_output(temp: Path) -> None:
    # Given a report that an earlier audit of the job has left
    (temp / "rocwheel.sarif").write_text("{}")
    done, outputs = run_audit(temp, paths="absent")
    assert (done.returncode, outputs) == (2, {})


def test_paths_are_separated_by_lines_and_may_contain_spaces(temp: Path, sample_dist: Path) -> None:
    folder = temp / "my wheels"
    folder.mkdir()
    (folder / CORE).write_bytes((sample_dist / CORE).read_bytes())
    paths = f"{folder / CORE}\n\n{sample_dist / LIBRARIES}\n"
    done, _ = run_audit(temp, paths=paths, options="--json")
    assert json.loads(done.stdout)["distributions"] == [CORE, LIBRARIES]


def test_packages_given_as_context_are_not_audited(temp: Path, sample_dist: Path) -> None:
    done, _ = run_audit(temp, paths=str(sample_dist / LIBRARIES), options="--json", **{"with": str(sample_dist / CORE)})
    assert json.loads(done.stdout)["distributions"] == [LIBRARIES]


def test_a_path_is_never_interpreted_as_an_option(temp: Path) -> None:
    done, _ = run_audit(temp, paths="--rules")
    assert (done.returncode, "--rules: doesn't exist" in done.stderr) == (2, True)


def test_every_input_is_used_by_a_step_and_never_interpolated_into_a_script() -> None:
    steps = ACTION["runs"]["steps"]
    assert [step["name"] for step in steps if "${{" in step.get("run", "")] == []
    used = set(re.findall(r"inputs\.(\w+)", json.dumps(steps)))
    assert used == set(ACTION["inputs"])


def test_the_documentation_lists_every_input() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs/ci.md").read_text(), re.MULTILINE)
    assert rows == list(ACTION["inputs"])


def run_audit(temp: Path, **given: str) -> tuple[subprocess.CompletedProcess[str], dict[str, str]]:
    """Run the action's audit in a workflow's shell, and return what it printed with its outputs."""
    (step,) = (step for step in ACTION["runs"]["steps"] if step.get("id") == "audit")
    inputs = {name: given.get(name, str(field.get("default", ""))) for name, field in ACTION["inputs"].items()}
    outputs = temp / "outputs"
    outputs.touch()
    environ = {**os.environ, "RUNNER_TEMP": str(temp), "GITHUB_OUTPUT": str(outputs), **_environment(step, inputs)}
    shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    done = subprocess.run(shell, capture_output=True, text=True, check=False, env=environ, cwd=temp)
    return done, dict(line.split("=", 1) for line in outputs.read_text().splitlines())


def _environment(step: dict[str, Any], inputs: dict[str, str]) -> dict[str, str]:
    return {
        name: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda m: inputs[m[1]], text) for name, text in step["env"].items()
    }
