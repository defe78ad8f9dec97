"""``rocm-sdk doctor`` finds commands that are damaged, or name a Python which is no longer there."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

Make = Callable[..., Any]
REMEDY = "Make a new environment where this one is now, or move it back: what installers write there can't be moved"


def write_command(environment: Any, text: str) -> None:
    """Write a command as installers do that note neither its hash nor its size."""
    (environment.python.parent / "rocm-sdk").write_text(text)
    record = next(environment.site.glob("rocm-7*.dist-info")) / "RECORD"
    record.write_text(re.sub(r"/bin/rocm-sdk,.*", "/bin/rocm-sdk,,", record.read_text()))


@pytest.mark.parametrize(
    ("line", "folder"),
    [
        ("#!{python}\n", "old"),
        ("#!{python} -E\n", "old"),
        ("#! {python}\n", "old"),
        ("#!/bin/sh\n'''exec' {python} \"$0\" \"$@\"\n' '''\n", "old" * 50),
        ("#!/bin/sh\n'''exec' \"{python}\" \"$0\" \"$@\"\n' '''\n", "old place"),
        ("#!/bin/sh\n'''exec' '{python}' \"$0\" \"$@\"\n' '''\n", "old place"),
    ],
    ids=["plain", "with an option", "with a blank", "long", "with blanks, by pip", "with blanks, by uv"],
)
def test_commands_of_an_environment_that_was_moved_are_named(
    environment: Any, diagnose: Make, tmp_path: Path, line: str, folder: str
) -> None:
    python = tmp_path / folder / "bin" / "python3"
    write_command(environment, line.format(python=python) + "print(1)\n")
    text = f"commands of rocm can't start, as {python} is not there: rocm-sdk"
    assert diagnose(environment, 90006) == [["error", text, REMEDY]]


@pytest.mark.parametrize(
    "line",
    [
        "#!/bin/sh\n'''exec' '{quoted}/bin/python' \"$0\" \"$@\"\n' '''\n",
        "#!/bin/sh\n'''exec' \"$(dirname -- \"$0\")/python\" \"$0\" \"$@\"\n' '''\n",
        "#!/usr/bin/env no-such-python\n",
        "#!/bin/sh\n'''exec' '\n",
        "\x7fELF",
    ],
    ids=["with an apostrophe", "relocatable", "by env", "unreadable", "a program"],
)
def test_commands_whose_interpreter_is_there_or_unknown_are_fine(
    environment: Any, diagnose: Make, tmp_path: Path, line: str
) -> None:
    place = tmp_path / "o'brien x"
    (place / "bin").mkdir(parents=True)
    (place / "bin/python").touch()
    quoted = str(place).replace("'", "'\"'\"'")
    write_command(environment, line.format(quoted=quoted))
    assert diagnose(environment, 90006) == []


def test_a_name_that_no_file_has_is_told_by_the_check_of_files_alone(environment: Any, diagnose: Make) -> None:
    record = next(environment.site.glob("rocm-7*.dist-info")) / "RECORD"
    record.write_text(record.read_text() + "../../../bin/a\0b,,\n../../../a\0b/c,,\n")
    assert diagnose(environment, 90006) == []


def test_commands_whose_python_is_there_are_fine(environment: Any, diagnose: Make) -> None:
    assert diagnose(environment, 90006) == []


def test_commands_that_are_gone_are_warned_of(environment: Any, diagnose: Make) -> None:
    (environment.python.parent / "rocm-sdk").unlink()
    found = diagnose(environment, 90006)
    text = f"commands of rocm are not there: {environment.python.parent}/rocm-sdk"
    assert [row[:2] for row in found] == [["warning", text]]
    assert "--force-reinstall" in found[0][2]


def _make_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        (lambda path: path.write_bytes(b""), "empty"),
        (lambda path: path.chmod(0o644), "not executable"),
        (_make_folder, "not a file"),
    ],
    ids=["empty", "mode", "folder"],
)
def test_commands_that_cannot_start_are_named_with_the_reason(
    environment: Any, diagnose: Make, damage: Callable[[Path], object], fault: str
) -> None:
    damage(environment.python.parent / "rocm-sdk")
    text = f"commands of rocm can't start: rocm-sdk ({fault})"
    assert [row[:2] for row in diagnose(environment, 90006)] == [["error", text]]


def test_where_commands_of_a_target_folder_are_is_not_guessed(environment: Any, diagnose: Make, tmp_path: Path) -> None:
    site, other = environment.site, tmp_path / "target"
    site.rename(other)
    site.mkdir()
    (site / "target.pth").write_text(f"{other}\n")
    assert diagnose(environment, 90006) == []


def test_commands_with_other_bytes_than_were_installed_are_warned_of(environment: Any, diagnose: Make) -> None:
    script = environment.python.parent / "rocm-sdk"
    size = script.stat().st_size
    script.write_text("#!/bin/sh\n")
    text = f"commands of rocm are not as installed: rocm-sdk (10 bytes instead of {size})"
    assert [row[:2] for row in diagnose(environment, 90006)] == [["warning", text]]


@pytest.mark.parametrize("folder", ["lib", "lib/python3*/site-packages"])
def test_commands_are_found_where_a_folder_above_the_packages_is_a_link(
    environment: Any, diagnose: Make, tmp_path: Path, folder: str
) -> None:
    (place,) = environment.path.glob(folder)
    place.rename(tmp_path / "elsewhere")
    place.symlink_to(tmp_path / "elsewhere")
    assert diagnose(environment, 90006) == []


def test_what_record_names_elsewhere_than_among_scripts_is_no_command(environment: Any, diagnose: Make) -> None:
    record = next(environment.site.glob("rocm-7*.dist-info")) / "RECORD"
    names = ("../../../share/man/man1/rocm-sdk.1", "../../../bin/__pycache__/x.pyc", "../../bin/rocm-sdk")
    record.write_text(record.read_text() + "".join(f"{name},,\n" for name in names))
    manual = environment.path / "share/man/man1/rocm-sdk.1"
    manual.parent.mkdir(parents=True)
    manual.write_text("a page")
    assert diagnose(environment, 90006) == []
