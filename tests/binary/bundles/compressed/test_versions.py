"""Which HIP runtime a library needs, by its name on either system."""

from __future__ import annotations

import pytest

from rocwheel.binary.bundles.compressed.versions import find_runtime


@pytest.mark.parametrize(
    ("needed", "first"),
    [
        (["libc.so.6", "libamdhip64.so.6"], "6.0"),
        (["KERNEL32.dll", "amdhip64_7.dll"], "7.0"),
        (["AMDHIP64_6.DLL"], "6.0"),
        (["amdhip64.dll"], "5.0"),
        (["amdhip64_99.dll"], None),
        ([], None),
        ([""], None),
    ],
)
def test_a_runtime_is_known_by_its_soname_or_file_name(needed: list[str], first: str | None) -> None:
    runtime = find_runtime(needed)
    assert (runtime.first if runtime else None) == first
