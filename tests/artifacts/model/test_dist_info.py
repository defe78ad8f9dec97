"""``dist_info.json`` is read and written."""

from __future__ import annotations

import pytest

from rocwheel.artifacts.model.dist_info import declared_targets, with_declared_targets
from rocwheel.core.errors import InputError


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"{", b'{"dist_amdgpu_targets": 5}', b'{"dist_amdgpu_targets": ["gfx906"]}', b"[" * 100_000],
)
def test_a_declaration_of_another_kind_is_refused(data: bytes) -> None:
    with pytest.raises(InputError, match=r"dist_info|separated by semicolons"):
        declared_targets("dist_info.json", data)


def test_a_file_without_targets_declares_none() -> None:
    assert declared_targets("dist_info.json", b"{}") == ()
    assert declared_targets("dist_info.json", b'{"dist_amdgpu_targets": ""}') == ()


def test_other_fields_stay_when_the_targets_change() -> None:
    data = with_declared_targets("dist_info.json", b'{"a": 1, "dist_amdgpu_targets": "gfx906;gfx942"}', ["gfx942"])
    assert data == b'{"a": 1, "dist_amdgpu_targets": "gfx942"}\n'
