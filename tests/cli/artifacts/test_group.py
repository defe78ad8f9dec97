"""What the commands of ``rocwheel artifacts`` have in common."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.support.command_line import as_user, needs_setpriv, rocwheel

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


run = partial(rocwheel, "artifacts")


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["list", "pipes"], "pipes/blas_lib_generic.tar.xz"),
        (["extract", "pipes/blas_lib_generic.tar.xz", "--dest-dir", "out"], "pipes/blas_lib_generic.tar.xz"),
        (["from-deb", "pipes/a.deb", "--dest-dir", "out"], "pipes/a.deb"),
    ],
    ids=["list", "extract", "from-deb"],
)
def test_a_pipe_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], found: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pipes").mkdir()
    for name in ("blas_lib_generic.tar.xz", "a.deb"):
        os.mkfifo(tmp_path / "pipes" / name)
    done = run(*arguments, "--quiet")
    assert done.returncode == 2
    assert f"{found}: can't be read (it is not a regular file)" in done.stderr


def test_bad_input_ends_with_status_2_and_no_output(artifacts: Path, tmp_path: Path) -> None:
    (artifacts / "rand_lib_generic").mkdir()
    done = run("archive", "--dest-dir", tmp_path / "out", artifacts, "--quiet")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"error: {artifacts}: 1 problem\n  {artifacts}/rand_lib_generic: has no artifact_manifest.txt. "
        "Is it an artifact whose copying broke off? Complete or remove the folder.\n"
    )
    assert not (tmp_path / "out").exists()


@needs_setpriv
@pytest.mark.parametrize("command", ["archive", "extract"])
def test_a_folder_without_permission_is_reported(artifacts: Path, tmp_path: Path, command: str) -> None:
    run("archive", artifacts, "blas_dev_generic", "--dest-dir", tmp_path / "archives")
    out = tmp_path / "out"
    out.mkdir(mode=0o500)
    source = (
        [artifacts, "blas_dev_generic"] if command == "archive" else [tmp_path / "archives/blas_dev_generic.tar.zst"]
    )
    done = run(command, *source, "--dest-dir", out, "--quiet", before=as_user())
    name = "blas_dev_generic.tar.zst" if command == "archive" else "blas_dev_generic"
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"error: {out}/{name}: can't be written (Permission denied). "
        "Check the free space and the permissions of its folder.\n"
    )
    assert list(out.iterdir()) == []


def test_every_command_shows_an_example() -> None:
    for command in ("list", "archive", "extract"):
        done = run(command, "--help")
        assert f"Example: rocwheel artifacts {command}" in " ".join(done.stdout.split())
