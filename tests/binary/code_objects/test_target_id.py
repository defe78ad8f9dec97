"""Tests of target ids and bundle entry ids."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.binary.code_objects.target_id import BundleEntryId, TargetId, parse_target_id, processor_of
from rocwheel.core.errors import InputError

SETTINGS = st.sampled_from([None, True, False])
TARGETS = st.builds(
    TargetId, st.sampled_from(["gfx906", "gfx90a", "gfx9-4-generic", "amdgcnspirv"]), sramecc=SETTINGS, xnack=SETTINGS
)


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("gfx1030", TargetId("gfx1030")),
        ("gfx90a:xnack-", TargetId("gfx90a", xnack=False)),
        ("gfx90a:xnack+:sramecc-", TargetId("gfx90a", sramecc=False, xnack=True)),
        ("gfx9-4-generic:xnack+", TargetId("gfx9-4-generic", xnack=True)),
    ],
)
def test_target_id_is_parsed(text: str, target: TargetId) -> None:
    assert parse_target_id(text) == target


def test_features_are_printed_in_canonical_order() -> None:
    assert str(parse_target_id("gfx90a:xnack+:sramecc-")) == "gfx90a:sramecc-:xnack+"


@given(TARGETS)
def test_printed_target_id_parses_to_the_same(target: TargetId) -> None:
    assert parse_target_id(str(target)) == target


@given(TARGETS, st.sampled_from(["hip", "hipv4", "openmp"]))
def test_printed_entry_id_parses_to_the_same(target: TargetId, kind: str) -> None:
    entry = BundleEntryId(kind, "amdgcn-amd-amdhsa-", target)
    assert BundleEntryId.parse(str(entry)) == entry


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "the processor ''"),
        ("GFX906", "the processor 'GFX906'"),
        ("gfx906-", "the processor 'gfx906-'"),
        ("gfx906:xnack", "the feature 'xnack'"),
        ("gfx906:tgsplit+", "the feature 'tgsplit+'"),
        ("gfx906:xnack+:xnack-", "xnack, which is given twice"),
        ("gfx906:", "the feature ''"),
    ],
)
def test_bad_target_id_is_refused_with_the_part_at_fault(text: str, part: str) -> None:
    message = (
        f"--keep: {text!r} is not a target id because of {part}; expected a processor and at most one each of sramecc "
        "and xnack, such as gfx90a:sramecc+:xnack-"
    )
    with pytest.raises(InputError, match=re.escape(message)):
        parse_target_id(text, source="--keep")


@pytest.mark.parametrize(
    ("text", "kind", "triple", "target"),
    [
        ("hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-", "hipv4", "amdgcn-amd-amdhsa-", TargetId("gfx90a", xnack=False)),
        ("hip-amdgcn-amd-amdhsa-unknown-gfx906", "hip", "amdgcn-amd-amdhsa-unknown", TargetId("gfx906")),
        ("hipv4-amdgcn-amd-amdhsa--gfx9-4-generic", "hipv4", "amdgcn-amd-amdhsa-", TargetId("gfx9-4-generic")),
        ("hipv4-spirv64-amd-amdhsa--amdgcnspirv", "hipv4", "spirv64-amd-amdhsa-", TargetId("amdgcnspirv")),
        ("host-x86_64-unknown-linux", "host", "x86_64-unknown-linux", None),
        ("host-x86_64-unknown-linux--", "host", "x86_64-unknown-linux", None),
        ("host-x86_64-pc-linux-gnu-", "host", "x86_64-pc-linux-gnu", None),
    ],
)
def test_entry_id_of_every_compiler_is_parsed(text: str, kind: str, triple: str, target: TargetId | None) -> None:
    assert BundleEntryId.parse(text) == BundleEntryId(kind, triple, target)


@pytest.mark.parametrize("text", ["", "gfx906", "hipv4-amdgcn-amd-amdhsa-gfx906", "cuda-a-b-c--gfx906", "host"])
def test_text_that_is_not_an_entry_id_is_refused(text: str) -> None:
    message = (
        f"libx.so: {text!r} is not a bundle entry id; expected host-TRIPLE or KIND-ARCH-VENDOR-OS-ENVIRONMENT-TARGET, "
        "KIND being hip, hipv4 or openmp"
    )
    with pytest.raises(InputError, match=re.escape(message)):
        BundleEntryId.parse(text, source="libx.so")


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        pytest.param("gfx90a", "gfx90a", id="plain"),
        pytest.param("gfx90a:xnack+", "gfx90a", id="with a feature"),
        pytest.param("gfx90a:sramecc-:xnack+", "gfx90a", id="with two features"),
        pytest.param("gfx9-4-generic:xnack-", "gfx9-4-generic", id="generic"),
    ],
)
def test_the_processor_of_a_target_id_has_no_features(target: str, expected: str) -> None:
    assert processor_of(target) == expected


@pytest.mark.parametrize(
    ("entry", "new", "renamed"),
    [
        ("hipv4-amdgcn-amd-amdhsa--gfx1030", "gfx1031", "hipv4-amdgcn-amd-amdhsa--gfx1031"),
        ("hip-amdgpu10.30-amd-amdhsa--gfx1030", "gfx1031", "hip-amdgpu10.31-amd-amdhsa--gfx1031"),
        ("hip-amdgpu9-amd-amdhsa--gfx9-generic", "gfx900", "hip-amdgpu9.00-amd-amdhsa--gfx900"),
        ("hip-amdgpu10.1-amd-amdhsa--gfx10-1-generic", "gfx1010", "hip-amdgpu10.10-amd-amdhsa--gfx1010"),
        ("hip-amdgpu12.50-amd-amdhsa--gfx1250", "gfx1250-strict", "hip-amdgpu12.50-amd-amdhsa--gfx1250-strict"),
    ],
)
def test_the_id_of_code_for_another_target_has_its_processor_everywhere(entry: str, new: str, renamed: str) -> None:
    assert str(BundleEntryId.parse(entry).retargeted(parse_target_id(new))) == renamed
