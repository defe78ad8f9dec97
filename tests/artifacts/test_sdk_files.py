"""Tests of `rocwheel.artifacts.sdk_files`."""

from __future__ import annotations

import re

import pytest

from rocwheel.artifacts.sdk_files import SdkManifest, declared_targets, with_declared_targets
from rocwheel.core.errors import InputError


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"{", b'{"dist_amdgpu_targets": 5}', b'{"dist_amdgpu_targets": ["gfx906"]}', b"[" * 100_000],
)
def test_a_malformed_target_declaration_is_refused(data: bytes) -> None:
    with pytest.raises(InputError, match=r"dist_info|separated by semicolons"):
        declared_targets("dist_info.json", data)


def test_a_declaration_without_targets_declares_no_targets() -> None:
    assert declared_targets("dist_info.json", b"{}") == ()
    assert declared_targets("dist_info.json", b'{"dist_amdgpu_targets": ""}') == ()


def test_other_fields_are_kept_when_the_targets_change() -> None:
    data = with_declared_targets("dist_info.json", b'{"a": 1, "dist_amdgpu_targets": "gfx906;gfx942"}', ["gfx942"])
    assert data == b'{"a": 1, "dist_amdgpu_targets": "gfx942"}\n'


MANIFEST = b"""{
  "the_rock_commit": "89553ce3746eda74ade42557470d25e37c91b6f0",
  "github_run_id": "28066115163",
  "rocm_package_version": "7.14.0a20260624",
  "rocm_version": "7.14.0",
  "submodules": [{"submodule_name": "rocm-systems", "submodule_path": "rocm-systems", "patches": []}],
  "flags": {"KPACK_SPLIT_ARTIFACTS": true, "OTHER": ["of", {"any": "kind"}]}
}"""


def test_the_version_commit_and_flags_of_the_sdk_are_read() -> None:
    manifest = SdkManifest.parse(MANIFEST, "m")
    assert manifest.rocm_version == "7.14.0"
    assert manifest.rocm_package_version == "7.14.0a20260624"
    assert manifest.the_rock_commit == "89553ce3746eda74ade42557470d25e37c91b6f0"
    assert manifest.kpack_split is True


def test_without_flags_the_manifest_says_device_code_is_not_split() -> None:
    assert SdkManifest.parse(b"{}", "m").kpack_split is False


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"{", "is not a usable SDK manifest (Input data was truncated)"),
        (b"[]", "is not a usable SDK manifest (Expected `object`, got `array`)"),
        (b'{"rocm_version": 7}', "is not a usable SDK manifest (Expected `str`, got `int` - at `$.rocm_version`)"),
        (b'{"rocm_version": "\xff"}', "is not a usable SDK manifest ("),
        (b'{"flags": {"KPACK_SPLIT_ARTIFACTS": "ON"}}', "has 'ON' for the flag KPACK_SPLIT_ARTIFACTS"),
    ],
    ids=["truncated", "no object", "wrong type", "no text", "flag of another type"],
)
def test_a_malformed_manifest_is_refused(data: bytes, found: str) -> None:
    with pytest.raises(InputError, match=re.escape(f"base_lib_generic: share/m.json: {found}")):
        SdkManifest.parse(data, "base_lib_generic: share/m.json")
