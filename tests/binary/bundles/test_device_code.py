"""Tests of `rocwheel.binary.bundles.device_code`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.bundles.device_code import device_targets, iter_ar_members, iter_code_sources, read_offload_images
from rocwheel.binary.bundles.plain import read_offload_bundle
from rocwheel.binary.code_objects import CodePlace, DeviceCodeError, NotTrimmableError
from rocwheel.binary.elf.header import read_sections
from rocwheel.binary.kind import is_ar_archive
from rocwheel.core.errors import InputError
from rocwheel.device.device_facts import read_device_facts
from rocwheel.device.edit_bundles import list_places
from rocwheel.device.trim_static import require_trimmable_archive

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


def test_member_names_may_be_as_long_as_paths() -> None:
    table = b"n" * 4093 + b".o/\nshort.o/\n"
    archive = b"!<arch>\n" + member("//", table) + member("/0", b"a") + member("/4097", b"b")
    assert names(archive) == ["n" * 4093 + ".o", "short.o"]


@pytest.mark.parametrize(
    ("cut", "found"),
    [
        (1, "offset 0x5e: the member 'long name of an object.o' of 4 bytes, of which only 3 are present"),
        (5, "offset 0x5e: 59 bytes where an archive member should start"),
    ],
)
def test_a_truncated_archive_is_refused_with_member_and_offset(cut: int, found: str) -> None:
    archive = b"!<arch>\n" + member("//", b"long name of an object.o/\n") + member("/0", b"code")
    assert names(archive + b"\n") == ["long name of an object.o"]
    with pytest.raises(DeviceCodeError, match=f"x.a: {found}"):
        names(archive[:-cut])


def test_an_archive_of_more_members_than_a_dll_has_functions_is_refused() -> None:
    one = member("a.o/", b"")
    assert len(names(b"!<arch>\n" + one * 131072)) == 131072
    with pytest.raises(DeviceCodeError) as caught:
        names(b"!<arch>\n" + one * 131073)
    assert str(caught.value) == "x.a: offset 0x0: more than 131072 members; expected an archive of fewer object files"


@pytest.mark.parametrize("form", ["bsd", "darwin"])
def test_device_code_is_found_in_members_with_long_bsd_and_darwin_names(
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
    with pytest.raises(NotTrimmableError, match="a BSD symbol index"):
        require_trimmable_archive(data, name="x.a")


@pytest.mark.parametrize(
    ("name", "found"),
    [("#1/9", "a name of 9 bytes in a member of 8 bytes"), ("#1/5000", "a name of 5000 bytes in a member of 8 bytes")],
)
def test_a_name_longer_than_its_member_is_refused(name: str, found: str) -> None:
    with pytest.raises(DeviceCodeError) as refused:
        names(b"!<arch>\n" + member(name, bytes(8)))
    assert refused.value.found == found


def test_a_name_longer_than_4096_bytes_is_refused() -> None:
    # Many members may have it: a megabyte of them took minutes.
    archive = b"!<arch>\n" + member("//", b"\xff" * 5000) + member("/7", b"")
    with pytest.raises(DeviceCodeError, match=r"x\.a: .*: a name of more than 4096 bytes; expected a file name"):
        names(archive)


@pytest.mark.parametrize("name", ["/ 0", "/+0", "/-1", "/0_0", "/ 0/"])
def test_a_name_offset_that_is_not_a_plain_number_is_refused(name: str) -> None:
    archive = b"!<arch>\n" + member("//", b"long name of an object.o/\n") + member(name, b"code")
    with pytest.raises(DeviceCodeError) as refused:
        names(archive)
    assert str(refused.value) == (
        f"x.a: offset 0x5e: a member with the name {name!r}; expected a slash and digits, such as '/0'. "
        f"Rebuild the file."
    )


@pytest.mark.parametrize("read", [device_targets, read_device_facts])
def test_deeply_nested_archives_are_refused(read: Callable[..., object]) -> None:
    """5,000 of them ended in a RecursionError."""
    archive = b""
    for _ in range(5000):
        archive = b"!<arch>\n" + member("a/", archive)
    message = (
        r"x\(a\)\(a\)\(a\)\(a\)\(a\)\(a\)\(a\)\(a\)\(a\): .*an archive inside 9 other archives; expected object files"
    )
    with pytest.raises(DeviceCodeError, match=message):
        read(memoryview(archive), name="x")


def test_code_in_a_nested_archive_is_found(fixture: Fixture) -> None:
    inner = b"!<arch>\n" + member("one.co/", bytes(fixture("elf/gfx906.co")))
    archive = memoryview(b"!<arch>\n" + member("in.a/", inner))
    assert [str(target) for target in device_targets(archive, name="x.a")] == ["gfx906"]
    facts = read_device_facts(archive, name="x.a")
    assert facts is not None
    assert [entry.target for entry in facts.entries] == ["gfx906"]


BITCODE = b"BC\xc0\xde"


@pytest.mark.parametrize("name", ["v19/saxpy.rdc.o", "v23/saxpy.rdc.o"], ids=["old driver", "new driver"])
def test_images_from_both_offload_drivers_are_found(fixture: Fixture, name: str) -> None:
    data = fixture(name)
    images = read_offload_images(data, name=name)
    assert sorted((image.kind, str(image.target)) for image in images) == [
        ("hip", "gfx1030"),
        ("hip", "gfx906"),
        ("hip", "gfx90a:xnack+"),
    ]
    assert all(data[image.offset : image.offset + 4] == BITCODE for image in images)


@pytest.mark.parametrize(
    ("offset", "new", "message"),
    [
        (0, b"\0", "an offload binary that starts with b'\\x00\\xff\\x10\\xad' and has version 2; expected"),
        (4, b"\x03", "an offload binary that starts with b'\\x10\\xff\\x10\\xad' and has version 3; expected"),
        (8, b"\xff\xff\xff", "an offload binary of 16777215 bytes; expected at most 12696"),
        (16, b"\xff\xff\xff", "an entry in an offload binary extends past its end"),
        (32 + 24, b"\xff\xff\xff", "an image in an offload binary extends past its end"),
        (32 + 16, b"\xff", "a table of strings in an offload binary extends past its end"),
        (0x98, b"\xff\xff\xff", "a string in an offload binary extends past its end"),
    ],
    ids=["magic", "version", "size", "entry", "image", "strings", "string"],
)
def test_a_damaged_offload_binary_is_refused(fixture: Fixture, offset: int, new: bytes, message: str) -> None:
    data = bytearray(fixture("v23/saxpy.rdc.o"))
    [section] = [s for s in read_sections(data, name="x") if s.name == ".llvm.offloading"]
    start = section.offset + offset
    data[start : start + len(new)] = new
    with pytest.raises(DeviceCodeError, match=re.escape(f"x.o: offset 0x260: {message}")):
        read_offload_images(memoryview(data), name="x.o")


def test_the_members_of_a_static_library_are_found(
    fixture_path: Callable[[str], Path], run_tool: RunTool, tmp_path: Path
) -> None:
    archive, named = tmp_path / "libx.a", tmp_path / "an_object_file_with_a_long_name.o"
    named.write_bytes(fixture_path("v23/saxpy.rdc.o").read_bytes())
    run_tool(["ar", "rcs", str(archive), str(named), str(fixture_path("v19/vadd.plain.o"))])
    data = memoryview(archive.read_bytes())
    assert is_ar_archive(data)
    members = list(iter_ar_members(data, name="libx.a"))
    assert [member.name for member in members] == ["an_object_file_with_a_long_name.o", "vadd.plain.o"]
    assert data[members[0].offset : members[0].offset + members[0].size] == named.read_bytes()
    facts = read_device_facts(data, name="libx.a")
    assert facts is not None
    assert facts.container == "archive"
    assert facts.entries[0].id == "an_object_file_with_a_long_name.o:hip-amdgcn-amd-amdhsa"
    [bundle] = facts.bundles
    assert bytes(data[bundle.offset : bundle.offset + 24]) == b"__CLANG_OFFLOAD_BUNDLE__"
    assert [entry.target for entry in bundle.entries] == ["gfx1030", "gfx906", "gfx90a:xnack+"]


def test_an_image_for_another_vendor_is_reported_with_its_own_spelling(fixture: Fixture) -> None:
    data = bytearray(fixture("v23/saxpy.rdc.o"))
    triple, arch = data.index(b"amdgcn-amd-amdhsa\0"), data.index(b"gfx906\0")
    data[triple : triple + 18] = b"nvptx64-nv-cuda\0\0\0"
    data[arch : arch + 7] = b"sm_80\0\0"
    facts = read_device_facts(memoryview(data), name="x.o")
    assert facts is not None
    assert "sm_80" in [entry.target for entry in facts.entries]


def renamed_section(data: memoryview, old: bytes, new: bytes) -> bytearray:
    changed = bytearray(data)
    start = changed.index(b"__CLANG_OFFLOAD_BUNDLE__" + old + b"\0") + 24
    changed[start : start + len(old)] = new.ljust(len(old), b"\0")
    return changed


@pytest.mark.parametrize(
    ("name", "kind", "triple", "arch"),
    [
        (b"sycl-spir64-unknown-unknown", "sycl", "spir64-unknown-unknown", "spir64"),
        (b"sycl-spir64_gen-unknown--", "sycl", "spir64_gen-unknown--", "spir64_gen"),
        (b"openmp-nvptx64-nvidia-cuda", "openmp", "nvptx64-nvidia-cuda", "nvptx64"),
        (b"hip-nvptx64-nv-cuda--sm_80", "hip", "nvptx64-nv-cuda-", "sm_80"),
    ],
)
def test_sections_for_other_languages_and_vendors_are_not_reported_as_damage(
    fixture: Fixture, name: bytes, kind: str, triple: str, arch: str
) -> None:
    data = renamed_section(fixture("v19/saxpy.rdc.o"), b"hip-amdgcn-amd-amdhsa--gfx1030", name)
    images = read_offload_images(memoryview(data), name="x.o")
    assert [(i.kind, i.triple, i.arch) for i in images if i.target is None] == [(kind, triple, arch)]
    assert [str(i.target) for i in images if i.target] == ["gfx906", "gfx90a:xnack+"]


@pytest.mark.parametrize("name", [b"hip-amdgcn-amd", b"banana", b"hip"])
def test_a_section_name_that_is_not_an_entry_id_is_refused(fixture: Fixture, name: bytes) -> None:
    data = renamed_section(fixture("v19/saxpy.rdc.o"), b"hip-amdgcn-amd-amdhsa--gfx1030", name)
    with pytest.raises(InputError, match=f"{name.decode()}' isn't a bundle entry ID"):
        read_offload_images(memoryview(data), name="x.o")


def test_code_only_for_other_vendors_is_not_edited(fixture: Fixture) -> None:
    data = fixture("v19/saxpy.rdc.o")
    for old in (
        b"hip-amdgcn-amd-amdhsa--gfx1030",
        b"hip-amdgcn-amd-amdhsa--gfx906",
        b"hip-amdgcn-amd-amdhsa--gfx90a:xnack+",
    ):
        data = memoryview(renamed_section(data, old, b"sycl-spir64"))
    assert list_places(data, name="x.so") == ()


def test_a_damaged_static_library_is_refused() -> None:
    data = memoryview(b"!<arch>\n" + b"x.o/".ljust(48) + b"99".ljust(10) + b"`\n" + b"short")
    found = "the member 'x.o' of 99 bytes, of which only 5 are present"
    message = f"libx.a: offset 0x8: {found}; expected a complete archive. Rebuild the file."
    with pytest.raises(DeviceCodeError, match=re.escape(message)):
        list(iter_ar_members(data, name="libx.a"))
    data = memoryview(b"!<arch>\n" + b"x.o/".ljust(60) + b"short")
    message = "libx.a: offset 0x8: b'x.o/            ' where an archive member should start"
    with pytest.raises(DeviceCodeError, match=re.escape(message)):
        list(iter_ar_members(data, name="libx.a"))


TWO = ["gfx1030", "gfx906", "gfx90a:xnack+"]


@pytest.mark.parametrize(
    ("name", "targets"),
    [
        ("v19/libtwo.plain.so", TWO),
        ("v22/libtwo.ccob.so", TWO),
        ("v19/vadd.plain.o", TWO),
        ("edge/two.v18.ccob.fatbin", TWO),
        ("edge/hostonly.hipfb", []),
        ("v19/saxpy.rdc.o", TWO),
        ("v23/saxpy.rdc.o", TWO),
        ("mach/flags.22", []),
    ],
)
def test_the_targets_of_any_file_are_listed_once(fixture: Fixture, name: str, targets: list[str]) -> None:
    assert [str(target) for target in device_targets(fixture(name), name=name)] == targets


def test_the_target_of_a_standalone_code_object_is_found(fixture: Fixture) -> None:
    data = fixture("v22/saxpy.hipfb")
    entry = read_offload_bundle(data, place=CodePlace("x")).device_entries[3]
    assert [str(target) for target in device_targets(data[entry.offset : entry.stop], name="x.co")] == ["gfx90a:xnack+"]


def test_a_static_library_has_the_targets_of_its_members(
    fixture_path: Callable[[str], Path], run_tool: RunTool, tmp_path: Path
) -> None:
    archive, members = tmp_path / "libx.a", ["v19/vadd.plain.o", "v23/saxpy.rdc.o", "mach/flags.22"]
    run_tool(["ar", "rcs", str(archive), *(str(fixture_path(name)) for name in members)])
    assert [str(target) for target in device_targets(memoryview(archive.read_bytes()), name="libx.a")] == TWO
