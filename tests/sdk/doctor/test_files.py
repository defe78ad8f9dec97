"""The doctor compares files with RECORD, and finds commands that can't start."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from tests.sdk.installed import FROM_INDEX
from tests.support.command_line import ASCII, as_user

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.slow

Make = Callable[..., Any]
AGAIN = 'pip install "rocm[{}]==7.2.0" --force-reinstall ' + FROM_INDEX
OVER = 'pip install "rocm[libraries]==7.2.0" --ignore-installed ' + FROM_INDEX
CORE_OVER = f'pip install "rocm==7.2.0" --ignore-installed {FROM_INDEX}'
CORE = f'pip install "rocm==7.2.0" --force-reinstall {FROM_INDEX}'


@pytest.fixture
def environment(make_installed: Make) -> Any:
    """Return an environment whose files are its own: uv would link them to those of its cache."""
    return make_installed("rocm[libraries,device-gfx906,devel]")


@pytest.mark.parametrize(
    ("name", "dist", "remedy"),
    [
        ("_rocm_sdk_core/lib/libamdhip64.so.6", "rocm-sdk-core", CORE),
        ("_rocm_sdk_core/__init__.py", "rocm-sdk-core", CORE),
        ("_rocm_sdk_libraries/lib/libhipsparse.so.1", "rocm-sdk-libraries", AGAIN.format("libraries")),
        (
            "_rocm_sdk_libraries/lib/rocblas/library/kernels_gfx906.co",
            "rocm-sdk-device-gfx906",
            AGAIN.format("device-gfx906"),
        ),
        ("rocm_sdk/_process.py", "rocm", CORE),
    ],
)
def test_a_missing_file_in_any_package_is_named(
    environment: Any, diagnose: Make, name: str, dist: str, remedy: str
) -> None:
    (environment.site / name).unlink()
    assert diagnose(environment, 90006) == [["error", f"{dist} lacks {name}", remedy]]


def test_a_missing_file_in_the_expanded_development_files_is_named(environment: Any, diagnose: Make) -> None:
    environment.run("rocm-sdk", "init")
    assert diagnose(environment, 90006) == []
    (environment.root / "include/hip/hip, runtime.h").unlink()
    text = "rocm-sdk-devel lacks _rocm_sdk_devel/include/hip/hip, runtime.h"
    assert diagnose(environment, 90006) == [["error", text, AGAIN.format("devel")]]


def test_a_missing_library_is_reported_once_even_if_links_point_to_it(environment: Any, diagnose: Make) -> None:
    environment.run("rocm-sdk", "init")
    (environment.site / "_rocm_sdk_core/lib/libamdhip64.so.6").unlink()
    assert [text for _, text, _ in diagnose(environment, 90006)] == [
        "rocm-sdk-core lacks _rocm_sdk_core/lib/libamdhip64.so.6"
    ]


def test_a_truncated_file_is_reported_with_both_sizes(environment: Any, diagnose: Make) -> None:
    (environment.site / "_rocm_sdk_core/share/a,b.txt").write_bytes(b"da")
    text = "rocm-sdk-core has modified files: _rocm_sdk_core/share/a,b.txt (2 bytes instead of 4)"
    assert diagnose(environment, 90006) == [["error", text, CORE]]


def test_a_folder_in_place_of_a_file_is_reported(environment: Any, diagnose: Make) -> None:
    path = environment.site / "_rocm_sdk_core/share/a,b.txt"
    path.unlink()
    path.mkdir()
    ((_, text, _),) = diagnose(environment, 90006)
    assert text == "rocm-sdk-core has modified files: _rocm_sdk_core/share/a,b.txt (not a file)"


def doctor_of_user(environment: Any, *options: str) -> list[dict[str, str]]:
    """Return what is wrong for a user whom permissions hinder."""
    command = [*as_user(), str(environment.path / "bin/rocm-sdk"), "doctor", "--json", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return [one for one in json.loads(done.stdout)["findings"] if one["level"] == "error"]


def test_an_unreadable_folder_is_reported_first_with_the_command_that_fixes_it(environment: Any) -> None:
    environment.run("rocm-sdk", "init")
    tree = environment.root
    tree.chmod(0)
    first, *_ = doctor_of_user(environment)
    names = ".expanded.json, _rocm_sdk_devel/__init__.py, _rocm_sdk_devel/bin/amdclang++"
    assert first["text"].startswith(
        f"rocm-sdk-devel has files that the current user is not allowed to read: _rocm_sdk_devel/{names} and "
    )
    assert first["remedy"] == f"As the owner of {tree}: chmod -R u+rwX,go+rX '{tree}'"
    # When its command is run, then nothing is wrong any more, and installers can remove the folder
    subprocess.run([*as_user(), "sh", "-c", first["remedy"].partition(": ")[2]], check=True)
    assert doctor_of_user(environment) == []
    assert stat.S_IMODE(tree.stat().st_mode) == 0o755


@pytest.mark.parametrize("options", [(), ("--deep",)], ids=["without reading them", "by reading them"])
def test_unreadable_files_are_reported(environment: Any, options: tuple[str, ...]) -> None:
    for name in ("_rocm_sdk_core/share/a,b.txt", "rocm_sdk_core/_cli.py"):
        (environment.site / name).chmod(0)
    core, module = environment.site / "_rocm_sdk_core", environment.site / "rocm_sdk_core"
    assert doctor_of_user(environment, *options) == [
        {
            "level": "error",
            "text": "rocm-sdk-core has files that the current user is not allowed to read: "
            "_rocm_sdk_core/share/a,b.txt, rocm_sdk_core/_cli.py",
            "remedy": f"As the owner of {core}, {module}: chmod -R u+rwX,go+rX '{core}' '{module}'",
        }
    ]


def test_a_non_ascii_file_name_is_found_if_python_uses_ascii_file_names(environment: Any) -> None:
    record = next(environment.site.glob("rocm_sdk_core-*.dist-info/RECORD"))
    record.write_text(f"{record.read_text()}_rocm_sdk_core/share/café.txt,,4\n_rocm_sdk_core/share/thé.txt,,4\n")
    (environment.site / "_rocm_sdk_core/share/café.txt").write_bytes(b"data")
    done = environment.run("rocm-sdk", "doctor", check=False, ROCM_BOOTSTRAP_DISABLE_DETECTION="1", **ASCII)
    assert f"error: rocm-sdk-core lacks _rocm_sdk_core/share/th\\xe9.txt\n  {CORE}\n" in done.stdout
    assert done.stdout.count(".txt") == 1


def test_a_file_with_a_line_separator_in_its_name_is_found(environment: Any, diagnose: Make) -> None:
    record = next(environment.site.glob("rocm_sdk_core-*.dist-info/RECORD"))
    record.write_text(f"{record.read_text()}_rocm_sdk_core/share/a\N{LINE SEPARATOR}b.txt,,4\n")
    (environment.site / "_rocm_sdk_core/share/a\N{LINE SEPARATOR}b.txt").write_bytes(b"data")
    assert diagnose(environment, 90006) == []


def test_only_the_first_missing_files_are_listed_and_the_rest_counted(environment: Any, diagnose: Make) -> None:
    files = ("_rocm_sdk_core/bin/hipcc", "_rocm_sdk_core/bin/rocminfo", "_rocm_sdk_core/lib/libamdhip64.so.6")
    for name in (*files, "_rocm_sdk_core/share/a,b.txt", "_rocm_sdk_core/lib/llvm/bin/clang"):
        (environment.site / name).unlink()
    assert [text for _, text, _ in diagnose(environment, 90006)] == [
        f"rocm-sdk-core lacks {', '.join(files)} and 2 more"
    ]


def test_changed_bytes_are_found_only_by_a_deep_check(environment: Any) -> None:
    (environment.site / "_rocm_sdk_core/share/a,b.txt").write_bytes(b"DATA")
    variables = {"ROCM_BOOTSTRAP_FORCE_GFX_ARCH": "gfx906"}
    text = "rocm-sdk-core has modified files: _rocm_sdk_core/share/a,b.txt (different content)"
    assert text not in environment.run("rocm-sdk", "doctor", check=False, **variables).stdout
    done = environment.run("rocm-sdk", "doctor", "--deep", check=False, **variables)
    assert done.returncode == 1
    assert f"error: {text}\n  {CORE}\n" in done.stdout


def test_a_healthy_environment_has_no_findings_in_a_deep_check(environment: Any) -> None:
    environment.run("rocm-sdk", "init")
    done = environment.run("rocm-sdk", "doctor", "--deep", check=False, ROCM_BOOTSTRAP_DISABLE_DETECTION="1")
    assert "has modified files" not in done.stdout
    assert "lacks" not in done.stdout
    assert done.returncode == 0


def test_a_deleted_library_makes_the_command_exit_with_status_1(environment: Any) -> None:
    (environment.site / "_rocm_sdk_core/lib/libamdhip64.so.6").unlink()
    done = environment.run("rocm-sdk", "doctor", check=False, ROCM_BOOTSTRAP_DISABLE_DETECTION="1")
    assert done.returncode == 1
    assert "error: rocm-sdk-core lacks _rocm_sdk_core/lib/libamdhip64.so.6\n" in done.stdout
    assert "No problems found." not in done.stdout


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\xff", "'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"),
        (b'"' + b"x" * 200_000, "field larger than field limit (131072)"),
    ],
    ids=["not utf-8", "endless cell"],
)
def test_an_unreadable_record_is_an_error(environment: Any, diagnose: Make, data: bytes, why: str) -> None:
    next(environment.site.glob("rocm_sdk_libraries-*/RECORD")).write_bytes(data)
    text = f"RECORD of rocm-sdk-libraries can't be read ({why})"
    assert diagnose(environment, 90006) == [["error", text, OVER]]


UNCHECKED = "its files can't be checked, and installers can't remove them"


def test_a_package_without_record_is_an_error(environment: Any) -> None:
    next(environment.site.glob("rocm_sdk_core-*/RECORD")).unlink()
    (environment.site / "_rocm_sdk_core/lib/libamdhip64.so.6").unlink()
    done = environment.run("rocm-sdk", "doctor", check=False, ROCM_BOOTSTRAP_DISABLE_DETECTION="1")
    assert done.returncode == 1
    assert f"error: rocm-sdk-core has no RECORD: {UNCHECKED}\n  {CORE_OVER}\n" in done.stdout
    assert "No problems found." not in done.stdout


@pytest.mark.parametrize("data", [b"", b"\n\n"], ids=["no bytes", "empty lines"])
def test_an_empty_record_is_reported_as_empty(environment: Any, diagnose: Make, data: bytes) -> None:
    next(environment.site.glob("rocm_sdk_libraries-*/RECORD")).write_bytes(data)
    text = f"RECORD of rocm-sdk-libraries is empty: {UNCHECKED}"
    assert diagnose(environment, 90006) == [["error", text, OVER]]


@pytest.mark.parametrize(
    ("make", "found"), [(os.mkfifo, "a named pipe"), (os.mkdir, "a folder")], ids=["pipe", "folder"]
)
def test_a_folder_or_other_object_in_place_of_record_is_reported(
    environment: Any, diagnose: Make, make: Make, found: str
) -> None:
    record = next(environment.site.glob("rocm_sdk_libraries-*/RECORD"))
    record.unlink()
    make(record)
    why = f"{record} is {found}, not a file"
    text = f"RECORD of rocm-sdk-libraries can't be read ({why}); remove it before you install again"
    assert diagnose(environment, 90006) == [["error", text, OVER]]


@pytest.mark.parametrize("data", [b"\xff", b"", b"Metadata-Version: 2.1\nName: rocm-sdk-libraries\n\n"])
def test_metadata_without_a_version_causes_no_traceback(environment: Any, data: bytes) -> None:
    next(environment.site.glob("rocm_sdk_libraries-*/METADATA")).write_bytes(data)
    done = environment.run("rocm-sdk", "doctor", check=False)
    assert (done.returncode, done.stderr) == (1, "")
    assert "error: rocm-sdk-libraries has modified files: " in done.stdout


REMEDY = "Create a new environment here, or move this environment back: installed commands contain the old path"


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
def test_commands_of_a_moved_environment_are_reported(
    environment: Any, diagnose: Make, tmp_path: Path, line: str, folder: str
) -> None:
    python = tmp_path / folder / "bin" / "python3"
    write_command(environment, line.format(python=python) + "print(1)\n")
    text = f"commands from rocm can't start because {python} is missing: rocm-sdk"
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
def test_commands_with_an_existing_or_unknown_interpreter_pass(
    environment: Any, diagnose: Make, tmp_path: Path, line: str
) -> None:
    place = tmp_path / "o'brien x"
    (place / "bin").mkdir(parents=True)
    (place / "bin/python").touch()
    quoted = str(place).replace("'", "'\"'\"'")
    write_command(environment, line.format(quoted=quoted))
    assert diagnose(environment, 90006) == []


def test_an_impossible_file_name_in_record_is_ignored_by_the_command_check(environment: Any, diagnose: Make) -> None:
    record = next(environment.site.glob("rocm-7*.dist-info")) / "RECORD"
    record.write_text(record.read_text() + "../../../bin/a\0b,,\n../../../a\0b/c,,\n")
    assert diagnose(environment, 90006) == []


def test_commands_with_an_existing_python_pass(environment: Any, diagnose: Make) -> None:
    assert diagnose(environment, 90006) == []


def test_missing_commands_cause_a_warning(environment: Any, diagnose: Make) -> None:
    (environment.python.parent / "rocm-sdk").unlink()
    found = diagnose(environment, 90006)
    text = f"commands from rocm are missing: {environment.python.parent}/rocm-sdk"
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
def test_commands_that_cannot_start_are_reported_with_the_reason(
    environment: Any, diagnose: Make, damage: Callable[[Path], object], fault: str
) -> None:
    damage(environment.python.parent / "rocm-sdk")
    text = f"commands from rocm can't start: rocm-sdk ({fault})"
    assert [row[:2] for row in diagnose(environment, 90006)] == [["error", text]]


def test_the_commands_of_a_target_folder_are_not_guessed(environment: Any, diagnose: Make, tmp_path: Path) -> None:
    site, other = environment.site, tmp_path / "target"
    site.rename(other)
    site.mkdir()
    (site / "target.pth").write_text(f"{other}\n")
    assert diagnose(environment, 90006) == []


def test_modified_commands_cause_a_warning(environment: Any, diagnose: Make) -> None:
    script = environment.python.parent / "rocm-sdk"
    size = script.stat().st_size
    script.write_text("#!/bin/sh\n")
    text = f"commands from rocm changed after installation: rocm-sdk (10 bytes instead of {size})"
    assert [row[:2] for row in diagnose(environment, 90006)] == [["warning", text]]


@pytest.mark.parametrize("folder", ["lib", "lib/python3*/site-packages"])
def test_commands_are_found_if_a_parent_folder_is_a_link(
    environment: Any, diagnose: Make, tmp_path: Path, folder: str
) -> None:
    (place,) = environment.path.glob(folder)
    place.rename(tmp_path / "elsewhere")
    place.symlink_to(tmp_path / "elsewhere")
    assert diagnose(environment, 90006) == []


def test_record_entries_outside_the_scripts_folder_are_not_commands(environment: Any, diagnose: Make) -> None:
    record = next(environment.site.glob("rocm-7*.dist-info")) / "RECORD"
    names = ("../../../share/man/man1/rocm-sdk.1", "../../../bin/__pycache__/x.pyc", "../../bin/rocm-sdk")
    record.write_text(record.read_text() + "".join(f"{name},,\n" for name in names))
    manual = environment.path / "share/man/man1/rocm-sdk.1"
    manual.parent.mkdir(parents=True)
    manual.write_text("a page")
    assert diagnose(environment, 90006) == []
