"""Static libraries whose members have long names."""

from __future__ import annotations

import pytest

from rocwheel.binary.bundles.ar_archive import iter_ar_members
from rocwheel.binary.code_objects.errors import DeviceCodeError


def member(name: str, data: bytes) -> bytes:
    header = f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(data):<10}`\n".encode()
    return header + data + b"\n" * (len(data) % 2)


def names(archive: bytes) -> list[str]:
    return [one.name for one in iter_ar_members(memoryview(archive), name="x.a")]


def test_names_are_as_long_as_paths() -> None:
    table = b"n" * 4093 + b".o/\nshort.o/\n"
    archive = b"!<arch>\n" + member("//", table) + member("/0", b"a") + member("/4097", b"b")
    assert names(archive) == ["n" * 4093 + ".o", "short.o"]


def test_a_name_that_is_longer_is_refused() -> None:
    # Many members may have it: a megabyte of them took minutes.
    archive = b"!<arch>\n" + member("//", b"\xff" * 5000) + member("/7", b"")
    with pytest.raises(DeviceCodeError, match=r"x\.a: .*: a name of more than 4096 bytes; expected that of a file"):
        names(archive)
