"""Tests of `rocwheel.device.edit_bundles`."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.binary.bundles.compressed import Method, decompress_bundle
from rocwheel.binary.bundles.device_code import DeviceCode, read_device_code
from rocwheel.binary.bundles.plain import BundlePart
from rocwheel.binary.bundles.storage import BundleSlot, Storage
from rocwheel.binary.bundles.wrappers import read_fat_binary
from rocwheel.binary.code_objects import CodePlace, DeviceCodeError, TargetId, parse_target_id
from rocwheel.core.errors import InputError
from rocwheel.core.reading import join_data
from rocwheel.device.edit_bundles import (
    Prune,
    any_variant_runs,
    bundle_parts,
    device_patch,
    edit_bundle,
    iter_changes,
    list_slots,
    needed_code,
)
from rocwheel.targets.compatibility import covers

if TYPE_CHECKING:
    from rocwheel.binary.bundles.sequence import Bundle
    from rocwheel.device.edit_bundles import BundleEdit
    from tests.support.device_files import Fixture


COMPRESSED = Storage(compress=True)
TWO = ["gfx1030", "gfx906", "gfx90a:xnack+"]


def prune(*targets: str, allow_empty: bool = False) -> Prune:
    return Prune(tuple(map(parse_target_id, targets)), allow_empty)


def read(data: memoryview) -> DeviceCode:
    code = read_device_code(data, name="libx.so")
    assert code is not None
    return code


def rewrite(data: memoryview, edit: BundleEdit | None, storage: Storage) -> memoryview:
    patch = device_patch(data, name="libx.so", edit=edit, storage=storage)
    return memoryview(join_data(patch.apply(data, 0, patch.size))) if patch else data


def bundles_of(data: memoryview) -> list[Bundle]:
    return list(read(data).iter_bundles(data))


def targets_of(data: memoryview) -> list[list[str]]:
    return [list(map(str, bundle.targets)) for bundle in bundles_of(data)]


def raw_bundle(data: memoryview, number: int) -> bytes:
    view, bundle = read(data).view(data), bundles_of(data)[number]
    if bundle.compressed is None:
        return bytes(view[bundle.start : bundle.stop])
    return bytes(decompress_bundle(view[bundle.start :], bundle.compressed, place=bundle.place)[0])


@pytest.mark.parametrize(
    "name", ["v19/libtwo.plain.so", "v22/libtwo.rdc.so", "v23/libtwo.plain.so", "v19/vadd.plain.o"]
)
def test_a_compressed_fat_binary_differs_only_in_its_code_section(fixture: Fixture, name: str) -> None:
    old, new = fixture(name), rewrite(fixture(name), None, COMPRESSED)
    fat = read_fat_binary(old, name="x")
    assert fat is not None
    assert read_fat_binary(new, name="libx.so") == read_fat_binary(old, name="libx.so")
    start, stop = fat.section.offset, fat.section.offset + fat.section.size
    assert (new[:start], new[stop:]) == (old[:start], old[stop:])
    for number, bundle in enumerate(bundles_of(new)):
        assert bundle.compressed is not None
        assert (bundle.compressed.version, bundle.start) == (2, bundles_of(old)[number].start)
        assert raw_bundle(new, number) == raw_bundle(old, number)
        assert not any(bytes(fat.view(new)[bundle.stop : bundle.start + bundles_of(old)[number].size]))


def test_a_single_bundle_file_ends_with_its_bundle_after_compression(fixture: Fixture) -> None:
    new = rewrite(fixture("v22/saxpy.hipfb"), None, Storage(compress=True, version=3))
    [bundle] = bundles_of(new)
    assert bundle.compressed is not None
    assert (bundle.compressed.version, bundle.size) == (3, len(new))


def test_compression_does_not_change_compressed_bundles(fixture: Fixture) -> None:
    data = fixture("v22/libtwo.ccob.so")
    assert rewrite(data, None, COMPRESSED) == data


@pytest.mark.parametrize(
    ("name", "version", "method"),
    [
        ("edge/zlib.v2.ccob", 2, Method.ZLIB),
        ("v22/saxpy.ccob.hipfb", 3, Method.ZSTD),
        ("v18/saxpy.ccob.hipfb", 2, Method.ZSTD),
    ],
    ids=["zlib", "version 3", "version 1 becomes 2"],
)
def test_an_edited_bundle_keeps_its_compression(fixture: Fixture, name: str, version: int, method: Method) -> None:
    new = rewrite(fixture(name), prune("gfx1030", "gfx906"), Storage())
    [bundle] = bundles_of(new)
    assert bundle.compressed is not None
    assert (bundle.compressed.version, bundle.compressed.method) == (version, method)
    assert targets_of(new) == [["gfx1030", "gfx906"]]


@pytest.mark.parametrize(
    ("edit", "storage"), [(prune("gfx906"), Storage()), (None, Storage(compress=True, version=2))], ids=["edit", "anew"]
)
def test_a_wrong_bundle_hash_is_corrected_only_on_request(
    fixture: Fixture, caplog: pytest.LogCaptureFixture, edit: BundleEdit | None, storage: Storage
) -> None:
    data = fixture("edge/zlib.v3.badhash.ccob")
    found = "its header has the hash 0000000000000000, but its content has ceddc72cae1760d9"
    with pytest.raises(DeviceCodeError, match=f"libx.so: bundle 0 at offset 0x0: {found}. The device code may be"):
        rewrite(data, edit, storage)
    new = rewrite(data, edit, msgspec.structs.replace(storage, accept_wrong_hash=True))
    assert caplog.messages == [f"libx.so: bundle 0 at offset 0x0: {found}"]
    assert raw_bundle(new, 0)[:24] == b"__CLANG_OFFLOAD_BUNDLE__"


@pytest.mark.parametrize("name", ["v19/libtwo.plain.so", "v22/libtwo.ccob.so", "edge/two.plain.fatbin"])
def test_pruned_bundles_keep_host_entries_and_the_selected_code(fixture: Fixture, name: str) -> None:
    new = rewrite(fixture(name), prune("gfx90a", "gfx1030"), Storage())
    assert targets_of(new) == [["gfx1030", "gfx90a:xnack+"]] * 2
    old_parts = [bundle_parts(read(fixture(name)).view(fixture(name)), b) for b in bundles_of(fixture(name))]
    new_parts = [bundle_parts(read(new).view(new), b) for b in bundles_of(new)]
    for old, kept in zip(old_parts, new_parts, strict=True):
        assert [part.spelling for part in kept] == [old[0].spelling, old[1].spelling, old[3].spelling]
        assert [join_data(part.payload) for part in kept[1:]] == [bytes(old[1].payload[0]), bytes(old[3].payload[0])]


def test_a_bundle_that_loses_nothing_is_not_rewritten(fixture: Fixture) -> None:
    data = fixture("v22/libtwo.ccob.so")
    assert rewrite(data, prune(*TWO), Storage()) == data


def test_a_bundle_without_code_to_keep_is_refused(fixture: Fixture) -> None:
    message = (
        "libx.so: bundle 0 at offset 0x1000: has no code for any of the targets to keep; expected code "
        "for one of gfx942. "
        "It has code for gfx906, gfx90a:xnack+, gfx1030."
    )
    with pytest.raises(DeviceCodeError, match=re.escape(message)):
        rewrite(fixture("v22/libtwo.plain.so"), prune("gfx942"), Storage())


def test_a_bundle_with_only_empty_entries_is_reported_as_empty(fixture: Fixture) -> None:
    message = "expected code for one of gfx1030. It has no code at all."
    with pytest.raises(DeviceCodeError, match=re.escape(message)):
        rewrite(fixture("edge/zerodev.hipfb"), prune("gfx1030"), Storage())


def test_a_bundle_can_be_left_without_code_on_request(fixture: Fixture) -> None:
    new = rewrite(fixture("v22/libtwo.plain.so"), prune("gfx942", allow_empty=True), Storage())
    assert targets_of(new) == [[], []]


def test_empty_entries_are_removed_with_the_others(fixture: Fixture) -> None:
    new = rewrite(fixture("edge/zerodev.hipfb"), prune("gfx1030", allow_empty=True), Storage())
    assert targets_of(new) == [[]]


def test_a_bundle_with_duplicate_entry_ids_is_refused(fixture: Fixture) -> None:
    message = (
        "bundle 0 at offset 0x0: the entry 'hipv4-amdgcn-amd-amdhsa--gfx1030' occurs more than once; expected unique"
    )
    with pytest.raises(DeviceCodeError, match=re.escape(message)):
        rewrite(fixture("edge/dup.hipfb"), prune("gfx1030"), Storage())


def test_workers_produce_the_same_patch(fixture: Fixture) -> None:
    data = fixture("v22/libtwo.plain.so")
    with ThreadPoolExecutor(2) as executor:
        patch = device_patch(data, name="libx.so", storage=COMPRESSED, executor=executor)
    assert patch == device_patch(data, name="libx.so", storage=COMPRESSED)


@pytest.mark.parametrize(
    ("name", "storage", "version"),
    [
        ("v22/libtwo.ccob.so", Storage(compress=True, rocm="6.2"), 2),
        ("v22/libtwo.ccob.so", Storage(compress=True, rocm="7.1"), 3),
        ("v22/libtwo.ccob.so", Storage(compress=True, version=2), 2),
        ("v22/libtwo.ccob.so", Storage(rocm="6.4"), 2),
        ("v18/libtwo.ccob.so", Storage(compress=True), 2),
        ("v18/libtwo.ccob.so", Storage(), 2),
    ],
    ids=["3 for 6.2", "3 for 7.1", "insisted on 2", "without compression", "1", "1 without compression"],
)
@pytest.mark.parametrize("edit", [None, prune(*TWO), prune("gfx906")], ids=["compress", "keep all", "prune"])
def test_every_compressed_bundle_has_a_version_that_the_runtime_reads(
    fixture: Fixture, name: str, storage: Storage, version: int, edit: BundleEdit | None
) -> None:
    new = rewrite(fixture(name), edit, storage)
    assert [bundle.compressed and bundle.compressed.version for bundle in bundles_of(new)] == [version] * 2
    if edit is None:
        assert [raw_bundle(new, n) for n in (0, 1)] == [raw_bundle(fixture(name), n) for n in (0, 1)]


def test_compressed_bundles_that_the_runtime_cannot_read_are_refused(fixture: Fixture) -> None:
    message = "compressed bundles of version 2, which ROCm 6.1 doesn't read; expected ROCm 6.2 or later."
    with pytest.raises(InputError, match=re.escape(message)):
        rewrite(fixture("v22/libtwo.ccob.so"), None, Storage(compress=True, rocm="6.1"))


def test_plain_bundles_are_compressed_even_if_nothing_is_pruned(fixture: Fixture) -> None:
    new = rewrite(fixture("v22/libtwo.plain.so"), prune(*TWO), COMPRESSED)
    assert [bundle.compressed and bundle.compressed.version for bundle in bundles_of(new)] == [2, 2]


def test_a_plain_result_reuses_the_bytes_of_the_old_file(fixture: Fixture) -> None:
    data = fixture("v22/libtwo.plain.so")
    patch = device_patch(data, name="x", edit=prune("gfx906"), storage=Storage())
    assert patch is not None
    kept = [r.data for r in patch.replacements if len(r.data) > 3000 and any(bytes(r.data))]
    assert [isinstance(code, memoryview) and code.obj is data.obj for code in kept] == [True, True]


class CountingExecutor(ThreadPoolExecutor):
    """Counts what it was given."""

    given = 0

    def submit(self, fn, /, *args, **kwargs):  # type: ignore[no-untyped-def]
        """Count, then do as asked."""
        self.given += 1
        return super().submit(fn, *args, **kwargs)


def test_workers_stay_only_a_few_bundles_ahead(fixture: Fixture) -> None:
    data = memoryview(bytes(fixture("v22/saxpy.hipfb")).ljust(24576, b"\0") * 9)
    code = read(data)
    with CountingExecutor(2) as executor:
        changes = iter_changes(data, code, list_slots(data, code), None, COMPRESSED, executor=executor, jobs=2)
        given = [executor.given for _ in changes]
    assert given == [2, 3, 4, 5, 6, 7, 8, 9, 9]


@pytest.mark.parametrize(("bundles_held", "expected"), [(1, [1, 2, 3, 4]), (2, [2, 3, 4, 4]), (9, [3, 4, 4, 4])])
def test_workers_together_decompress_at_most_the_limit(
    fixture: Fixture, bundles_held: int, expected: list[int]
) -> None:
    one = bytes(fixture("v22/saxpy.ccob.hipfb"))
    data = memoryview(one.ljust(-(-len(one) // 4096) * 4096, b"\0") * 4)
    code = read(data)
    slots = list_slots(data, code)
    storage = Storage(limit=slots[0].bundle.raw_size * bundles_held)
    with CountingExecutor(3) as executor:
        changes = iter_changes(data, code, slots, prune("gfx906"), storage, executor=executor, jobs=3)
        given = [executor.given for _ in changes]
    assert given == expected


@pytest.mark.parametrize("rocm", ["banana", "6.4 or later", "latest"])
def test_an_invalid_rocm_version_is_always_refused(rocm: str) -> None:
    with pytest.raises(InputError, match=f"^ROCm version: '{rocm}'; expected a version such as 6.4$"):
        Storage(rocm=rocm)


def test_a_file_without_device_code_needs_no_patch(fixture: Fixture) -> None:
    assert device_patch(fixture("mach/flags.22"), name="x", storage=COMPRESSED) is None


def test_a_slot_ends_at_the_next_bundle_or_the_section_end(fixture: Fixture) -> None:
    data = fixture("v22/libtwo.plain.so")
    code = read(data)
    assert [slot.stop for slot in list_slots(data, code)] == [0x5000, code.section[1]]


def test_a_bundle_that_outgrows_its_slot_is_refused(fixture: Fixture) -> None:
    data = fixture("v22/libtwo.plain.so")
    bundle = bundles_of(data)[0]
    message = "libx.so: bundle 0 at offset 0x1000: needs 1"
    with pytest.raises(DeviceCodeError, match=re.escape(message)):
        edit_bundle(read(data).view(data), BundleSlot(bundle, bundle.start + 100), None, COMPRESSED)


class AddMany(msgspec.Struct, frozen=True):
    """Adds 90 entries."""

    def __call__(self, parts: tuple[BundlePart, ...], *, place: CodePlace) -> tuple[BundlePart, ...]:
        """Return the entries and 90 more."""
        assert place.bundle == 0
        return (*parts, *(BundlePart(f"hip-amdgcn-amd-amdhsa--gfx{n}", (memoryview(b"x"),)) for n in range(1000, 1090)))


def test_a_plain_bundle_with_a_header_too_long_for_the_runtime_is_refused(fixture: Fixture) -> None:
    message = (
        "expected at most 4096, the part of a plain bundle that the runtime reads. Compress the device code "
        "(--compress)."
    )
    with pytest.raises(DeviceCodeError, match=re.escape(message)):
        rewrite(fixture("v22/saxpy.hipfb"), AddMany(), Storage())
    assert len(targets_of(rewrite(fixture("v22/saxpy.hipfb"), AddMany(), COMPRESSED))[0]) == 96


@pytest.mark.parametrize(
    ("storage", "message"),
    [
        (
            Storage(compress=True, rocm="6.1"),
            "compressed bundles of version 2, which ROCm 6.1 doesn't read; expected ROCm 6.2 or later. Leave",
        ),
        (
            Storage(compress=True, rocm="7.0.2", version=3),
            "compressed bundles of version 3, which ROCm 7.0.2 doesn't read; expected ROCm 7.1 or later. ",
        ),
        (Storage(compress=True, version=1), "header version 1; expected 2 or 3; ROCm doesn't read version 1"),
    ],
    ids=["too old", "too old for 3", "version 1"],
)
def test_a_format_that_the_runtime_does_not_read_is_refused(fixture: Fixture, storage: Storage, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        rewrite(fixture("v22/libtwo.plain.so"), None, storage)


HIP = "hipv4-amdgcn-amd-amdhsa--"
CODE = (memoryview(b"code"),)


def needed(codes: str, keep: str) -> str:
    found = needed_code(map(parse_target_id, codes.split()), [parse_target_id(word) for word in keep.split()])
    return " ".join(code for code in codes.split() if parse_target_id(code) in found)


@pytest.mark.parametrize(
    ("code", "wanted", "is_served"),
    [
        ("gfx90a", "gfx90a", True),
        ("gfx90a:xnack+", "gfx90a", True),
        ("gfx90a", "gfx90a:xnack+", True),
        ("gfx90a:xnack-", "gfx90a:xnack+", False),
        ("gfx90a:sramecc+", "gfx90a:xnack+", True),
        ("gfx9-4-generic", "gfx942", True),
        ("gfx9-4-generic", "gfx90a", False),
        ("gfx942", "gfx9-4-generic", False),
        ("amdgcnspirv", "gfx942", True),
        ("gfx942", "amdgcnspirv", False),
        ("gfx906", "gfx900", False),
    ],
)
def test_code_matches_a_target_if_some_gpu_of_the_target_runs_it(code: str, wanted: str, is_served: bool) -> None:
    assert any_variant_runs(parse_target_id(code), parse_target_id(wanted)) == is_served


@pytest.mark.parametrize(
    ("codes", "keep", "expected"),
    [
        ("gfx90a gfx9-4-generic", "gfx90a gfx942", "gfx90a gfx9-4-generic"),
        ("gfx90a gfx9-4-generic", "gfx942", "gfx9-4-generic"),
        ("gfx942 gfx9-4-generic", "gfx942", "gfx942"),
        ("gfx942 gfx9-4-generic", "gfx942 gfx950", "gfx942 gfx9-4-generic"),
        ("gfx942:xnack+ gfx9-4-generic", "gfx942", "gfx942:xnack+ gfx9-4-generic"),
        ("gfx942:xnack+ gfx9-4-generic", "gfx942:xnack+", "gfx942:xnack+"),
        ("gfx942:xnack+ gfx942:xnack- gfx9-4-generic", "gfx942", "gfx942:xnack+ gfx942:xnack-"),
        ("gfx9-4-generic gfx9-4-generic:xnack+", "gfx942:xnack-", "gfx9-4-generic"),
        ("gfx906 amdgcnspirv", "gfx906", "gfx906"),
        ("gfx906 amdgcnspirv", "gfx1100", "amdgcnspirv"),
        ("gfx906 amdgcnspirv", "amdgcnspirv", "amdgcnspirv"),
        ("gfx906 gfx90a", "gfx90a:xnack+", "gfx90a"),
    ],
)
def test_generic_code_is_kept_while_a_selected_gpu_has_no_specific_code(codes: str, keep: str, expected: str) -> None:
    assert needed(codes, keep) == expected


WORDS = ["gfx90a", "gfx90a:xnack+", "gfx90a:xnack-", "gfx942", "gfx950", "gfx9-4-generic", "amdgcnspirv", "gfx1100"]
IDS = st.sets(st.sampled_from([parse_target_id(word) for word in WORDS]), min_size=1)
GPUS = IDS.map(lambda ids: {target for target in ids if not target.is_generic})


@given(IDS, GPUS)
def test_the_selected_gpus_lose_no_code(codes: set[TargetId], keep: set[TargetId]) -> None:
    left = needed_code(codes, list(keep))
    for wanted in keep:
        assert covers(left, wanted) == covers(codes, wanted)


def test_an_empty_entry_does_not_replace_generic_code() -> None:
    parts = (BundlePart(HIP + "gfx9-4-generic", CODE), BundlePart(HIP + "gfx942"))
    kept = Prune((parse_target_id("gfx942"),))(parts, place=CodePlace("x"))
    assert [part.spelling for part in kept] == [HIP + "gfx9-4-generic"]
