"""``rocwheel artifacts list``, ``archive`` and ``extract``."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path

import pytest

from rocwheel.demo import SAMPLE_SDK
from tests.support.command_line import as_user, needs_setpriv, rocwheel, with_files_up_to

run = partial(rocwheel, "artifacts")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["list", "pipes"], "pipes/blas_lib_generic.tar.xz"),
        (["extract", "pipes/blas_lib_generic.tar.xz", "--output", "out"], "pipes/blas_lib_generic.tar.xz"),
        (["import", "pipes/a.deb", "--output", "out"], "pipes/a.deb"),
    ],
    ids=["list", "extract", "from-deb"],
)
def test_a_pipe_is_refused_without_blocking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], found: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pipes").mkdir()
    for name in ("blas_lib_generic.tar.xz", "a.deb"):
        os.mkfifo(tmp_path / "pipes" / name)
    done = run(*arguments, "--quiet")
    assert done.returncode == 2
    assert f"{found}: can't be read (it isn't a regular file)" in done.stderr


@pytest.mark.slow
def test_invalid_input_exits_with_status_2_and_no_output(artifacts: Path, tmp_path: Path) -> None:
    (artifacts / "rand_lib_generic").mkdir()
    done = run("archive", "--output", tmp_path / "out", artifacts, "--quiet")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"error: {artifacts}/rand_lib_generic: has no artifact_manifest.txt. "
        "If a copy of the artifact was interrupted, complete or remove the folder.\n"
    )
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@needs_setpriv
@pytest.mark.parametrize("command", ["archive", "extract"])
def test_a_folder_without_write_permission_is_reported(artifacts: Path, tmp_path: Path, command: str) -> None:
    run("archive", artifacts, "blas_dev_generic", "--output", tmp_path / "archives")
    out = tmp_path / "out"
    out.mkdir(mode=0o500)
    source = (
        [artifacts, "blas_dev_generic"] if command == "archive" else [tmp_path / "archives/blas_dev_generic.tar.zst"]
    )
    done = run(command, *source, "--output", out, "--quiet", before=as_user())
    name = "blas_dev_generic.tar.zst" if command == "archive" else "blas_dev_generic"
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"error: {out}/{name}: can't be written (Permission denied). "
        "Check the free space and the permissions of the folder.\n"
    )
    assert list(out.iterdir()) == []


@pytest.mark.slow
def test_every_command_shows_an_example() -> None:
    for command in ("list", "archive", "extract"):
        done = run(command, "--help")
        assert f"Example: rocwheel artifacts {command}" in " ".join(done.stdout.split())


run_list = partial(rocwheel, "artifacts")


@pytest.mark.slow
def test_list_prints_a_table_with_totals(artifacts: Path) -> None:
    done = run_list("list", artifacts)
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split() for line in done.stdout.splitlines() if line.strip() and "─" not in line] == [
        ["artifact", "component", "target", "files", "symlinks", "bytes"],
        ["blas", "dev", "generic", "1", "1", "1"],
        ["blas", "lib", "generic", "1", "1", "1,234,567"],
        ["blas", "lib", "gfx90a:xnack+", "1", "1", "10"],
        ["3", "artifacts", "3", "3", "1,234,578"],
    ]


@pytest.mark.slow
def test_list_prints_json(artifacts: Path) -> None:
    done = run_list("list", artifacts, "--json", "--target", "gfx90a", "--files")
    assert json.loads(done.stdout) == {
        "schema": "rocwheel.artifacts/1",
        "directory": str(artifacts),
        "artifacts": [
            {
                "artifact": "blas_lib_gfx90a:xnack+",
                "name": "blas",
                "component": "lib",
                "target": "gfx90a:xnack+",
                "files": 1,
                "symlinks": 1,
                "bytes": 10,
                "entries": [
                    {"path": "lib", "kind": "directory", "mode": "755"},
                    {"path": "lib/x", "kind": "file", "mode": "644", "bytes": 10},
                    {"path": "lib/y", "kind": "symlink", "mode": "777", "link": "x"},
                ],
            }
        ],
        "files": 1,
        "symlinks": 1,
        "bytes": 10,
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--target", "gfx90"], "no artifact is for the target 'gfx90'; available: generic, gfx90a:xnack+"),
        (["--component", "bin"], "no artifact has the component 'bin'; available: dev, lib"),
        (
            ["--component", "dev", "--target", "gfx90a"],
            "no artifact with the component 'dev' is for the target 'gfx90a'",
        ),
    ],
    ids=["target", "component", "both"],
)
def test_list_prints_the_available_choices_if_nothing_matches(artifacts: Path, options: list[str], told: str) -> None:
    done = run_list("list", artifacts, *options)
    assert done.returncode == 0
    assert done.stderr.endswith(f"warning: {told}\n")


@pytest.mark.slow
def test_a_missing_temporary_folder_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "none"))
    done = run_list("list", SAMPLE_SDK)
    assert (done.returncode, done.stdout) == (1, "")
    assert (
        done.stderr == f"error: TMPDIR: is {tmp_path}/none, a folder where files can't be created "
        "(No such file or directory). Correct or unset the variable.\n"
    )


@pytest.mark.slow
def test_list_prints_each_file_on_one_unwrapped_line(artifacts: Path) -> None:
    long = "directory/" * 20 + "file"
    place = artifacts / "blas_dev_generic/math/stage" / long
    place.parent.mkdir(parents=True)
    place.write_bytes(b"")
    done = run_list("list", artifacts, "--files", "--component", "dev")
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["blas_dev_generic", "file", "644", "0", long] in lines
    assert ["blas_dev_generic", "symlink", "777", "0", "lib/y", "->", "x"] in lines


run_archive = partial(rocwheel, "artifacts")


@pytest.mark.slow
def test_a_malformed_source_date_is_refused(artifacts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    done = run_archive("archive", artifacts, "--output", tmp_path / "out")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "error: SOURCE_DATE_EPOCH: is 'yesterday'; expected a whole number of seconds since 1970. "
        "Correct or unset it.\n"
    )


@pytest.mark.slow
def test_a_full_disk_leaves_no_archive(artifacts: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = run_archive(
        "archive", artifacts, "blas_lib_generic", "--output", out, "-q", before=with_files_up_to(1 << 20)
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"error: {out}/blas_lib_generic.tar.zst: can't be written (File too large). "
        "Check the free space and the permissions of the folder.\n"
    )
    assert list(out.iterdir()) == []


run_extract = partial(rocwheel, "artifacts")


@pytest.mark.slow
def test_archive_and_extract_print_the_paths_of_their_output(artifacts: Path, tmp_path: Path) -> None:
    packed = run_extract("archive", artifacts, "blas_dev_generic", "--output", tmp_path / "out", "--format", "xz")
    archive = tmp_path / "out/blas_dev_generic.tar.xz"
    assert (packed.returncode, packed.stdout) == (0, f"{archive}\n")
    unpacked = run_extract("extract", archive, "--output", tmp_path / "again", "--json")
    assert json.loads(unpacked.stdout) == {
        "schema": "rocwheel.artifact-folders/1",
        "paths": [str(tmp_path / "again/blas_dev_generic")],
    }
    assert (tmp_path / "again/blas_dev_generic/math/stage/lib/y").readlink() == Path("x")
