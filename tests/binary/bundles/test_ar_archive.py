"""Static libraries whose members have long names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.bundles.ar_archive import iter_ar_members
from rocwheel.binary.bundles.device_code import device_targets, iter_code_sources
from rocwheel.binary.code_objects.errors import DeviceCodeError, NotTrimmableError
from rocwheel.device.reading.facts import read_device_facts
from rocwheel.device.trimming.static_library import require_trimmable_archive

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.device_files import Fixture
    from tests.support.tools import RunTool


def member(name: str, data: bytes) -> bytes:
    header = f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(data):<10}`\n".encode()
    return header + data + b"\n" * (len(data) % 2)


def names(archive: bytes) -> list[str]:
    return [one.name for one in iter_ar_members(memoryview(archive), name="x.a")]


def test_names_are_as_long_as_paths() -> None:
    table = b"n" * 4093 + b".o/\nshort.o/\n"
    archive = b"!<arch>\n" + member("//", table) + member("/0", b"a") + member("/4097", b"b")
    assert names(archive) == ["n" * 4093 + ".o", "short.o"]


@pytest.mark.parametrize("form", ["bsd", "darwin"])
def test_device_code_is_found_behind_the_long_names_of_bsd_and_darwin(
    form: str, run_tool: RunTool, tmp_path: Path, fixture: Fixture
) -> None:
    long, short, archive = tmp_path / "long name of a member.o", tmp_path / "s.o", tmp_path / "x.a"
    for path in (long, short):
        path.write_bytes(fixture("v19/vadd.plain.o"))
    run_tool(["llvm-ar", f"--format={form}", "rcs", archive, long, short])
    assert names(archive.read_bytes()) == ["__.SYMDEF", "long name of a member.o", "s.o"]
    data = memoryview(archive.read_bytes())
    sources = [source.bundle.place.name for source in iter_code_sources(data, name="x.a")]
    assert sources == ["x.a(long name of a member.o)", "x.a(s.o)"]
    with pytest.raises(NotTrimmableError, match="a symbol index as BSD has them"):
        require_trimmable_archive(data, name="x.a")


@pytest.mark.parametrize(
    ("name", "found"),
    [("#1/9", "a name of 9 bytes in a member of 8 bytes"), ("#1/5000", "a name of 5000 bytes in a member of 8 bytes")],
)
def test_a_name_beyond_its_member_is_refused(name: str, found: str) -> None:
    with pytest.raises(DeviceCodeError) as refused:
        names(b"!<arch>\n" + member(name, bytes(8)))
    assert refused.value.found == found


def test_a_name_that_is_longer_is_refused() -> None:
    # Many members may have it: a megabyte of them took minutes.
    archive = b"!<arch>\n" + member("//", b"\xff" * 5000) + member("/7", b"")
    with pytest.raises(DeviceCodeError, match=r"x\.a: .*: a name of more than 4096 bytes; expected that of a file"):
        names(archive)


@pytest.mark.parametrize("read", [device_targets, read_device_facts])
def test_archives_deep_in_one_another_are_refused(read: Callable[..., object]) -> None:
    """5,000 of them ended in a RecursionError."""
    archive = b""
    for _ in range(5000):
        archive = b"!<arch>\n" + member("a/", archive)
    message = r"x\(a\)\(a\)\(a\)\(a\)\(a\)\(a\)\(a\)\(a\)\(a\): .*an archive that is in 9 others; expected object files"
    with pytest.raises(DeviceCodeError, match=message):
        read(memoryview(archive), name="x")


def test_code_of_an_archive_in_another_is_found(fixture: Fixture) -> None:
    inner = b"!<arch>\n" + member("one.co/", bytes(fixture("elf/gfx906.co")))
    archive = memoryview(b"!<arch>\n" + member("in.a/", inner))
    assert [str(target) for target in device_targets(archive, name="x.a")] == ["gfx906"]
    facts = read_device_facts(archive, name="x.a")
    assert facts is not None
    assert [entry.target for entry in facts.entries] == ["gfx906"]
