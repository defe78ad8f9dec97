"""Tests of splitting the folder of an unpacked wheel."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import msgspec
import pytest

from rocwheel.core.errors import InputError, ProblemsError, RocwheelError
from rocwheel.device.split.split_unpacked import is_unpacked_wheel, split_unpacked
from rocwheel.device.split.split_wheel import split_wheel
from rocwheel.device.split.splitting import SplitChoice
from rocwheel.device.split.wheel_metadata import WheelSplitOrder
from rocwheel.wheels.metadata import wheel_headers
from rocwheel.wheels.sdist import SourceDate
from tests.support.command_line import rocwheel
from tests.support.places import FIXTURES
from tests.support.wheels import make_wheel

LIBRARY = FIXTURES / "v22/libtwo.plain.so"
ORDER = WheelSplitOrder(choice=SplitChoice())


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    files: dict[str, Path | bytes] = {
        "demo/libtwo.so": LIBRARY,
        "demo/__init__.py": b"import os\n",
    }
    return make_wheel(tmp_path / "in", "demo", files)


@pytest.fixture
def folder(tmp_path: Path, wheel: Path) -> Path:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "unpacked")
    return tmp_path / "unpacked"


def files_below(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_folders_have_the_same_files_as_the_wheels(folder: Path, wheel: Path, tmp_path: Path) -> None:
    report = split_unpacked(folder, tmp_path / "out", ORDER, SourceDate())
    wheels = split_wheel(wheel, tmp_path / "wheels", ORDER, SourceDate())
    made_of = [(one.path, other.path) for one, other in zip(report.devices, wheels.devices, strict=True)]
    for made, packed in [(report.host, wheels.host), *made_of]:
        with zipfile.ZipFile(packed) as archive:
            assert files_below(Path(made)) == {name: archive.read(name) for name in archive.namelist()}
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "demo-1.0",
        "demo_device_gfx1030-1.0",
        "demo_device_gfx906-1.0",
        "demo_device_gfx90a-1.0",
    ]


def test_a_dry_run_writes_nothing(folder: Path, tmp_path: Path) -> None:
    report = split_unpacked(folder, tmp_path / "out", msgspec.structs.replace(ORDER, dry_run=True), SourceDate())
    assert ([device.target for device in report.devices], (tmp_path / "out").exists()) == (
        ["gfx906", "gfx90a", "gfx1030"],
        False,
    )


def test_a_file_that_wheels_cannot_contain_is_refused_and_nothing_is_written(folder: Path, tmp_path: Path) -> None:
    (folder / "demo/link.so").symlink_to("libtwo.so")
    with pytest.raises(InputError, match=r"link\.so: is a link; expected an unpacked wheel"):
        split_unpacked(folder, tmp_path / "out", ORDER, SourceDate())
    assert not (tmp_path / "out").exists()


def test_a_folder_without_device_code_is_refused_with_its_name(folder: Path, tmp_path: Path) -> None:
    (folder / "demo/libtwo.so").unlink()
    with pytest.raises(InputError) as raised:
        split_unpacked(folder, tmp_path / "out", ORDER, SourceDate())
    expected = "a wheel with a fat binary or kernel files"
    assert str(raised.value) == f"{folder}: no device code to split off; expected {expected}"
    assert not (tmp_path / "out").exists()


def test_all_problems_of_a_folder_are_reported_with_its_name(folder: Path, tmp_path: Path) -> None:
    for name in ("libone.so", "libtwo.so"):
        (folder / "demo" / name).write_bytes(LIBRARY.read_bytes()[:4000])
    with pytest.raises(ProblemsError) as raised:
        split_unpacked(folder, tmp_path / "out", ORDER, SourceDate())
    assert (raised.value.subject, len(raised.value.problems)) == (str(folder), 2)
    assert ".whl" not in str(raised.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("text", [b"Metadata-Version: 2.1\n\n", b"Name: other\nVersion: 1.0\n\n", b"Name: demo\n\n"])
def test_invalid_metadata_is_reported_with_the_name_of_the_folder(folder: Path, tmp_path: Path, text: bytes) -> None:
    (folder / "demo-1.0.dist-info/METADATA").write_bytes(text)
    with pytest.raises(RocwheelError) as raised:
        split_unpacked(folder, tmp_path / "out", ORDER, SourceDate())
    assert str(raised.value).startswith(str(folder))
    assert ".whl" not in str(raised.value)


def test_warnings_name_the_files_in_the_folder(folder: Path, tmp_path: Path) -> None:
    signature = folder / "demo-1.0.dist-info/RECORD.jws"
    signature.write_bytes(b"{}")
    report = split_unpacked(folder, tmp_path / "out", ORDER, SourceDate())
    assert report.warnings == (f"{signature}: left out, because it signs the old wheel's RECORD",)
    assert report.source == str(folder)


def test_the_next_run_removes_the_leftovers_of_a_killed_dry_run(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    script = (
        "import os, signal, sys\n"
        "from rocwheel.device.split import split_unpacked as module\n"
        "from rocwheel.__main__ import main\n"
        "module.split_wheel = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)\n"
        "sys.exit(main())\n"
    )
    command = ["device", "split", str(folder), "--dry-run", "--output", str(tmp_path / "out")]
    killed = subprocess.run([sys.executable, "-c", script, *command], check=False, capture_output=True)
    assert (killed.returncode, len(list(temporary.iterdir()))) == (-signal.SIGKILL, 1)
    assert rocwheel(*command).returncode == 0
    assert list(temporary.iterdir()) == []


def test_a_folder_with_exactly_one_dist_info_folder_is_an_unpacked_wheel(folder: Path) -> None:
    assert is_unpacked_wheel(folder)
    (folder / "other-1.dist-info").mkdir()
    assert not is_unpacked_wheel(folder)


@pytest.mark.parametrize("name", ["METADATA", "WHEEL"])
def test_a_file_missing_from_dist_info_is_reported(folder: Path, tmp_path: Path, name: str) -> None:
    [info] = folder.glob("*.dist-info")
    (info / name).unlink()
    assert is_unpacked_wheel(folder)
    with pytest.raises(InputError) as caught:
        split_unpacked(folder, tmp_path / "out", ORDER, SourceDate())
    remedy = "Unpack the wheel again. To split a tree, remove its RECORD."
    assert str(caught.value) == f"{info}: has no {name}; expected the folder of an unpacked wheel. {remedy}"
    assert not (tmp_path / "out").exists()


def test_a_tree_whose_dist_info_has_no_record_is_not_an_unpacked_wheel(folder: Path) -> None:
    [info] = folder.glob("*.dist-info")
    for name in ("RECORD", "WHEEL"):
        (info / name).unlink()
    assert not is_unpacked_wheel(folder)


def test_an_oversized_metadata_file_is_reported(folder: Path, tmp_path: Path) -> None:
    [info] = folder.glob("*.dist-info")
    os.truncate(info / "METADATA", (64 << 20) + 1)
    with pytest.raises(
        InputError, match=r"dist-info/METADATA: is larger than 64 MiB; expected a text file from an unpacked"
    ):
        split_unpacked(folder, tmp_path / "out", ORDER, SourceDate())


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("Tag: py3-none-../../../../x", "'demo-1.0-py3-none-../../../../x.whl'"),
        ("Tag: py3-none-a\0b", r"'demo-1.0-py3-none-a\x00b.whl'"),
        ("Build: 1/../../x", "'demo-1.0-1/../../x-py3-none-any.whl'"),
        ("Build: 1-2", "'demo-1.0-1-2-py3-none-any.whl'"),
        ("Build:", "'demo-1.0--py3-none-any.whl'"),
        ("Build: py3", "'demo-1.0-py3-py3-none-any.whl'"),
        ("Build: 1-cp3", "'demo-1.0-1-cp3-py3-none-any.whl'"),
    ],
)
def test_tags_and_build_numbers_that_would_leave_the_folder_are_refused(
    folder: Path, tmp_path: Path, line: str, name: str
) -> None:
    [info] = folder.glob("*.dist-info")
    (info / "WHEEL").write_text(f"Wheel-Version: 1.0\nRoot-Is-Purelib: false\n{line}\n")
    there = set(tmp_path.iterdir())
    with pytest.raises(InputError) as caught:
        split_unpacked(folder, tmp_path / "out", ORDER, SourceDate())
    assert str(caught.value) == (
        f"{info}/WHEEL: results in the file name {name}; expected a valid build number and valid tags for a wheel name"
    )
    assert set(tmp_path.iterdir()) == there


def test_a_dist_info_name_that_is_not_a_wheel_name_is_refused(folder: Path, tmp_path: Path) -> None:
    [info] = folder.glob("*.dist-info")
    info.rename(folder / "demo-2004d.dist-info")
    with pytest.raises(InputError, match="doesn't have a wheel file name"):
        split_unpacked(folder, tmp_path / "out", ORDER, SourceDate())


@pytest.mark.parametrize("name", [b"l\xe9.so", b"a\\b.so"], ids=["not UTF-8", "a backslash"])
def test_a_file_name_that_wheels_cannot_contain_is_refused(folder: Path, tmp_path: Path, name: bytes) -> None:
    Path(os.fsdecode(bytes(folder / "demo") + b"/" + name)).write_bytes(b"")
    refusal = (
        "has a name that no wheel can contain; expected UTF-8 without backslashes. Rename the file, and "
        "change its row in RECORD."
    )
    with pytest.raises(RocwheelError, match=re.escape(refusal)):
        split_unpacked(folder, tmp_path / "out", ORDER, SourceDate())
    assert not (tmp_path / "out").exists()


def test_the_parent_of_the_folder_can_have_any_name(folder: Path, tmp_path: Path) -> None:
    place = Path(os.fsdecode(bytes(tmp_path) + b"/l\xe9\\b"))
    place.mkdir()
    report = split_unpacked(folder.rename(place / "demo"), tmp_path / "out", ORDER, SourceDate())
    assert Path(report.host) == tmp_path / "out/demo-1.0"


def test_a_tag_with_a_line_separator_is_one_header() -> None:
    assert wheel_headers("Tag: py3-none-any\x85Root-Is-Purelib: true\n".encode()) == [
        ("tag", "py3-none-any\x85Root-Is-Purelib: true"),
        ("", ""),
    ]
