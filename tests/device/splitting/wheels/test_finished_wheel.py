"""Tests of what a wheel to split says of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rocwheel.core.errors import InputError, RocwheelError
from rocwheel.device.splitting.wheels.finished_wheel import read_finished_wheel
from tests.support.wheels import make_wheel, write_wheel

if TYPE_CHECKING:
    from pathlib import Path

INFO = "demo-1.0.dist-info"
METADATA = b"Metadata-Version: 2.1\nName: Demo\nVersion: 1.0+rocm7\nLicense-File: LICENSE\n\n"
WHEEL = b"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: cp311-cp311-a\nTag: cp311-cp311-b\n"


def test_name_version_tags_and_build_are_read(tmp_path: Path) -> None:
    files = {f"{INFO}/METADATA": METADATA, f"{INFO}/WHEEL": WHEEL, f"{INFO}/LICENSE": b"MIT"}
    wheel = read_finished_wheel(write_wheel(tmp_path / "demo-1.0+rocm7-2-cp311-cp311-a.b.whl", INFO, files))
    assert (wheel.name, wheel.version, wheel.dist_info) == ("Demo", "1.0+rocm7", INFO)
    assert (wheel.tags, wheel.file_tags, wheel.build) == (("cp311-cp311-a", "cp311-cp311-b"), "cp311-cp311-a.b", "2")
    assert not wheel.is_purelib
    assert {name: member.name for name, member in wheel.licenses().items()} == {"LICENSE": f"{INFO}/LICENSE"}
    assert [member.name for member in wheel.kept_members] == [f"{INFO}/LICENSE"]


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({"demo/x": b""}, "has no .dist-info folder"),
        ({"a-1.dist-info/METADATA": b"", "b-1.dist-info/METADATA": b""}, "has several .dist-info folders"),
        ({f"{INFO}/WHEEL": WHEEL}, f"has no {INFO}/METADATA"),
        ({f"{INFO}/METADATA": METADATA}, f"has no {INFO}/WHEEL"),
        ({f"{INFO}/METADATA": b"Name: a\n\n", f"{INFO}/WHEEL": WHEEL}, "has no Version, or several"),
        ({f"{INFO}/METADATA": METADATA, f"{INFO}/WHEEL": WHEEL, "../x": b""}, "a path that leads out of the wheel"),
    ],
)
def test_what_is_no_wheel_is_refused(tmp_path: Path, files: dict[str, bytes], found: str) -> None:
    info = INFO if any(name.startswith(INFO) for name in files) else "x"
    path = write_wheel(tmp_path / "demo-1.0-py3-none-any.whl", info, files)
    with pytest.raises(RocwheelError, match=found):
        read_finished_wheel(path)


def test_a_file_with_another_name_is_refused(tmp_path: Path) -> None:
    path = make_wheel(tmp_path, "demo", {}).rename(tmp_path / "demo.whl")
    with pytest.raises(InputError, match="is not named as a wheel is"):
        read_finished_wheel(path)


@pytest.mark.parametrize(
    ("metadata", "found"),
    [
        (b"Name: other\nVersion: 1.0+rocm7\n\n", "its metadata names the project 'other'; expected 'demo'"),
        (b"Name: Demo\nVersion: 1.1\n\n", "its metadata gives the version '1.1'; expected '1.0+rocm7'"),
        (b"Name: Demo\nVersion: latest\n\n", "its metadata gives the version 'latest'; expected '1.0+rocm7'"),
    ],
)
def test_metadata_of_something_else_than_the_file_name_says_is_refused(
    tmp_path: Path, metadata: bytes, found: str
) -> None:
    files = {f"{INFO}/METADATA": b"Metadata-Version: 2.1\n" + metadata, f"{INFO}/WHEEL": WHEEL}
    path = write_wheel(tmp_path / "demo-1.0+rocm7-py3-none-any.whl", INFO, files)
    with pytest.raises(InputError) as raised:
        read_finished_wheel(path)
    assert str(raised.value) == f"{path}: {found} as in the file name"


@pytest.mark.parametrize("name", ["demo-1.0", "demo-1.0-py3-none", "demo-latest-py3-none-any", "d mo-1.0-py3-none-any"])
def test_file_names_that_no_wheel_can_have_are_refused(tmp_path: Path, name: str) -> None:
    path = make_wheel(tmp_path, "demo", {}).rename(tmp_path / f"{name}.whl")
    with pytest.raises(InputError, match="is not named as a wheel is"):
        read_finished_wheel(path)


@pytest.mark.parametrize(
    ("files", "licenses"),
    [
        pytest.param(
            {f"{INFO}/LICENSE": b"MIT", f"{INFO}/licenses/third/NOTICE": b"n", "demo/COPYING": b"c"},
            {"LICENSE": f"{INFO}/LICENSE", "third/NOTICE": f"{INFO}/licenses/third/NOTICE"},
            id="named, and beside it",
        ),
        pytest.param(
            {f"{INFO}/COPYING.txt": b"c", f"{INFO}/top_level.txt": b"t"},
            {"COPYING.txt": f"{INFO}/COPYING.txt"},
            id="not named",
        ),
        pytest.param(
            {"demo/LICENSE.md": b"l", "demo/license.py": b"l", "demo/x/NOTICE": b"n"},
            {"demo/LICENSE.md": "demo/LICENSE.md", "demo/x/NOTICE": "demo/x/NOTICE"},
            id="beside the code",
        ),
        pytest.param({"demo/x.py": b""}, {}, id="none"),
    ],
)
def test_licences_are_found_where_tools_put_them(
    tmp_path: Path, files: dict[str, bytes], licenses: dict[str, str]
) -> None:
    files |= {f"{INFO}/METADATA": METADATA, f"{INFO}/WHEEL": WHEEL}
    wheel = read_finished_wheel(write_wheel(tmp_path / "demo-1.0+rocm7-py3-none-any.whl", INFO, files))
    assert {name: member.name for name, member in wheel.licenses().items()} == licenses
