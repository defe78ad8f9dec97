"""Tests of `rocwheel.frameworks.jax.migrate`."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from rocwheel.core.errors import InputError, ProblemsError, WorkError
from rocwheel.frameworks.jax.migrate import LAST_PHASE, Migration, apply_changes, plan_migration
from tests.support.rocm_jax_checkout import RocmJaxCheckout, commit_all

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.slow

BAZELRC = "jax_rocm_plugin/.bazelrc"


def plan(made: RocmJaxCheckout, phase: int = LAST_PHASE, *, jax: bool = True) -> Migration:
    return plan_migration(made.folder, phase=phase, jax=made.jax if jax else None)  # type: ignore[arg-type]


def migrate(made: RocmJaxCheckout, phase: int = LAST_PHASE, *, jax: bool = True) -> Migration:
    migration = plan(made, phase, jax=jax)
    apply_changes(migration.root, migration.changes)
    return migration


def paths(migration: Migration) -> set[str]:
    return {change.path.removeprefix("jax_rocm_plugin/") for change in migration.changes}


def test_nothing_changes_but_by_applying(rocm_jax: RocmJaxCheckout) -> None:
    assert plan(rocm_jax).patch
    status = subprocess.run(["git", "-C", rocm_jax.folder, "status", "--porcelain"], capture_output=True, check=True)
    assert status.stdout == b""


@pytest.mark.parametrize("phase", [1, 2, 3, 4])
@pytest.mark.parametrize("command", [["git", "apply"], ["patch", "-p1", "--silent", "-i"]])
def test_the_patch_makes_what_applying_makes(
    rocm_jax: RocmJaxCheckout, tmp_path: Path, phase: int, command: list[str]
) -> None:
    (tmp_path / "patch").write_bytes(plan(rocm_jax, phase).patch)
    other = shutil.copytree(rocm_jax.folder, tmp_path / "other")
    subprocess.run([*command, tmp_path / "patch"], cwd=other, check=True)
    migrate(rocm_jax, phase)
    compared = ["diff", "-r", "--exclude=.git", "--exclude=*.orig", str(rocm_jax.folder), str(other)]
    # git leaves no empty folders, and patch doesn't know them.
    assert subprocess.run(compared, capture_output=True, text=True, check=False).stdout == ""


def test_the_second_time_there_is_nothing_to_do_committed_or_not(rocm_jax: RocmJaxCheckout) -> None:
    migrate(rocm_jax)
    assert plan(rocm_jax).patch == b""
    commit_all(rocm_jax.folder)
    assert plan(rocm_jax).patch == b""
    assert plan(rocm_jax, jax=False).patch == b""


def test_the_phases_one_by_one_end_where_all_of_them_do(rocm_jax: RocmJaxCheckout, tmp_path: Path) -> None:
    whole = RocmJaxCheckout(shutil.copytree(rocm_jax.folder, tmp_path / "whole"), rocm_jax.jax, rocm_jax.xla)
    migrate(whole)
    for phase in (1, 2, 3, 4):
        migration = migrate(rocm_jax, phase)
        assert {edit.phase for edit in migration.edits} == {phase}
        commit_all(rocm_jax.folder)
    compared = ["diff", "-r", "--exclude=.git", str(rocm_jax.folder), str(whole.folder)]
    assert subprocess.run(compared, capture_output=True, text=True, check=False).stdout == ""


def test_the_first_phase_moves_settings_and_leaves_the_scripts(rocm_jax: RocmJaxCheckout) -> None:
    assert paths(plan(rocm_jax, 1)) == {".bazelrc", "rocm.bazelrc", "rocm.toml"}


def test_the_last_phase_deletes_what_nothing_uses(rocm_jax: RocmJaxCheckout) -> None:
    for phase in (1, 2, 3):
        migrate(rocm_jax, phase)
        commit_all(rocm_jax.folder)
    deleted = {change.path for change in plan(rocm_jax).changes if change.after is None}
    assert {path.removeprefix("jax_rocm_plugin/") for path in deleted} == {
        "jax_plugins/rocm/BUILD.bazel",
        "jax_plugins/rocm/plugin_pyproject.toml",
        "jax_plugins/rocm/plugin_setup.py",
        "jaxlib_ext/tools/build_gpu_kernels_wheel.py",
        "jaxlib_ext/tools/build_utils.py",
        "pjrt/python/pyproject.toml",
        "pjrt/python/setup.py",
        "pjrt/tools/build_gpu_plugin_wheel.py",
        "pjrt/tools/build_utils.py",
    }


def test_every_hunk_says_its_phase_and_why(rocm_jax: RocmJaxCheckout) -> None:
    heads = [line for line in plan(rocm_jax).patch.decode().splitlines() if line.startswith("@@ ")]
    assert [head for head in heads if " @@ phase " not in head] == []


def test_without_the_source_of_jax_the_patch_is_asked_for_and_made_later(rocm_jax: RocmJaxCheckout) -> None:
    asked = migrate(rocm_jax, jax=False)
    (question,) = [question for question in asked.questions if "where is the source of @jax?" in question.text]
    assert question.path == "jax_rocm_plugin/third_party/jax/workspace.bzl"
    commit_all(rocm_jax.folder)
    assert plan(rocm_jax, jax=False).patch == b""
    later = migrate(rocm_jax)
    assert paths(later) == {"third_party/jax/0002-Set-run-paths-for-wheels.patch", "third_party/jax/workspace.bzl"}
    assert "rocwheel asks" not in (rocm_jax.workspace / "third_party/jax/workspace.bzl").read_text()


def test_a_run_without_the_source_that_the_last_one_had_is_told_so(rocm_jax: RocmJaxCheckout) -> None:
    migrate(rocm_jax)
    with pytest.raises(InputError, match=r"isn't committed. Commit the patch, or pass the same --jax again."):
        plan(rocm_jax, jax=False)


def test_a_target_that_uses_an_old_builder_keeps_it_and_is_asked_about(rocm_jax: RocmJaxCheckout) -> None:
    build = rocm_jax.workspace / "BUILD.bazel"
    build.write_text('jax_wheel(\n    name = "w",\n    wheel_binary = "//pjrt/tools:build_gpu_plugin_wheel",\n)\n')
    commit_all(rocm_jax.folder)
    migration = migrate(rocm_jax)
    assert (rocm_jax.workspace / "pjrt/tools/build_gpu_plugin_wheel.py").exists()
    (text,) = (question.text for question in migration.questions if question.path.endswith("plugin/BUILD.bazel"))
    assert text.startswith(
        "who builds these targets? They run the old wheel builders, which stay as long as these targets exist;"
    )
    commit_all(rocm_jax.folder)
    assert plan(rocm_jax).patch == b""


def test_lines_keep_their_ends(rocm_jax: RocmJaxCheckout) -> None:
    path = rocm_jax.folder / BAZELRC
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    commit_all(rocm_jax.folder)
    migrate(rocm_jax, 1)
    data = path.read_bytes()
    assert data.endswith(b"import %workspace%/rocm.bazelrc\r\n")
    assert data.count(b"\n") == data.count(b"\r\n")


def test_mixed_line_ends_are_refused(rocm_jax: RocmJaxCheckout) -> None:
    path = rocm_jax.folder / BAZELRC
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n", 3))
    commit_all(rocm_jax.folder)
    with pytest.raises(InputError, match=r"\.bazelrc: mixes CR LF and LF line endings; ex"):
        plan(rocm_jax)


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "README.md").write_text("mine\n"),
        lambda folder: (folder / BAZELRC).write_text("build:rocm --jobs=1\n"),
        lambda folder: (folder / "build/ci_build").unlink(),
        lambda folder: (folder / "jax_rocm_plugin/rocm.toml").write_text("mine\n"),
    ],
    ids=["another file", "a file of the patch", "a deleted file", "a file that the patch makes"],
)
def test_changes_that_are_not_committed_are_refused(rocm_jax: RocmJaxCheckout, change: object) -> None:
    assert callable(change)
    change(rocm_jax.folder)
    with pytest.raises(ProblemsError, match=r"isn't clean: 1 problem\n  .*: has uncommitted changes"):
        plan(rocm_jax)


def test_files_that_git_does_not_know_are_left_alone(rocm_jax: RocmJaxCheckout) -> None:
    (rocm_jax.folder / "notes.txt").write_text("build.py\n")
    assert plan(rocm_jax).patch


def test_what_is_no_checkout_is_refused(rocm_jax: RocmJaxCheckout, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"absent: isn't a folder; expected a git checkout of rocm-jax or a fork"):
        plan_migration(tmp_path / "absent")
    with pytest.raises(InputError, match=r"isn't a git checkout with a commit \(git says: fatal: not a git repository"):
        plan_migration(tmp_path)
    with pytest.raises(ProblemsError, match=r"isn't a checkout of rocm-jax or a fork: 5 problems"):
        plan_migration(rocm_jax.jax)


def test_a_repository_without_a_commit_is_refused(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    with pytest.raises(InputError, match=r"isn't a git checkout with a commit .* Commit its files."):
        plan_migration(tmp_path)


def test_a_folder_of_the_checkout_stands_for_all_of_it(rocm_jax: RocmJaxCheckout) -> None:
    assert plan_migration(rocm_jax.workspace, jax=rocm_jax.jax).patch == plan(rocm_jax).patch


def test_settings_that_somebody_edited_are_kept(rocm_jax: RocmJaxCheckout) -> None:
    migrate(rocm_jax, 1)
    settings = rocm_jax.workspace / "rocm.toml"
    settings.write_text(settings.read_text().replace("schema = 1", 'schema = 1\nrocm-version = "8"'))
    commit_all(rocm_jax.folder)
    migrate(rocm_jax, 2)
    assert 'wheel_run_path_linkopts("jax_plugins/xla_rocm8")' in (rocm_jax.workspace / "pjrt/BUILD").read_text()


def test_settings_that_are_none_are_refused(rocm_jax: RocmJaxCheckout) -> None:
    (rocm_jax.workspace / "rocm.toml").write_text("schema = 2\n")
    commit_all(rocm_jax.folder)
    with pytest.raises(InputError, match=r"^jax_rocm_plugin/rocm.toml: doesn't contain valid settings"):
        plan(rocm_jax)


def test_every_file_that_cannot_be_written_is_told_before_any_is(rocm_jax: RocmJaxCheckout) -> None:
    migration = plan(rocm_jax)
    for path in (BAZELRC, "jax_rocm_plugin/WORKSPACE"):
        (rocm_jax.folder / path).chmod(0o444)
    with pytest.raises(ProblemsError) as raised:
        apply_changes(migration.root, migration.changes)
    root = rocm_jax.folder
    assert [str(problem) for problem in raised.value.problems] == [
        f"{root / BAZELRC}: is read-only. Make the file writable (chmod u+w).",
        f"{root / 'jax_rocm_plugin/WORKSPACE'}: is read-only. Make the file writable (chmod u+w).",
    ]
    assert not (rocm_jax.workspace / "rocm.toml").exists()


def test_a_file_that_changes_meanwhile_is_not_overwritten(rocm_jax: RocmJaxCheckout) -> None:
    migration = plan(rocm_jax)
    (rocm_jax.folder / BAZELRC).write_text("mine\n")
    with pytest.raises(ProblemsError) as raised:
        apply_changes(migration.root, migration.changes)
    (problem,) = raised.value.problems
    assert isinstance(problem, WorkError)
    assert str(problem) == f"{rocm_jax.folder / BAZELRC}: has changed since it was read. Run the command again."
    assert (rocm_jax.folder / BAZELRC).read_text() == "mine\n"


def test_a_link_that_leads_elsewhere_is_not_followed(rocm_jax: RocmJaxCheckout, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (rocm_jax.workspace / "rocm_wheel").symlink_to(tmp_path / "elsewhere")
    migration = plan(rocm_jax)
    with pytest.raises(
        ProblemsError, match=r"rocm_wheel/BUILD.bazel: is in a folder that is a symbolic link. Replace the link"
    ):
        apply_changes(migration.root, migration.changes)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_modes_of_files_stay(rocm_jax: RocmJaxCheckout) -> None:
    path = rocm_jax.folder / BAZELRC
    path.chmod(0o600)
    migrate(rocm_jax)
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        (b"\0", "The file contains a NUL character and wasn't read."),
        (b"#" * (1 << 20), "The file is larger than 1 MiB and wasn't read."),
    ],
)
def test_a_script_that_is_not_read_keeps_build_py_and_is_asked_about(
    rocm_jax: RocmJaxCheckout, end: bytes, reason: str
) -> None:
    path = "jax_rocm_plugin/build/rocm/tools/build_wheels.py"
    (rocm_jax.folder / path).write_bytes(end + b"\npython build/build.py build --wheels=jax-rocm-pjrt\n")
    (rocm_jax.folder / "picture.png").write_bytes(b"\0build.py")
    commit_all(rocm_jax.folder)
    migration = plan(rocm_jax)
    asked = [(question.path, question.line) for question in migration.questions if reason in question.text]
    assert asked == [(path, 1)]
    assert not {question.path for question in migration.questions} & {"picture.png"}
    assert {"build/build.py", "build/rocm/tools/build_wheels.py"} & paths(migration) == {"build/build.py"}
    assert [change.after is None for change in migration.changes if change.path.endswith("build/build.py")] == [False]


@pytest.mark.parametrize(
    ("path", "data", "line", "text"),
    [
        (
            "docker/Dockerfile.ubu22",
            b"FROM ubuntu\nRUN cd jax_rocm_plugin && python build/build.py build --wheels=jax-rocm-pjrt\n",
            2,
            "what should replace this use of build.py? This file wasn't edited, so build.py stays.",
        ),
        (
            "make.sh",
            b"cd jax_rocm_plugin\r\npython build/build.py build --wheels=jax-rocm-pjrt\n",
            2,
            (
                "what should replace this use of build.py? The file mixes CR LF and LF line endings: convert the file, "
                "and run this command again."
            ),
        ),
    ],
)
def test_a_caller_that_stays_as_it_is_is_told(
    rocm_jax: RocmJaxCheckout, path: str, data: bytes, line: int, text: str
) -> None:
    (rocm_jax.folder / path).write_bytes(data)
    commit_all(rocm_jax.folder)
    assert (path, line, text) in [(asked.path, asked.line, asked.text) for asked in plan(rocm_jax).questions]
    assert path not in {question.path for question in plan(rocm_jax, 1).questions}
