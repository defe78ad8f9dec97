"""The common set that is taken if nobody names one."""

from __future__ import annotations

import pytest

from rocwheel.binary.code_objects import parse_target_id
from rocwheel.device.splitting.overlays.common import default_common


@pytest.mark.parametrize(
    ("codes", "common"),
    [
        pytest.param("gfx906 gfx1030 gfx11-generic gfx9-generic", "gfx9-generic gfx11-generic", id="generic targets"),
        pytest.param("gfx803 gfx90a:xnack+ gfx1030 gfx906", "gfx1030", id="the one whose code the most GPUs can use"),
        pytest.param("gfx908 gfx906", "gfx908", id="of equal ones the newest"),
        pytest.param("gfx906:xnack-", "gfx906", id="whatever its features"),
        pytest.param("amdgcnspirv", "", id="none of SPIR-V alone"),
        pytest.param("", "", id="none without code"),
    ],
)
def test_the_common_set_is_little_code_for_many_gpus(codes: str, common: str) -> None:
    found = default_common(map(parse_target_id, codes.split()))
    assert [str(target) for target in found] == common.split()
