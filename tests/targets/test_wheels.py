"""What wheels say and hold about GPU targets."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rocwheel.binary.target_id import TargetId
from rocwheel.distributions.wheel_targets import read_wheel_facts
from rocwheel.errors import InputError
from rocwheel.targets.coherence import Carrier
from rocwheel.targets.declaration import encode_declaration
from rocwheel.targets.wheels import WheelFacts, carriers_of

MakeWheel = Callable[..., Path]
MakeBundle = Callable[..., bytes]
GFX906, GFX1030 = TargetId("gfx906"), TargetId("gfx1030")


def test_targets_come_from_the_binaries(make_wheel: MakeWheel, make_bundle: MakeBundle) -> None:
    members = {"x/a.hsaco": make_bundle("gfx1030", "gfx90a:xnack+"), "x/b.co": make_bundle("gfx906"), "x/c.py": b""}
    facts = read_wheel_facts(make_wheel("My.Lib", members))
    assert facts.name == "my-lib"
    assert facts.targets == (GFX906, TargetId("gfx90a", xnack=True), GFX1030)
    assert facts.roots == frozenset({"x"})


def test_a_kpack_file_names_its_target(make_wheel: MakeWheel) -> None:
    members = {"x/.kpack/blas_lib_gfx90a:xnack+.kpack": b"KPAK"}
    assert read_wheel_facts(make_wheel("x", members)).targets == (TargetId("gfx90a", xnack=True),)


def test_a_kpack_file_for_a_gpu_newer_than_the_catalogue_names_it(make_wheel: MakeWheel) -> None:
    assert read_wheel_facts(make_wheel("x", {"x/blas_lib_gfx1999.kpack": b""})).targets == (TargetId("gfx1999"),)


def test_a_kpack_file_that_names_no_gpu_is_refused(make_wheel: MakeWheel) -> None:
    wheel = make_wheel("x", {"x/blas_lib_generic.kpack": b""})
    with pytest.raises(InputError, match=re.escape(f"{wheel}!x/blas_lib_generic.kpack: 'generic' is no known GPU")):
        read_wheel_facts(wheel)


def test_a_declaration_that_agrees_is_fine(make_wheel: MakeWheel, make_bundle: MakeBundle) -> None:
    wheel = make_wheel("x", {"x/a.co": make_bundle("gfx906")}, declaration=encode_declaration([GFX906]))
    assert read_wheel_facts(wheel).targets == (GFX906,)


def test_a_declaration_that_differs_from_the_binaries_is_refused(
    make_wheel: MakeWheel, make_bundle: MakeBundle
) -> None:
    wheel = make_wheel("x", {"x/a.co": make_bundle("gfx906")}, declaration=encode_declaration([GFX906, GFX1030]))
    message = (
        f"{wheel}: declares gfx906, gfx1030, but its binaries carry gfx906. "
        "Build it anew: the declaration has to be read back from the binaries."
    )
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        read_wheel_facts(wheel)


def test_requirements_are_followed_through_packages_and_extras(make_wheel: MakeWheel) -> None:
    wheels = [
        make_wheel("jax", {"jax/x": b""}, ["rocm[libraries]==1.0"]),
        make_wheel("rocm", {"rocm/x": b""}, ["rocm-core", "blas; extra == 'libraries'", "dev; extra == 'devel'"]),
        make_wheel("rocm-core", {"core/x": b""}),
        make_wheel("blas", {"blas/x": b""}),
        make_wheel("dev", {"dev/x": b""}),
    ]
    carriers = carriers_of([read_wheel_facts(wheel) for wheel in wheels])
    assert carriers[0].requires == ("blas", "rocm", "rocm-core")
    assert carriers[1].requires == ("rocm-core",)


def test_requirements_that_are_not_given_are_named_and_not_followed(make_wheel: MakeWheel) -> None:
    wheels = [make_wheel("a", {"a/x": b""}, ["b", "numpy", "c; extra == 'x'"]), make_wheel("b", {"b/x": b""}, ["d"])]
    assert [c.requires for c in carriers_of([read_wheel_facts(w) for w in wheels])] == [("b", "d", "numpy"), ("d",)]


def test_wheels_of_one_package_that_carry_and_need_the_same_count_once() -> None:
    wheels = [WheelFacts(f"{tag}.whl", "a", ("b",), (GFX906,), frozenset("a")) for tag in ("cp311", "cp312")]
    assert carriers_of(wheels) == [Carrier("a", (GFX906,), ("b",))]
    other = WheelFacts("cp313.whl", "a", ("b",), (GFX1030,), frozenset("a"))
    assert carriers_of([*wheels, other]) == [Carrier("a", (GFX906,), ("b",)), Carrier("a", (GFX1030,), ("b",))]


def test_packages_that_need_one_another_are_followed_once(make_wheel: MakeWheel) -> None:
    wheels = [make_wheel("a", {"a/x": b""}, ["b"]), make_wheel("b", {"b/x": b""}, ["a"])]
    assert [carrier.requires for carrier in carriers_of([read_wheel_facts(w) for w in wheels])] == [("b",), ("a",)]


def test_a_wheel_that_lies_in_the_folders_of_one_it_needs_completes_it(make_wheel: MakeWheel) -> None:
    libraries = make_wheel("rocm-sdk-libraries", {"_libraries/__init__.py": b"", "libraries/__init__.py": b""})
    device = make_wheel("rocm-sdk-device-gfx906", {"_libraries/.kpack/x_lib_gfx906.kpack": b""}, ["rocm-sdk-libraries"])
    carriers = carriers_of([read_wheel_facts(libraries), read_wheel_facts(device)])
    assert [carrier.part_of for carrier in carriers] == ["", "rocm-sdk-libraries"]


@pytest.mark.parametrize(
    ("data", "found"),
    [
        pytest.param(b"", "a damaged archive (File is not a zip file). Build or download it again.", id="empty"),
        pytest.param(b"PK\x05\x06" + bytes(18), "has no .dist-info/METADATA; expected a wheel", id="other archive"),
    ],
)
def test_what_is_no_wheel_is_refused(tmp_path: Path, data: bytes, found: str) -> None:
    path = tmp_path / "x-1-py3-none-any.whl"
    path.write_bytes(data)
    with pytest.raises(InputError, match=f"^{re.escape(f'{path}: {found}')}$"):
        read_wheel_facts(path)


def test_a_damaged_library_is_refused_by_name(make_wheel: MakeWheel) -> None:
    wheel = make_wheel("x", {"x/lib.so": Path(sys.executable).resolve().read_bytes()[:200]})
    with pytest.raises(InputError, match=re.escape(f"{wheel}!x/lib.so")):
        read_wheel_facts(wheel)


def test_a_damaged_bundle_is_refused_by_name(make_wheel: MakeWheel, make_bundle: MakeBundle) -> None:
    wheel = make_wheel("x", {"x/a.co": make_bundle("gfx906")[:60]})
    with pytest.raises(InputError, match=re.escape(f"{wheel}!x/a.co")):
        read_wheel_facts(wheel)


def test_a_malformed_requirement_is_refused(make_wheel: MakeWheel) -> None:
    wheel = make_wheel("x", {"x/a": b""}, ["not a requirement!"])
    with pytest.raises(InputError, match=r"has a malformed Requires-Dist"):
        carriers_of([read_wheel_facts(wheel)])
