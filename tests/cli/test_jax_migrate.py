"""``rocwheel jax translate`` and ``migrate``."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command_line import as_user, needs_setpriv, rocwheel, run_json
from tests.support.places import ROOT
from tests.support.rocm_jax_checkout import RocmJaxCheckout, make_rocm_jax_checkout


@pytest.mark.slow
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


@pytest.mark.slow
def test_variables_of_a_command_line_are_carried_over(tmp_path: Path) -> None:
    old = ["build/build.py", "build", "--wheels=jax-rocm-pjrt", "--rocm_amdgpu_targets=${T}", "--bazel_options=${ALL}"]
    made = rocwheel("jax", "translate", "--", *old, cwd=tmp_path)
    assert (
        'bazel build --config=rocm_build --config=python312 --repo_env=TF_ROCM_AMDGPU_TARGETS="${T}" '
        '--action_env=TF_ROCM_AMDGPU_TARGETS="${T}" ${ALL} //pjrt:pjrt_c_api_gpu_plugin.so\n'
    ) in made.stdout


@pytest.mark.slow
def test_the_spelling_of_make_becomes_that_of_the_shell_with_a_warning(tmp_path: Path) -> None:
    old = ["build/build.py", "build", "--wheels=jax-rocm-pjrt", "--rocm_path=$(ROCM_PATH)", "--clang_path=$$CLANG"]
    made = rocwheel("jax", "translate", "--", *old, cwd=tmp_path)
    assert made.returncode == 0
    assert '--repo_env=ROCM_PATH="${ROCM_PATH?}"' in made.stdout
    assert '--repo_env=CC="$CLANG"' in made.stdout
    assert (
        "#   $(ROCM_PATH): is make's syntax; the shell command has ${ROCM_PATH?} instead. Set that variable"
        in made.stdout
    )
    told = " ".join(made.stderr.split())
    assert "$$CLANG is make's syntax; the shell command has $CLANG instead." in told
    assert "with --file Makefile" in told


@pytest.mark.slow
def test_what_a_shell_runs_itself_stays_as_it_is(tmp_path: Path) -> None:
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
def test_a_command_that_runs_a_file_points_to_it(words: str, file: str, tmp_path: Path) -> None:
    made = rocwheel("jax", "translate", "--", *words.split(), cwd=tmp_path)
    assert (made.returncode, made.stdout) == (2, "")
    told = " ".join(made.stderr.split())
    assert f"runs {file!r}, not build/build.py" in told
    assert f"To translate the calls in that file, use --file {file}." in told


@pytest.mark.slow
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
        "# Makefile:5: not translated: '$(MORE)' contains options, and this file doesn't set the variable: "
        "translate the complete command line separately"
    ) in lines


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        (CALL.replace("$(ROCM)", "/opt/rocm"), 0, "# becomes:"),
        ("echo hello", 0, "# b.sh: no calls of build/build.py"),
        ('python build/build.py build "$@"', 1, "# b.sh:1: not translated: "),
        ('echo\npython build/build.py build --rocm_path="/opt', 1, '# b.sh:2: not translated: the quote " in line 2'),
        (
            'echo "hi\npython build/build.py build',
            1,
            '# b.sh:1-2: not translated: the quote " in line 1 is never closed',
        ),
        ("python build/build.py build --rocm_path='/opt", 1, "# b.sh:1: not translated: the quote ' in line 1"),
    ],
)
def test_the_status_says_whether_every_call_is_translated(text: str, status: int, said: str, tmp_path: Path) -> None:
    (tmp_path / "b.sh").write_text(text)
    made = rocwheel("jax", "translate", "--file", "b.sh", cwd=tmp_path)
    assert (made.returncode, made.stderr) == (status, "")
    assert said in made.stdout


@pytest.mark.slow
def test_a_file_s_name_is_no_line_of_the_script(tmp_path: Path) -> None:
    (tmp_path / "a\nrm b.sh").write_text("#!/bin/sh\necho hello\n")
    made = rocwheel("jax", "translate", "--file", "a\nrm b.sh", cwd=tmp_path)
    assert made.stdout == "# a\\nrm b.sh: no calls of build/build.py\n"


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_recipe_takes_the_quotes_of_a_variable_away(tmp_path: Path) -> None:
    value = run_json("jax", "translate", f"--file={FILES / 'develop.py'}", cwd=tmp_path)
    words = value["files"][0]["calls"][0]["commands"][0].split()
    assert words[-5:-1] == ["$(subst", '",,${ALL_OPTIONS})', "$(subst", '",,${JAX_OPTION})']
    assert "--repo_env=ROCM_PATH=%(rocm)s" in words


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.sh", b"\x7fELF\0\0", "a.sh: isn't text: it contains the character '\\x00'"),
        ("a.sh", b"\xff\xfe", "a.sh: isn't text: invalid start byte at byte 0"),
        ("a.md", b"python build/build.py build", "a.md: has neither a known file name nor a first line with #!"),
        ("a.py", b"def (", "a.py: isn't valid Python"),
        ("a.yml", b"{{ : [\n\tno\n", "a.yml: isn't a workflow: no line begins with jobs: or runs:"),
    ],
)
def test_other_files_are_refused(name: str, data: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    made = rocwheel("jax", "translate", "--file", name, cwd=tmp_path)
    assert (made.returncode, made.stdout) == (2, "")
    assert message in " ".join(made.stderr.split())


@pytest.mark.slow
def test_a_line_of_100_megabytes_is_refused_before_it_is_read(tmp_path: Path) -> None:
    with (tmp_path / "a.sh").open("wb") as file:
        file.truncate(100 << 20)
    made = rocwheel("jax", "translate", "--file", "a.sh", cwd=tmp_path)
    assert made.returncode == 2
    assert "a.sh: is larger than 4 MiB" in " ".join(made.stderr.split())


@pytest.mark.slow
def test_a_pipe_and_an_absent_file_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "p.sh")
    for name in ("p.sh", "absent.sh"):
        made = rocwheel("jax", "translate", "--file", name, cwd=tmp_path)
        assert made.returncode == 2
        assert f"{name}: " in made.stderr


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [[], ["--file", "x.sh", "--", "build/build.py", "build"]])
def test_either_a_command_line_or_files_are_given(arguments: list[str], tmp_path: Path) -> None:
    made = rocwheel("jax", "translate", *arguments, cwd=tmp_path)
    assert made.returncode == 2
    assert "pass either a command line after --, or --file" in " ".join(made.stderr.split())


# The files get their names one after another; the process ends itself before one of them does.
KILLED = """
import os, pathlib, signal, sys
left, replace = int(sys.argv.pop(1)), pathlib.Path.replace
def rename(self, target):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return replace(self, target)
pathlib.Path.replace = rename
from rocwheel.cli import main
main()
"""


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> RocmJaxCheckout:
    return make_rocm_jax_checkout(tmp_path_factory.mktemp("original"))


@pytest.fixture
def checkout(original: RocmJaxCheckout, tmp_path: Path) -> Path:
    return shutil.copytree(original.folder, tmp_path / "rocm-jax")


@pytest.mark.slow
def test_it_prints_a_patch_that_git_takes(original: RocmJaxCheckout, checkout: Path) -> None:
    printed = rocwheel("jax", "migrate", checkout, "--jax", original.jax)
    assert printed.returncode == 0, printed.stderr
    apply = ["git", "-C", str(checkout), "apply"]
    subprocess.run([*apply, "--check", "-"], input=printed.stdout, text=True, check=True)
    subprocess.run([*apply, "-"], input=printed.stdout, text=True, check=True, capture_output=True)
    again = rocwheel("jax", "migrate", checkout, "--jax", original.jax)
    assert (again.returncode, again.stdout) == (0, "")
    assert again.stderr.startswith(f"{checkout}: nothing to change\n")


@pytest.mark.slow
def test_applying_tells_each_change_with_its_phase_and_reason(original: RocmJaxCheckout, checkout: Path) -> None:
    applied = rocwheel("jax", "migrate", checkout, "--jax", original.jax, "--phase", "1", "--apply")
    assert (applied.returncode, applied.stderr) == (0, "")
    assert applied.stdout.splitlines() == [
        (
            "phase 1: jax_rocm_plugin/.bazelrc: build.py wrote this file, which made every later build apply every "
            "flag twice"
        ),
        ("phase 1: jax_rocm_plugin/.bazelrc: the fragment comes last, and it imports .bazelrc.user after its configs"),
        "phase 1: jax_rocm_plugin/.bazelrc: the fragment has these configs",
        "phase 1: jax_rocm_plugin/rocm.bazelrc: build.py's command-line options as Bazel configs",
        "phase 1: jax_rocm_plugin/rocm.toml: the build's settings from .bazelrc, WORKSPACE, and the builders",
    ]


@pytest.mark.slow
def test_questions_are_told_with_their_places(checkout: Path) -> None:
    told = rocwheel("jax", "migrate", checkout).stderr
    assert "asks: jax_rocm_plugin/third_party/jax/workspace.bzl:7: where is the source of @jax? One more patch" in told
    assert (
        "asks: jax_rocm_plugin/build/rocm/tools/build_wheels.py:10: what should replace this call of build.py?" in told
    )


@pytest.mark.slow
def test_the_document_has_edits_questions_and_the_patch(checkout: Path) -> None:
    document = run_json("jax", "migrate", checkout, "--phase", "1", cwd=checkout)
    assert document["schema"] == "rocwheel.jax.migrate/1"
    assert (document["applied"], document["questions"]) == (False, [])
    assert {edit["phase"] for edit in document["edits"]} == {1}
    assert document["patch"].startswith("diff --git a/jax_rocm_plugin/.bazelrc b/jax_rocm_plugin/.bazelrc\n")


@pytest.mark.slow
def test_a_dirty_checkout_is_refused(checkout: Path) -> None:
    (checkout / "README.md").write_text("mine\n")
    refused = rocwheel("jax", "migrate", checkout)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == (
        f"error: {checkout}: isn't clean: 1 problem\n"
        "  README.md: has uncommitted changes. Commit the changes, or restore the file.\n"
    )


@pytest.mark.slow
@pytest.mark.parametrize("phase", ["0", "5", "two"])
def test_there_are_four_phases(checkout: Path, phase: str) -> None:
    assert rocwheel("jax", "migrate", checkout, "--phase", phase).returncode == 2


@pytest.mark.slow
@pytest.mark.parametrize("files", [0, 1, 7])
def test_a_killed_run_leaves_whole_files_and_the_next_does_the_rest(
    original: RocmJaxCheckout, checkout: Path, tmp_path: Path, files: int
) -> None:
    whole = shutil.copytree(checkout, tmp_path / "whole")
    words = ["--jax", str(original.jax), "--apply", "--quiet"]
    assert rocwheel("jax", "migrate", whole, *words).returncode == 0
    command = [sys.executable, "-c", KILLED, str(files), "jax", "migrate", str(checkout), *words]
    killed = subprocess.run(command, check=False, capture_output=True)
    assert killed.returncode == -signal.SIGKILL
    status = ["git", "-C", str(checkout), "status", "--porcelain", "--untracked-files=no"]
    changed = subprocess.run(status, check=True, capture_output=True, text=True).stdout.splitlines()
    assert len(changed) <= files
    assert rocwheel("jax", "migrate", checkout, *words).returncode == 0
    compared = subprocess.run(["diff", "-r", "--exclude=.git", checkout, whole], check=False, capture_output=True)
    assert compared.stdout == b""


@pytest.mark.slow
@needs_setpriv
def test_a_folder_that_cannot_be_written_changes_nothing(original: RocmJaxCheckout, checkout: Path) -> None:
    (checkout / "jax_rocm_plugin").chmod(0o555)
    words = ["jax", "migrate", str(checkout), "--jax", str(original.jax), "--apply"]
    refused = rocwheel(*words, before=as_user(), environ={"HOME": os.devnull})
    (checkout / "jax_rocm_plugin").chmod(0o755)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "jax_rocm_plugin/rocm.toml: is in a read-only folder. Check the folder's permissions." in refused.stderr
    assert "no file was changed" in refused.stderr
    assert not (checkout / "jax_rocm_plugin/rocm_wheel").exists()
