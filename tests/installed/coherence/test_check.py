"""Whether packages that use one another carry code for the same GPUs."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.binary.code_objects import TargetId, parse_target_id
from rocwheel.core.errors import InputError
from rocwheel.environment.coherence import Carrier, Gap, check_coherence, largest_coherent_set
from rocwheel.targets.catalog import load_catalog
from rocwheel.targets.compatibility import covers
from rocwheel.targets.target_set import TargetSet


def _carrier(name: str, targets: str = "", requires: str = "", part_of: str = "") -> Carrier:
    return Carrier(name, tuple(parse_target_id(word) for word in targets.split()), tuple(requires.split()), part_of)


def test_packages_with_the_same_targets_are_coherent() -> None:
    report = check_coherence([_carrier("blas", "gfx906 gfx1030"), _carrier("torch", "gfx906 gfx1030", "blas")])
    assert report.coherent
    assert report.common == (TargetId("gfx906"), TargetId("gfx1030"))


def test_a_dependency_may_carry_more() -> None:
    assert check_coherence([_carrier("blas", "gfx906 gfx1030"), _carrier("torch", "gfx906", "blas")]).coherent


def test_a_dependency_that_lacks_a_target_is_a_gap() -> None:
    report = check_coherence([_carrier("blas", "gfx906"), _carrier("torch", "gfx906 gfx1100", "blas")])
    assert not report.coherent
    assert report.gaps == (Gap("blas", TargetId("gfx1100"), "torch", (TargetId("gfx906"),)),)
    assert str(report.gaps[0]) == "blas lacks gfx1100, which torch asks for; it carries gfx906"


def test_a_required_target_that_a_package_lacks_is_a_gap() -> None:
    report = check_coherence([_carrier("blas", "gfx906"), _carrier("fft", "gfx906 gfx1100")], [TargetId("gfx1100")])
    assert [str(gap) for gap in report.gaps] == [
        "blas lacks gfx1100, which the list of required targets asks for; it carries gfx906"
    ]


def test_packages_without_a_common_target_are_not_coherent() -> None:
    report = check_coherence([_carrier("blas", "gfx906"), _carrier("fft", "gfx1100")])
    assert (report.gaps, report.common, report.coherent) == ((), (), False)


def test_a_package_without_device_code_limits_nothing() -> None:
    carriers = [_carrier("compiler"), _carrier("blas", "gfx906", "compiler")]
    assert check_coherence(carriers, [TargetId("gfx906")]).coherent


def test_packages_without_any_device_code_are_coherent() -> None:
    report = check_coherence([_carrier("compiler"), _carrier("headers", "", "compiler")])
    assert (report.gaps, report.common, report.coherent) == ((), (), True)


def test_code_of_newer_compilers_is_compared_by_name() -> None:
    report = check_coherence([_carrier("blas", "amdgcnspirv gfx1999"), _carrier("fft", "gfx1999 gfx1100", "blas")])
    assert report.gaps == ()
    assert report.common == (TargetId("gfx1100"), TargetId("gfx1999"))
    other = check_coherence([_carrier("blas", "gfx1100"), _carrier("fft", "gfx1999", "blas")])
    assert [str(gap) for gap in other.gaps] == ["blas lacks gfx1999, which fft asks for; it carries gfx1100"]


def test_a_dependency_that_is_not_given_is_named_and_no_gap() -> None:
    report = check_coherence([_carrier("torch", "gfx906", "fft blas")])
    assert (report.coherent, report.absent) == (True, ("blas", "fft"))


def test_a_package_that_completes_another_is_not_absent() -> None:
    device = Carrier("device", (TargetId("gfx906"),), ("blas",), part_of="blas")
    assert check_coherence([_carrier("blas"), device, _carrier("torch", "gfx906", "device")]).absent == ()


def test_the_code_of_a_part_of_a_part_counts() -> None:
    carriers = [_carrier("a", "gfx906", "b", "b"), _carrier("b", "gfx908", "c", "c"), _carrier("c", "gfx90a")]
    report = check_coherence([*carriers, _carrier("d", "gfx906 gfx908 gfx90a", "c")])
    assert (report.gaps, report.packages) == ((), ("c", "d"))


def test_packages_that_complete_one_another_are_refused() -> None:
    with pytest.raises(InputError, match=r"^a: and b complete one another; expected a part of a whole$"):
        check_coherence([_carrier("a", "gfx906", "b", "b"), _carrier("b", "gfx906", "a", "a")])


FAMILIES = [_carrier("libs-a", "gfx942", "", "rocm"), _carrier("libs-b", "gfx1100", "", "rocm"), _carrier("rocm")]


@pytest.mark.parametrize(
    ("requires", "gaps"),
    [
        pytest.param(
            "libs-a", ["libs-a lacks gfx1100, which torch asks for; it carries gfx942"], id="one of the parts"
        ),
        pytest.param(
            "libs-a rocm", ["rocm lacks gfx1100, which torch asks for; it carries gfx942"], id="and the whole"
        ),
        pytest.param("libs-a libs-b", [], id="all parts"),
        pytest.param("rocm", [], id="whatever completes the whole"),
    ],
)
def test_a_package_that_needs_some_parts_has_the_code_of_those(requires: str, gaps: list[str]) -> None:
    report = check_coherence([*FAMILIES, _carrier("torch", "gfx942 gfx1100", requires)])
    assert [str(gap) for gap in report.gaps] == gaps


def test_what_a_part_needs_is_compared_with_the_part() -> None:
    carriers = [*FAMILIES[1:], _carrier("libs-a", "gfx942", "fft rocm libs-b", "rocm"), _carrier("fft", "gfx1100")]
    gaps = check_coherence(carriers).gaps
    assert [str(gap) for gap in gaps] == ["fft lacks gfx942, which libs-a asks for; it carries gfx1100"]


def test_a_package_has_its_own_code_and_that_of_its_parts() -> None:
    carriers = [_carrier("blas", "gfx906"), _carrier("blas-gfx1030", "gfx1030", "blas", "blas")]
    assert check_coherence(carriers).common == (TargetId("gfx906"), TargetId("gfx1030"))


def test_a_part_whose_whole_is_not_given_is_a_package() -> None:
    report = check_coherence([_carrier("device", "gfx906", "blas", "blas"), _carrier("torch", "gfx1030", "device")])
    assert report.packages == ("device", "torch")
    assert [str(gap) for gap in report.gaps] == ["device lacks gfx1030, which torch asks for; it carries gfx906"]


def test_every_dependency_is_compared() -> None:
    report = check_coherence([_carrier("a", "gfx906"), _carrier("b", "gfx908"), _carrier("c", "gfx906", "a b")])
    assert [gap.package for gap in report.gaps] == ["b"]


def test_packages_that_all_have_no_device_code_do_not_carry_what_is_required() -> None:
    report = check_coherence([_carrier("headers")], [TargetId("gfx906")])
    expected = "headers lacks gfx906, which the list of required targets asks for; it carries no device code"
    assert [str(gap) for gap in report.gaps] == [expected]


def test_code_of_device_packages_counts_for_the_library_that_they_complete() -> None:
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
def test_features_and_generics_count(carried: str, wanted: str, coherent: bool) -> None:
    report = check_coherence([_carrier("blas", carried), _carrier("torch", wanted, "blas")])
    assert (not report.gaps) is coherent


def test_a_package_given_twice_is_refused() -> None:
    with pytest.raises(
        InputError, match=f"^{re.escape('blas: is given twice, with different contents; expected each package once')}$"
    ):
        check_coherence([_carrier("blas"), _carrier("fft"), _carrier("blas")])


def test_the_largest_coherent_set_keeps_what_all_serve() -> None:
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
def test_the_largest_coherent_set_intersects_settings(one: str, other: str, expected: str) -> None:
    reduced = largest_coherent_set([_carrier("blas", one), _carrier("fft", other)])
    assert str(reduced) == expected
    assert TargetSet.of(reduced) == reduced


def test_the_largest_coherent_set_names_an_open_target_rather_than_its_settings() -> None:
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
def test_a_carried_target_that_every_package_serves_is_in_the_largest_coherent_set(lists: list[set[str]]) -> None:
    carriers = [_carrier(f"p{number}", " ".join(names)) for number, names in enumerate(lists)]
    kept = largest_coherent_set(carriers)
    others = {target for carrier in carriers for target in carrier.targets}
    assert all(covers(kept, other) or check_coherence(carriers, [other]).gaps for other in others)


@given(LISTS)
def test_the_largest_coherent_set_can_be_given_as_a_set(lists: list[set[str]]) -> None:
    kept = largest_coherent_set([_carrier(f"p{number}", " ".join(names)) for number, names in enumerate(lists)])
    assert TargetSet.of(kept) == kept
