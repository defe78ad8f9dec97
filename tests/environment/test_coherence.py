"""Tests of `rocwheel.environment.coherence`."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from zipfile import ZipFile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.binary.code_objects import TargetId, parse_target_id
from rocwheel.core.errors import InputError
from rocwheel.environment.coherence import (
    Gap,
    PackageTargets,
    WheelFacts,
    check_coherence,
    largest_coherent_set,
    wheel_package_targets,
)
from rocwheel.environment.package_targets import read_wheel_facts
from rocwheel.targets.catalog import load_catalog
from rocwheel.targets.compatibility import covers
from rocwheel.targets.declaration import encode_declaration
from rocwheel.targets.target_set import TargetSet
from tests.support import wheels
from tests.support.bundles import bundle_of
from tests.support.kpack_files import make_kpack


def _carrier(name: str, targets: str = "", requires: str = "", part_of: str = "") -> PackageTargets:
    return PackageTargets(
        name, tuple(parse_target_id(word) for word in targets.split()), tuple(requires.split()), part_of
    )


def test_packages_with_the_same_targets_are_coherent() -> None:
    report = check_coherence([_carrier("blas", "gfx906 gfx1030"), _carrier("torch", "gfx906 gfx1030", "blas")])
    assert report.coherent
    assert report.common == (TargetId("gfx906"), TargetId("gfx1030"))


def test_a_dependency_may_have_more_targets() -> None:
    assert check_coherence([_carrier("blas", "gfx906 gfx1030"), _carrier("torch", "gfx906", "blas")]).coherent


def test_a_dependency_that_lacks_a_target_is_a_gap() -> None:
    report = check_coherence([_carrier("blas", "gfx906"), _carrier("torch", "gfx906 gfx1100", "blas")])
    assert not report.coherent
    assert report.gaps == (Gap("blas", TargetId("gfx1100"), "torch", (TargetId("gfx906"),)),)
    assert str(report.gaps[0]) == "blas lacks gfx1100, which torch has; blas has gfx906"


def test_a_package_that_lacks_a_required_target_is_a_gap() -> None:
    report = check_coherence([_carrier("blas", "gfx906"), _carrier("fft", "gfx906 gfx1100")], [TargetId("gfx1100")])
    assert [str(gap) for gap in report.gaps] == [
        "blas lacks gfx1100, which the list of required targets has; blas has gfx906"
    ]


def test_packages_without_a_common_target_are_not_coherent() -> None:
    report = check_coherence([_carrier("blas", "gfx906"), _carrier("fft", "gfx1100")])
    assert (report.gaps, report.common, report.coherent) == ((), (), False)


def test_a_package_without_device_code_does_not_restrict_the_targets() -> None:
    carriers = [_carrier("compiler"), _carrier("blas", "gfx906", "compiler")]
    assert check_coherence(carriers, [TargetId("gfx906")]).coherent


def test_packages_without_any_device_code_are_coherent() -> None:
    report = check_coherence([_carrier("compiler"), _carrier("headers", "", "compiler")])
    assert (report.gaps, report.common, report.coherent) == ((), (), True)


def test_targets_of_newer_compilers_are_compared_by_name() -> None:
    report = check_coherence([_carrier("blas", "amdgcnspirv gfx1999"), _carrier("fft", "gfx1999 gfx1100", "blas")])
    assert report.gaps == ()
    assert report.common == (TargetId("gfx1100"), TargetId("gfx1999"))
    other = check_coherence([_carrier("blas", "gfx1100"), _carrier("fft", "gfx1999", "blas")])
    assert [str(gap) for gap in other.gaps] == ["blas lacks gfx1999, which fft has; blas has gfx1100"]


def test_a_dependency_that_is_not_given_is_listed_but_is_not_a_gap() -> None:
    report = check_coherence([_carrier("torch", "gfx906", "fft blas")])
    assert (report.coherent, report.absent) == (True, ("blas", "fft"))


def test_a_package_that_completes_another_is_not_listed_as_absent() -> None:
    device = PackageTargets("device", (TargetId("gfx906"),), ("blas",), part_of="blas")
    assert check_coherence([_carrier("blas"), device, _carrier("torch", "gfx906", "device")]).absent == ()


def test_the_code_in_a_part_of_a_part_counts() -> None:
    carriers = [_carrier("a", "gfx906", "b", "b"), _carrier("b", "gfx908", "c", "c"), _carrier("c", "gfx90a")]
    report = check_coherence([*carriers, _carrier("d", "gfx906 gfx908 gfx90a", "c")])
    assert (report.gaps, report.packages) == ((), ("c", "d"))


def test_packages_that_complete_each_other_are_refused() -> None:
    with pytest.raises(
        InputError,
        match=r"^a: completes b, which in turn completes a; expected a package that completes another package$",
    ):
        check_coherence([_carrier("a", "gfx906", "b", "b"), _carrier("b", "gfx906", "a", "a")])


FAMILIES = [_carrier("libs-a", "gfx942", "", "rocm"), _carrier("libs-b", "gfx1100", "", "rocm"), _carrier("rocm")]


@pytest.mark.parametrize(
    ("requires", "gaps"),
    [
        pytest.param("libs-a", ["libs-a lacks gfx1100, which torch has; libs-a has gfx942"], id="one of the parts"),
        pytest.param("libs-a rocm", ["rocm lacks gfx1100, which torch has; rocm has gfx942"], id="and the whole"),
        pytest.param("libs-a libs-b", [], id="all parts"),
        pytest.param("rocm", [], id="whatever completes the whole"),
    ],
)
def test_a_requirement_on_some_parts_is_compared_with_their_code_only(requires: str, gaps: list[str]) -> None:
    report = check_coherence([*FAMILIES, _carrier("torch", "gfx942 gfx1100", requires)])
    assert [str(gap) for gap in report.gaps] == gaps


def test_dependencies_of_a_part_are_compared_only_with_that_part() -> None:
    carriers = [*FAMILIES[1:], _carrier("libs-a", "gfx942", "fft rocm libs-b", "rocm"), _carrier("fft", "gfx1100")]
    gaps = check_coherence(carriers).gaps
    assert [str(gap) for gap in gaps] == ["fft lacks gfx942, which libs-a has; fft has gfx1100"]


def test_a_package_has_its_own_code_and_the_code_of_its_parts() -> None:
    carriers = [_carrier("blas", "gfx906"), _carrier("blas-gfx1030", "gfx1030", "blas", "blas")]
    assert check_coherence(carriers).common == (TargetId("gfx906"), TargetId("gfx1030"))


def test_a_part_is_treated_as_a_package_when_its_whole_is_not_given() -> None:
    report = check_coherence([_carrier("device", "gfx906", "blas", "blas"), _carrier("torch", "gfx1030", "device")])
    assert report.packages == ("device", "torch")
    assert [str(gap) for gap in report.gaps] == ["device lacks gfx1030, which torch has; device has gfx906"]


def test_every_dependency_is_compared() -> None:
    report = check_coherence([_carrier("a", "gfx906"), _carrier("b", "gfx908"), _carrier("c", "gfx906", "a b")])
    assert [gap.package for gap in report.gaps] == ["b"]


def test_required_targets_are_gaps_when_no_package_has_device_code() -> None:
    report = check_coherence([_carrier("headers")], [TargetId("gfx906")])
    expected = "headers lacks gfx906, which the list of required targets has; headers has no device code"
    assert [str(gap) for gap in report.gaps] == [expected]


def test_code_in_device_packages_counts_for_the_library_they_complete() -> None:
    carriers = [
        _carrier("rocm-sdk-libraries"),
        _carrier("rocm-sdk-device-gfx906", "gfx906", "rocm-sdk-libraries", "rocm-sdk-libraries"),
        _carrier("rocm-sdk-device-gfx1030", "gfx1030", "rocm-sdk-libraries", "rocm-sdk-libraries"),
        _carrier("jax", "gfx906 gfx1030", "rocm-sdk-libraries"),
    ]
    report = check_coherence(carriers)
    assert report.coherent
    assert report.packages == ("rocm-sdk-libraries", "jax")
    assert check_coherence(carriers[:2] + carriers[3:]).gaps == (
        Gap("rocm-sdk-libraries", TargetId("gfx1030"), "jax", (TargetId("gfx906"),)),
    )


@pytest.mark.parametrize(
    ("carried", "wanted", "coherent"),
    [
        pytest.param("gfx90a", "gfx90a:xnack+", True, id="open features serve every setting"),
        pytest.param("gfx90a:xnack+", "gfx90a", False, id="one setting does not serve the open one"),
        pytest.param("gfx90a:xnack+ gfx90a:xnack-", "gfx90a", True, id="both settings do"),
        pytest.param("gfx11-generic", "gfx1100 gfx1103", True, id="generic code serves its members"),
        pytest.param("gfx1100", "gfx11-generic", False, id="one member does not serve the generic"),
    ],
)
def test_features_and_generic_targets_are_considered(carried: str, wanted: str, coherent: bool) -> None:
    report = check_coherence([_carrier("blas", carried), _carrier("torch", wanted, "blas")])
    assert (not report.gaps) is coherent


def test_a_package_given_twice_is_refused() -> None:
    with pytest.raises(
        InputError,
        match=f"^{re.escape('blas: is given twice with different contents; expected each package only once')}$",
    ):
        check_coherence([_carrier("blas"), _carrier("fft"), _carrier("blas")])


def test_the_largest_coherent_set_keeps_the_targets_that_all_packages_serve() -> None:
    carriers = [_carrier("blas", "gfx906 gfx11-generic gfx90a"), _carrier("fft", "gfx906 gfx1100 gfx90a:xnack+")]
    assert str(largest_coherent_set(carriers)) == "gfx906;gfx90a:xnack+;gfx1100"


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        pytest.param("gfx90a:xnack+ gfx90a:xnack-", "gfx90a:sramecc+ gfx90a:sramecc-", "gfx90a", id="both are whole"),
        pytest.param("gfx90a:xnack+", "gfx90a:sramecc+", "gfx90a:sramecc+:xnack+", id="what both settings allow"),
        pytest.param("gfx90a:xnack+", "gfx90a:xnack-", "", id="nothing in common"),
        pytest.param("gfx1999:xnack+", "gfx1999:xnack+", "gfx1999:xnack+", id="a processor that is not known"),
        pytest.param("gfx9-4-generic:xnack+", "gfx942", "gfx942:xnack+", id="generic with a feature"),
    ],
)
def test_the_largest_coherent_set_intersects_feature_settings(one: str, other: str, expected: str) -> None:
    reduced = largest_coherent_set([_carrier("blas", one), _carrier("fft", other)])
    assert str(reduced) == expected
    assert TargetSet.of(reduced) == reduced


def test_the_largest_coherent_set_prefers_an_open_target_to_its_feature_settings() -> None:
    carriers = [_carrier("blas", "gfx90a"), _carrier("fft", "gfx90a:xnack+ gfx90a:xnack-")]
    assert str(largest_coherent_set(carriers)) == "gfx90a"


@st.composite
def _targets(draw: st.DrawFn) -> str:
    name = draw(st.sampled_from(["gfx906", "gfx90a", "gfx942", "gfx9-4-generic", "gfx1100", "gfx1999", "amdgcnspirv"]))
    row = load_catalog().processors.get(name)
    features = row.features if row else ()
    setting = st.sampled_from([None, True, False])
    return str(TargetId(name, **{feature: draw(setting) for feature in features}))


LISTS = st.lists(st.sets(_targets(), min_size=1, max_size=5), min_size=1, max_size=4)


@given(LISTS)
def test_every_package_serves_the_largest_coherent_set(lists: list[set[str]]) -> None:
    carriers = [_carrier(f"p{number}", " ".join(names)) for number, names in enumerate(lists)]
    assert check_coherence(carriers, largest_coherent_set(carriers)).gaps == ()


@given(LISTS)
def test_every_target_that_all_packages_serve_is_in_the_largest_coherent_set(lists: list[set[str]]) -> None:
    carriers = [_carrier(f"p{number}", " ".join(names)) for number, names in enumerate(lists)]
    kept = largest_coherent_set(carriers)
    others = {target for carrier in carriers for target in carrier.targets}
    assert all(covers(kept, other) or check_coherence(carriers, [other]).gaps for other in others)


@given(LISTS)
def test_the_largest_coherent_set_is_a_valid_target_set(lists: list[set[str]]) -> None:
    kept = largest_coherent_set([_carrier(f"p{number}", " ".join(names)) for number, names in enumerate(lists)])
    assert TargetSet.of(kept) == kept


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


def test_targets_are_read_from_the_binaries(add_wheel: AddWheel) -> None:
    members = {"x/a.hsaco": bundle_of("gfx1030", "gfx90a:xnack+"), "x/b.co": bundle_of("gfx906"), "x/c.py": b""}
    facts = read_wheel_facts(add_wheel("My.Lib", members))
    assert facts.name == "my-lib"
    assert facts.targets == (GFX906, TargetId("gfx90a", xnack=True), GFX1030)
    assert facts.roots == frozenset({"x"})


def test_a_kpack_file_is_read_for_its_target(add_wheel: AddWheel) -> None:
    members = {"x/.kpack/blas_lib_gfx90a:xnack+.kpack": make_kpack({("lib/libx.so", 0, "gfx90a:xnack+"): b"code"})}
    assert read_wheel_facts(add_wheel("x", members)).targets == (TargetId("gfx90a", xnack=True),)


def test_the_name_of_a_kpack_file_may_contain_a_gpu_newer_than_the_catalog(add_wheel: AddWheel) -> None:
    assert read_wheel_facts(add_wheel("x", {"x/blas_lib_gfx1999.kpack": b""})).targets == (TargetId("gfx1999"),)


def test_a_kpack_file_whose_name_has_no_gpu_is_refused(add_wheel: AddWheel) -> None:
    wheel = add_wheel("x", {"x/blas_lib_generic.kpack": b""})
    with pytest.raises(InputError, match=re.escape(f"{wheel}!x/blas_lib_generic.kpack: 'generic' isn't a known GPU")):
        read_wheel_facts(wheel)


def test_a_declaration_that_matches_the_binaries_is_accepted(add_wheel: AddWheel) -> None:
    wheel = add_wheel("x", {"x/a.co": bundle_of("gfx906")}, declaration=encode_declaration([GFX906]))
    assert read_wheel_facts(wheel).targets == (GFX906,)


def test_a_declaration_that_differs_from_the_binaries_is_refused(add_wheel: AddWheel) -> None:
    wheel = add_wheel("x", {"x/a.co": bundle_of("gfx906")}, declaration=encode_declaration([GFX906, GFX1030]))
    message = (
        f"{wheel}: declares gfx906, gfx1030, but its binaries have code for gfx906. Build the wheel again. The "
        "declaration must match the binaries."
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
    carriers = wheel_package_targets([read_wheel_facts(wheel) for wheel in wheels])
    assert carriers[0].requires == ("blas", "rocm", "rocm-core")
    assert carriers[1].requires == ("rocm-core",)


def test_requirements_on_packages_that_are_not_given_are_listed_but_not_followed(add_wheel: AddWheel) -> None:
    wheels = [add_wheel("a", {"a/x": b""}, ["b", "numpy", "c; extra == 'x'"]), add_wheel("b", {"b/x": b""}, ["d"])]
    assert [c.requires for c in wheel_package_targets([read_wheel_facts(w) for w in wheels])] == [
        ("b", "d", "numpy"),
        ("d",),
    ]


def test_wheels_of_the_same_package_are_merged_when_their_targets_match() -> None:
    wheels = [WheelFacts(f"{tag}.whl", "a", ("b",), (GFX906,), frozenset("a")) for tag in ("cp311", "cp312")]
    assert wheel_package_targets(wheels) == [PackageTargets("a", (GFX906,), ("b",))]
    needier = WheelFacts("cp313.whl", "a", ("c",), (GFX906,), frozenset("a"))
    assert wheel_package_targets([*wheels, needier]) == [PackageTargets("a", (GFX906,), ("b", "c"))]


@pytest.mark.parametrize(
    ("other", "message"),
    [
        pytest.param(
            WheelFacts("two.whl", "a", (), (GFX1030,), frozenset("a"), "1.0"),
            "one.whl: has gfx906, but two.whl from the same package has gfx1030; "
            "expected the same targets in all wheels for a package",
            id="other code",
        ),
        pytest.param(
            WheelFacts("two.whl", "a", (), (GFX906,), frozenset("a"), "2.0"),
            "one.whl: is version 1.0 of a, but two.whl is version 2.0; expected one version of each package",
            id="another version",
        ),
    ],
)
def test_differing_wheels_of_one_package_are_refused_with_the_difference(other: WheelFacts, message: str) -> None:
    one = WheelFacts("one.whl", "a", (), (GFX906,), frozenset("a"), "1.0")
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        wheel_package_targets([one, other])


@pytest.mark.parametrize(
    ("requirement", "named"),
    [("b==1.0", "b"), ("b>=0.9", "b"), ("b==2.0", "b==2.0"), ("b[x]<1", "b<1")],
)
def test_an_unsatisfied_requirement_is_listed_with_its_version(requirement: str, named: str) -> None:
    wheels = [
        WheelFacts("a.whl", "a", (requirement,), (), frozenset("a"), "1.0"),
        WheelFacts("b.whl", "b", (), (), frozenset("b"), "1.0"),
    ]
    assert wheel_package_targets(wheels)[0].requires == (named,)


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
def test_markers_are_evaluated_for_the_tags_of_the_wheel(tag: str, needed: tuple[str, ...]) -> None:
    requirements = (
        "old; python_version < '3.11'",
        "linux; sys_platform == 'linux'",
        "windows; platform_system == 'Windows' and os_name == 'nt'",
        "x86; platform_machine == 'x86_64' and sys_platform == 'linux'",
        "arm; platform_machine == 'aarch64'",
        "pypy; implementation_name == 'pypy'",
    )
    wheel = WheelFacts(f"dist/a-1.0-{tag}.whl", "a", requirements, (), frozenset())
    assert wheel_package_targets([wheel])[0].requires == needed


def test_markers_in_a_required_wheel_are_evaluated_for_its_own_tags() -> None:
    wheels = [
        WheelFacts("a-1.0-cp314-cp314-linux_x86_64.whl", "a", ("b",), (), frozenset()),
        WheelFacts("b-1.0-py3-none-any.whl", "b", ("c; python_version < '3.11'", "d"), (), frozenset()),
    ]
    assert [carrier.requires for carrier in wheel_package_targets(wheels)] == [("b", "d"), ("c", "d")]


def test_a_wheel_without_folders_does_not_complete_another() -> None:
    wheels = [
        WheelFacts("a.whl", "a", (), (GFX906,), frozenset("a")),
        WheelFacts("b.whl", "b", ("a",), (GFX906,), frozenset()),
    ]
    assert [carrier.part_of for carrier in wheel_package_targets(wheels)] == ["", ""]


def test_packages_that_require_each_other_are_followed_only_once(add_wheel: AddWheel) -> None:
    wheels = [add_wheel("a", {"a/x": b""}, ["b"]), add_wheel("b", {"b/x": b""}, ["a"])]
    assert [carrier.requires for carrier in wheel_package_targets([read_wheel_facts(w) for w in wheels])] == [
        ("b",),
        ("a",),
    ]


def test_a_wheel_inside_the_folder_of_a_required_wheel_completes_that_wheel(add_wheel: AddWheel) -> None:
    libraries = add_wheel("rocm-sdk-libraries", {"_libraries/__init__.py": b"", "libraries/__init__.py": b""})
    device = add_wheel("rocm-sdk-device-gfx906", {"_libraries/.kpack/x_lib_gfx906.kpack": b""}, ["rocm-sdk-libraries"])
    carriers = wheel_package_targets([read_wheel_facts(libraries), read_wheel_facts(device)])
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
def test_a_wheel_named_for_its_gpus_completes_a_required_wheel_in_the_same_folder(
    name: str, targets: str, part_of: str
) -> None:
    ids = tuple(map(parse_target_id, targets.split()))
    wheels = [
        WheelFacts("a.whl", name, ("acme-blas",), ids, frozenset({"acme"})),
        WheelFacts("b.whl", "acme-blas", (), (GFX906,), frozenset({"acme"})),
    ]
    assert wheel_package_targets(wheels)[0].part_of == part_of


def test_a_wheel_with_a_folder_of_its_own_does_not_complete_another() -> None:
    wheels = [
        WheelFacts("a.whl", "acme-gfx906", ("acme-blas",), (GFX906,), frozenset({"acme", "other"})),
        WheelFacts("b.whl", "acme-blas", (), (), frozenset({"acme"})),
    ]
    assert wheel_package_targets(wheels)[0].part_of == ""


def test_a_prerelease_satisfies_a_requirement() -> None:
    wheels = [
        WheelFacts("a.whl", "a", ("b>=6",), (), frozenset("a"), "1.0"),
        WheelFacts("b.whl", "b", (), (), frozenset("b"), "7.0.0rc1"),
    ]
    assert wheel_package_targets(wheels)[0].requires == ("b",)


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
def test_a_marker_holds_if_it_is_true_for_some_python_of_the_tag(tag: str, marker: str, *, holds: bool) -> None:
    wheel = WheelFacts(f"dist/a-1.0-{tag}.whl", "a", (f"b; {marker}",), (), frozenset())
    assert wheel_package_targets([wheel])[0].requires == (("b",) if holds else ())


def test_wheels_named_for_their_gpus_do_not_complete_each_other() -> None:
    wheels = [
        WheelFacts("a.whl", "a-gfx906", ("b-gfx1030",), (GFX906,), frozenset({"acme"})),
        WheelFacts("b.whl", "b-gfx1030", ("a-gfx906",), (GFX1030,), frozenset({"acme"})),
    ]
    assert [carrier.part_of for carrier in wheel_package_targets(wheels)] == ["", ""]


@pytest.mark.parametrize("requires_back", [(), ("acme-torch",)], ids=["one way", "mutually"])
def test_packages_that_share_a_folder_are_compared(requires_back: tuple[str, ...]) -> None:
    wheels = [
        WheelFacts("torch.whl", "acme-torch", ("acme-blas",), (GFX906, GFX1030), frozenset({"acme"})),
        WheelFacts("blas.whl", "acme-blas", requires_back, (GFX906,), frozenset({"acme"})),
    ]
    report = check_coherence(wheel_package_targets(wheels))
    assert [str(gap) for gap in report.gaps] == ["acme-blas lacks gfx1030, which acme-torch has; acme-blas has gfx906"]


@pytest.mark.parametrize(
    ("data", "found"),
    [
        pytest.param(b"", "is a damaged archive (File is not a zip file). Build or download it again.", id="empty"),
        pytest.param(
            b"PK\x05\x06" + bytes(18),
            "has no .dist-info folder; expected a wheel, which has exactly one",
            id="other archive",
        ),
    ],
)
def test_a_file_that_is_not_a_wheel_is_refused(tmp_path: Path, data: bytes, found: str) -> None:
    path = tmp_path / "x-1-py3-none-any.whl"
    path.write_bytes(data)
    with pytest.raises(InputError, match=f"^{re.escape(f'{path}: {found}')}$"):
        read_wheel_facts(path)


@pytest.mark.parametrize("names", ["", "Name: x\nName: y\n"], ids=["none", "two"])
def test_a_wheel_with_no_name_or_several_names_is_refused(tmp_path: Path, names: str) -> None:
    path = tmp_path / "x-1-py3-none-any.whl"
    with ZipFile(path, "w") as archive:
        archive.writestr("x-1.dist-info/METADATA", f"Metadata-Version: 2.1\n{names}Version: 1\n")
    found = "its x-1.dist-info/METADATA has no Name field, or several Name fields; expected exactly one Name field"
    with pytest.raises(InputError, match=f"^{re.escape(f'{path}: {found}')}$"):
        read_wheel_facts(path)


def test_a_damaged_library_is_refused_with_its_name(add_wheel: AddWheel) -> None:
    wheel = add_wheel("x", {"x/lib.so": Path(sys.executable).resolve().read_bytes()[:200]})
    with pytest.raises(InputError, match=re.escape(f"{wheel}!x/lib.so")):
        read_wheel_facts(wheel)


def test_a_damaged_bundle_is_refused_with_its_name(add_wheel: AddWheel) -> None:
    wheel = add_wheel("x", {"x/a.co": bundle_of("gfx906")[:60]})
    with pytest.raises(InputError, match=re.escape(f"{wheel}!x/a.co")):
        read_wheel_facts(wheel)


def test_a_marker_that_cannot_be_evaluated_is_refused(add_wheel: AddWheel) -> None:
    wheel = add_wheel("x", {"x/a": b""}, ['blas; sys_platform ~= "linux"'])
    with pytest.raises(InputError, match=re.escape(f"{wheel}: has a Requires-Dist with a marker that can't be eval")):
        wheel_package_targets([read_wheel_facts(wheel)])


def test_a_malformed_requirement_is_refused(add_wheel: AddWheel) -> None:
    wheel = add_wheel("x", {"x/a": b""}, ["not a requirement!"])
    with pytest.raises(InputError, match=r"has a malformed Requires-Dist"):
        wheel_package_targets([read_wheel_facts(wheel)])
