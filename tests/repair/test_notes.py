"""Tests of `rocwheel.repair.notes`."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

import pytest

from tests.repair.wheels import with_members
from tests.support.libraries import needs_compiler
from tests.support.wheels import make_wheel, members

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run


pytestmark = [pytest.mark.slow, needs_compiler]


def test_a_file_that_is_not_a_wheel_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no wheel")
    done = run("repair", tmp_path / "notes.txt", "--check")
    expected = "a file whose name ends with .whl, or a folder of wheels"
    assert done == (2, "", f"error: {tmp_path / 'notes.txt'}: isn't a wheel; expected {expected}\n")


def test_a_folder_without_wheels_is_refused_even_if_named_like_a_wheel(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "demo-1.0-py3-none-any.whl"
    folder.mkdir()
    expected = f"error: {folder}: is a folder without wheels; expected a wheel, or a folder of wheels\n"
    assert run("repair", folder, "--check") == (2, "", expected)


def test_a_wheel_with_a_symlink_is_refused_and_no_output_is_left(
    run: Run, plugin_wheel: Path, sdk_wheel: Path, tmp_path: Path
) -> None:
    with zipfile.ZipFile(plugin_wheel, "a") as archive:
        entry = zipfile.ZipInfo("plugin/link.so")
        entry.external_attr = 0o120777 << 16
        archive.writestr(entry, "_right.so")
    done = run("repair", plugin_wheel, "--with", sdk_wheel, "--output", tmp_path / "out")
    assert done.status == 2
    assert (
        f"{plugin_wheel}!plugin/link.so: is a symlink; expected only files. Build the wheel without the symlink."
        in done.stderr
    )
    assert not (tmp_path / "out").exists()


def test_every_member_that_repair_cannot_fix_is_reported(run: Run, plugin_wheel: Path, tmp_path: Path) -> None:
    library = members(plugin_wheel)["plugin/_right.so"]
    with zipfile.ZipFile(plugin_wheel, "a") as archive:
        archive.writestr("plugin/cut.so", library[: len(library) // 2])
        archive.writestr("../evil.so", library)
        archive.writestr("plugin/_right.so/x.py", b"")
    done = run("repair", plugin_wheel, "--output", tmp_path / "out")
    assert done.status == 2
    (first, *problems) = done.stderr.splitlines()
    assert first == "error: wheels that can't be repaired: 4 problems"
    assert problems[0].startswith(f"  {plugin_wheel}!plugin/cut.so: ")
    assert problems[0].endswith("expected a whole ELF file. Build the wheel again.")
    outside = "a path that points outside the wheel; expected a path inside the environment"
    found = "plugin/_right.so is a file, but also the folder that contains plugin/_right.so/x.py"
    clash = f"{found}; expected only one file at each path"
    assert problems[1:] == [
        f"  {plugin_wheel}!../evil.so: {outside}. Build the wheel again.",
        f"  {plugin_wheel}!plugin/_right.so: {clash}. Build the wheel again.",
        (
            f"  {plugin_wheel}!plugin-1.0.dist-info/RECORD: doesn't list 3 files (plugin/cut.so, ../evil.so, "
            "plugin/_right.so/x.py). Build or download the wheel again."
        ),
    ]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("mode", ["--check", "--dry-run"])
def test_a_bad_wheel_is_also_refused_without_writing(run: Run, plugin_wheel: Path, mode: str) -> None:
    with zipfile.ZipFile(plugin_wheel, "a") as archive:
        archive.writestr("../evil.so", b"")
    assert run("repair", plugin_wheel, mode).status == 2


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"WHEEL": None}, "plugin-1.0.dist-info has no WHEEL"),
        ({"WHEEL": b""}, "WHEEL has no Wheel-Version"),
        ({"METADATA": None}, "plugin-1.0.dist-info has no METADATA"),
        ({"METADATA": b"Name: \xff\n"}, "METADATA has no Name"),
        ({"METADATA": b"Metadata-Version: 2.1\nName: other\nVersion: 1.0\n"}, "METADATA has other 1.0, but"),
    ],
    ids=["no WHEEL", "empty WHEEL", "no METADATA", "not UTF-8", "of another"],
)
def test_metadata_that_installers_reject_is_refused(
    run: Run, plugin_wheel: Path, tmp_path: Path, changes: dict[str, bytes | None], expected: str
) -> None:
    inside = {f"plugin-1.0.dist-info/{name}": data for name, data in changes.items()}
    done = run("repair", with_members(plugin_wheel, tmp_path / "bad", inside), "--output", tmp_path / "out")
    assert done.status == 2
    assert expected in " ".join(done.stderr.split())
    assert not (tmp_path / "out").exists()


def test_a_metadata_folder_with_the_wrong_name_is_refused(run: Run, plugin_wheel: Path, tmp_path: Path) -> None:
    wrong = plugin_wheel.with_name(plugin_wheel.name.replace("plugin", "other"))
    plugin_wheel.rename(wrong)
    done = run("repair", wrong, "--check")
    assert (done.status, "has the metadata folder plugin-1.0.dist-info" in " ".join(done.stderr.split())) == (2, True)


def test_every_truncated_wheel_is_reported(run: Run, tmp_path: Path) -> None:
    wheels = [make_wheel(tmp_path / "dist", f"demo{number}", {f"demo{number}.py": b"x"}) for number in range(3)]
    for wheel in wheels[:2]:
        wheel.write_bytes(wheel.read_bytes()[:-30])
    done = run("repair", tmp_path / "dist", "--output", tmp_path / "out")
    assert done.status == 2
    assert [wheel.name in done.stderr for wheel in wheels] == [True, True, False]
    assert [path.name for path in (tmp_path / "out").iterdir()] == [wheels[2].name]
