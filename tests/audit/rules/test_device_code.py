"""Device code: targets in every bundle, versions, compression and compilers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from rocwheel.installed.device_report import MetadataFault
from tests.support.breaches import CORE, USES_CORE, Breach, check_breach, one
from tests.support.trees import code, data, find, library, package, tree

if TYPE_CHECKING:
    from rocwheel.installed.device_report import DeviceReport

NO_TARGET = MetadataFault("has a metadata note without amdhsa.target", ("amdhsa.target",))
AMD_22, AMD_23 = "AMD clang version 22.0.0git (a)", "AMD clang version 23.0.0git (b)"

BREACHES = {
    "device-target-missing": Breach(
        one(library("demo/a.so", device=code(("gfx906", "gfx942"), ("gfx906",)))),
        "demo/a.so",
        "1 of 2 bundles has no code for gfx942: number 1",
    ),
    "device-target-absent": Breach(
        one(library("lib/a.so", device=code(("gfx906",))), owner=package("rocm-sdk-device-gfx942")),
        "rocm_sdk_device_gfx942-1.0-py3-none-manylinux_2_17_x86_64.whl",
        "promises code for gfx942, but has none",
    ),
    "device-target-uneven": Breach(
        one(
            library("demo/a.so", device=code(("gfx906", "gfx1030"))),
            library("demo/b.so", device=code(("gfx906",), ("gfx942",))),
        ),
        "demo/b.so",
        "has no code for gfx1030, but demo/a.so has",
        {"per_file_ignore": {"demo/a.so": ("device-target-uneven",), "demo/b.so": ("device-target-missing",)}},
    ),
    "device-code-versions": Breach(
        one(library("demo/a.so", device=code(("gfx906",), versions=(4, 5)))),
        "demo/a.so",
        "mixes code objects of versions 4, 5",
    ),
    "device-code-plain": Breach(
        one(library("demo/a.so", device=code(("gfx906",), size=5_000_000, compressed=False))),
        "demo/a.so",
        "1 bundle of 5.0 MB is not compressed, although ROCm 6.2 and later can read compressed ones",
    ),
    "kernel-metadata": Breach(
        one(
            library(
                "demo/a.so",
                device=code(("gfx906",), faults=(NO_TARGET,)),
            )
        ),
        "demo/a.so",
        "has a metadata note without amdhsa.target",
    ),
    "device-compilers": Breach(
        one(
            library("demo/a.so", device=code(("gfx906",), compilers=((AMD_22,),))),
            library("demo/b.so", device=code(("gfx906",), compilers=((AMD_23,),))),
        ),
        "demo-1.0-py3-none-manylinux_2_17_x86_64.whl",
        f"contains device code from 2 compilers: {AMD_22} in demo/a.so; {AMD_23} in demo/b.so",
    ),
    "host-compiler": Breach(
        one(library("demo/a.so", compilers=("clang version 18.1.8", AMD_22), device=code(("gfx906",)))),
        "demo/a.so",
        f"has host code from clang version 18.1.8, but device code from {AMD_22}",
    ),
}


@pytest.mark.parametrize("rule", BREACHES)
def test_a_breach_is_found_and_nothing_else(rule: str) -> None:
    check_breach(rule, BREACHES[rule])


@pytest.mark.parametrize(("size", "found"), [((1 << 20) - 1, 0), (1 << 20, 1)])
def test_plain_bundles_are_reported_from_a_mebibyte_on(size: int, found: int) -> None:
    audited = one(library("demo/a.so", device=code(("gfx906",), size=size, compressed=False)))
    assert len(find(audited, select=("device-code-plain",))) == found


@pytest.mark.parametrize(
    ("second", "found"),
    [
        (code(("gfx90a",)), None),
        (code(("gfx90a:xnack+", "gfx90a:xnack-")), None),
        (code(("gfx90a:xnack+",)), "has no code for gfx90a, but demo/a.so has"),
        (code(("gfx942",), is_code_object=True), None),
        (None, None),
    ],
    ids=["the same", "both settings", "one setting", "kernels alone", "no device code"],
)
def test_files_have_code_for_one_set_of_targets(second: DeviceReport | None, found: str | None) -> None:
    other = (
        data("demo/b.co", device=second) if second and second.is_code_object else library("demo/b.so", device=second)
    )
    audited = one(library("demo/a.so", device=code(("gfx90a",))), other)
    findings = find(audited, select=("device-target-uneven",))
    assert [finding.found for finding in findings if finding.file.endswith("b.so")] == ([found] if found else [])


@pytest.mark.parametrize(
    ("bundles", "found"),
    [
        ((("gfx90a",), ("gfx90a:xnack+", "gfx90a:xnack-")), []),
        ((("gfx90a",), ("gfx90a:xnack+",)), ["1 of 2 bundles has no code for gfx90a: number 1"]),
        (
            (("gfx1100", "gfx1101"), ("gfx11-generic",), ("gfx11-generic",)),
            ["1 of 3 bundles has no code for gfx11-generic: number 0"],
        ),
        ((("gfx906",), ("gfx942",)), ["1 of 2 bundles has no code for gfx906: number 1",
                                      "1 of 2 bundles has no code for gfx942: number 0"]),
        ((("gfx906",), (), (), (), (), ()), ["5 of 6 bundles have no code for gfx906: number 1, 2, 3 and 2 more"]),
    ],
    ids=["both settings", "one setting", "a generic target", "others", "many bundles"],
)  # fmt: skip
def test_bundles_may_spell_the_same_targets_in_several_ways(
    bundles: tuple[tuple[str, ...], ...], found: list[str]
) -> None:
    findings = find(one(library("demo/a.so", device=code(*bundles))), select=("device-target-missing",))
    assert sorted(finding.found for finding in findings) == found


@pytest.mark.parametrize(
    ("promised", "there", "is_there"),
    [
        ("gfx90a:xnack+", "gfx90a", True),
        ("gfx1100", "gfx11-generic", True),
        ("gfx11-generic", "gfx1100", False),
        ("gfx90a:xnack+", "gfx90a:xnack-", False),
        ("no target", "gfx90a", False),
    ],
)
def test_a_promised_target_is_there_if_other_code_serves_it(promised: str, there: str, is_there: bool) -> None:
    audited = one(library("demo/a.so", device=code((there,))), owner=package(targets=(promised,)))
    found = [] if is_there else [f"promises code for {promised}, but has none"]
    assert [finding.found for finding in find(audited, select=("device-target-absent",))] == found


def test_libraries_of_the_sdk_may_each_have_targets_of_their_own() -> None:
    files = [library("lib/a.so", device=code(("gfx906",))), library("lib/b.so", device=code(("gfx942",)))]
    rule = ("device-target-uneven",)
    assert find(one(*files, owner=package("rocm-sdk-libraries-gfx94x")), select=rule) == []
    assert len(find(one(*files, owner=package("demo")), select=rule)) == 2


def test_a_target_may_be_carried_as_its_variant_or_by_a_files_name() -> None:
    owner = package("rocm-sdk-device-gfx90a")
    assert find(one(library("lib/a.so", device=code(("gfx90a:xnack+",))), owner=owner)) == []
    assert find(one(data("lib/blas_lib_gfx90a.kpack"), owner=owner)) == []


def test_releases_that_read_no_compressed_code_may_have_it_plain() -> None:
    big = library("demo/a.so", device=code(("gfx906",), size=5_000_000, compressed=False))
    assert find(tree((package(), [big]), (package("rocm-sdk-core", version="6.1.0"), []))) == []


def test_declared_targets_have_to_be_there_with_their_settings() -> None:
    owner = package(targets=("gfx906", "gfx90a:xnack+"))
    found = find(one(library("lib/a.so", device=code(("gfx906", "gfx90a:xnack-"))), owner=owner))
    assert [finding.found for finding in found] == ["promises code for gfx90a:xnack+, but has none"]


@pytest.mark.parametrize(
    ("host", "device", "found"),
    [
        ((AMD_22,), ((AMD_22,),), []),
        ((AMD_22, "GCC: (Debian 12.2.0) 12.2.0"), ((AMD_22,),), []),
        (("clang version 18.1.8", AMD_22), (), [f"clang version 18.1.8, but device code from {AMD_22}"]),
        (("GCC: (GNU) 12.2.0",), ((AMD_22,),), [f"GCC: (GNU) 12.2.0, but device code from {AMD_22}"]),
        ((AMD_22,), ((AMD_23,),), [f"{AMD_22}, but device code from {AMD_23}"]),
        ((), ((AMD_23,),), []),
        (("Linker: LLD 18.1.8",), ((AMD_23,),), []),
        (("clang version 18.1.8",), (), []),
    ],
    ids=["one", "start files", "told by the host code", "GCC alone", "two of AMD", "stripped", "linker", "unknown"],
)
def test_host_code_is_compared_with_what_code_objects_name(
    host: tuple[str, ...], device: tuple[tuple[str, ...], ...], found: list[str]
) -> None:
    file = library("demo/a.so", compilers=host, device=code(("gfx906",), compilers=device))
    findings = find(one(file), select=("host-compiler",))
    assert [finding.found for finding in findings] == [f"has host code from {text}" for text in found]


def test_the_compiler_of_device_libraries_is_not_a_second_one() -> None:
    file = library("demo/a.so", device=code(("gfx906",), compilers=((AMD_22, AMD_23), (AMD_23,))))
    assert find(one(file), select=("device-compilers",)) == []


def test_device_code_is_compared_with_that_of_the_sdk_at_hand() -> None:
    sdk = library("_rocm_sdk_core/lib/libx.so", device=code(("gfx906",), compilers=((AMD_23,),)))
    own = library("demo/a.so", device=code(("gfx906",), compilers=((AMD_22,),)))
    (finding,) = find(tree((USES_CORE, [own]), (CORE, [sdk])), select=("device-compilers",))
    assert finding.found == f"contains device code from {AMD_22} in demo/a.so; the SDK's is from {AMD_23}"
    same = msgspec.structs.replace(own, device=sdk.device)
    assert find(tree((USES_CORE, [same]), (CORE, [sdk])), select=("device-compilers",)) == []
