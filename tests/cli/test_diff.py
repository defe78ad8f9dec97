"""Tests of the diff command."""

from __future__ import annotations

import json
import os
import zipfile
from typing import TYPE_CHECKING

import pytest

from tests.support.bundles import bundle_of
from tests.support.command_line import as_user, needs_setpriv, rocwheel
from tests.support.libraries import needs_compiler
from tests.support.two_versions import make_two_versions
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run

ELF = b"\x7fELF\2\1"


def two(folder: Path, old: dict[str, Path | bytes], new: dict[str, Path | bytes]) -> tuple[Path, Path]:
    """Return two wheels of these files."""
    return make_wheel(folder / "old", "alpha", old), make_wheel(folder / "new", "alpha", new)


@needs_compiler
def test_removals_are_listed_first_and_result_in_exit_status_1(run: Run, tmp_path: Path) -> None:
    done = run("diff", *make_two_versions(tmp_path))
    lines = done.stdout.splitlines()
    assert (done.status, done.stderr) == (1, "")
    assert (
        lines[0]
        == "error library-gone demo: demo/lib/libwent.so.1 was removed (a library with the SONAME libwent.so.1)"
    )
    assert lines[-1].endswith("13 errors, 5 warnings")


@pytest.mark.parametrize(
    ("old", "new", "status"),
    [
        ({"a.py": b"1"}, {"a.py": b"2"}, 0),
        ({"a.py": b""}, {}, 1),
        ({"a.txt": b""}, {}, 0),
        ({}, {"a.py": b""}, 0),
    ],
    ids=["changed", "module went", "text went", "came"],
)
def test_the_exit_status_is_1_only_if_users_lose_something(
    run: Run, tmp_path: Path, old: dict[str, Path | bytes], new: dict[str, Path | bytes], status: int
) -> None:
    assert run("diff", *two(tmp_path, old, new)).status == status


def test_a_file_compared_with_itself_has_no_differences(run: Run, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "alpha", {"a.py": b"x"})
    done = run("diff", wheel, wheel)
    assert (done.status, done.stdout.startswith("no differences: 5 files")) == (0, True)


@needs_setpriv
@pytest.mark.slow
def test_an_unreadable_file_is_reported_when_a_folder_is_compared_with_itself(tmp_path: Path) -> None:
    (tmp_path / "a.so").write_bytes(ELF * 100)
    (tmp_path / "a.so").chmod(0)
    done = rocwheel("diff", tmp_path, tmp_path, before=as_user())
    assert done.returncode == 2
    assert f"{tmp_path}/a.so: can't be read (Permission denied)" in done.stderr


def test_ignored_rules_do_not_affect_the_exit_status(run: Run, tmp_path: Path) -> None:
    wheels = two(tmp_path, {"a.py": b""}, {})
    assert run("diff", *wheels, "--ignore", "module-*").status == 0


def test_an_ignore_pattern_that_matches_no_rule_is_refused(run: Run, tmp_path: Path) -> None:
    done = run("diff", *two(tmp_path, {}, {}), "--ignore", "zzz")
    assert done.status == 2
    assert "--ignore zzz doesn't match any rule" in done.stderr


def test_json_has_files_fields_and_findings(run: Run, tmp_path: Path) -> None:
    wheels = two(tmp_path, {"k.hsaco": bundle_of("gfx906")}, {"k.hsaco": bundle_of("gfx90a"), "n": b"123"})
    done = run("diff", *wheels, "--json")
    document = json.loads(done.stdout)
    [package] = document["packages"]
    files = {file["old_path"] or file["new_path"]: file for file in package["files"]}
    assert (done.status, document["schema"], document["as_files"]) == (1, "rocwheel.diff/1", False)
    assert (package["name"], package["status"], package["targets_went"]) == ("alpha", "changed", ["gfx906"])
    assert (files["n"]["status"], files["n"]["old_size"], files["n"]["new_size"]) == ("came", None, 3)
    assert files["k.hsaco"]["library"]["targets_came"] == ["gfx90a"]
    gone = {"rule": "gpu-gone", "severity": "error", "package": "alpha", "found": "no longer has code for gfx906"}
    assert document["findings"] == [{**gone, "file": file} for file in ("", "k.hsaco")]


def test_only_the_largest_files_are_listed_unless_verbose(run: Run, tmp_path: Path) -> None:
    wheels = two(tmp_path, {}, {f"f{number}.txt": b"x" for number in range(30)})
    assert "... and 21 files more (-v)" in run("diff", *wheels).stdout
    assert "(-v)" not in run("diff", *wheels, "-v").stdout


def test_markup_is_shown_literally_and_control_characters_are_escaped(run: Run, tmp_path: Path) -> None:
    done = run("diff", *two(tmp_path, {"[red]a\x1b[31m\nb.py": b""}, {}))
    assert r"module-gone alpha: [red]a\x1b[31m\nb.py went" in done.stdout
    assert "\x1b" not in done.stdout


def test_names_that_are_not_utf8_are_compared(run: Run, tmp_path: Path) -> None:
    for side in ("old", "new"):
        (tmp_path / side).mkdir()
        (tmp_path / side / "same").write_text("x")
    (tmp_path / "old" / "b\udcff.py").write_text("x")
    done = run("diff", tmp_path / "old", tmp_path / "new")
    assert (done.status, r"b\udcff.py went" in done.stdout) == (1, True)
    assert (
        json.loads(run("diff", tmp_path / "old", tmp_path / "new", "--json").stdout)["findings"][0]["file"]
        == "b\udcff.py"
    )


def test_a_wheel_with_duplicate_members_is_refused(run: Run, tmp_path: Path) -> None:
    old, new = two(tmp_path, {"a.py": b""}, {"a.py": b""})
    with zipfile.ZipFile(new, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("a.py", b"2")
    done = run("diff", old, new)
    assert (done.status, done.stdout) == (2, "")
    assert str(new) in done.stderr


@pytest.mark.parametrize("kind", ["folder", "file", "pipe"])
def test_empty_input_is_refused_with_its_name(run: Run, tmp_path: Path, kind: str) -> None:
    empty, wheel = tmp_path / "empty", make_wheel(tmp_path, "alpha", {})
    if kind == "folder":
        empty.mkdir()
    elif kind == "file":
        empty.touch()
    else:
        os.mkfifo(empty)
    done = run("diff", wheel, empty)
    assert (done.status, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {empty}: is ")


def test_both_missing_inputs_are_reported(run: Run, tmp_path: Path) -> None:
    done = run("diff", tmp_path / "a", tmp_path / "b")
    assert (done.status, done.stdout) == (2, "")
    assert all(f"{tmp_path / name}: can't be read" in done.stderr for name in "ab")


def test_a_damaged_library_does_not_suppress_other_findings(run: Run, tmp_path: Path) -> None:
    wheels = two(tmp_path, {"a.py": b"", "liba.so": ELF + b"\xff" * 60}, {"liba.so": ELF + b"\xfe" * 60})
    done = run("diff", *wheels)
    assert done.status == 2
    assert "module-gone alpha: a.py went" in done.stdout
    assert all(f"{wheel}!liba.so" in done.stderr for wheel in wheels)


@pytest.mark.parametrize("side", ["old", "new"])
def test_a_damaged_wheel_does_not_suppress_other_findings(run: Run, tmp_path: Path, side: str) -> None:
    for folder, files in (("old", {"a.py": b"", "b.py": b""}), ("new", {"b.py": b""})):
        for name in ("alpha", "beta"):
            make_wheel(tmp_path / folder, name, {f"{name}/{path}": data for path, data in files.items()})
    [damaged] = (tmp_path / side).glob("alpha-*.whl")
    damaged.write_bytes(damaged.read_bytes()[:100])
    done = run("diff", tmp_path / "old", tmp_path / "new")
    assert done.status == 2
    assert "module-gone beta: beta/a.py went" in done.stdout
    assert "alpha" not in done.stdout
    assert f"{damaged}: " in done.stderr


def test_a_folder_with_only_damaged_wheels_is_not_compared(run: Run, tmp_path: Path) -> None:
    old, new = two(tmp_path, {"a.py": b""}, {"a.py": b""})
    new.write_bytes(b"PK")
    done = run("diff", old.parent, new.parent)
    assert (done.status, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {new}: ")


def test_debian_packages_compared_without_unpacking_produce_a_warning(run: Run, tmp_path: Path) -> None:
    for side in ("old", "new"):
        (tmp_path / side).mkdir()
        (tmp_path / side / "librocfft0.deb").write_bytes(f"!<arch>\ndebian-binary{side}".encode())
    done = run("diff", tmp_path / "old", tmp_path / "new")
    warning = "Debian packages are compared byte by byte, without opening them: librocfft0.deb"
    assert (done.status, done.stderr) == (0, f"warning: {warning}\n")


def test_comparing_a_wheel_with_a_folder_produces_a_warning(run: Run, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "alpha", {"a.txt": b"1"})
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/a.txt").write_bytes(b"1")
    done = run("diff", wheel, tmp_path / "tree")
    assert (done.status, done.stderr) == (0, "warning: only files are compared, because one side isn't a package\n")
