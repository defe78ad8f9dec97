"""Tests of `rocwheel.wheels.writing`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from packaging.metadata import Metadata
from packaging.utils import parse_wheel_filename

from rocwheel.core.errors import WorkError
from rocwheel.wheels.content import BytesContent
from rocwheel.wheels.file_names import normalized_file_part
from rocwheel.wheels.metadata import CoreMetadata, render_entry_point_groups, render_metadata, render_wheel_file
from rocwheel.wheels.packing import Packer
from rocwheel.wheels.writing import WheelName, WheelWriter
from rocwheel.wheels.zip_writer import ZipTime
from tests.wheels.doubles import ZeroContent

if TYPE_CHECKING:
    from pathlib import Path

    from rocwheel.wheels.content import Content
    from tests.support.tools import RunTool


pytestmark = pytest.mark.slow

NAME = WheelName("rocm-sdk.Core", "7.0.0rc1+local.1", "py3-none-any")
MEMBERS: dict[str, tuple[int, Content]] = {
    "rocm_core/__init__.py": (0o644, BytesContent(b"def main():\n    print('hello from the wheel')\n")),
    "rocm_core/bin/tool": (0o755, BytesContent(b"#!/bin/sh\necho tool\n")),
    'rocm_core/lib/ünïcode, "quoted".txt': (0o644, BytesContent(b"x" * 1000)),
    "rocm_core/lib/zeros": (0o644, ZeroContent(3 << 20)),
    "rocm_core/empty": (0o644, BytesContent(b"")),
}
METADATA = {
    "METADATA": render_metadata(CoreMetadata(NAME.distribution, NAME.version, summary="A test")),
    "WHEEL": render_wheel_file("rocwheel", (NAME.tag,), is_purelib=False),
    "entry_points.txt": render_entry_point_groups({"console_scripts": {"say-hello": "rocm_core:main"}}),
}


def write_members(writer: WheelWriter) -> None:
    with ThreadPoolExecutor(2) as executor:
        packer = Packer(executor, 6, whole_limit=1 << 20)
        for path, (mode, content) in MEMBERS.items():
            packer.add(writer, path, mode, content)
        packer.drain()


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "dist" / NAME.file_name
    writer = WheelWriter(path, NAME.dist_info, ZipTime())
    write_members(writer)
    writer.close(METADATA)
    return path


@pytest.mark.parametrize(
    ("name", "part"),
    [("rocm", "rocm"), ("rocm-sdk-core", "rocm_sdk_core"), ("ROCm--SDK.._Core", "rocm_sdk_core"), ("a.b", "a_b")],
)
def test_a_normalized_distribution_name_has_single_underscores(name: str, part: str) -> None:
    assert normalized_file_part(name) == part


def test_packaging_parses_the_file_name(wheel: Path) -> None:
    assert wheel.name == "rocm_sdk_core-7.0.0rc1+local.1-py3-none-any.whl"
    name, version, _, tags = parse_wheel_filename(wheel.name)
    assert (name, str(version), {str(tag) for tag in tags}) == ("rocm-sdk-core", "7.0.0rc1+local.1", {"py3-none-any"})


def test_metadata_comes_last_and_record_is_the_very_last(wheel: Path) -> None:
    folder = "rocm_sdk_core-7.0.0rc1+local.1.dist-info"
    with zipfile.ZipFile(wheel) as archive:
        assert archive.namelist() == [
            *MEMBERS,
            f"{folder}/METADATA",
            f"{folder}/WHEEL",
            f"{folder}/entry_points.txt",
            f"{folder}/RECORD",
        ]
        assert Metadata.from_email(archive.read(f"{folder}/METADATA")).name == "rocm-sdk.Core"


def test_info_zip_finds_no_errors(wheel: Path, run_tool: RunTool) -> None:
    assert run_tool(["unzip", "-tqq", wheel]) == ""


def test_repeated_writes_give_the_same_bytes(wheel: Path, tmp_path: Path) -> None:
    again = WheelWriter(tmp_path / "again.whl", NAME.dist_info, ZipTime())
    write_members(again)
    again.close(METADATA)
    assert (tmp_path / "again.whl").read_bytes() == wheel.read_bytes()


def test_installer_validates_every_member_against_record(wheel: Path) -> None:
    sources = pytest.importorskip("installer.sources")
    with sources.WheelFile.open(wheel) as source:
        source.validate_record()
        modes = {row[0]: executable for row, _, executable in source.get_contents()}
    assert [path for path, executable in modes.items() if executable] == ["rocm_core/bin/tool"]


INSTALLERS = {
    "pip": [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target"],
    "uv": [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target"],
}


@pytest.mark.parametrize("installer", INSTALLERS)
def test_installers_put_every_file_in_the_correct_place(wheel: Path, tmp_path: Path, installer: str) -> None:
    site = tmp_path / "site"
    environment = {**os.environ, "UV_CACHE_DIR": str(tmp_path / "cache")}
    command = [*INSTALLERS[installer], str(site), str(wheel)]
    subprocess.run(command, check=True, capture_output=True, env=environment)
    for path, (mode, content) in MEMBERS.items():
        installed = site / path
        with content.open(0, content.size) as buffers:
            assert installed.read_bytes() == b"".join(buffers)
        assert bool(installed.stat().st_mode & 0o100) == bool(mode & 0o100)
    script = subprocess.run(
        [site / "bin/say-hello"], check=True, capture_output=True, env={**environment, "PYTHONPATH": str(site)}
    )
    assert script.stdout == b"hello from the wheel\n"


def test_a_wheel_without_members_is_valid(tmp_path: Path) -> None:
    writer = WheelWriter(tmp_path / "empty.whl", NAME.dist_info, ZipTime())
    writer.close({})
    with zipfile.ZipFile(tmp_path / "empty.whl") as archive:
        assert archive.read(f"{NAME.dist_info}/RECORD").decode() == f"{NAME.dist_info}/RECORD,,\n"


def test_an_aborted_wheel_leaves_nothing(tmp_path: Path) -> None:
    writer = WheelWriter(tmp_path / NAME.file_name, NAME.dist_info, ZipTime())
    write_members(writer)
    writer.abort()
    assert list(tmp_path.iterdir()) == []


def test_aborting_an_unstarted_or_finished_wheel_is_harmless(wheel: Path) -> None:
    WheelWriter(wheel.with_name("other.whl"), NAME.dist_info, ZipTime()).abort()
    finished = WheelWriter(wheel.with_name("finished.whl"), NAME.dist_info, ZipTime())
    finished.close({})
    finished.abort()
    assert sorted(path.name for path in wheel.parent.iterdir()) == ["finished.whl", wheel.name]


def test_a_file_in_place_of_the_folder_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "dist").touch()
    path = tmp_path / "dist" / NAME.file_name
    remedy = "Choose another output, or remove the file at the path of its parent folder."
    text = f"{path}: can't be written (File exists). {remedy}"
    with pytest.raises(WorkError, match=f"^{re.escape(text)}$"):
        WheelWriter(path, NAME.dist_info, ZipTime()).begin("a", 0o644, 0, 0)


@pytest.mark.parametrize("limit", [10, 3000, 4200], ids=["first bytes", "a member", "metadata"])
def test_a_full_disk_is_one_clear_error_and_leaves_nothing(tmp_path: Path, limit: int) -> None:
    program = """
import resource, sys
from pathlib import Path
from rocwheel.wheels.writing import WheelName, WheelWriter
from rocwheel.wheels.zip_writer import ZipTime
from rocwheel.core.errors import WorkError
from tests.wheels import test_writing_run as test_wheel
path, limit = Path(sys.argv[1]), int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
writer = WheelWriter(path, test_wheel.NAME.dist_info, ZipTime())
try:
    test_wheel.write_members(writer)
    writer.close(test_wheel.METADATA)
except WorkError as e:
    print(e)
finally:
    writer.abort()
"""
    path = tmp_path / "full.whl"
    done = subprocess.run(
        [sys.executable, "-c", program, path, str(limit)], check=False, capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == (
        f"{path}: can't be written (File too large). Check the free space and the permissions of the folder.\n",
        "",
    )
    assert list(tmp_path.iterdir()) == []
