"""Tests of `rocwheel.frameworks.jax.migrate`, with a small checkout and edits for it."""

from __future__ import annotations

import os
import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from rocwheel.core.errors import InputError, ProblemsError
from rocwheel.frameworks.jax.migrate import (
    LAST_PHASE,
    Edit,
    FileEdits,
    Phase,
    Proposal,
    apply_changes,
    plan_migration,
    rocm_jax_proposal,
)

if TYPE_CHECKING:
    from pathlib import Path

BUILD_PY = "jax_rocm_plugin/build/build.py"
BAZELRC = "jax_rocm_plugin/.bazelrc"
FILES = {
    BUILD_PY: "import sys\n\nsys.exit(0)\n",
    BAZELRC: "build -c opt\n\n# Written by build.py\ntry-import a\n",
    "ci/wheels.sh": (
        "set -e\npython build/build.py build\nif true; then\n  for so in *.so; do\n    patchelf $so\n  done\nfi\n"
    ),
    "Dockerfile": "RUN dnf install -y \\\n  patchelf \\\n  vim\n",
}
PROPOSAL = Proposal(
    "0123456789abcdef",
    "May 1, 2026",
    (
        FileEdits(
            1,
            BAZELRC,
            "configs",
            (Edit(after="build -c opt\n", following="# Written by build.py", new="build:rocm_build -g\n"),),
        ),
        FileEdits(1, "xla.patch", "the run path", create="--- a\n"),
        FileEdits(
            2,
            "ci/wheels.sh",
            "calls Bazel",
            (
                Edit(old="python build/build.py build\n", new="bazel run --config=rocm_build //a\n"),
                Edit(first="if true; then", lines=5, digest="d556ab95a44afe87"),
            ),
        ),
        FileEdits(2, "Dockerfile", "no patchelf", (Edit(old="  patchelf \\\n"),)),
        FileEdits(
            3, BUILD_PY, "warns", (Edit(after="import sys\n", following="sys.exit(0)", new="\nprint('deprecated')\n"),)
        ),
        FileEdits(4, BAZELRC, "nothing writes it", (Edit(old="\n# Written by build.py\ntry-import a\n"),)),
        FileEdits(4, BUILD_PY, "nothing calls it", delete=True),
    ),
)
MIGRATED = {
    BAZELRC: "build -c opt\nbuild:rocm_build -g\n",
    "ci/wheels.sh": "set -e\nbazel run --config=rocm_build //a\n",
    "Dockerfile": "RUN dnf install -y \\\n  vim\n",
    "xla.patch": "--- a\n",
}


def git(folder: Path, *arguments: str, data: str | None = None) -> str:
    settings = ("-c", "user.name=x", "-c", "user.email=x@localhost")
    command = ["git", *settings, "-C", str(folder), *arguments]
    return subprocess.run(command, input=data, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "rocm-jax"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "x")
    return folder


def contents(folder: Path) -> dict[str, str]:
    paths = (path for path in folder.rglob("*") if path.is_file() and ".git" not in path.relative_to(folder).parts)
    return {str(path.relative_to(folder)): path.read_text() for path in paths}


def migrate(checkout: Path, phase: Phase = LAST_PHASE) -> list[tuple[int, str]]:
    """Migrate up to a phase, and return the phases and paths of the edits."""
    made = plan_migration(checkout, phase=phase, proposal=PROPOSAL)
    apply_changes(made.root, made.changes)
    return [(edit.phase, edit.path) for edit in made.edits]


def test_each_phase_makes_its_own_changes(checkout: Path) -> None:
    assert migrate(checkout, 1) == [(1, BAZELRC), (1, "xla.patch")]
    assert migrate(checkout, 2) == [(2, "ci/wheels.sh"), (2, "Dockerfile")]
    assert contents(checkout)[BUILD_PY] == "import sys\n\nsys.exit(0)\n"
    assert migrate(checkout, 3) == [(3, BUILD_PY)]
    assert contents(checkout)[BUILD_PY] == "import sys\n\nprint('deprecated')\n\nsys.exit(0)\n"
    assert migrate(checkout, 4) == [(4, BAZELRC), (4, BUILD_PY)]
    assert contents(checkout) == MIGRATED
    assert migrate(checkout) == []
    assert not (checkout / "jax_rocm_plugin/build").exists()


@pytest.mark.parametrize("phase", [1, 2, 3, 4])
def test_git_applies_the_patch(checkout: Path, phase: Phase, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", str(checkout), "other")
    patch = plan_migration(checkout, phase=phase, proposal=PROPOSAL).patch
    git(tmp_path / "other", "apply", "--index", "-", data=patch)
    migrate(checkout, phase)
    assert contents(tmp_path / "other") == contents(checkout)


def test_the_patch_begins_with_the_reasons(checkout: Path) -> None:
    patch = plan_migration(checkout, phase=1, proposal=PROPOSAL).patch
    assert patch == (
        f"Phase 1: {BAZELRC}: configs\n"
        "Phase 1: xla.patch: the run path\n\n"
        f"diff --git a/{BAZELRC} b/{BAZELRC}\n--- a/{BAZELRC}\n+++ b/{BAZELRC}\n"
        "@@ -1,4 +1,5 @@\n build -c opt\n+build:rocm_build -g\n \n # Written by build.py\n try-import a\n"
        "diff --git a/xla.patch b/xla.patch\nnew file mode 100644\n--- /dev/null\n+++ b/xla.patch\n"
        "@@ -0,0 +1 @@\n+--- a\n"
    )


@pytest.mark.parametrize("count", range(6))
def test_an_interrupted_migration_can_be_continued(checkout: Path, count: int) -> None:
    made = plan_migration(checkout, proposal=PROPOSAL)
    apply_changes(made.root, made.changes[:count])
    migrate(checkout)
    assert contents(checkout) == MIGRATED


def test_later_changes_to_new_lines_are_kept(checkout: Path) -> None:
    migrate(checkout, 2)
    script = checkout / "ci/wheels.sh"
    script.write_text(script.read_text() + "bazel run --config=rocm_build //b\n")
    (checkout / "xla.patch").write_text("--- another\n")
    migrate(checkout)
    assert contents(checkout) == {
        **MIGRATED,
        "ci/wheels.sh": f"{MIGRATED['ci/wheels.sh']}bazel run --config=rocm_build //b\n",
        "xla.patch": "--- another\n",
    }


BLOCK = "# Everything that builds the wheels\nbuild:rocm_build -g\nbuild:rocm_build --verbose_failures\n"
CONFIGS = Proposal(
    "0123456789abcdef",
    "1 May 2026",
    (FileEdits(1, BAZELRC, "configs", (Edit(after="build -c opt\n", following="# Written by build.py", new=BLOCK),)),),
)


@pytest.mark.parametrize("old", ["# Everything that builds the wheels\n", "build:rocm_build -g\n"])
def test_a_block_with_reworded_lines_is_not_inserted_again(checkout: Path, old: str) -> None:
    path = checkout / BAZELRC
    path.write_text(f"build -c opt\n{BLOCK}\n# Written by build.py\n".replace(old, "# Reworded\n"))
    assert plan_migration(checkout, phase=1, proposal=CONFIGS).changes == ()


def test_a_moved_block_is_not_inserted_again(checkout: Path) -> None:
    (checkout / BAZELRC).write_text(f"build -c opt\n\n# Written by build.py\n{BLOCK}")
    assert plan_migration(checkout, phase=1, proposal=CONFIGS).changes == ()


@pytest.mark.parametrize(
    "text",
    [
        "build -c opt\n# Reworded\nbuild:mine -g\n\n# Written by build.py\n",
        "build -c opt\n\n# Written by build.py\nbuild:rocm_build -g\n",
    ],
    ids=["other lines after the text", "one of three lines elsewhere"],
)
def test_a_file_that_may_already_have_the_change_is_refused(checkout: Path, text: str) -> None:
    (checkout / BAZELRC).write_text(text)
    with pytest.raises(ProblemsError) as caught:
        plan_migration(checkout, phase=1, proposal=CONFIGS)
    assert caught.value.lines[1:] == (f"  {BAZELRC}: may already have edited lines after: build -c opt",)


def test_a_common_line_is_not_taken_as_a_sign_that_the_file_was_changed(checkout: Path) -> None:
    script = "import fcntl\nimport glob\n\npython build/build.py build\n"
    (checkout / "ci/wheels.sh").write_text(script)
    edits = (
        Edit(after="import fcntl\n", following="import logging", new="import glob\n"),
        Edit(old="python build/build.py build\n", new="bazel run --config=rocm_build //a\n"),
    )
    proposal = Proposal("0123456789abcdef", "1 May 2026", (FileEdits(1, "ci/wheels.sh", "calls Bazel", edits),))
    (change,) = plan_migration(checkout, phase=1, proposal=proposal).changes
    assert change.after == "import fcntl\nimport glob\n\nbazel run --config=rocm_build //a\n"


def test_an_existing_file_with_the_name_of_a_new_file_is_refused(checkout: Path) -> None:
    (checkout / "xla.patch").write_text("--- another\n")
    with pytest.raises(ProblemsError) as caught:
        migrate(checkout, 1)
    assert caught.value.lines[1:] == ("  xla.patch: exists with different content",)
    assert contents(checkout) == {**FILES, "xla.patch": "--- another\n"}


def test_files_keep_their_permissions_and_new_files_follow_the_umask(checkout: Path) -> None:
    (checkout / "ci/wheels.sh").chmod(0o775)
    (checkout / BAZELRC).chmod(0o600)
    before = os.umask(0o027)
    try:
        migrate(checkout, 2)
    finally:
        os.umask(before)
    modes = {name: (checkout / name).stat().st_mode & 0o7777 for name in ("ci/wheels.sh", BAZELRC, "xla.patch")}
    assert modes == {"ci/wheels.sh": 0o775, BAZELRC: 0o600, "xla.patch": 0o640}


def test_all_texts_that_differ_are_reported(checkout: Path) -> None:
    script = checkout / "ci/wheels.sh"
    script.write_text(f"python build/build.py build\n{script.read_text()}".replace("for so", "for lib"))
    with pytest.raises(ProblemsError) as caught:
        plan_migration(checkout, proposal=PROPOSAL)
    assert caught.value.exit_status == 2
    assert caught.value.lines == (
        f"{checkout}: differs from rocm-jax at commit 012345678 from May 1, 2026. Check out this commit: 2 problems",
        "  ci/wheels.sh: has this text 2 times: python build/build.py build",
        "  ci/wheels.sh: has this text 0 times: if true; then",
    )


def test_a_missing_file_is_reported(checkout: Path) -> None:
    (checkout / "Dockerfile").unlink()
    with pytest.raises(ProblemsError) as caught:
        plan_migration(checkout, proposal=PROPOSAL)
    assert caught.value.lines[1:] == ("  Dockerfile: doesn't exist",)


def add_callers(checkout: Path) -> None:
    folder = "a/very/long/folder/with/the/scripts/for/nightly/builds/of/wheels/and/images/on/other/machines"
    for name, text in {
        "nightly.yml": "run: |\n  cd jax_rocm_plugin\n  python3 build/build.py build\n",
        f"{folder}/nightly.sh": "patchelf --version\n",
        "notes.txt": "builds/build_py\n",
    }.items():
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).write_text(text)
    git(checkout, "add", ".")


@pytest.mark.parametrize("phase", [2, 3, 4])
def test_callers_that_no_edit_converts_are_an_error(checkout: Path, phase: Phase) -> None:
    add_callers(checkout)
    with pytest.raises(ProblemsError) as caught:
        plan_migration(checkout, phase=phase, proposal=PROPOSAL)
    assert caught.value.exit_status == 2
    assert caught.value.lines == (
        f"{checkout}: phase {phase} can't convert these lines. Call Bazel as in BUILDING.md: 2 problems",
        "  .../scripts/for/nightly/builds/of/wheels/and/images/on/other/machines/nightly.sh:1: still needs patchelf",
        "  nightly.yml:3: still needs build.py",
    )
    assert max(map(len, caught.value.lines[1:])) <= 120


def test_the_first_phase_ignores_callers(checkout: Path) -> None:
    add_callers(checkout)
    assert migrate(checkout, 1) == [(1, BAZELRC), (1, "xla.patch")]


def test_a_different_repository_is_refused(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    with pytest.raises(InputError) as caught:
        plan_migration(tmp_path, proposal=PROPOSAL)
    assert str(caught.value) == (
        f"{tmp_path}: has no jax_rocm_plugin/build/build.py; expected rocm-jax at commit 012345678 from May 1, 2026. "
        "For JAX's own tree, use `rocwheel jax bazelrc` and `rocwheel jax commands`."
    )


@pytest.mark.parametrize(("name", "found"), [("empty", "isn't a git checkout ("), ("absent", "isn't a folder")])
def test_a_folder_without_git_is_refused(tmp_path: Path, name: str, found: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError) as caught:
        plan_migration(tmp_path / name, proposal=PROPOSAL)
    assert str(caught.value).startswith(f"{tmp_path / name}: {found}")
    assert str(caught.value).endswith("; expected rocm-jax at commit 012345678 from May 1, 2026")


def test_a_file_outside_the_checkout_is_not_written(checkout: Path, tmp_path: Path) -> None:
    (checkout / "ci").rename(tmp_path / "ci")
    (checkout / "ci").symlink_to(tmp_path / "ci")
    with pytest.raises(InputError) as caught:
        plan_migration(checkout, proposal=PROPOSAL)
    assert str(caught.value) == (
        f"{checkout}/ci/wheels.sh: is a symbolic link or below one; expected a file in the checkout"
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_failed_write_leaves_all_files_unchanged(checkout: Path) -> None:
    (checkout / "ci").chmod(0o555)
    (checkout / "Dockerfile").chmod(0o444)
    with pytest.raises(ProblemsError) as caught:
        migrate(checkout)
    (checkout / "ci").chmod(0o755)
    assert caught.value.exit_status == 1
    assert contents(checkout) == FILES


def test_a_file_keeps_its_line_endings_and_invalid_bytes(checkout: Path) -> None:
    path = checkout / BAZELRC
    path.write_bytes(b"# \xff \r\n" + path.read_bytes())
    migrate(checkout)
    assert path.read_bytes() == b"# \xff \r\n" + MIGRATED[BAZELRC].encode()


PATCH = next(file for file in rocm_jax_proposal().files if file.path.endswith(".patch"))


def test_the_edits_for_rocm_jax_are_sorted_by_phase() -> None:
    phases = [file.phase for file in rocm_jax_proposal().files]
    assert phases == sorted(phases)
    assert {*phases} == {1, 2, 3, 4}


@pytest.mark.parametrize("file", rocm_jax_proposal().files, ids=lambda file: f"{file.phase} {file.path}")
def test_each_edit_for_rocm_jax_has_one_way_to_find_its_location(file: FileEdits) -> None:
    assert sum(map(bool, (file.edits, file.create, file.delete))) == 1
    for edit in file.edits:
        assert sum(map(bool, (edit.old, edit.after, edit.first))) == 1
        assert bool(edit.first) == bool(edit.lines) == (len(edit.digest) == 16)
        assert bool(edit.following) == bool(edit.after) <= bool(edit.new)


def test_the_patch_for_xla_is_complete(tmp_path: Path) -> None:
    told = subprocess.run(
        ["git", "apply", "--numstat", "-"], cwd=tmp_path, input=PATCH.create, capture_output=True, text=True, check=True
    )
    assert told.stdout == "1\t1\tthird_party/gpus/rocm/BUILD.tpl\n21\t0\tthird_party/gpus/rocm_configure.bzl\n"


def test_the_wheel_config_has_the_run_path_that_patchelf_used_to_set() -> None:
    bazelrc = next(file for file in rocm_jax_proposal().files if file.path == BAZELRC)
    (value,) = re.findall("--repo_env=ROCM_WHEEL_RPATH=(.*)", bazelrc.edits[0].new)
    assert value == (
        "$ORIGIN/../rocm/lib:$ORIGIN/../rocm/lib/rocm_sysdeps/lib:$ORIGIN/../../rocm/lib:"
        "$ORIGIN/../../rocm/lib/rocm_sysdeps/lib:/opt/rocm/lib:/opt/rocm/lib/rocm_sysdeps/lib"
    )
