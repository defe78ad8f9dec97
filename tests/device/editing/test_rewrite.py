"""Tests of editing device code wherever it is: object files, static libraries, code objects by themselves."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.binary.bundles.device_code import device_targets, iter_code_sources
from rocwheel.binary.bundles.sequence import iter_bundles, iter_entries
from rocwheel.binary.bundles.storage import Storage
from rocwheel.binary.code_objects import parse_target_id
from rocwheel.core.errors import InputError
from rocwheel.core.reading import load
from rocwheel.device.editing.bundle import bundle_parts
from rocwheel.device.editing.places import list_places
from rocwheel.device.editing.prune import Prune
from rocwheel.device.editing.retarget import Retarget
from rocwheel.device.editing.rewrite import rewrite_device_code
from rocwheel.targets.retarget_pairs import TargetPair
from tests.support.places import FIXTURES

if TYPE_CHECKING:
    from pathlib import Path

    from rocwheel.device.editing.bundle import BundleEdit
    from tests.support.tools import RunTool

PLAIN = Storage()


def prune(*targets: str, allow_empty: bool = False) -> Prune:
    return Prune(tuple(map(parse_target_id, targets)), allow_empty)


def retarget(code: str, *agents: str) -> Retarget:
    return Retarget(tuple(TargetPair(parse_target_id(code), parse_target_id(agent)) for agent in agents))


def targets_of(path: Path) -> list[str]:
    return [str(target) for target in device_targets(memoryview(path.read_bytes()), name=str(path))]


@pytest.fixture
def code_object(tmp_path: Path) -> Path:
    """Make a file of a code object for gfx1030 alone."""
    data = memoryview((FIXTURES / "v22/saxpy.hipfb").read_bytes())
    path = tmp_path / "gfx1030.co"
    path.write_bytes(load(bundle_parts(data, next(iter_bundles(data, name="x")))[1].payload[0]))
    return path


@pytest.fixture
def archive(tmp_path: Path, run_tool: RunTool) -> Path:
    """Make a static library of an object file without and two with device code."""
    path = tmp_path / "libx.a"
    (tmp_path / "second.o").write_bytes((FIXTURES / "v19/vadd.plain.o").read_bytes())
    members = [FIXTURES / "elf/library.o", FIXTURES / "v19/vadd.plain.o", tmp_path / "second.o"]
    run_tool(["ar", "rcs", str(path), *map(str, members)])
    return path


@pytest.mark.parametrize(
    ("edit", "storage", "targets"),
    [
        (prune("gfx906"), PLAIN, ["gfx906"]),
        (prune("gfx906"), Storage(compress=True), ["gfx906"]),
        (retarget("gfx1030", "gfx1031"), Storage(compress=True), ["gfx1030", "gfx1031", "gfx906", "gfx90a:xnack+"]),
    ],
    ids=["prune", "compress", "retarget"],
)
def test_edited_static_library_links_with_the_code_that_it_has(
    archive: Path, tmp_path: Path, run_tool: RunTool, edit: BundleEdit, storage: Storage, targets: list[str]
) -> None:
    output, linked = tmp_path / "out.a", tmp_path / "linked.so"
    report = rewrite_device_code(archive, output, edit, storage)
    assert (report.bundles, report.changed, report.size_before > report.size_after) == (2, 2, True)
    assert run_tool(["ar", "t", str(output)]).split() == ["library.o", "vadd.plain.o", "second.o"]
    run_tool(["ar", "x", f"--output={tmp_path}", str(output), "vadd.plain.o"])
    run_tool(["gcc", "-shared", "-nostdlib", str(tmp_path / "vadd.plain.o"), "-o", str(linked)])
    for file in (output, linked):
        sources = iter_code_sources(memoryview(file.read_bytes()), name="x")
        assert {tuple(map(str, source.bundle.targets)) for source in sources} == {tuple(targets)}


def test_static_library_is_left_as_it_is_but_for_its_bundles(archive: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.a"
    rewrite_device_code(archive, output, prune("gfx906"), PLAIN)
    old, new = archive.read_bytes(), output.read_bytes()
    sources = list(iter_code_sources(memoryview(old), name="x"))
    assert len(old) == len(new)
    for source in sources:
        start = old.index(load(source.view))
        old = old[:start] + bytes(len(source.view)) + old[start + len(source.view) :]
        new = new[:start] + bytes(len(source.view)) + new[start + len(source.view) :]
    assert old == new


@pytest.mark.parametrize("trim", [False, True], ids=["in place", "trimmed"])
@pytest.mark.parametrize(("mode", "expected"), [(0o755, 0o755), (0o640, 0o640), (0o6777, 0o755), (0o666, 0o644)])
def test_edited_file_has_the_mode_of_the_old_one_as_far_as_it_is_safe(
    tmp_path: Path, mode: int, expected: int, *, trim: bool
) -> None:
    source, output = tmp_path / "in.so", tmp_path / "out.so"
    source.write_bytes((FIXTURES / "v22/libtwo.plain.so").read_bytes())
    source.chmod(mode)
    rewrite_device_code(source, output, None, Storage(compress=True), trim=trim)
    assert output.stat().st_mode & 0o7777 == expected


def test_code_object_to_keep_is_kept_as_it_is(code_object: Path, tmp_path: Path) -> None:
    report = rewrite_device_code(code_object, tmp_path / "out.co", prune("gfx1030", "gfx906"), PLAIN)
    assert (report.bundles, report.changed) == (0, 0)
    assert (tmp_path / "out.co").read_bytes() == code_object.read_bytes()


def test_code_object_is_made_one_for_another_target(code_object: Path, tmp_path: Path, run_tool: RunTool) -> None:
    output = tmp_path / "out.co"
    report = rewrite_device_code(code_object, output, retarget("gfx1030", "gfx1031"), PLAIN)
    assert (report.bundles, report.changed, targets_of(output)) == (0, 1, ["gfx1031"])
    told = run_tool(["llvm-readelf-22", "-hn", str(output)])
    assert re.search(r"Flags: +0x37, gfx1031\n", told)
    assert re.findall(r"amdhsa.target: +amdgcn-amd-amdhsa-(?:unknown)?-(.*)", told) == ["gfx1031"]
    assert output.stat().st_size == code_object.stat().st_size


@pytest.mark.parametrize(
    ("edit", "storage", "message"),
    [
        (prune("gfx906"), PLAIN, "has no code for any target to keep; expected code for one of gfx906."),
        (prune("gfx906", allow_empty=True), PLAIN, "a code object that is all for other targets. Leave the file out."),
        (
            retarget("gfx1030", "gfx1031", "gfx1032"),
            PLAIN,
            "a code object, which is for one target, to be for gfx1031, gfx1032; expected one target. Make a file for",
        ),
        (
            prune("gfx1030"),
            Storage(compress=True),
            "a code object by itself; expected bundles: only these can be compressed or trimmed",
        ),
        (None, PLAIN, "a code object by itself; expected bundles: only these can be compressed or trimmed"),
    ],
    ids=["prune", "allow empty", "several", "compress", "no edit"],
)
def test_what_a_code_object_by_itself_cannot_be_is_refused(
    code_object: Path, tmp_path: Path, edit: BundleEdit | None, storage: Storage, message: str
) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        rewrite_device_code(code_object, tmp_path / "out.co", edit, storage)
    assert not (tmp_path / "out.co").exists()


def test_code_object_for_no_processor_is_refused(code_object: Path, tmp_path: Path) -> None:
    data = bytearray(code_object.read_bytes())
    data[0x30:0x34] = bytes(4)
    code_object.write_bytes(data)
    with pytest.raises(InputError, match="a code object whose flags 0x0 name no processor; expected one for a proc"):
        rewrite_device_code(code_object, tmp_path / "out.co", prune("gfx1030"), PLAIN)


@pytest.mark.parametrize("name", ["v19/saxpy.rdc.o", "v23/saxpy.rdc.o"], ids=["old driver", "new driver"])
@pytest.mark.parametrize("is_archived", [False, True], ids=["object", "archive"])
def test_device_code_that_is_not_linked_yet_is_refused_with_what_to_do(
    tmp_path: Path, run_tool: RunTool, name: str, *, is_archived: bool
) -> None:
    source = FIXTURES / name
    if is_archived:
        source = tmp_path / "libx.a"
        run_tool(["ar", "rcs", str(source), str(FIXTURES / "v19/vadd.plain.o"), str(FIXTURES / name)])
    found = (
        f"{source}{'(saxpy.rdc.o)' if is_archived else ''}: device code that isn't linked yet; expected bundles, as in "
        "shared libraries, programs, and objects compiled without -fgpu-rdc. Compile it with --offload-arch for the "
        "targets, or link it and edit the result."
    )
    with pytest.raises(InputError, match=re.escape(found)):
        rewrite_device_code(source, tmp_path / "out", prune("gfx906"), PLAIN)
    assert not (tmp_path / "out").exists()


def test_file_of_bundles_in_an_archive_is_refused(tmp_path: Path, run_tool: RunTool) -> None:
    archive = tmp_path / "libx.a"
    run_tool(["ar", "rcS", str(archive), str(FIXTURES / "v22/saxpy.hipfb")])
    found = f"{archive}(saxpy.hipfb): a file of bundles in an archive; expected object files. Take it out first."
    with pytest.raises(InputError, match=re.escape(found)):
        rewrite_device_code(archive, tmp_path / "out.a", prune("gfx906"), PLAIN)


@st.composite
def damaged_archives(draw: st.DrawFn) -> bytes:
    members = [(FIXTURES / name).read_bytes() for name in ("v19/vadd.plain.o", "elf/library.o", "elf/gfx906.co")]
    data = bytearray(b"!<arch>\n")
    for member in draw(st.lists(st.sampled_from(members), min_size=1, max_size=2)):
        data += f"{'x.o/':<16}{'0':<12}{'0':<6}{'0':<6}{'644':<8}{len(member):<10}`\n".encode()
        data += member + b"\n" * (len(member) % 2)
    places = st.integers(0, 200) | st.integers(0, len(data) - 1) | st.integers(len(data) - 3000, len(data) - 1)
    for place in draw(st.lists(places, max_size=4)):
        new = draw(st.binary(min_size=1, max_size=8))
        data[place : place + len(new)] = new
    return bytes(data[: draw(st.just(len(data)) | st.integers(0, len(data)))])


@given(damaged_archives())
def test_damaged_static_library_is_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(InputError):
        for source in iter_code_sources(memoryview(data), name="libx.a"):
            pieces = iter_entries(source.view, source.bundle, source.bundle.plain.entries)
            assert sum(len(piece) for _, piece in pieces) <= 1 << 20
    with contextlib.suppress(InputError):
        assert sum(len(place.data) for place in list_places(memoryview(data), name="libx.a")) <= len(data)
