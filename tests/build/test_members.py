"""Tests of `rocwheel.build.members`."""

from __future__ import annotations

import pytest

from rocwheel.binary.bundles.device_code import device_targets
from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.binary.elf.facts import read_elf
from rocwheel.build.members import member_content
from rocwheel.build.plan import FileMember
from rocwheel.core.reading import FileRange
from rocwheel.environment.run_path_choice import SetRunpath
from tests.support.places import FIXTURES

RUN_PATH = "$ORIGIN/../_rocm_sdk_core/lib:$ORIGIN/and/another/that/takes/room"


def bytes_of(name: str, *, run_path: str = "", trim: bool) -> bytes:
    edit = SetRunpath(run_path, RunpathTag.RUNPATH) if run_path else None
    source = FileRange.whole(FIXTURES / name)
    content = member_content(FileMember(name, 0o755, source, "artifact", name, edit, "7.0", trim), mtime=0)
    with content.open(0, content.size) as buffers:
        return b"".join(buffers)


@pytest.mark.parametrize("run_path", ["", RUN_PATH], ids=["no run path", "run path"])
def test_device_code_is_compressed_and_trimmed(run_path: str) -> None:
    name = "v22/libtwo.plain.so"
    compressed, trimmed = (bytes_of(name, run_path=run_path, trim=trim) for trim in (False, True))
    distances = [data.rindex(b"CCOB") - data.index(b"CCOB") for data in (compressed, trimmed)]
    assert distances == [5 * 4096, 4096]
    assert read_elf(trimmed, name=name).runpath == (run_path or None)
    assert device_targets(memoryview(trimmed), name=name) == device_targets(memoryview(compressed), name=name)


def test_a_trimmed_library_is_smaller() -> None:
    compressed, trimmed = (bytes_of("v22/libtwo.plain.so", trim=trim) for trim in (False, True))
    assert len(compressed) - len(trimmed) == 7 * 4096


def test_a_file_that_cannot_be_trimmed_is_only_compressed() -> None:
    name = "pe/two.obj"
    assert bytes_of(name, trim=True) == bytes_of(name, trim=False)
    assert b"CCOB" in bytes_of(name, trim=True)
