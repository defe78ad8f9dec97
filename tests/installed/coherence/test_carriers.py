"""What wheels say and hold about GPU targets."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from zipfile import ZipFile

import pytest

from rocwheel.binary.code_objects import TargetId, parse_target_id
from rocwheel.core.errors import InputError
from rocwheel.environment.coherence import Carrier, WheelFacts, carriers_of, check_coherence
from rocwheel.environment.package_targets import read_wheel_facts
from rocwheel.targets.declaration import encode_declaration
from tests.support import wheels
from tests.support.bundles import bundle_of
from tests.support.kpack_files import make_kpack

AddWheel = Callable[..., Path]
GFX906, GFX1030 = TargetId("gfx906"), TargetId("gfx1030")


@pytest.fixture
def add_wheel(tmp_path: Path) -> AddWheel:
    """Return a function that writes a wheel: its name, members by path, requirements, and declared targets."""

    def make(
        name: str, members: dict[str, bytes], requires: Sequence[str] = (), declaration: bytes | None = None
    ) -> Path:
        info = f"{name.replace('-', '_')}-1.0.dist-info"
        declared = {} if declaration is None else {f"{info}/rocm_targets.json": declaration}
        return wheels.make_wheel(tmp_path, name, members | declared, tag="py3-none-any", requires=tuple(requires))

    return make


def test_targets_come_from_the_binaries(add_wheel: AddWheel) -> None:
    members = {"x/a.hsaco": bundle_of("gfx1030", "gfx90a:xnack+"), "x/b.co": bundle_of("gfx906"), "x/c.py": b""}
    facts = read_wheel_facts(add_wheel("My.Lib", members))
    assert facts.name == "my-lib"
    assert facts.targets == (GFX906, TargetId("gfx90a", xnack=True), GFX1030)
    assert facts.roots == frozenset({"x"})


def test_a_kpack_file_names_its_target(add_wheel: AddWheel) -> None:
    members = {"x/.kpack/blas_lib_gfx90a:xnack+.kpack": make_kpack({("lib/libx.so", 0, "gfx90a:xnack+"): b"code"})}
    assert read_wheel_facts(add_wheel("x", members)).targets == (TargetId("gfx90a", xnack=True),)


def test_a_kpack_file_for_a_gpu_newer_than_the_catalog_names_it(add_wheel: AddWheel) -> None:
    assert read_wheel_facts(add_wheel("x", {"x/blas_lib_gfx1999.kpack": b""})).targets == (TargetId("gfx1999"),)


def test_a_kpack_file_that_names_no_gpu_is_refused(add_wheel: AddWheel) -> None:
    wheel = add_wheel("x", {"x/blas_lib_generic.kpack": b""})
    with pytest.raises(InputError, match=re.escape(f"{wheel}!x/blas_lib_generic.kpack: 'generic' is not a known GPU")):
        read_wheel_facts(wheel)


def test_a_declaration_that_agrees_is_fine(add_wheel: AddWheel) -> None:
    wheel = add_wheel("x", {"x/a.co": bundle_of("gfx906")}, declaration=encode_declaration([GFX906]))
    assert read_wheel_facts(wheel).targets == (GFX906,)


def test_a_declaration_that_differs_from_the_binaries_is_refused(add_wheel: AddWheel) -> None:
    wheel = add_wheel("x", {"x/a.co": bundle_of("gfx906")}, declaration=encode_declaration([GFX906, GFX1030]))
    message = (
        f"{wheel}: declares gfx906, gfx1030, but its binaries carry gfx906. "
        "Build it again: the declaration has to be read from the binaries."
    )
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        read_wheel_facts(wheel)


def test_requirements_are_followed_through_packages_and_extras(add_wheel: AddWheel) -> None:
    wheels = [
        add_wheel("jax", {"jax/x": b""}, ["rocm[libraries]==1.0"]),
        add_wheel("rocm", {"rocm/x": b""}, ["rocm-core", "blas; extra == 'libraries'", "dev; extra == 'devel'"]),
        add_wheel("rocm-core", {"core/x": b""}),
        add_wheel("blas", {"blas/x": b""}),
        add_wheel("dev", {"dev/x": b""}),
    ]
    carriers = carriers_of([read_wheel_facts(wheel) for wheel in wheels])
    assert carriers[0].requires == ("blas", "rocm", "rocm-core")
    assert carriers[1].requires == ("rocm-core",)


def test_requirements_that_are_not_given_are_named_and_not_followed(add_wheel: AddWheel) -> None:
    wheels = [add_wheel("a", {"a/x": b""}, ["b", "numpy", "c; extra == 'x'"]), add_wheel("b", {"b/x": b""}, ["d"])]
    assert [c.requires for c in carriers_of([read_wheel_facts(w) for w in wheels])] == [("b", "d", "numpy"), ("d",)]


def test_wheels_of_one_package_that_carry_and_need_the_same_count_once() -> None:
    wheels = [WheelFacts(f"{tag}.whl", "a", ("b",), (GFX906,), frozenset("a")) for tag in ("cp311", "cp312")]
    assert carriers_of(wheels) == [Carrier("a", (GFX906,), ("b",))]
    needier = WheelFacts("cp313.whl", "a", ("c",), (GFX906,), frozenset("a"))
    assert carriers_of([*wheels, needier]) == [Carrier("a", (GFX906,), ("b", "c"))]


@pytest.mark.parametrize(
    ("other", "message"),
    [
        pytest.param(
            WheelFacts("two.whl", "a", (), (GFX1030,), frozenset("a"), "1.0"),
            "one.whl: carries gfx906, but two.whl, of the same package, carries gfx1030; "
            "expected the same targets in all wheels of a package",
            id="other code",
        ),
        pytest.param(
            WheelFacts("two.whl", "a", (), (GFX906,), frozenset("a"), "2.0"),
            "one.whl: is version 1.0 of a, but two.whl is version 2.0; expected one version of each package",
            id="another version",
        ),
    ],
)
def test_wheels_of_one_package_that_differ_are_refused_with_the_difference(other: WheelFacts, message: str) -> None:
    one = WheelFacts("one.whl", "a", (), (GFX906,), frozenset("a"), "1.0")
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        carriers_of([one, other])


@pytest.mark.parametrize(
    ("requirement", "named"),
    [("b==1.0", "b"), ("b>=0.9", "b"), ("b==2.0", "b==2.0"), ("b[x]<1", "b<1")],
)
def test_a_requirement_that_the_given_version_does_not_meet_is_named_with_its_version(
    requirement: str, named: str
) -> None:
    wheels = [
        WheelFacts("a.whl", "a", (requirement,), (), frozenset("a"), "1.0"),
        WheelFacts("b.whl", "b", (), (), frozenset("b"), "1.0"),
    ]
    assert carriers_of(wheels)[0].requires == (named,)


@pytest.mark.parametrize(
    ("tag", "needed"),
    [
        pytest.param("cp310-cp310-manylinux_2_28_x86_64", ("linux", "old", "x86"), id="old Python"),
        pytest.param("cp314-cp314-manylinux2014_aarch64", ("arm", "linux"), id="other machine"),
        pytest.param("cp310-abi3-win_amd64", ("old", "windows"), id="stable ABI, Windows"),
        pytest.param("cp312-abi3-musllinux_1_2_x86_64", ("linux", "x86"), id="stable ABI of a newer Python"),
        pytest.param("py312-none-macosx_11_0_universal2", (), id="macOS"),
        pytest.param("py3-none-any", ("arm", "linux", "old", "windows", "x86"), id="any"),
    ],
)
def test_markers_hold_for_what_the_tags_of_a_wheel_allow(tag: str, needed: tuple[str, ...]) -> None:
    requirements = (
        "old; python_version < '3.11'",
        "linux; sys_platform == 'linux'",
        "windows; platform_system == 'Windows' and os_name == 'nt'",
        "x86; platform_machine == 'x86_64' and sys_platform == 'linux'",
        "arm; platform_machine == 'aarch64'",
        "pypy; implementation_name == 'pypy'",
    )
    wheel = WheelFacts(f"dist/a-1.0-{tag}.whl", "a", requirements, (), frozenset())
    assert carriers_of([wheel])[0].requires == needed


def test_markers_of_what_a_wheel_needs_are_judged_where_that_wheel_can_be_installed() -> None:
    wheels = [
        WheelFacts("a-1.0-cp314-cp314-linux_x86_64.whl", "a", ("b",), (), frozenset()),
        WheelFacts("b-1.0-py3-none-any.whl", "b", ("c; python_version < '3.11'", "d"), (), frozenset()),
    ]
    assert [carrier.requires for carrier in carriers_of(wheels)] == [("b", "d"), ("c", "d")]


def test_a_wheel_without_folders_completes_nothing() -> None:
    wheels = [
        WheelFacts("a.whl", "a", (), (GFX906,), frozenset("a")),
        WheelFacts("b.whl", "b", ("a",), (GFX906,), frozenset()),
    ]
    assert [carrier.part_of for carrier in carriers_of(wheels)] == ["", ""]


def test_packages_that_need_one_another_are_followed_once(add_wheel: AddWheel) -> None:
    wheels = [add_wheel("a", {"a/x": b""}, ["b"]), add_wheel("b", {"b/x": b""}, ["a"])]
    assert [carrier.requires for carrier in carriers_of([read_wheel_facts(w) for w in wheels])] == [("b",), ("a",)]


def test_a_wheel_that_lies_in_the_folders_of_one_it_needs_completes_it(add_wheel: AddWheel) -> None:
    libraries = add_wheel("rocm-sdk-libraries", {"_libraries/__init__.py": b"", "libraries/__init__.py": b""})
    device = add_wheel("rocm-sdk-device-gfx906", {"_libraries/.kpack/x_lib_gfx906.kpack": b""}, ["rocm-sdk-libraries"])
    carriers = carriers_of([read_wheel_facts(libraries), read_wheel_facts(device)])
    assert [carrier.part_of for carrier in carriers] == ["", "rocm-sdk-libraries"]


@pytest.mark.parametrize(
    ("name", "targets", "part_of"),
    [
        pytest.param("acme-torch", "gfx906", "", id="no GPU in the name"),
        pytest.param("acme-torch-gfx906", "gfx906", "acme-blas", id="a GPU"),
        pytest.param("acme-gfx906-kernels", "gfx906", "acme-blas", id="a GPU in the middle"),
        pytest.param("acme-torch-gfx906", "gfx906 gfx1030", "", id="code for another GPU, too"),
        pytest.param("acme-torch-gfx9060", "gfx906", "", id="another GPU"),
        pytest.param("acme-gfx94x-dcgpu", "gfx942:xnack+", "acme-blas", id="a family"),
        pytest.param("acme-gfx1100", "gfx1100 gfx11-generic", "acme-blas", id="generic code for the GPU, too"),
        pytest.param("acme-gfx906", "gfx906 gfx11-generic", "", id="generic code for others"),
        pytest.param("acme-gfx1999", "gfx1999", "acme-blas", id="newer than the catalog"),
        pytest.param("acme-gfx1250", "gfx1250 gfx1250-strict", "acme-blas", id="early silicon shares the package"),
    ],
)
def test_a_wheel_completes_one_that_it_shares_a_folder_with_when_it_is_named_for_its_gpus(
    name: str, targets: str, part_of: str
) -> None:
    ids = tuple(map(parse_target_id, targets.split()))
    wheels = [
        WheelFacts("a.whl", name, ("acme-blas",), ids, frozenset({"acme"})),
        WheelFacts("b.whl", "acme-blas", (), (GFX906,), frozenset({"acme"})),
    ]
    assert carriers_of(wheels)[0].part_of == part_of


def test_a_wheel_with_a_folder_of_its_own_completes_nothing() -> None:
    wheels = [
        WheelFacts("a.whl", "acme-gfx906", ("acme-blas",), (GFX906,), frozenset({"acme", "other"})),
        WheelFacts("b.whl", "acme-blas", (), (), frozenset({"acme"})),
    ]
    assert carriers_of(wheels)[0].part_of == ""


def test_a_pre_release_meets_a_requirement() -> None:
    wheels = [
        WheelFacts("a.whl", "a", ("b>=6",), (), frozenset("a"), "1.0"),
        WheelFacts("b.whl", "b", (), (), frozenset("b"), "7.0.0rc1"),
    ]
    assert carriers_of(wheels)[0].requires == ("b",)


@pytest.mark.parametrize(
    ("tag", "marker", "holds"),
    [
        ("cp310-abi3-manylinux_2_28_x86_64", "python_version >= '3.14'", True),
        ("cp310-cp310-manylinux_2_28_x86_64", "python_version >= '3.11'", False),
        ("py312-none-any", "python_version >= '3.15'", True),
        ("py312-none-any", "python_version < '3.12'", False),
        ("py3-none-macosx_11_0_universal2", "sys_platform == 'darwin' and platform_machine == 'x86_64'", True),
        ("py3-none-macosx_11_0_universal2", "sys_platform == 'linux'", False),
    ],
)
def test_a_marker_holds_where_some_python_of_the_tag_has_it(tag: str, marker: str, *, holds: bool) -> None:
    wheel = WheelFacts(f"dist/a-1.0-{tag}.whl", "a", (f"b; {marker}",), (), frozenset())
    assert carriers_of([wheel])[0].requires == (("b",) if holds else ())


def test_wheels_named_for_their_gpus_do_not_complete_one_another() -> None:
    wheels = [
        WheelFacts("a.whl", "a-gfx906", ("b-gfx1030",), (GFX906,), frozenset({"acme"})),
        WheelFacts("b.whl", "b-gfx1030", ("a-gfx906",), (GFX1030,), frozenset({"acme"})),
    ]
    assert [carrier.part_of for carrier in carriers_of(wheels)] == ["", ""]


@pytest.mark.parametrize("requires_back", [(), ("acme-torch",)], ids=["one way", "mutually"])
def test_packages_that_share_a_folder_are_compared(requires_back: tuple[str, ...]) -> None:
    wheels = [
        WheelFacts("torch.whl", "acme-torch", ("acme-blas",), (GFX906, GFX1030), frozenset({"acme"})),
        WheelFacts("blas.whl", "acme-blas", requires_back, (GFX906,), frozenset({"acme"})),
    ]
    report = check_coherence(carriers_of(wheels))
    assert [str(gap) for gap in report.gaps] == [
        "acme-blas lacks gfx1030, which acme-torch asks for; it carries gfx906"
    ]


@pytest.mark.parametrize(
    ("data", "found"),
    [
        pytest.param(b"", "a damaged archive (File is not a zip file). Build or download it again.", id="empty"),
        pytest.param(
            b"PK\x05\x06" + bytes(18), "has no .dist-info folder; expected a wheel, which has one", id="other archive"
        ),
    ],
)
def test_what_is_not_a_wheel_is_refused(tmp_path: Path, data: bytes, found: str) -> None:
    path = tmp_path / "x-1-py3-none-any.whl"
    path.write_bytes(data)
    with pytest.raises(InputError, match=f"^{re.escape(f'{path}: {found}')}$"):
        read_wheel_facts(path)


@pytest.mark.parametrize("names", ["", "Name: x\nName: y\n"], ids=["none", "two"])
def test_a_wheel_without_one_name_is_refused(tmp_path: Path, names: str) -> None:
    path = tmp_path / "x-1-py3-none-any.whl"
    with ZipFile(path, "w") as archive:
        archive.writestr("x-1.dist-info/METADATA", f"Metadata-Version: 2.1\n{names}Version: 1\n")
    found = "its x-1.dist-info/METADATA has no Name, or several; expected the name of its package, once"
    with pytest.raises(InputError, match=f"^{re.escape(f'{path}: {found}')}$"):
        read_wheel_facts(path)


def test_a_damaged_library_is_refused_by_name(add_wheel: AddWheel) -> None:
    wheel = add_wheel("x", {"x/lib.so": Path(sys.executable).resolve().read_bytes()[:200]})
    with pytest.raises(InputError, match=re.escape(f"{wheel}!x/lib.so")):
        read_wheel_facts(wheel)


def test_a_damaged_bundle_is_refused_by_name(add_wheel: AddWheel) -> None:
    wheel = add_wheel("x", {"x/a.co": bundle_of("gfx906")[:60]})
    with pytest.raises(InputError, match=re.escape(f"{wheel}!x/a.co")):
        read_wheel_facts(wheel)


def test_a_marker_that_compares_what_cannot_be_compared_is_refused(add_wheel: AddWheel) -> None:
    wheel = add_wheel("x", {"x/a": b""}, ['blas; sys_platform ~= "linux"'])
    with pytest.raises(InputError, match=re.escape(f"{wheel}: has a Requires-Dist with a marker that can't be eval")):
        carriers_of([read_wheel_facts(wheel)])


def test_a_malformed_requirement_is_refused(add_wheel: AddWheel) -> None:
    wheel = add_wheel("x", {"x/a": b""}, ["not a requirement!"])
    with pytest.raises(InputError, match=r"has a malformed Requires-Dist"):
        carriers_of([read_wheel_facts(wheel)])
