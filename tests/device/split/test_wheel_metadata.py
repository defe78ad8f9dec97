"""Tests of `rocwheel.device.split.wheel_metadata`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest
from packaging.metadata import Metadata

from rocwheel.core.errors import InputError, ProblemsError, RocwheelError
from rocwheel.device.split.splitting import SplitChoice
from rocwheel.device.split.wheel_metadata import (
    DeviceNames,
    FinishedWheel,
    WheelSplitOrder,
    check_copied,
    check_order,
    check_requirements,
    device_metadata,
    device_wheel_file,
    host_metadata,
    read_finished_wheel,
)
from rocwheel.wheels.metadata import parse_core_metadata
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
        ({f"{INFO}/METADATA": b"Name: a\n\n", f"{INFO}/WHEEL": WHEEL}, "has no Version, or more than one"),
        ({f"{INFO}/METADATA": METADATA, f"{INFO}/WHEEL": WHEEL, "../x": b""}, "a path that points outside the wheel"),
    ],
)
def test_an_invalid_wheel_is_refused(tmp_path: Path, files: dict[str, bytes], found: str) -> None:
    info = INFO if any(name.startswith(INFO) for name in files) else "x"
    path = write_wheel(tmp_path / "demo-1.0-py3-none-any.whl", info, files)
    with pytest.raises(RocwheelError, match=found):
        read_finished_wheel(path)


def test_a_file_without_a_wheel_name_is_refused(tmp_path: Path) -> None:
    path = make_wheel(tmp_path, "demo", {}).rename(tmp_path / "demo.whl")
    with pytest.raises(InputError, match="doesn't have a wheel file name"):
        read_finished_wheel(path)


@pytest.mark.parametrize(
    ("metadata", "found"),
    [
        (b"Name: other\nVersion: 1.0+rocm7\n\n", "its metadata has the project name 'other'; expected 'demo'"),
        (b"Name: Demo\nVersion: 1.1\n\n", "its metadata has the version '1.1'; expected '1.0+rocm7'"),
        (b"Name: Demo\nVersion: latest\n\n", "its metadata has the version 'latest'; expected '1.0+rocm7'"),
    ],
)
def test_metadata_that_contradicts_the_file_name_is_refused(tmp_path: Path, metadata: bytes, found: str) -> None:
    files = {f"{INFO}/METADATA": b"Metadata-Version: 2.1\n" + metadata, f"{INFO}/WHEEL": WHEEL}
    path = write_wheel(tmp_path / "demo-1.0+rocm7-py3-none-any.whl", INFO, files)
    with pytest.raises(InputError) as raised:
        read_finished_wheel(path)
    assert str(raised.value) == f"{path}: {found}, as in the file name"


@pytest.mark.parametrize(
    "name",
    ["demo-1.0", "demo-1.0-py3-none", "demo-latest-py3-none-any", "d mo-1.0-py3-none-any", "demo-1.0-py3-none-any (1)"],
)
def test_invalid_wheel_file_names_are_refused(tmp_path: Path, name: str) -> None:
    path = make_wheel(tmp_path, "demo", {}).rename(tmp_path / f"{name}.whl")
    with pytest.raises(InputError, match="doesn't have a wheel file name"):
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
def test_licenses_are_found_in_the_usual_places(
    tmp_path: Path, files: dict[str, bytes], licenses: dict[str, str]
) -> None:
    files |= {f"{INFO}/METADATA": METADATA, f"{INFO}/WHEEL": WHEEL}
    wheel = read_finished_wheel(write_wheel(tmp_path / "demo-1.0+rocm7-py3-none-any.whl", INFO, files))
    assert {name: member.name for name, member in wheel.licenses().items()} == licenses


METADATA_INFO = "Torch-2.9.dist-info"
METADATA_METADATA = b"""Metadata-Version: 1.2
Name: Torch
Version: 2.9
Summary: Tensors
License: BSD
Requires-Python: >=3.10
Requires-Dist: numpy
Requires-Dist: x; extra == "opt"
Provides-Extra: opt
X-Unknown: stays
License-File: LICENSE

A description: of it.
"""
METADATA_WHEEL = (
    b"Wheel-Version: 1.0\nGenerator: other\nRoot-Is-Purelib: false\nTag: cp311-cp311-a\nTag: cp311-cp311-b\n"
)
ORDER = WheelSplitOrder(choice=SplitChoice(), device_requires=("rocm-sdk-device-@GFXARCH@ == 7.1", "other"))
NAMES = DeviceNames(prefix="torch-device", version="2.9", targets=("gfx1100", "gfx110x", "gfx12_0"))


@pytest.fixture
def wheel(tmp_path: Path) -> FinishedWheel:
    files = {
        f"{METADATA_INFO}/METADATA": METADATA_METADATA,
        f"{METADATA_INFO}/WHEEL": METADATA_WHEEL,
        f"{METADATA_INFO}/LICENSE": b"BSD",
    }
    return read_finished_wheel(write_wheel(tmp_path / "torch-2.9-cp311-cp311-a.b.whl", METADATA_INFO, files))


def test_host_metadata_is_preserved_and_extras_are_added_before_the_description(wheel: FinishedWheel) -> None:
    assert host_metadata(wheel, NAMES, ["rocm-bootstrap"]).decode() == (
        "Metadata-Version: 2.1\n"
        "Name: Torch\n"
        "Version: 2.9\n"
        "Summary: Tensors\n"
        "License: BSD\n"
        "Requires-Python: >=3.10\n"
        "Requires-Dist: numpy\n"
        'Requires-Dist: x; extra == "opt"\n'
        "Requires-Dist: rocm-bootstrap\n"
        'Requires-Dist: torch-device-gfx1100 == 2.9; extra == "device-gfx1100"\n'
        'Requires-Dist: torch-device-gfx110x == 2.9; extra == "device-gfx1100"\n'
        'Requires-Dist: torch-device-gfx1100 == 2.9; extra == "device-all"\n'
        'Requires-Dist: torch-device-gfx110x == 2.9; extra == "device-all"\n'
        'Requires-Dist: torch-device-gfx12-0 == 2.9; extra == "device-all"\n'
        "Provides-Extra: opt\n"
        "Provides-Extra: device-gfx1100\n"
        "Provides-Extra: device-all\n"
        "X-Unknown: stays\n"
        "License-File: LICENSE\n"
        "\n"
        "A description: of it.\n"
    )


def test_a_target_device_wheel_requires_its_host_families_and_given_requirements(wheel: FinishedWheel) -> None:
    metadata = Metadata.from_email(device_metadata(wheel, NAMES, "gfx1100", ORDER.requires_of("gfx1100")))
    assert (metadata.name, str(metadata.version), metadata.summary) == (
        "torch-device-gfx1100",
        "2.9",
        "Torch device code for gfx1100 GPUs",
    )
    assert [str(requirement) for requirement in metadata.requires_dist or ()] == [
        "Torch==2.9",
        "torch-device-gfx110x==2.9",
        "rocm-sdk-device-gfx1100==7.1",
        "other",
    ]
    assert (metadata.license, metadata.license_files, str(metadata.requires_python)) == ("BSD", ["LICENSE"], ">=3.10")


@pytest.mark.parametrize(
    ("family", "name", "members"),
    [
        ("gfx110x", "torch-device-gfx110x", "gfx1100, gfx1101, gfx1102, gfx1103"),
        ("gfx12_0", "torch-device-gfx12-0", "gfx1200, gfx1201"),
    ],
)
def test_a_family_device_wheel_has_no_target_specific_requirements(
    wheel: FinishedWheel, family: str, name: str, members: str
) -> None:
    metadata = Metadata.from_email(device_metadata(wheel, NAMES, family, ORDER.requires_of(family)))
    assert metadata.name == name
    assert metadata.summary == f"Torch device code for GPUs in the family {family}: {members}"
    assert [str(requirement) for requirement in metadata.requires_dist or ()] == ["Torch==2.9", "other"]


def test_a_device_wheel_has_all_tags_of_its_host(wheel: FinishedWheel) -> None:
    lines = device_wheel_file(wheel).decode().splitlines()
    assert lines[2:] == ["Root-Is-Purelib: false", "Tag: cp311-cp311-a", "Tag: cp311-cp311-b"]


@pytest.mark.parametrize("text", ["not a requirement", "bad ===", "rocm-@GFXARCH@", "x; python_version >< '3'"])
def test_a_malformed_requirement_is_refused(text: str) -> None:
    with pytest.raises(InputError) as raised:
        check_requirements([text], "--host-requires-dist")
    assert str(raised.value).startswith(f"--host-requires-dist: {text!r} is a malformed Requires-Dist (")
    assert str(raised.value).endswith("; expected a requirement, such as 'rocm-bootstrap'")


def test_a_device_wheel_requirement_can_have_a_target_placeholder() -> None:
    check_requirements(["rocm-sdk-device-@GFXARCH@ == 7.1"], "--device-requires-dist", target="gfx900")
    with pytest.raises(InputError, match=r"^--device-requires-dist: 'bad ===' is a malformed Requires-Dist"):
        check_requirements(["bad ==="], "--device-requires-dist", target="gfx900")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"Requires-Python: >=3.6.*", "has Requires-Python '>=3.6.*'; expected a version specifier such as '>=3.10'"),
        (
            b"License-Expression: MIT License",
            "has License-Expression 'MIT License'; expected an SPDX expression such as 'MIT OR Apache-2.0'",
        ),
        (b"A: b\rC: d", "has a line that ends with only CR; expected lines that end with LF or CR LF"),
    ],
)
def test_metadata_that_device_wheels_cannot_copy_is_refused(wheel: FinishedWheel, line: bytes, problem: str) -> None:
    metadata = METADATA_METADATA.replace(b"Requires-Python: >=3.10", line)
    fields = parse_core_metadata(metadata)[0]
    with pytest.raises(InputError) as caught:
        check_copied(msgspec.structs.replace(wheel, metadata=metadata, fields=fields))
    assert str(caught.value) == f"{wheel.source}: METADATA: {problem}"


def test_valid_metadata_is_copied_with_any_line_endings_in_the_body(wheel: FinishedWheel) -> None:
    check_copied(msgspec.structs.replace(wheel, metadata=METADATA_METADATA + b"a\rb"))


def test_headers_with_crlf_line_endings_are_copied(wheel: FinishedWheel) -> None:
    metadata = METADATA_METADATA.rstrip(b"\n") + b"\n\nThe description.\n"
    check_copied(msgspec.structs.replace(wheel, metadata=metadata.replace(b"\n", b"\r\n")))


def test_whitespace_after_the_version_is_ignored(wheel: FinishedWheel) -> None:
    folded = msgspec.structs.replace(wheel, fields={**wheel.fields, "version": "2.9\n "})
    assert b"Requires-Dist: Torch==2.9\n" in device_metadata(folded, NAMES, "gfx1100")


@pytest.mark.parametrize(
    "tags",
    [(), ("",), ("py3-none",), ("cp311-cp311-linux_x86_64",), ("cp311-cp311-a",)],
    ids=["none", "empty", "two parts", "that of a build before its file was renamed", "one of two"],
)
def test_a_device_wheel_uses_the_tags_of_the_file_name_if_the_host_lists_others(
    wheel: FinishedWheel, tags: tuple[str, ...]
) -> None:
    lines = device_wheel_file(msgspec.structs.replace(wheel, tags=tags)).decode().splitlines()
    assert [line for line in lines if line.startswith("Tag")] == ["Tag: cp311-cp311-a", "Tag: cp311-cp311-b"]


def test_all_invalid_options_are_reported_together() -> None:
    order = WheelSplitOrder(
        choice=SplitChoice(), device_prefix="bad name!", host_requires=("bad ===",), device_requires=("no requirement",)
    )
    with pytest.raises(ProblemsError) as raised:
        check_order(order)
    assert [str(problem).partition(":")[0] for problem in raised.value.problems] == [
        "--device-name",
        "--host-requires-dist",
        "--device-requires-dist",
    ]


def test_a_default_order_is_valid() -> None:
    check_order(WheelSplitOrder(choice=SplitChoice(), device_requires=("rocm-sdk-device-@GFXARCH@ == 7.14",)))


def names(*targets: str, prefix: str = "torch-device") -> DeviceNames:
    return DeviceNames(prefix=prefix, version="2.9.0+rocm7", targets=targets)


@pytest.mark.parametrize(
    ("prefix", "target", "name"),
    [
        ("torch-device", "gfx1100", "torch-device-gfx1100"),
        ("amd_Torch.device", "gfx90a", "amd-torch-device-gfx90a"),
        ("torch-device", "gfx12_0", "torch-device-gfx12-0"),
        ("torch-device", "gfx110x", "torch-device-gfx110x"),
        ("torch-device", "gfx1250-strict", "torch-device-gfx1250-strict"),
    ],
)
def test_the_distribution_name_is_normalized(prefix: str, target: str, name: str) -> None:
    assert names(prefix=prefix).distribution(target) == name


def test_each_target_has_an_extra_and_device_all_covers_all_targets() -> None:
    assert names("gfx906", "gfx90a").requirements() == (
        'torch-device-gfx906 == 2.9.0+rocm7; extra == "device-gfx906"',
        'torch-device-gfx90a == 2.9.0+rocm7; extra == "device-gfx90a"',
        'torch-device-gfx906 == 2.9.0+rocm7; extra == "device-all"',
        'torch-device-gfx90a == 2.9.0+rocm7; extra == "device-all"',
    )
    assert names("gfx906", "gfx90a").extras() == ("device-gfx906", "device-gfx90a", "device-all")


def test_a_target_extra_requires_the_wheels_of_its_families_smallest_first() -> None:
    found = names("gfx906", "gfx1100", "gfx1150", "gfx11", "gfx110x", "gfx12_0")
    assert found.families_of("gfx1100") == ("gfx110x", "gfx11")
    assert found.families_of("gfx1150") == ("gfx11",)
    assert found.families_of("gfx906") == ()
    assert [text for text in found.requirements() if text.endswith('"device-gfx1100"')] == [
        'torch-device-gfx1100 == 2.9.0+rocm7; extra == "device-gfx1100"',
        'torch-device-gfx110x == 2.9.0+rocm7; extra == "device-gfx1100"',
        'torch-device-gfx11 == 2.9.0+rocm7; extra == "device-gfx1100"',
    ]


def test_families_have_no_extra() -> None:
    assert names("gfx11", "gfx12_0").extras() == ("device-all",)
    assert names("gfx11", "gfx12_0").requirements() == (
        'torch-device-gfx11 == 2.9.0+rocm7; extra == "device-all"',
        'torch-device-gfx12-0 == 2.9.0+rocm7; extra == "device-all"',
    )
