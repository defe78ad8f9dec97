"""``rocwheel jax translate`` as a user runs it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.support.command_line import rocwheel, run_json
from tests.support.places import ROOT

pytestmark = pytest.mark.slow


def test_translate_takes_a_command_line_behind_two_dashes(tmp_path: Path) -> None:
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


FILES = ROOT / "tests/frameworks/jax/files"
CALL = "python build/build.py build --wheels=jax-rocm-pjrt --rocm_path=$(ROCM)"


def test_variables_of_a_command_line_are_carried_over(tmp_path: Path) -> None:
    old = ["build/build.py", "build", "--wheels=jax-rocm-pjrt", "--rocm_amdgpu_targets=${T}", "--bazel_options=${ALL}"]
    made = rocwheel("jax", "translate", "--", *old, cwd=tmp_path)
    assert (
        'bazel build --config=rocm_build --config=python312 --repo_env=TF_ROCM_AMDGPU_TARGETS="${T}" '
        '--action_env=TF_ROCM_AMDGPU_TARGETS="${T}" ${ALL} //pjrt:pjrt_c_api_gpu_plugin.so\n'
    ) in made.stdout


def test_the_spelling_of_make_becomes_that_of_the_shell_with_a_warning(tmp_path: Path) -> None:
    old = ["build/build.py", "build", "--wheels=jax-rocm-pjrt", "--rocm_path=$(ROCM_PATH)", "--clang_path=$$CLANG"]
    made = rocwheel("jax", "translate", "--", *old, cwd=tmp_path)
    assert made.returncode == 0
    assert '--repo_env=ROCM_PATH="${ROCM_PATH?}"' in made.stdout
    assert '--repo_env=CC="$CLANG"' in made.stdout
    assert "#   $(ROCM_PATH): is make's spelling; a shell gets ${ROCM_PATH?}. Set that variable" in made.stdout
    told = " ".join(made.stderr.split())
    assert "$$CLANG is make's spelling; a shell gets $CLANG." in told
    assert "by --file Makefile" in told


def test_what_a_shell_runs_itself_stays_as_it_is(tmp_path: Path) -> None:
    old = ["build/build.py", "build", "--wheels=jax-rocm-pjrt", "--rocm_path=$(which-rocm)", "--clang_path=${CLANG}"]
    made = rocwheel("jax", "translate", "--", *old, cwd=tmp_path)
    assert '--repo_env=ROCM_PATH="$(which-rocm)"' in made.stdout
    assert '--repo_env=CC="${CLANG}"' in made.stdout
    assert made.stderr == ""


@pytest.mark.parametrize(
    ("words", "file"),
    [("make wheels", "Makefile"), ("CC=a gmake -f rocm.mk", "rocm.mk"), ("bash ci/build.sh", "ci/build.sh")],
)
def test_a_command_that_runs_a_file_points_to_it(words: str, file: str, tmp_path: Path) -> None:
    made = rocwheel("jax", "translate", "--", *words.split(), cwd=tmp_path)
    assert (made.returncode, made.stdout) == (2, "")
    told = " ".join(made.stderr.split())
    assert f"runs {file!r}, not build/build.py" in told
    assert f"Translate the calls in that file: --file {file}" in told


def test_a_file_is_shown_call_by_call_with_its_lines(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text(f"a:\n\t{CALL}\n\npython:\n\tpython build/build.py build $(MORE)\n")
    made = rocwheel("jax", "translate", "--file", "Makefile", cwd=tmp_path)
    assert made.returncode == 1
    lines = made.stdout.splitlines()
    assert lines[:2] == ["# Makefile:2:", f"#   {CALL}"]
    assert (
        "bazel build --config=rocm_build --config=python312 --repo_env=ROCM_PATH=$(ROCM) "
        "--action_env=ROCM_PATH=$(ROCM) //pjrt:pjrt_c_api_gpu_plugin.so"
    ) in lines
    assert (
        "# Makefile:5: not translated: '$(MORE)' brings options, and this file doesn't set it: "
        "translate the whole command line by itself"
    ) in lines


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        (CALL.replace("$(ROCM)", "/opt/rocm"), 0, "# becomes:"),
        ("echo hello", 0, "# b.sh: no calls of build/build.py"),
        ('python build/build.py build "$@"', 1, "# b.sh:1: not translated: "),
        ('echo\npython build/build.py build --rocm_path="/opt', 1, '# b.sh:2: not translated: the quote " in line 2'),
        ('echo "hi\npython build/build.py build', 1, '# b.sh:1-2: not translated: the quote " in line 1 has no end'),
        ("python build/build.py build --rocm_path='/opt", 1, "# b.sh:1: not translated: the quote ' in line 1"),
    ],
)
def test_the_status_says_whether_every_call_is_translated(text: str, status: int, said: str, tmp_path: Path) -> None:
    (tmp_path / "b.sh").write_text(text)
    made = rocwheel("jax", "translate", "--file", "b.sh", cwd=tmp_path)
    assert (made.returncode, made.stderr) == (status, "")
    assert said in made.stdout


def test_a_file_s_name_is_no_line_of_the_script(tmp_path: Path) -> None:
    (tmp_path / "a\nrm b.sh").write_text("#!/bin/sh\necho hello\n")
    made = rocwheel("jax", "translate", "--file", "a\nrm b.sh", cwd=tmp_path)
    assert made.stdout == "# a\\nrm b.sh: no calls of build/build.py\n"


def test_files_are_one_json_document(tmp_path: Path) -> None:
    names = ["develop.py", "wheels.py", "test_change.sh", "nightly.yml"]
    value = run_json("jax", "translate", *[f"--file={FILES / name}" for name in names], cwd=tmp_path)
    assert value["schema"] == "rocwheel.jax.translate_files/1"
    lines = {
        Path(file["file"]).name: [
            [call["first_line"] for call in file["calls"]],
            [call["first_line"] for call in file["undecided"]],
        ]
        for file in value["files"]
    }
    assert lines == {
        "develop.py": [[18, 31], [34]],
        "wheels.py": [[13, 13], [37, 41]],
        "test_change.sh": [[15, 16, 20], [22, 24, 25]],
        "nightly.yml": [[15, 21], []],
    }
    first = value["files"][1]["calls"][0]
    assert first["form"] == "python"
    assert json.loads(first["commands"][0].replace(" + str(rocm_path)", ""))[:2] == ["bazel", "build"]
    assert [addition["new"][0] for addition in first["additions"]] == [
        '["--repo_env=CC=" + str(clang_path)]',
        '["--override_repository=xla=" + str(xla_path)]',
        '["--config=rocm_build_remote"]',
    ]


def test_a_recipe_takes_the_quotes_of_a_variable_away(tmp_path: Path) -> None:
    value = run_json("jax", "translate", f"--file={FILES / 'develop.py'}", cwd=tmp_path)
    words = value["files"][0]["calls"][0]["commands"][0].split()
    assert words[-5:-1] == ["$(subst", '",,${ALL_OPTIONS})', "$(subst", '",,${JAX_OPTION})']
    assert "--repo_env=ROCM_PATH=%(rocm)s" in words


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.sh", b"\x7fELF\0\0", "a.sh: is no text: it has the character '\\x00'"),
        ("a.sh", b"\xff\xfe", "a.sh: is no text: invalid start byte at byte 0"),
        ("a.md", b"python build/build.py build", "a.md: is neither named as one that is read, nor begins with #!"),
        ("a.py", b"def (", "a.py: can't be read as Python"),
        ("a.yml", b"{{ : [\n\tno\n", "a.yml: is no workflow: no line begins with jobs: or runs:"),
    ],
)
def test_other_files_are_refused(name: str, data: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    made = rocwheel("jax", "translate", "--file", name, cwd=tmp_path)
    assert (made.returncode, made.stdout) == (2, "")
    assert message in " ".join(made.stderr.split())


def test_a_line_of_100_megabytes_is_refused_before_it_is_read(tmp_path: Path) -> None:
    with (tmp_path / "a.sh").open("wb") as file:
        file.truncate(100 << 20)
    made = rocwheel("jax", "translate", "--file", "a.sh", cwd=tmp_path)
    assert made.returncode == 2
    assert "a.sh: is larger than 4 MiB" in " ".join(made.stderr.split())


def test_a_pipe_and_an_absent_file_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "p.sh")
    for name in ("p.sh", "absent.sh"):
        made = rocwheel("jax", "translate", "--file", name, cwd=tmp_path)
        assert made.returncode == 2
        assert f"{name}: " in made.stderr


@pytest.mark.parametrize("arguments", [[], ["--file", "x.sh", "--", "build/build.py", "build"]])
def test_either_a_command_line_or_files_are_given(arguments: list[str], tmp_path: Path) -> None:
    made = rocwheel("jax", "translate", *arguments, cwd=tmp_path)
    assert made.returncode == 2
    assert "give either a command line behind --, or --file" in " ".join(made.stderr.split())
