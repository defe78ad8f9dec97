"""Tests of `rocwheel.environment.file_reports`."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from rocwheel.environment.file_reports import DeviceReport, read_device_report

if TYPE_CHECKING:
    from pathlib import Path


CLANG = shutil.which("clang-15")
pytestmark = pytest.mark.skipif(CLANG is None or not shutil.which("ld.lld-15"), reason="needs clang-15 and lld-15")

TARGET = "amdgcn-amd-amdhsa--gfx906"


def assembled(folder: Path, note: dict[str, Any] | bytes) -> DeviceReport:
    """Return the report on a code object of version 4 with this metadata note."""
    data = note if isinstance(note, bytes) else msgspec.msgpack.encode(note)
    lines = [
        f'.amdgcn_target "{TARGET}"',
        ".text",
        "s_endpgm",
        '.section .note,"a",@note',
        f".long 7, {len(data)}, 32",
        '.asciz "AMDGPU"',
        ".byte 0",
        f".byte {', '.join(map(str, data))}",
        ".p2align 2",
    ]
    (folder / "k.s").write_text("\n".join(lines) + "\n")
    command = [str(CLANG), "-target", "amdgcn-amd-amdhsa", "-mcpu=gfx906", "-mcode-object-version=4", "-fuse-ld=lld-15"]
    subprocess.run([*command, "-nogpulib", "k.s", "-o", "k.co"], cwd=folder, check=True, capture_output=True)
    report = read_device_report(memoryview((folder / "k.co").read_bytes()), name="k.co")
    assert report is not None
    return report


def note(argument: object, **more: object) -> dict[str, Any]:
    arguments = [{".name": argument, ".offset": 0, ".size": 4, ".value_kind": "by_value"}]
    kernel = {".name": "scale", ".symbol": "scale.kd", ".args": arguments}
    return {"amdhsa.version": [1, 1], "amdhsa.kernels": [kernel], **more}


def found(report: DeviceReport) -> tuple[str, ...]:
    return tuple(fault.found for fault in report.faults)


def test_the_facts_of_a_fault_do_not_depend_on_its_wording(tmp_path: Path) -> None:
    (fault,) = assembled(tmp_path, note(True, **{"amdhsa.target": TARGET})).faults
    assert fault.facts == ("scale", "0", ".name")


def test_valid_metadata_has_no_faults(tmp_path: Path) -> None:
    report = assembled(tmp_path, note("y", **{"amdhsa.target": TARGET}))
    assert report == DeviceReport((), ("gfx906",), (4,))


def test_a_name_parsed_as_a_yaml_boolean_is_a_fault(tmp_path: Path) -> None:
    report = assembled(tmp_path, note(True, **{"amdhsa.target": TARGET}))
    assert found(report) == ("has a kernel 'scale' in which .name of argument 0 is a boolean, not a string",)


@pytest.mark.parametrize(
    ("value", "word"), [(None, "nil"), (1, "an integer"), (False, "a boolean"), (1.5, "a float"), ([], "a list")]
)
def test_names_that_are_not_strings_are_faults(tmp_path: Path, value: object, word: str) -> None:
    arguments = [{".name": "x", ".type_name": value}, {".name": value}, {".offset": 0}]
    metadata = {"amdhsa.target": TARGET, "amdhsa.kernels": [{".name": "k"}, {".name": value, ".args": arguments}]}
    assert found(assembled(tmp_path, metadata)) == (
        f"has a kernel, number 1, whose .name is {word}, not a string",
        f"has a kernel {value!r} in which .type_name of argument 0 is {word}, not a string",
        f"has a kernel {value!r} in which .name of argument 1 is {word}, not a string",
    )


def test_metadata_without_a_target_is_a_fault(tmp_path: Path) -> None:
    assert found(assembled(tmp_path, note("x"))) == ("has a metadata note without amdhsa.target",)


@pytest.mark.parametrize(
    ("kernels", "fault"),
    [
        (5, "has a metadata note whose amdhsa.kernels isn't a list of maps"),
        ([1], "has a metadata note whose amdhsa.kernels isn't a list of maps"),
        ([{".name": "k", ".args": 3}], "has a kernel 'k' whose .args isn't a list of maps"),
        ([{".name": "k", ".args": [None]}], "has a kernel 'k' whose .args isn't a list of maps"),
    ],
    ids=["number", "list of numbers", "arguments are a number", "an argument is none"],
)
def test_metadata_of_the_wrong_type_is_a_fault(tmp_path: Path, kernels: object, fault: str) -> None:
    report = assembled(tmp_path, {"amdhsa.target": TARGET, "amdhsa.kernels": kernels})
    assert found(report) == (fault,)


def test_metadata_that_is_nested_too_deeply_is_a_fault(tmp_path: Path) -> None:
    [fault] = assembled(tmp_path, b"\x81\xa1x" + b"\x91" * 100_000 + b"\xc0").faults
    assert fault.found.startswith("has a metadata note that isn't MessagePack (maximum recursion depth exceeded")
