"""Files and folders that commands can't use, in the words of all messages about files."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from tests.support.bundles import bundle_of
from tests.support.command_line import as_user, needs_setpriv, rocwheel

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run

pytestmark = pytest.mark.slow

ABSENT = "can't be read (No such file or directory). Check whether it exists and is readable."
COMMANDS = [
    ("device", "list", "{}"),
    ("device", "prune", "{}", "--targets", "gfx906", "--output", "out"),
    ("device", "bundle", "{}", "--output", "out"),
    ("targets", "runs-on", "gfx906", "{}"),
    ("targets", "coherent", "{}"),
    ("targets", "detect", "--check", "--root", "{}"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_missing_path_is_reported_with_a_remedy(run: Run, tmp_path: Path, command: tuple[str, ...]) -> None:
    place = str(tmp_path / "none")
    finished = run(*(part.format(place) for part in command))
    assert finished == (2, "", f"error: {place}: {ABSENT}\n")


def test_missing_paths_are_also_reported_in_json(run: Run, tmp_path: Path) -> None:
    first, second = tmp_path / "one", tmp_path / "two"
    document = json.loads(run("targets", "runs-on", "gfx906", first, second, "--json").stdout)
    assert document["schema"] == "rocwheel.errors/1"
    assert [error["text"] for error in document["errors"]] == [f"{first}: {ABSENT}", f"{second}: {ABSENT}"]


def test_a_folder_passed_instead_of_a_file_is_refused(run: Run, tmp_path: Path) -> None:
    expected = f"error: {tmp_path}: can't be read (Is a directory). Pass a file instead of a folder.\n"
    assert run("jax", "bazelrc", "--settings", tmp_path) == (2, "", expected)


def test_a_file_passed_instead_of_a_folder_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    expected = f"error: {tmp_path}/file: isn't a folder. Pass a folder.\n"
    assert run("targets", "detect", "--check", "--root", tmp_path / "file") == (2, "", expected)


@pytest.mark.parametrize(
    "command",
    [
        ("device", "bundle", "a.co", "--output", "out/"),
        ("device", "prune", "a.hipfb", "--targets", "gfx906", "--output", "out/"),
        ("device", "compress", "a.hipfb", "-o", "out/"),
        ("report", "a.hipfb", "--output", "out/"),
        ("lock", "rocm", "--output", "out/"),
    ],
    ids=" ".join,
)
def test_a_folder_is_refused_as_the_path_of_an_output_file(
    run: Run, tmp_path: Path, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.hipfb").write_bytes(bundle_of("gfx906", "gfx1030"))
    (tmp_path / "a.co").write_bytes(b"code")
    finished = run(*command)
    assert finished.status == 2
    assert finished.stderr in {
        "error: out/: is a folder; expected a file. Change --output.\n",
        "error: out: is a folder; expected an output file. Change --output.\n",
    }
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.co", "a.hipfb"]


def test_a_trailing_slash_on_an_output_folder_is_accepted(run: Run, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.hipfb").write_bytes(bundle_of("gfx906", "gfx1030"))
    assert run("device", "prune", tmp_path / "in", "--targets", "gfx906", "--output", f"{tmp_path}/out/").status == 0
    assert (tmp_path / "out/a.hipfb").is_file()


@pytest.mark.parametrize("command", ["prune", "compress", "retarget"])
def test_the_help_says_that_an_existing_output_file_is_replaced(run: Run, command: str) -> None:
    text = " ".join(run("device", command, "--help").stdout.split())
    assert "Write the result to this file or folder. An existing file is replaced." in text


def test_device_commands_do_not_read_or_write_standard_streams(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.hipfb").write_bytes(bundle_of("gfx906", "gfx1030"))
    os.mkfifo(tmp_path / "pipe")
    for output, error in (
        ("-", "--output: is -, but this command can't write to standard output. Pass a file name."),
        ("pipe", "pipe: isn't a regular file; expected an output file. Change --output."),
    ):
        assert run("device", "prune", "a.hipfb", "--targets", "gfx906", "-o", output) == (2, "", f"error: {error}\n")
    error = "-: can't be read (No such file or directory). rocwheel doesn't read standard input here. Pass a file."
    assert run("inspect", "-") == (2, "", f"error: {error}\n")
    assert not (tmp_path / "-").exists()


@needs_setpriv
def test_an_unreadable_file_is_reported(tmp_path: Path) -> None:
    closed = tmp_path / "closed.whl"
    closed.touch(0)
    done = rocwheel("inspect", closed, before=as_user())
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr == f"error: {closed}: can't be read (Permission denied). Check whether it exists and is readable.\n"
    )


@needs_setpriv
@pytest.mark.parametrize(
    "command", ["list", "compress -o o.so", "prune --targets gfx906 -o o.so", "extract -o o", "split -o o"]
)
def test_every_device_command_reports_an_unreadable_library(tmp_path: Path, command: str) -> None:
    closed = tmp_path / "closed.so"
    closed.touch(0)
    name, *options = command.split()
    done = rocwheel("device", name, closed, *options, cwd=tmp_path, before=as_user())
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr == f"error: {closed}: can't be read (Permission denied). Check whether it exists and is readable.\n"
    )


@needs_setpriv
@pytest.mark.parametrize("command", [("device", "list"), ("targets", "runs-on", "gfx906"), ("inspect",)], ids=" ".join)
def test_an_unreadable_file_does_not_stop_the_other_files(tmp_path: Path, command: tuple[str, ...]) -> None:
    for name in ("closed.hipfb", "open.hipfb"):
        (tmp_path / name).write_bytes(bundle_of("gfx906"))
    (tmp_path / "closed.hipfb").chmod(0)
    paths = [tmp_path / name for name in ("closed.hipfb", "open.hipfb")]
    done = rocwheel(*command, *paths, before=as_user())
    assert done.returncode == (1 if command == ("device", "list") else 2)
    assert f"{paths[0]}: can't be read (Permission denied)" in done.stderr
    assert str(paths[1]) in done.stdout


@needs_setpriv
@pytest.mark.parametrize("command", ["repair --check", "targets coherent", "verify", "diff good"])
def test_an_unlistable_folder_is_not_treated_as_empty(tmp_path: Path, command: str) -> None:
    (tmp_path / "closed").mkdir(0)
    (tmp_path / "good").mkdir()
    (tmp_path / "good/a.txt").write_text("text")
    done = rocwheel(*command.split(), "closed", cwd=tmp_path, before=as_user())
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: closed: can't be read (Permission denied). Check whether it exists and is readable.\n"
