"""Tests of making code for one target pass for another's, with AMD's comgr as the judge."""

from __future__ import annotations

import re
import zipfile
from typing import TYPE_CHECKING

import pytest
from hypothesis import given

from rocwheel.binary.bundles.device_code import device_targets
from rocwheel.binary.bundles.plain import read_offload_bundle
from rocwheel.binary.bundles.sequence import iter_bundles
from rocwheel.binary.bundles.storage import BundleSlot, Storage
from rocwheel.binary.code_objects import CodePlace, DeviceCodeError, parse_target_id
from rocwheel.core.errors import InputError
from rocwheel.core.reading import join_data
from rocwheel.device.edit_bundles import bundle_parts, device_patch, edit_bundle
from rocwheel.device.retarget import Retarget, find_gaps, find_named_members, retarget_code_object, same_code
from rocwheel.targets.retarget_pairs import TargetPair, parse_pairs
from tests.support.bundles import bundle_of
from tests.support.comgr import load_comgr
from tests.support.damage import damaged
from tests.support.places import FIXTURES

if TYPE_CHECKING:
    from pathlib import Path

    from rocwheel.binary.bundles.plain import BundlePart
    from tests.support.device_files import Fixture


PLACE = CodePlace("x.hipfb", 0, 0)


def pair(code: str, agent: str) -> TargetPair:
    return TargetPair(parse_target_id(code), parse_target_id(agent))


def parts_of(data: memoryview) -> tuple[BundlePart, ...]:
    return bundle_parts(data, next(iter_bundles(data, name="x.hipfb")))


def targets_of(parts: tuple[BundlePart, ...]) -> list[str]:
    return [part.spelling.split("-", 5)[-1] for part in parts[1:]]


def retarget(data: memoryview, *pairs: TargetPair, verify: bool = False) -> tuple[BundlePart, ...]:
    return Retarget(pairs, verify)(parts_of(data), place=PLACE)


def payload(parts: tuple[BundlePart, ...], target: str) -> bytes:
    [part] = [part for part in parts if part.spelling.endswith(f"-{target}")]
    return join_data(part.payload)


def test_retargeted_code_matches_the_output_of_the_compiler_for_the_new_target(fixture: Fixture) -> None:
    parts = parts_of(fixture("hip/fam.gfx1030.hipfb"))
    for target in ("gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"):
        made = retarget_code_object(
            memoryview(payload(parts, "gfx1030")), parse_target_id("gfx1030"), parse_target_id(target), place=PLACE
        )
        assert join_data(made) == payload(parts, target)


@pytest.mark.parametrize(
    ("code", "agent", "isa"),
    [
        ("gfx1030", "gfx1031", "amdgcn-amd-amdhsa--gfx1031"),
        ("gfx90a:xnack+", "gfx90a:xnack-", "amdgcn-amd-amdhsa--gfx90a:xnack-"),
        ("gfx906", "gfx900", "amdgcn-amd-amdhsa--gfx900"),
    ],
)
def test_comgr_identifies_a_retargeted_code_object_as_the_new_isa(
    fixture: Fixture, code: str, agent: str, isa: str
) -> None:
    old = memoryview(payload(parts_of(fixture("v16/saxpy.hipfb")), code))
    new = retarget_code_object(old, parse_target_id(code), parse_target_id(agent), place=PLACE)
    assert load_comgr().isa_name(join_data(new)) == isa


def test_comgr_finds_the_retargeted_entry_in_a_plain_bundle(fixture: Fixture) -> None:
    data = fixture("v16/saxpy.hipfb")
    [bundle] = iter_bundles(data, name="x.hipfb")
    edit = Retarget((pair("gfx1030", "gfx1031"),))
    change = edit_bundle(data, BundleSlot(bundle, None), edit, Storage())
    assert change is not None
    changed = b"".join(bytes(replacement.data) for replacement in change.replacements)
    entries = {str(e.target): e for e in read_offload_bundle(memoryview(changed), place=PLACE).device_entries}
    comgr = load_comgr()
    for asked, entry in [("gfx1031", "gfx1031"), ("gfx1030", "gfx1030"), ("gfx90a:sramecc+:xnack-", "gfx90a:xnack-")]:
        found = comgr.look_up(changed, f"amdgcn-amd-amdhsa--{asked}")
        assert found == (entries[entry].offset, entries[entry].size)
    assert comgr.look_up(changed, "amdgcn-amd-amdhsa--gfx1032") == (0, 0)


def test_new_entries_are_inserted_in_order_into_a_sorted_bundle(fixture: Fixture) -> None:
    parts = retarget(fixture("v22/saxpy.hipfb"), pair("gfx906", "gfx90c"), pair("gfx1030", "gfx1031"))
    assert targets_of(parts) == [
        "gfx1030",
        "gfx1031",
        "gfx1100",
        "gfx906",
        "gfx90a:xnack+",
        "gfx90a:xnack-",
        "gfx90c",
        "gfx942",
    ]


def test_new_entries_are_appended_to_an_unsorted_bundle(fixture: Fixture) -> None:
    parts = parts_of(fixture("v22/saxpy.hipfb"))
    unsorted = (parts[0], *reversed(parts[1:]))
    edited = Retarget((pair("gfx1030", "gfx1031"),))(unsorted, place=PLACE)
    assert targets_of(edited)[-2:] == ["gfx1030", "gfx1031"]


def test_a_pair_of_processors_keeps_the_features_of_every_variant(fixture: Fixture) -> None:
    parts = retarget(fixture("v22/saxpy.hipfb"), pair("gfx90a", "gfx908"))
    assert [target for target in targets_of(parts) if "908" in target] == ["gfx908:xnack+", "gfx908:xnack-"]


def test_a_pair_with_features_applies_only_to_that_variant(fixture: Fixture) -> None:
    parts = retarget(fixture("v22/saxpy.hipfb"), pair("gfx90a:xnack-", "gfx908"))
    assert [target for target in targets_of(parts) if "908" in target] == ["gfx908"]


def test_a_bundle_without_matching_code_or_with_the_target_already_is_unchanged(fixture: Fixture) -> None:
    parts = parts_of(fixture("hip/fam.gfx1030.hipfb"))
    assert Retarget((pair("gfx900", "gfx902"),))(parts, place=PLACE) is parts
    assert Retarget((pair("gfx1030", "gfx1031"),), verify=True)(parts, place=PLACE) is parts


def test_verify_reports_code_that_differs(fixture: Fixture) -> None:
    message = (
        "x.hipfb: bundle 0 at offset 0x0: its code for gfx1101 differs from its code for gfx1100; expected the same"
    )
    with pytest.raises(DeviceCodeError, match=re.escape(message)):
        retarget(fixture("hip/fam.gfx1100.hipfb"), pair("gfx1030", "gfx1031"), pair("gfx1100", "gfx1101"), verify=True)


def test_code_that_differs_is_ignored_without_verify(fixture: Fixture) -> None:
    parts = parts_of(fixture("hip/fam.gfx1100.hipfb"))
    assert Retarget((pair("gfx1100", "gfx1101"),))(parts, place=PLACE) is parts


def test_an_empty_entry_is_not_retargeted(fixture: Fixture) -> None:
    parts = parts_of(fixture("edge/zerodev.hipfb"))
    assert "gfx1030" in targets_of(parts)
    assert Retarget((pair("gfx1030", "gfx1031"),), verify=True)(parts, place=PLACE) is parts


def test_an_entry_that_would_make_a_target_ambiguous_is_refused(fixture: Fixture) -> None:
    message = (
        "has code for gfx90a:xnack+, which would make gfx90a ambiguous; expected targets that set the same features"
    )
    with pytest.raises(DeviceCodeError, match=re.escape(message)):
        retarget(fixture("v22/saxpy.hipfb"), pair("gfx906", "gfx90a"))


def test_same_code_compares_code_of_different_targets(fixture: Fixture) -> None:
    parts = parts_of(fixture("hip/fam.gfx900.hipfb"))
    by_target = dict(zip(targets_of(parts), parts[1:], strict=True))
    assert same_code(by_target["gfx900"], by_target["gfx90c"], place=PLACE)
    assert not same_code(by_target["gfx900"], by_target["gfx906"], place=PLACE)


@pytest.mark.parametrize(
    ("name", "code", "agent", "message"),
    [
        ("v16/vadd.cov3.hipfb", "gfx906", "gfx900", "a code object with version 3; expected version 4 or later"),
        (
            "v22/saxpy.hipfb",
            "gfx906",
            "gfx1031",
            "the code for gfx906: a metadata note without enough room to replace 'gfx906' with 'gfx1031'",
        ),
        ("v22/saxpy.hipfb", "gfx1030", "gfx1031:xnack-", "gfx1031 doesn't have the feature xnack"),
        ("v22/saxpy.hipfb", "gfx1030", "gfx1039", "no machine number is known for 'gfx1039'"),
    ],
)
def test_code_that_cannot_be_retargeted_is_refused(
    fixture: Fixture, name: str, code: str, agent: str, message: str
) -> None:
    with pytest.raises(DeviceCodeError, match=re.escape(f"x.hipfb: bundle 0 at offset 0x0: {message}")):
        retarget(fixture(name), pair(code, agent))


def test_a_code_object_for_a_different_target_than_its_entry_is_refused(fixture: Fixture) -> None:
    data = memoryview(payload(parts_of(fixture("v22/saxpy.hipfb")), "gfx1030"))
    message = "a code object for gfx1030; expected a code object for gfx1031, as its entry declares"
    with pytest.raises(DeviceCodeError, match=re.escape(message)):
        retarget_code_object(data, parse_target_id("gfx1031"), parse_target_id("gfx1032"), place=PLACE)


DAMAGED = [(FIXTURES / name).read_bytes() for name in ("v22/saxpy.hipfb", "v22/libtwo.ccob.so", "v23/saxpy.ccob.hipfb")]


def outcome(data: memoryview) -> str:
    edit = Retarget((pair("gfx1030", "gfx1031"), pair("gfx90a", "gfx942")), verify=True)
    try:
        patch = device_patch(data, name="x", edit=edit, storage=Storage(compress=True, level=1, limit=1 << 24))
        if patch is None:
            return "unchanged"
        targets = device_targets(memoryview(join_data(patch.apply(data))), name="x")
    except InputError as e:
        return str(e)
    return "retargeted" if parse_target_id("gfx1031") in targets else "compressed"


@given(damaged(DAMAGED))
def test_damaged_code_is_retargeted_or_refused_with_the_name_of_the_file(content: bytes) -> None:
    result = outcome(memoryview(content))
    assert result in {"unchanged", "retargeted", "compressed"} or result.startswith("x: ")


def test_files_that_are_looked_up_by_name_are_counted_per_folder(tmp_path: Path) -> None:
    wheel = tmp_path / "demo-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in ("a_gfx1030.co", "b_gfx1030.dat", "a_gfx906.co"):
            archive.writestr(f"demo/lib/rocblas/library/{name}", b"")
        archive.writestr("demo/.kpack/x_gfx1030.kpack", b"")
    ways = "libraries look up these files by name. Retarget the folder that the wheel is built from."
    assert find_named_members(wheel, parse_pairs("gfx1030=gfx1031")) == (
        f"{wheel}: demo/.kpack: 1 file for gfx1030 is not offered to any other GPU, because {ways}",
        f"{wheel}: demo/lib/rocblas/library: 2 files for gfx1030 are not offered to any other GPU, because {ways}",
    )
    assert find_named_members(wheel, parse_pairs("gfx1034=gfx1035")) == ()


def write_bundles(path: Path, *bundles: str) -> Path:
    path.write_bytes(b"".join(bundle_of(*bundle.split()) for bundle in bundles))
    return path


def test_no_gap_is_reported_when_all_bundles_have_the_code(tmp_path: Path) -> None:
    path = write_bundles(tmp_path / "x.hipfb", "gfx1030 gfx906", "gfx1030")
    assert find_gaps(path, parse_pairs("gfx1030=gfx1031,gfx1032")) == ()


def test_bundles_without_the_code_are_counted_per_target(tmp_path: Path) -> None:
    path = write_bundles(tmp_path / "x.hipfb", "gfx1030 gfx906", "gfx906", "gfx1031")
    assert find_gaps(path, parse_pairs("gfx1030=gfx1031,gfx1032")) == (
        f"{path}: 1 of 3 bundles has no code for gfx1030, so no code for gfx1031",
        f"{path}: 2 of 3 bundles have no code for gfx1030, so no code for gfx1032",
    )


def test_code_that_is_in_no_bundle_is_an_error(tmp_path: Path) -> None:
    path = write_bundles(tmp_path / "x.hipfb", "gfx906", "gfx90a:xnack+ gfx906")
    message = f"{path}: no code for gfx1030 to offer to other GPUs; expected one of its targets gfx906, gfx90a:xnack+"
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        find_gaps(path, parse_pairs("gfx1030=extended"))


def test_a_variant_that_may_not_be_copied_is_not_offered(tmp_path: Path) -> None:
    path = write_bundles(tmp_path / "x.hipfb", "gfx900:xnack+", "gfx900:xnack-")
    assert find_gaps(path, parse_pairs("gfx900=gfx90c")) == (
        f"{path}: 1 of 2 bundles has no code for gfx900, so no code for gfx90c",
    )


def test_code_that_needs_a_feature_the_other_gpu_lacks_is_an_error(tmp_path: Path) -> None:
    path = write_bundles(tmp_path / "x.hipfb", "gfx90a:xnack+ gfx906")
    message = (
        f"{path}: no code for gfx90a to offer to other GPUs; expected code that doesn't set xnack, which is "
        "off on gfx90c"
    )
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        find_gaps(path, parse_pairs("gfx90a=gfx90c", force=True))
