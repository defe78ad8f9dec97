"""Tests of `rocwheel.device.edit_file`."""

from __future__ import annotations

import contextlib
import random
import re
import zipfile
from typing import TYPE_CHECKING

import lief
import msgspec
import pefile
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.binary.bundles.device_code import device_targets, iter_code_sources
from rocwheel.binary.bundles.sequence import iter_bundles, iter_entries
from rocwheel.binary.bundles.storage import Storage
from rocwheel.binary.code_objects import TargetId, parse_target_id
from rocwheel.binary.kpack.archive import Scheme, read_archive, read_kernel
from rocwheel.binary.pe.rewrite import SignedFileError
from rocwheel.core.errors import InputError
from rocwheel.core.patch import patched_view
from rocwheel.core.reading import load
from rocwheel.device.device_facts import list_device_code
from rocwheel.device.edit_bundles import Prune, bundle_parts, device_patch, list_places
from rocwheel.device.edit_file import RewriteOrder, RewriteReport, rewrite_device_code
from rocwheel.device.edit_tree import edit_tree
from rocwheel.device.edit_wheel import rewrite_wheel
from rocwheel.device.retarget import Retarget
from rocwheel.targets.retarget_pairs import TargetPair
from rocwheel.wheels.sdist import SourceDate
from tests.support.kpack_files import by_hand, make_kpack, split_two, toc
from tests.support.kpack_reader import Archive
from tests.support.pe_files import with_certificate
from tests.support.places import FIXTURES
from tests.support.wheels import make_wheel, members

if TYPE_CHECKING:
    from pathlib import Path

    from rocwheel.device.edit_bundles import BundleEdit
    from tests.support.tools import RunTool


CODE = (FIXTURES / "elf/gfx906.co").read_bytes()
KERNELS = {("lib/a.so", index, "gfx906|gfx906:xnack-"): CODE + bytes([index]) for index in range(9)}
PLAIN = make_kpack(KERNELS, scheme=Scheme.NONE)
ONE_NAMED = {"lib/libx.so#0": {"gfx906": {"type": "hsaco", "ordinal": 1, "original_size": 4}}}
COMPRESS = Storage(compress=True)


def compress(folder: Path, data: bytes, storage: Storage = COMPRESS, **options: int) -> bytes:
    (folder / "x.kpack").write_bytes(data)
    rewrite_device_code(folder / "x.kpack", folder / "out.kpack", None, storage, **options)  # type: ignore[arg-type]
    return (folder / "out.kpack").read_bytes()


@pytest.mark.parametrize("jobs", [1, 3])
def test_code_is_compressed_at_the_default_archive_level(tmp_path: Path, jobs: int) -> None:
    assert compress(tmp_path, PLAIN, jobs=jobs) == make_kpack(KERNELS)


def test_an_archive_with_compressed_code_is_not_changed(tmp_path: Path) -> None:
    data = make_kpack(KERNELS, level=1)
    assert compress(tmp_path, data) == data


def test_a_given_level_applies_to_all_code(tmp_path: Path) -> None:
    data = make_kpack(KERNELS, level=1)
    assert compress(tmp_path, data, Storage(compress=True, archive_level=19)) == make_kpack(KERNELS, level=19)


def test_levels_above_the_archive_maximum_are_lowered_to_it(tmp_path: Path) -> None:
    assert compress(tmp_path, PLAIN, Storage(compress=True, archive_level=22)) == make_kpack(KERNELS, level=19)


@pytest.mark.parametrize(
    ("level", "said"), [(19, ()), (22, ("compressed at level 19, the highest for kpack archives, instead of 22",))]
)
def test_a_level_above_the_archive_maximum_is_reported(tmp_path: Path, level: int, said: tuple[str, ...]) -> None:
    (source := tmp_path / "x.kpack").write_bytes(PLAIN)
    report = rewrite_device_code(source, tmp_path / "y.kpack", None, Storage(compress=True, archive_level=level))
    assert report.warnings == tuple(f"{source}: {text}" for text in said)


def test_the_report_counts_code_objects(tmp_path: Path) -> None:
    (tmp_path / "x.kpack").write_bytes(PLAIN)
    report = rewrite_device_code(tmp_path / "x.kpack", tmp_path / "y.kpack", None, COMPRESS)
    assert (report.is_archive, report.bundles, report.changed) == (True, 9, 9)
    assert (report.size_before, report.size_after < report.size_before) == (9 * len(CODE) + 9, True)


MIXED = {
    (key, index, targets): f"{key} {index} {targets}".encode() * 300
    for key in ("lib/a.so", "lib/b.so")
    for index in range(3)
    for targets in ("gfx906|gfx906:xnack-", "gfx90a:xnack+", "gfx11-generic")
}


def prune(folder: Path, data: bytes, *keep: TargetId, storage: Storage | None = None) -> RewriteReport:
    (folder / "x.kpack").write_bytes(data)
    return rewrite_device_code(folder / "x.kpack", folder / "y.kpack", Prune(keep), storage or Storage())


@pytest.mark.parametrize("scheme", Scheme)
@pytest.mark.parametrize(
    ("keep", "kept"),
    [
        ((TargetId("gfx906"),), {"gfx906|gfx906:xnack-"}),
        ((TargetId("gfx90a"), TargetId("gfx1100")), {"gfx90a:xnack+", "gfx11-generic"}),
    ],
)
def test_a_pruned_archive_equals_an_archive_written_for_the_selected_targets(
    tmp_path: Path, scheme: Scheme, keep: tuple[TargetId, ...], kept: set[str]
) -> None:
    report = prune(tmp_path, make_kpack(MIXED, scheme=scheme), *keep)
    left = {key: code for key, code in MIXED.items() if key[2] in kept}
    assert (tmp_path / "y.kpack").read_bytes() == make_kpack(left, scheme=scheme)
    assert (report.bundles, report.changed) == (18, 18 - len(left))


def test_a_pruned_archive_keeps_unknown_fields_of_its_entries(tmp_path: Path) -> None:
    rows = {
        name: {"type": "hsaco", "ordinal": n, "original_size": 8, "odd": n} for n, name in enumerate(("gfx906", "x"))
    }
    fields = toc(
        gfx_arches=["gfx906", "gfx908"],
        toc={"lib/libx.so#0": {"gfx906": rows["gfx906"], "gfx908": rows["x"]}},
        blobs=[{"offset": 16, "size": 8}, {"offset": 24, "size": 8}],
        more="kept",
    )
    prune(tmp_path, by_hand(fields, b"\x7fELF 906\x7fELF 908"), TargetId("gfx908"))
    data = (tmp_path / "y.kpack").read_bytes()
    archive = read_archive(memoryview(data), name="y")
    table = msgspec.msgpack.decode(data[archive.toc_offset :])
    assert (table["more"], table["gfx_arches"]) == ("kept", ["gfx908"])
    assert table["toc"] == {"lib/libx.so#0": {"gfx908": {"type": "hsaco", "ordinal": 0, "original_size": 8, "odd": 1}}}
    assert bytes(read_kernel(memoryview(data), archive, archive.entries[0])) == b"\x7fELF 908"


def test_an_archive_without_code_for_a_selected_target_is_refused(tmp_path: Path) -> None:
    message = (
        f"{tmp_path}/x.kpack: offset 0x0: has no code for any of the targets to keep; expected "
        f"code for one of gfx942. It has"
    )
    offered = "gfx906, gfx906:xnack-, gfx90a:xnack+, gfx11-generic"
    with pytest.raises(InputError, match=f"^{re.escape(f'{message} code for {offered}.')}$"):
        prune(tmp_path, make_kpack(MIXED), TargetId("gfx942"))
    assert not (tmp_path / "y.kpack").exists()


def test_an_archive_that_needs_no_pruning_is_not_changed(tmp_path: Path) -> None:
    assert prune(tmp_path, PLAIN, TargetId("gfx906")).changed == 0
    assert (tmp_path / "y.kpack").read_bytes() == PLAIN


def test_an_archive_can_be_pruned_and_compressed_at_once(tmp_path: Path) -> None:
    prune(tmp_path, make_kpack(MIXED, scheme=Scheme.NONE), TargetId("gfx906"), storage=COMPRESS)
    left = {key: code for key, code in MIXED.items() if key[2].startswith("gfx906")}
    assert (tmp_path / "y.kpack").read_bytes() == make_kpack(left)


@pytest.mark.parametrize("data", [PLAIN, make_kpack(KERNELS)], ids=["plain", "compressed"])
def test_bytes_after_the_table_are_dropped_with_a_warning(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x.kpack").write_bytes(data + b"more")
    report = rewrite_device_code(tmp_path / "x.kpack", tmp_path / "y.kpack", None, COMPRESS)
    rest = "left out 4 bytes after the table of contents, which some readers reject"
    assert report.warnings == (f"{tmp_path}/x.kpack: {rest}",)
    assert (tmp_path / "y.kpack").read_bytes() == make_kpack(KERNELS)


def test_code_without_a_key_is_dropped_with_a_warning(tmp_path: Path) -> None:
    blobs = [{"offset": 16, "size": 4}, {"offset": 20, "size": 4}]
    (tmp_path / "x.kpack").write_bytes(by_hand(toc(blobs=blobs, toc=ONE_NAMED)))
    report = rewrite_device_code(tmp_path / "x.kpack", tmp_path / "y.kpack", None, COMPRESS)
    assert report.warnings == (f"{tmp_path}/x.kpack: left out 1 code object that no key refers to",)
    assert Archive(tmp_path / "y.kpack").kernel("lib/libx.so#0", "gfx906") == b"code"


def test_archives_are_pruned_in_a_folder_and_in_a_wheel(tmp_path: Path) -> None:
    left = make_kpack({key: code for key, code in MIXED.items() if key[2].startswith("gfx906")})
    (tmp_path / "in").mkdir()
    (tmp_path / "in/all.kpack").write_bytes(make_kpack(MIXED))
    edit_tree(tmp_path / "in", tmp_path / "out", Prune((TargetId("gfx906"),)), Storage())
    assert (tmp_path / "out/all.kpack").read_bytes() == left
    wheel = make_wheel(tmp_path / "wheel", "demo", {"demo/.kpack/all.kpack": make_kpack(MIXED)})
    order = RewriteOrder(edit=Prune((TargetId("gfx906"),)), storage=Storage())
    rewrite_wheel(wheel, tmp_path / "out.whl", order, SourceDate())
    assert members(tmp_path / "out.whl")["demo/.kpack/all.kpack"] == left


def test_archives_in_a_wheel_are_compressed_and_stored(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "in", "demo", {"demo/.kpack/x_gfx906.kpack": PLAIN, "demo/data": b"x"})
    order = RewriteOrder(edit=None, storage=COMPRESS, jobs=2)
    report = rewrite_wheel(wheel, tmp_path / "out.whl", order, SourceDate())
    assert [(edited.path, edited.changed) for edited in report.edited] == [("demo/.kpack/x_gfx906.kpack", 9)]
    assert members(tmp_path / "out.whl")["demo/.kpack/x_gfx906.kpack"] == make_kpack(KERNELS)


def test_a_compressed_archive_in_a_wheel_is_not_deflated(tmp_path: Path) -> None:
    noise = {("a", 0, "gfx906"): random.Random(7).randbytes(300_000) + bytes(300_000)}
    wheel = make_wheel(tmp_path / "in", "demo", {"demo/x_gfx906.kpack": make_kpack(noise, scheme=Scheme.NONE)})
    rewrite_wheel(wheel, tmp_path / "out.whl", RewriteOrder(edit=None, storage=COMPRESS), SourceDate())
    with zipfile.ZipFile(tmp_path / "out.whl") as archive:
        info = archive.getinfo("demo/x_gfx906.kpack")
    assert info.compress_type == zipfile.ZIP_STORED
    assert 300_000 < info.file_size < 310_000


def test_archives_for_other_targets_are_removed_from_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "x_gfx906.kpack").write_bytes(PLAIN)
    (folder / "x_gfx908.kpack").write_bytes(make_kpack({("lib/a.so", 0, "gfx908"): CODE}))
    edit_tree(folder, tmp_path / "out", Prune((TargetId("gfx906"),)), Storage())
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["x_gfx906.kpack"]


def test_a_split_library_without_its_archives_is_refused_with_their_location(tmp_path: Path) -> None:
    library = split_two(tmp_path / "sdk")
    message = (
        f"{library}: is a split library, whose code is in ../.kpack/two_@GFXARCH@.kpack; expected a fat binary or a "
        "bundle file. Specify one of these archives, or the folder that contains all of them."
    )
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        rewrite_device_code(library, tmp_path / "out.so", None, COMPRESS)
    assert not (tmp_path / "out.so").exists()


REWRITE_PLAIN = Storage()


def prune_of_rewrite(*targets: str, allow_empty: bool = False) -> Prune:
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
        (prune_of_rewrite("gfx906"), REWRITE_PLAIN, ["gfx906"]),
        (prune_of_rewrite("gfx906"), Storage(compress=True), ["gfx906"]),
        (retarget("gfx1030", "gfx1031"), Storage(compress=True), ["gfx1030", "gfx1031", "gfx906", "gfx90a:xnack+"]),
    ],
    ids=["prune", "compress", "retarget"],
)
def test_an_edited_static_library_can_be_linked_and_keeps_the_selected_code(
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


def test_only_the_bundles_of_a_static_library_are_changed(archive: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.a"
    rewrite_device_code(archive, output, prune_of_rewrite("gfx906"), REWRITE_PLAIN)
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
def test_an_edited_file_keeps_the_safe_part_of_its_mode(
    tmp_path: Path, mode: int, expected: int, *, trim: bool
) -> None:
    source, output = tmp_path / "in.so", tmp_path / "out.so"
    source.write_bytes((FIXTURES / "v22/libtwo.plain.so").read_bytes())
    source.chmod(mode)
    rewrite_device_code(source, output, None, Storage(compress=True), trim=trim)
    assert output.stat().st_mode & 0o7777 == expected


def test_a_code_object_for_a_selected_target_is_not_changed(code_object: Path, tmp_path: Path) -> None:
    report = rewrite_device_code(code_object, tmp_path / "out.co", prune_of_rewrite("gfx1030", "gfx906"), REWRITE_PLAIN)
    assert (report.bundles, report.changed) == (0, 0)
    assert (tmp_path / "out.co").read_bytes() == code_object.read_bytes()


def test_a_code_object_can_be_retargeted(code_object: Path, tmp_path: Path, run_tool: RunTool) -> None:
    output = tmp_path / "out.co"
    report = rewrite_device_code(code_object, output, retarget("gfx1030", "gfx1031"), REWRITE_PLAIN)
    assert (report.bundles, report.changed, targets_of(output)) == (0, 1, ["gfx1031"])
    told = run_tool(["llvm-readelf-22", "-hn", str(output)])
    assert re.search(r"Flags: +0x37, gfx1031\n", told)
    assert re.findall(r"amdhsa.target: +amdgcn-amd-amdhsa-(?:unknown)?-(.*)", told) == ["gfx1031"]
    assert output.stat().st_size == code_object.stat().st_size


@pytest.mark.parametrize(
    ("edit", "storage", "message"),
    [
        (
            prune_of_rewrite("gfx906"),
            REWRITE_PLAIN,
            "has no code for any of the targets to keep; expected code for one of gfx906.",
        ),
        (
            prune_of_rewrite("gfx906", allow_empty=True),
            REWRITE_PLAIN,
            "a code object that is only for other targets. Leave the file out.",
        ),
        (
            retarget("gfx1030", "gfx1031", "gfx1032"),
            REWRITE_PLAIN,
            (
                "a code object, which can't be for several targets (gfx1031, gfx1032); expected one target. "
                "Make a "
                "separate file for each"
            ),
        ),
        (
            prune_of_rewrite("gfx1030"),
            Storage(compress=True),
            "a standalone code object; expected bundles, because only bundles can be compressed or trimmed",
        ),
        (
            None,
            REWRITE_PLAIN,
            "a standalone code object; expected bundles, because only bundles can be compressed or trimmed",
        ),
    ],
    ids=["prune", "allow empty", "several", "compress", "no edit"],
)
def test_unsupported_edits_of_a_single_code_object_are_refused(
    code_object: Path, tmp_path: Path, edit: BundleEdit | None, storage: Storage, message: str
) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        rewrite_device_code(code_object, tmp_path / "out.co", edit, storage)
    assert not (tmp_path / "out.co").exists()


def test_a_code_object_with_an_invalid_processor_is_refused(code_object: Path, tmp_path: Path) -> None:
    data = bytearray(code_object.read_bytes())
    data[0x30:0x34] = bytes(4)
    code_object.write_bytes(data)
    with pytest.raises(
        InputError, match="a code object whose flags 0x0 don't identify a processor; expected a code object for a known"
    ):
        rewrite_device_code(code_object, tmp_path / "out.co", prune_of_rewrite("gfx1030"), REWRITE_PLAIN)


@pytest.mark.parametrize("name", ["v19/saxpy.rdc.o", "v23/saxpy.rdc.o"], ids=["old driver", "new driver"])
@pytest.mark.parametrize("is_archived", [False, True], ids=["object", "archive"])
def test_unlinked_device_code_is_refused_with_a_remedy(
    tmp_path: Path, run_tool: RunTool, name: str, *, is_archived: bool
) -> None:
    source = FIXTURES / name
    if is_archived:
        source = tmp_path / "libx.a"
        run_tool(["ar", "rcs", str(source), str(FIXTURES / "v19/vadd.plain.o"), str(FIXTURES / name)])
    found = (
        f"{source}{'(saxpy.rdc.o)' if is_archived else ''}: device code that isn't linked yet; expected bundles, "
        "as in shared libraries, programs, and objects compiled without -fgpu-rdc. Compile the file with "
        "--offload-arch for "
        "the targets, or link the file and edit the result."
    )
    with pytest.raises(InputError, match=re.escape(found)):
        rewrite_device_code(source, tmp_path / "out", prune_of_rewrite("gfx906"), REWRITE_PLAIN)
    assert not (tmp_path / "out").exists()


def test_a_bundle_file_inside_an_archive_is_refused(tmp_path: Path, run_tool: RunTool) -> None:
    archive = tmp_path / "libx.a"
    run_tool(["ar", "rcS", str(archive), str(FIXTURES / "v22/saxpy.hipfb")])
    found = (
        f"{archive}(saxpy.hipfb): a bundle file in an archive; expected object files. Remove the member from the "
        "archive first."
    )
    with pytest.raises(InputError, match=re.escape(found)):
        rewrite_device_code(archive, tmp_path / "out.a", prune_of_rewrite("gfx906"), REWRITE_PLAIN)


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
def test_a_damaged_static_library_is_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(InputError):
        for source in iter_code_sources(memoryview(data), name="libx.a"):
            pieces = iter_entries(source.view, source.bundle, source.bundle.plain.entries)
            assert sum(len(piece) for _, piece in pieces) <= 1 << 20
    with contextlib.suppress(InputError):
        assert sum(len(place.data) for place in list_places(memoryview(data), name="libx.a")) <= len(data)


PE_FIXTURES = FIXTURES / "pe"
KEPT = Prune(keep=(parse_target_id("gfx906"),))
COMPRESSED = Storage(compress=True)


def targets_in(path: Path) -> set[str]:
    facts = list_device_code(path)
    return {entry.target for bundle in facts.bundles for entry in bundle.entries}


@pytest.mark.parametrize("name", ["two.dll", "two-gnu.dll"])
def test_pruning_a_dll_changes_only_the_code_and_the_checksum(name: str, tmp_path: Path) -> None:
    output = tmp_path / name
    report = rewrite_device_code(PE_FIXTURES / name, output, KEPT, Storage())
    assert (report.bundles, report.changed) == (2, 2)
    assert targets_in(output) == {"gfx906"}
    old, new = pefile.PE(PE_FIXTURES / name), pefile.PE(output)
    for before, after in zip(old.sections, new.sections, strict=True):
        is_code = before.Name == b".hip_fat"
        assert before.__pack__() == after.__pack__()
        assert (before.get_data() == after.get_data()) is not is_code
    assert (old.OPTIONAL_HEADER.CheckSum == 0) is (name == "two.dll")
    assert new.OPTIONAL_HEADER.CheckSum == (new.generate_checksum() if name == "two-gnu.dll" else 0)
    assert lief.PE.parse(str(output)) is not None


def test_compressing_a_dll_preserves_its_code(tmp_path: Path) -> None:
    output = tmp_path / "a.dll"
    rewrite_device_code(PE_FIXTURES / "two-gnu.dll", output, None, COMPRESSED)
    facts = list_device_code(output)
    assert facts.raw_size == list_device_code(PE_FIXTURES / "two-gnu.dll").raw_size
    assert [bundle.method for bundle in facts.bundles] == ["zstd", "zstd"]
    assert pefile.PE(output).verify_checksum()


def test_patching_and_rewriting_a_file_give_the_same_bytes(tmp_path: Path) -> None:
    output = tmp_path / "a.dll"
    rewrite_device_code(PE_FIXTURES / "two-gnu.dll", output, None, COMPRESSED)
    data = memoryview((PE_FIXTURES / "two-gnu.dll").read_bytes())
    patch = device_patch(data, name="a.dll", storage=COMPRESSED)
    assert patch is not None
    assert bytes(patched_view(data, patch)) == output.read_bytes()


def signed(tmp_path: Path) -> Path:
    path = tmp_path / "signed.dll"
    path.write_bytes(with_certificate((PE_FIXTURES / "two.dll").read_bytes()))
    return path


def test_a_signed_file_is_refused_if_its_code_would_change(tmp_path: Path) -> None:
    source = signed(tmp_path)
    output = tmp_path / "a.dll"
    with pytest.raises(SignedFileError) as refused:
        rewrite_device_code(source, output, KEPT, Storage())
    assert str(refused.value) == (
        f"{source}: is signed, and any change makes the signature invalid; expected a file without certificates. "
        "Remove the signature first, and then sign the result."
    )
    assert not output.exists()


def test_a_signed_file_is_copied_if_all_its_code_is_kept(tmp_path: Path) -> None:
    source = signed(tmp_path)
    keep = Prune(keep=tuple(parse_target_id(target) for target in ("gfx906", "gfx90a", "gfx1030")))
    rewrite_device_code(source, tmp_path / "a.dll", keep, Storage())
    assert (tmp_path / "a.dll").read_bytes() == source.read_bytes()
