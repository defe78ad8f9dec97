"""The GPUs that people own and may ask packages for."""

from __future__ import annotations

from rocwheel.targets.catalog import owned_targets


def test_they_have_a_product_and_somebody_builds_rocm_for_them() -> None:
    assert owned_targets() == (
        *("gfx803", "gfx900", "gfx906", "gfx908", "gfx90a", "gfx90c", "gfx942", "gfx950"),
        *("gfx1010", "gfx1011", "gfx1012"),
        *("gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"),
        *("gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153"),
        *("gfx1200", "gfx1201", "gfx1250"),
    )
