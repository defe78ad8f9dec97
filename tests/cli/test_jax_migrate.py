"""``rocwheel jax translate`` and ``migrate``."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

from rocwheel.frameworks.jax import migrate
from rocwheel.frameworks.jax.migrate import Edit, FileEdits, Proposal
from tests.support.command_line import rocwheel

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run


@pytest.mark.slow
def test_translate_accepts_a_command_line_after_a_double_dash(tmp_path: Path) -> None:
    old = [
        "python",
        "build/build.py",
        "build",
        "--wheels=jax-rocm-pjrt",
        "--bazel_options=--linkopt=-Wl,-rpath,$ORIGIN",
    ]
    made = rocwheel("jax", "translate", "--version", "1.0", "--", *old, cwd=tmp_path)
    assert made.returncode == 0
    assert "bazel build --config=rocm_build --config=python312 '--linkopt=-Wl,-rpath,$ORIGIN' //pjrt" in made.stdout
    assert "#   --linkopt=-Wl,-rpath,$ORIGIN: went through a second shell" in made.stdout


@pytest.mark.slow
def test_variables_in_a_command_line_are_preserved(tmp_path: Path) -> None:
    old = ["build/build.py", "build", "--wheels=jax-rocm-pjrt", "--rocm_amdgpu_targets=${T}", "--bazel_options=${ALL}"]
    made = rocwheel("jax", "translate", "--", *old, cwd=tmp_path)
    assert (
        'bazel build --config=rocm_build --config=python312 --repo_env=TF_ROCM_AMDGPU_TARGETS="${T}" '
        '--action_env=TF_ROCM_AMDGPU_TARGETS="${T}" ${ALL} //pjrt:pjrt_c_api_gpu_plugin.so\n'
    ) in made.stdout


@pytest.mark.slow
def test_make_variables_are_converted_to_shell_variables_with_a_warning(tmp_path: Path) -> None:
    old = ["build/build.py", "build", "--wheels=jax-rocm-pjrt", "--rocm_path=$(ROCM_PATH)", "--clang_path=$$CLANG"]
    made = rocwheel("jax", "translate", "--", *old, cwd=tmp_path)
    assert made.returncode == 0
    assert '--repo_env=ROCM_PATH="${ROCM_PATH?}"' in made.stdout
    assert '--repo_env=CC="$CLANG"' in made.stdout
    assert "#   $(ROCM_PATH): is make syntax; the shell command uses ${ROCM_PATH?}. Set that variable" in made.stdout
    told = " ".join(made.stderr.split())
    assert "$$CLANG is make syntax; the shell command uses $CLANG. Set that variable" in told


@pytest.mark.slow
def test_shell_substitutions_are_left_unchanged(tmp_path: Path) -> None:
    old = ["build/build.py", "build", "--wheels=jax-rocm-pjrt", "--rocm_path=$(which-rocm)", "--clang_path=${CLANG}"]
    made = rocwheel("jax", "translate", "--", *old, cwd=tmp_path)
    assert '--repo_env=ROCM_PATH="$(which-rocm)"' in made.stdout
    assert '--repo_env=CC="${CLANG}"' in made.stdout
    assert made.stderr == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "file"),
    [("make wheels", "Makefile"), ("CC=a gmake -f rocm.mk", "rocm.mk"), ("bash ci/build.sh", "ci/build.sh")],
)
def test_a_command_that_runs_a_script_points_to_that_file(words: str, file: str, tmp_path: Path) -> None:
    made = rocwheel("jax", "translate", "--", *words.split(), cwd=tmp_path)
    assert (made.returncode, made.stdout) == (2, "")
    told = " ".join(made.stderr.split())
    assert f"runs {file!r} instead of build/build.py" in told
    assert "Pass the command line in that file." in told


@pytest.mark.slow
def test_translate_requires_a_command_line(tmp_path: Path) -> None:
    made = rocwheel("jax", "translate", cwd=tmp_path)
    assert (made.returncode, made.stdout) == (2, "")


PROPOSAL = Proposal(
    "0123456789abcdef",
    "1 May 2026",
    (
        FileEdits(1, "jax_rocm_plugin/.bazelrc", "configs", (Edit(after="build -c opt\n", new="build:rocm -g\n"),)),
        FileEdits(2, "a.sh", "calls Bazel", (Edit(old="build/build.py\n", new="bazel run //a\n"),)),
    ),
)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(migrate, "rocm_jax_proposal", lambda: PROPOSAL)
    (tmp_path / "jax_rocm_plugin").mkdir()
    (tmp_path / "jax_rocm_plugin/.bazelrc").write_text("build -c opt\n")
    (tmp_path / "a.sh").write_text("build/build.py\n")
    subprocess.run("git init -q && git add .", shell=True, cwd=tmp_path, check=True)
    return tmp_path


BAZELRC_PATCH = """\
diff --git a/jax_rocm_plugin/.bazelrc b/jax_rocm_plugin/.bazelrc
--- a/jax_rocm_plugin/.bazelrc
+++ b/jax_rocm_plugin/.bazelrc
@@ -1 +1,2 @@
 build -c opt
+build:rocm -g
"""


def test_migrate_prints_the_patch_of_the_selected_phases(run: Run, checkout: Path) -> None:
    made = run("jax", "migrate", checkout, "--phase", "1")
    assert made == (0, f"Phase 1: jax_rocm_plugin/.bazelrc: configs\n\n{BAZELRC_PATCH}", "")
    assert (checkout / "a.sh").read_text() == "build/build.py\n"


def test_migrate_apply_prints_each_change_with_its_phase_and_reason(run: Run, checkout: Path) -> None:
    made = run("jax", "migrate", checkout, "--apply")
    assert made == (0, "phase 1: jax_rocm_plugin/.bazelrc: configs\nphase 2: a.sh: calls Bazel\n", "")
    assert (checkout / "a.sh").read_text() == "bazel run //a\n"
    assert run("jax", "migrate", checkout) == (0, "", f"{checkout}: nothing to change\n")
    assert run("jax", "migrate", checkout, "--quiet") == (0, "", "")


def test_json_has_the_edits_and_the_patch(run: Run, checkout: Path) -> None:
    document = json.loads(run("jax", "migrate", checkout, "--phase", "1", "--json").stdout)
    assert document == {
        "schema": "rocwheel.jax.migrate/2",
        "applied": False,
        "edits": [{"path": "jax_rocm_plugin/.bazelrc", "phase": 1, "reason": "configs"}],
        "patch": f"Phase 1: jax_rocm_plugin/.bazelrc: configs\n\n{BAZELRC_PATCH}",
    }


def test_a_caller_that_cannot_be_converted_stops_the_phase(run: Run, checkout: Path) -> None:
    (checkout / "b.sh").write_text("python build/build.py build\n")
    subprocess.run(["git", "add", "."], cwd=checkout, check=True)
    made = run("jax", "migrate", checkout, "--apply")
    assert (made.status, made.stdout) == (2, "")
    assert made.stderr == (
        f"error: {checkout}: phase 4 can't convert these lines. Call Bazel as in BUILDING.md: 1 problem\n"
        "  b.sh:1: still needs build.py\n"
    )
    assert (checkout / "a.sh").read_text() == "build/build.py\n"


@pytest.mark.parametrize("phase", ["0", "5", "two"])
def test_an_invalid_phase_is_refused(run: Run, checkout: Path, phase: str) -> None:
    assert run("jax", "migrate", checkout, "--phase", phase).status == 2
