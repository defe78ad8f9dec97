"""Tests of `rocwheel.device.device_facts`."""

from __future__ import annotations

import re
import struct
import tracemalloc
from typing import TYPE_CHECKING

import pytest
from hypothesis import given

from rocwheel.binary.bundles.compressed import Method, compress_bundle
from rocwheel.binary.bundles.plain import BundlePart, write_offload_bundle
from rocwheel.binary.bundles.sequence import iter_bundles
from rocwheel.binary.bundles.storage import Storage
from rocwheel.binary.bundles.wrappers import read_fat_binary
from rocwheel.binary.code_objects import TargetId
from rocwheel.binary.kpack.archive import Scheme
from rocwheel.core.errors import InputError, RocwheelError
from rocwheel.core.reading import join_data
from rocwheel.device.device_facts import Look, list_device_code, read_device_facts
from rocwheel.device.edit_bundles import Prune, bundle_parts, device_patch
from rocwheel.device.inspection import inspect_paths, summarize_targets
from tests.support.damage import damaged
from tests.support.kpack_files import SPLIT_NAME, make_kpack, split_two
from tests.support.libraries import needs_compiler
from tests.support.places import FIXTURES

if TYPE_CHECKING:
    from pathlib import Path

    from rocwheel.device.device_facts import DeviceFacts


CODE = (FIXTURES / "elf/gfx906.co").read_bytes()


def test_an_archive_is_described_with_its_entries(tmp_path: Path) -> None:
    path = tmp_path / "x.kpack"
    path.write_bytes(make_kpack({("lib/a.so", 0, "gfx906|gfx906:xnack-"): CODE}, scheme=Scheme.NONE))
    facts = list_device_code(path)
    assert (facts.container, facts.wrappers, facts.problems) == ("kpack archive", 0, ())
    assert facts.kpack is not None
    [archive] = facts.kpack.archives
    assert (archive.group, archive.family, archive.scheme, archive.targets, archive.code_objects) == (
        "group", "gfx906", "none", ("gfx906", "gfx906:xnack-"), 1)  # fmt: skip
    assert [(entry.id, entry.target, entry.size, entry.is_shared) for entry in facts.entries] == [
        ("lib/a.so#0", "gfx906:xnack-", len(CODE), False),
        ("lib/a.so#0", "gfx906", len(CODE), True),
    ]


def test_a_code_object_for_several_targets_is_counted_once(tmp_path: Path) -> None:
    path = tmp_path / "x.kpack"
    path.write_bytes(make_kpack({("lib/a.so", 0, "gfx906|gfx906:xnack-"): CODE}))
    facts = list_device_code(path)
    assert facts.raw_size == len(CODE)
    assert 0 < facts.size < len(CODE)
    assert [(t.target, t.size, t.bundles, t.missing) for t in summarize_targets(facts)] == [
        ("gfx906", len(CODE), 1, 0),
        ("gfx906:xnack-", len(CODE), 1, 0),
    ]


@pytest.mark.parametrize(("scheme", "deep", "kernels"), [
    (Scheme.NONE, False, 1), (Scheme.ZSTD, False, None), (Scheme.ZSTD, True, 1)])  # fmt: skip
def test_kernels_are_counted_if_code_is_uncompressed_or_deep_is_set(
    scheme: Scheme, deep: bool, kernels: int | None
) -> None:
    data = make_kpack({("lib/a.so", 0, "gfx906"): CODE}, scheme=scheme)
    facts = read_device_facts(memoryview(data), name="x.kpack", look=Look(deep=deep))
    assert facts is not None
    assert [entry.kernels for entry in facts.entries] == [kernels]


def test_code_for_another_processor_is_a_problem() -> None:
    data = make_kpack({("lib/a.so", 0, "gfx908"): CODE})
    facts = read_device_facts(memoryview(data), name="x.kpack", look=Look(deep=True))
    assert facts is not None
    [problem] = facts.problems
    assert problem.startswith("x.kpack: offset 0x48: lib/a.so#0 for gfx908 contains code for gfx906")


def test_a_key_without_code_for_a_target_of_the_archive_is_a_problem() -> None:
    data = make_kpack({("a", 0, "gfx906|gfx906:xnack-"): CODE, ("a", 1, "gfx906"): CODE, ("b", 0, "gfx906"): CODE})
    facts = read_device_facts(memoryview(data), name="x.kpack")
    assert facts is not None
    assert facts.problems == (
        (
            "x.kpack: no code for gfx906:xnack- under a#1 and 1 other key, but an archive lists the target: "
            "runtimes reject the library on this GPU, and some runtimes reject it on every GPU"
        ),
    )


def test_damaged_code_is_an_error_or_a_problem() -> None:
    data = bytearray(make_kpack({("a", 0, "gfx906"): CODE}))
    data[80:90] = bytes(10)
    with pytest.raises(InputError, match=r"^x.kpack: offset 0x48: a damaged zstd frame"):
        read_device_facts(memoryview(data), name="x.kpack", look=Look(deep=True))
    facts = read_device_facts(memoryview(data), name="x.kpack", look=Look(deep=True, strict=False))
    assert facts is not None
    assert facts.problems[0].startswith("x.kpack: offset 0x48: a damaged zstd frame")


@needs_compiler
def test_a_split_library_is_described_with_its_archives(tmp_path: Path) -> None:
    library = split_two(tmp_path)
    facts = list_device_code(library)
    assert (facts.container, facts.wrappers, facts.problems) == ("kpacked fat binary", 2, ())
    assert facts.kpack is not None
    assert [unit.key for unit in facts.kpack.wrappers] == [f"{SPLIT_NAME}#0", f"{SPLIT_NAME}#1"]
    assert [archive.path for archive in facts.kpack.archives] == [
        str(tmp_path / f".kpack/two_{target}.kpack") for target in ("gfx1030", "gfx906", "gfx90a")
    ]
    assert [(t.target, t.bundles, t.missing) for t in summarize_targets(facts)] == [
        (target, 2, 0) for target in ("gfx906", "gfx906:xnack+", "gfx906:xnack-", "gfx90a:xnack+", "gfx1030")
    ]


@needs_compiler
def test_archives_are_not_searched_for_a_library_in_memory(tmp_path: Path) -> None:
    library = split_two(tmp_path)
    facts = read_device_facts(memoryview(library.read_bytes()), name=str(library))
    assert facts is not None
    assert (facts.container, facts.wrappers, facts.entries, facts.problems) == ("kpacked fat binary", 2, (), ())


@needs_compiler
def test_a_marker_with_missing_archives_is_a_problem(tmp_path: Path) -> None:
    library = split_two(tmp_path)
    for archive in (tmp_path / ".kpack").iterdir():
        archive.unlink()
    assert list_device_code(library).problems == (
        f"{library}: the code is in kpack archives that don't exist: ../.kpack/two_@GFXARCH@.kpack",
    )


@needs_compiler
def test_a_damaged_archive_is_a_problem_of_its_library(tmp_path: Path) -> None:
    library = split_two(tmp_path)
    archive = tmp_path / ".kpack/two_gfx906.kpack"
    archive.write_bytes(archive.read_bytes()[:-9])
    facts = list_device_code(library)
    assert [problem.partition(": MessagePack")[0] for problem in facts.problems] == [f"{archive}: offset 0xa2b"]
    assert [(t.target, t.bundles) for t in summarize_targets(facts)] == [("gfx90a:xnack+", 2), ("gfx1030", 2)]


@needs_compiler
def test_a_unit_that_lacks_a_target_another_unit_has_is_a_problem(tmp_path: Path) -> None:
    library = split_two(tmp_path, lost=[(1, "gfx1030")])
    assert list_device_code(library).problems == (
        (
            f"{library}: no code for gfx1030 under {SPLIT_NAME}#1, but an archive lists the target: runtimes "
            "reject the library on this GPU, and some runtimes reject it on every GPU"
        ),
    )


@needs_compiler
def test_unit_indices_numbered_separately_for_each_target_are_detected(tmp_path: Path) -> None:
    library = split_two(tmp_path, lost=[(0, "gfx1030"), (0, "gfx90a:xnack+")], renumber=True)
    wrong = [problem for problem in list_device_code(library).problems if " belongs to " in problem]
    assert wrong == [
        (
            f"{tmp_path}/.kpack/two_{name}.kpack: the code stored as {SPLIT_NAME}#0 for {target} belongs to "
            f"{SPLIT_NAME}#1: some releases of AMD's tool number units separately for each target"
        )
        for name, target in (("gfx1030", "gfx1030"), ("gfx90a", "gfx90a:xnack+"))
    ]


@needs_compiler
def test_archives_in_a_folder_are_inspected_like_any_binary(tmp_path: Path) -> None:
    split_two(tmp_path)
    found = {
        facts.path.rpartition("/")[2]: facts.device.container for facts in inspect_paths([tmp_path]) if facts.device
    }
    assert found == {
        "libtwo.so": "kpacked fat binary",
        "two_gfx1030.kpack": "kpack archive",
        "two_gfx906.kpack": "kpack archive",
        "two_gfx90a.kpack": "kpack archive",
    }


KERNELS = {("a", 0, "gfx906|gfx906:xnack-"): CODE, ("b", 1, "gfx906"): CODE}


@given(damaged([make_kpack(KERNELS, scheme=scheme) for scheme in Scheme]))
def test_a_damaged_archive_produces_facts_or_an_error_that_names_it(content: bytes) -> None:
    try:
        read_device_facts(memoryview(content), name="x.kpack", look=Look(deep=True, limit=1 << 24))
    except RocwheelError as e:
        assert str(e).startswith("x.kpack")  # noqa: PT017


@needs_compiler
def test_a_damaged_library_produces_facts_or_an_error_that_names_it(tmp_path: Path) -> None:
    library = split_two(tmp_path)

    @given(damaged([library.read_bytes()]))
    def check(content: bytes) -> None:
        try:
            read_device_facts(memoryview(content), name="libtwo.so", folder=library.parent)
        except RocwheelError as e:
            assert str(e).startswith("libtwo.so")  # noqa: PT017

    check()


NAMES = ["v22/libtwo.plain.so", "v22/libtwo.rdcccob.so", "v19/vadd.plain.o", "v23/saxpy.rdc.o", "v22/saxpy.ccob.hipfb"]
EDIT = Prune((TargetId("gfx1030"),))


def facts_of(name: str, *, deep: bool = False) -> DeviceFacts:
    facts = read_device_facts(memoryview((FIXTURES / name).read_bytes()), name=name, look=Look(deep=deep))
    assert facts is not None
    return facts


@pytest.mark.parametrize(
    ("name", "container", "wrappers", "bundles"),
    [
        ("v22/libtwo.plain.so", "fat binary", 2, 2),
        ("v22/libtwo.rdc.so", "fat binary", 2, 1),
        ("v23/saxpy.rdc.o", "object file", 0, 0),
        ("v22/saxpy.ccob.hipfb", "bundles", 0, 1),
    ],
)
def test_the_container_is_reported(name: str, container: str, wrappers: int, bundles: int) -> None:
    facts = facts_of(name)
    assert (facts.container, facts.wrappers, len(facts.bundles)) == (container, wrappers, bundles)


def test_sizes_and_kernels_are_summed_for_each_target() -> None:
    [first, *_] = summarize_targets(facts_of("v22/libtwo.plain.so"))
    assert (first.target, first.bundles, first.missing, first.size, first.stored_size, first.kernels) == (
        "gfx906",
        2,
        0,
        7120,
        7120,
        2,
    )


def test_compressed_bundles_are_read_only_with_deep() -> None:
    shallow, deep = (summarize_targets(facts_of("v22/libtwo.ccob.so", deep=deep))[0] for deep in (False, True))
    assert (shallow.stored_size, shallow.kernels) == (None, None)
    assert deep.stored_size is not None
    assert (0 < deep.stored_size < deep.size, deep.kernels) == (True, 2)


@pytest.mark.parametrize("name", ["v22/libtwo.plain.so", "v22/saxpy.ccob.hipfb"])
def test_facts_without_code_have_the_same_sizes_and_no_kernels(name: str) -> None:
    brief = read_device_facts(memoryview((FIXTURES / name).read_bytes()), name=name, look=Look(code=False))
    assert brief is not None
    pairs = [
        (bundle.entries, other.entries) for bundle, other in zip(brief.bundles, facts_of(name).bundles, strict=True)
    ]
    assert [[(one.target, one.size) for one in entries] for entries, _ in pairs] == [
        [(one.target, one.size) for one in others] for _, others in pairs
    ]
    assert {entry.kernels for entries, _ in pairs for entry in entries} == {None}


@pytest.mark.parametrize("target", [64, 0x77777], ids=["inside a bundle", "outside of the section"])
def test_a_wrapper_that_does_not_point_to_a_bundle_is_reported(target: int) -> None:
    data = bytearray((FIXTURES / "v22/libtwo.plain.so").read_bytes())
    fat = read_fat_binary(memoryview(data), name="libx.so")
    assert fat is not None
    [first, _] = fat.wrappers
    assert first.pointer.stored_at is not None
    address = fat.section.address + target
    data[first.pointer.stored_at : first.pointer.stored_at + 8] = address.to_bytes(8, "little")
    facts = read_device_facts(memoryview(data), name="libx.so")
    assert facts is not None
    assert len(facts.bundles) == 2
    found = f"libx.so: the wrapper at {first.offset:#x} points to address {address:#x}, not to a bundle"
    assert facts.problems == (found,)


@pytest.mark.slow
def test_checking_a_bundle_does_not_keep_it_in_memory() -> None:
    zeros = memoryview(bytes(1 << 20))
    raw = write_offload_bundle((BundlePart("hipv4-amdgcn-amd-amdhsa--gfx1030", (zeros,) * 300),))
    data = memoryview(compress_bundle(list(raw), version=3, level=1, method=Method.ZLIB))
    tracemalloc.start()
    try:
        facts = read_device_facts(data, name="x", look=Look(deep=True))
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()
    assert facts is not None
    assert facts.problems == ()
    assert [(entry.size, entry.kernels) for entry in facts.bundles[0].entries] == [(300 << 20, None)]


def test_a_bundle_with_a_wrong_hash_is_reported_and_its_kernels_are_counted() -> None:
    data = bytearray((FIXTURES / "v22/saxpy.ccob.hipfb").read_bytes())
    data[24:32] = bytes(8)
    facts = read_device_facts(memoryview(data), name="x", look=Look(deep=True))
    assert facts is not None
    assert [entry.kernels for entry in facts.bundles[0].entries] == [1] * 6
    [problem] = facts.problems
    assert problem.startswith("x: bundle 0 at offset 0x0: its header has the hash 0000000000000000, ")


def bundle_with_headers_reversed(parts: dict[str, bytes]) -> bytes:
    """Return a bundle whose entries stand in the header in another order than their payloads."""
    places = {name: 4096 + (len(code) + 4096) * number for number, (name, code) in enumerate(parts.items())}
    data = bytearray(b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(parts)))
    for name, code in reversed(parts.items()):
        spelling = f"hipv4-amdgcn-amd-amdhsa--{name}".encode()
        data += struct.pack("<QQQ", places[name], len(code), len(spelling)) + spelling
    for name, code in parts.items():
        data = data.ljust(places[name], b"\0") + code
    return bytes(data)


def test_payloads_can_be_in_a_different_order_than_their_entries() -> None:
    source = memoryview((FIXTURES / "v22/saxpy.hipfb").read_bytes())
    parts = bundle_parts(source, next(iter_bundles(source, name="")))
    payloads = {part.spelling.rpartition("--")[2]: join_data(part.payload) for part in parts}
    codes = {name: payloads[name].ljust(900_000, b"\0") for name in ("gfx1030", "gfx906", "gfx942")}
    raw = memoryview(bundle_with_headers_reversed(codes))
    data = memoryview(compress_bundle([raw], version=3, level=1))
    facts = read_device_facts(data, name="x", look=Look(deep=True))
    assert facts is not None
    assert facts.problems == ()
    assert [(e.target, e.kernels) for e in facts.bundles[0].entries] == [("gfx942", 1), ("gfx906", 1), ("gfx1030", 1)]


@pytest.mark.parametrize(("name", "is_told"), [("v22/saxpy.hipfb", True), ("v16/vadd.cov3.hipfb", False)])
def test_an_entry_whose_code_has_other_features_is_reported_if_flags_encode_them(name: str, *, is_told: bool) -> None:
    source = memoryview((FIXTURES / name).read_bytes())
    parts = bundle_parts(source, next(iter_bundles(source, name="")))
    renamed = [BundlePart(re.sub("gfx906$", "gfx906:xnack-", part.spelling), part.payload) for part in parts]
    facts = read_device_facts(memoryview(join_data(write_offload_bundle(renamed))), name="x")
    assert facts is not None
    problem = "x: bundle 0 at offset 0x0: the entry 'hipv4-amdgcn-amd-amdhsa--gfx906:xnack-' contains code for gfx906"
    assert facts.problems == ((problem,) if is_told else ())


@pytest.mark.parametrize("is_bundled", [True, False], ids=["bundle", "code object"])
def test_damage_within_a_code_object_does_not_prevent_listing_it(tmp_path: Path, *, is_bundled: bool) -> None:
    data = memoryview((FIXTURES / "v22/saxpy.hipfb").read_bytes())
    entry = next(iter_bundles(data, name="")).plain.device_entries[0]
    code = bytearray(data[entry.offset : entry.stop])
    code[0x238 + 20] = 0xC1
    path = tmp_path / "x.co"
    path.write_bytes(b"".join([data[: entry.offset], code, data[entry.stop :]]) if is_bundled else code)
    facts = list_device_code(path)
    entries = facts.bundles[0].entries if is_bundled else facts.entries
    assert [e.kernels for e in entries] == [None, *([1] * (len(entries) - 1))]
    where = f"{path}: bundle 0 at offset 0x0: " if is_bundled else f"{path}: offset 0x0: "
    [problem] = facts.problems
    assert problem.startswith(f"{where}a metadata note that isn't valid MessagePack for a code object (")
    with pytest.raises(InputError, match=re.escape(problem)):
        read_device_facts(memoryview(path.read_bytes()), name=str(path))


def outcome(data: bytes) -> str:
    try:
        read_device_facts(memoryview(data), name="libx.so", look=Look(deep=True))
        device_patch(memoryview(data), name="libx.so", edit=EDIT, storage=Storage(level=1, limit=1 << 24))
    except InputError as e:
        return str(e)
    return "read"


@given(damaged([(FIXTURES / name).read_bytes() for name in NAMES]))
def test_a_damaged_file_produces_facts_or_one_error_that_names_it(data: bytes) -> None:
    result = outcome(data)
    assert result == "read" or result.startswith("libx.so")
