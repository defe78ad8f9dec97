"""Which code runs on which GPU."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.binary.code_objects import FEATURES, TargetId, parse_target_id
from rocwheel.targets.catalog import load_catalog
from rocwheel.targets.compatibility import Choice, Fit, Runtime, choose, covers, explain, fit, settings_of

SPECIFIC = st.sampled_from([target.name for target in load_catalog().targets])
SETTING = st.sampled_from([None, True, False])


def _id(text: str) -> TargetId:
    return parse_target_id(text)


def _ids(text: str) -> list[TargetId]:
    return [_id(word) for word in text.split()]


@st.composite
def _targets(draw: st.DrawFn) -> TargetId:
    name = draw(st.sampled_from(sorted(load_catalog().processors)))
    features = load_catalog().processor(name).features
    return TargetId(name, **{feature: draw(SETTING) for feature in features})


@given(_targets(), st.sampled_from(Runtime))
def test_code_runs_on_its_own_target(target: TargetId, runtime: Runtime) -> None:
    assert fit(target, target, runtime) is Fit.EXACT


@given(_targets(), _targets())
def test_an_extended_runtime_accepts_everything_a_stock_runtime_accepts(code: TargetId, agent: TargetId) -> None:
    if fit(code, agent) is not Fit.NONE:
        assert fit(code, agent, Runtime.EXTENDED) is not Fit.NONE


@given(_targets(), _targets())
def test_setting_a_feature_never_makes_code_run_on_more_gpus(code: TargetId, agent: TargetId) -> None:
    wider = TargetId(code.processor)
    if fit(code, agent) is not Fit.NONE:
        assert fit(wider, agent) is not Fit.NONE


@given(SPECIFIC)
def test_generic_code_runs_on_every_member_and_nothing_else(name: str) -> None:
    for generic in load_catalog().generics:
        runs = fit(TargetId(generic.name), TargetId(name)) is Fit.GENERIC
        assert runs == (name in generic.members)


@given(_targets())
def test_code_without_feature_settings_covers_every_setting(target: TargetId) -> None:
    assert covers([TargetId(target.processor)], target)


@given(st.lists(_targets(), max_size=4), st.lists(_targets(), max_size=4), _targets())
def test_more_code_never_covers_less(codes: list[TargetId], more: list[TargetId], wanted: TargetId) -> None:
    assert covers([*codes, *more], wanted) or not covers(codes, wanted)


@given(_targets(), st.integers(0, 3))
def test_a_target_is_covered_by_all_of_its_settings_but_not_by_fewer(target: TargetId, left_out: int) -> None:
    settings = settings_of(target, FEATURES)
    assert covers(settings, target)
    if left_out < len(settings):
        fewer = settings[:left_out] + settings[left_out + 1 :]
        assert not covers(fewer, target)


@pytest.mark.parametrize(
    ("code", "agent", "runtime", "expected"),
    [
        pytest.param("gfx90a", "gfx90a:sramecc+:xnack-", Runtime.STOCK, Fit.OPEN, id="open features"),
        pytest.param("gfx90a:xnack+", "gfx90a:sramecc+:xnack-", Runtime.STOCK, Fit.NONE, id="other setting"),
        pytest.param("gfx90a:xnack+", "gfx90a", Runtime.STOCK, Fit.NONE, id="agent whose setting is not known"),
        pytest.param("gfx9-4-generic", "gfx942:sramecc+:xnack-", Runtime.STOCK, Fit.GENERIC, id="generic"),
        pytest.param("gfx9-4-generic:xnack+", "gfx942:xnack-", Runtime.STOCK, Fit.NONE, id="generic, other setting"),
        pytest.param("gfx9-generic", "gfx908", Runtime.STOCK, Fit.NONE, id="gfx908 is not in gfx9-generic"),
        pytest.param("gfx1030", "gfx1031", Runtime.STOCK, Fit.NONE, id="similar, stock"),
        pytest.param("gfx1030", "gfx1031", Runtime.EXTENDED, Fit.SIMILAR, id="similar, extended"),
        pytest.param("gfx1031", "gfx1030", Runtime.EXTENDED, Fit.SIMILAR, id="similar the other way"),
        pytest.param("gfx1012", "gfx1010", Runtime.EXTENDED, Fit.NONE, id="gfx1010 takes no code of its siblings"),
        pytest.param("gfx900", "gfx906:sramecc-:xnack-", Runtime.EXTENDED, Fit.SIMILAR, id="Vega 20 takes Vega 10"),
        pytest.param("gfx906", "gfx900:xnack-", Runtime.EXTENDED, Fit.NONE, id="Vega 10 takes no Vega 20"),
        pytest.param("gfx900:xnack+", "gfx902:xnack-", Runtime.EXTENDED, Fit.NONE, id="features bind extended too"),
        pytest.param("gfx1100", "gfx1101", Runtime.EXTENDED, Fit.NONE, id="no rule for RDNA 3"),
    ],
)
def test_the_fit_of_code_depends_on_target_features_and_runtime(
    code: str, agent: str, runtime: Runtime, expected: Fit
) -> None:
    assert fit(_id(code), _id(agent), runtime) is expected


@pytest.mark.parametrize(
    ("codes", "agent", "runtime", "expected"),
    [
        pytest.param("gfx90a gfx90a:xnack+", "gfx90a:xnack+", Runtime.STOCK, 0, id="a stock runtime takes the first"),
        pytest.param("gfx90a gfx90a:xnack+", "gfx90a:xnack+", Runtime.EXTENDED, 1, id="an extended one the best"),
        pytest.param("gfx11-generic gfx1100", "gfx1100", Runtime.STOCK, 1, id="specific before generic"),
        pytest.param("gfx1031 gfx1030", "gfx1030", Runtime.EXTENDED, 1, id="own before similar"),
        pytest.param("gfx1032 gfx1030", "gfx1031", Runtime.EXTENDED, 0, id="the first of equals"),
        pytest.param("gfx10-3-generic gfx1030", "gfx1031", Runtime.EXTENDED, 1, id="similar before generic"),
        pytest.param("gfx10-3-generic gfx1030", "gfx1031", Runtime.STOCK, 0, id="generic on stock"),
    ],
)
def test_the_best_code_object_is_loaded(codes: str, agent: str, runtime: Runtime, expected: int) -> None:
    choice = choose(_ids(codes), _id(agent), runtime)
    assert choice is not None
    assert choice.index == expected


def test_a_choice_gives_its_reason() -> None:
    assert choose(_ids("gfx906 gfx10-3-generic"), _id("gfx1031")) == Choice(
        1, TargetId("gfx10-3-generic"), Fit.GENERIC, "generic code that covers the GPU"
    )


def test_nothing_is_loaded_if_nothing_fits() -> None:
    assert choose(_ids("gfx906 gfx1030"), _id("gfx1100")) is None


@pytest.mark.parametrize(
    ("code", "agent", "expected"),
    [
        pytest.param(
            "gfx90a:xnack+", "gfx90a:xnack-", "requires xnack on, but it is off for the GPU", id="feature off"
        ),
        pytest.param(
            "gfx90a:xnack-", "gfx90a", "requires xnack off, but it is unspecified for the GPU", id="feature not known"
        ),
        pytest.param("gfx906", "gfx1030", "code for another processor", id="other processor"),
        pytest.param("gfx906:xnack+", "gfx1030", "code for another processor", id="other processor and feature"),
        pytest.param(
            "gfx90a:sramecc-:xnack+",
            "gfx90a:sramecc+:xnack-",
            "requires sramecc off, but it is on for the GPU, requires xnack on, but it is off for the GPU",
            id="both features",
        ),
        pytest.param(
            "gfx9-4-generic:xnack+", "gfx942", "requires xnack on, but it is unspecified for the GPU", id="generic"
        ),
        pytest.param(
            "gfx1030",
            "gfx1031",
            "code for a similar GPU, which only an extended runtime accepts",
            id="similar",
        ),
    ],
)
def test_a_refusal_gives_its_reason(code: str, agent: str, expected: str) -> None:
    assert explain(_id(code), _id(agent)) == expected


def test_code_that_would_run_after_retargeting_is_refused_with_the_command() -> None:
    expected = "code that the GPU can run, but only under the GPU's own name: device retarget gfx1012=gfx1011"
    assert {explain(_id("gfx1012"), _id("gfx1011"), runtime) for runtime in Runtime} == {expected}


def test_an_extended_runtime_refuses_similar_code_with_different_features() -> None:
    expected = "requires xnack on, but it is off for the GPU"
    assert explain(_id("gfx900:xnack+"), _id("gfx902:xnack-"), Runtime.EXTENDED) == expected


def test_a_refusal_mentions_an_extended_runtime_only_if_it_would_accept_the_code() -> None:
    assert explain(_id("gfx900:xnack+"), _id("gfx902:xnack-"), Runtime.STOCK) == "code for another processor"


@pytest.mark.parametrize(
    ("codes", "wanted", "expected"),
    [
        pytest.param("gfx90a:xnack+ gfx90a:xnack-", "gfx90a", True, id="both settings make up the open one"),
        pytest.param("gfx90a:xnack+", "gfx90a", False, id="one setting does not"),
        pytest.param("gfx942 gfx950", "gfx9-4-generic", True, id="all members make up the generic"),
        pytest.param("gfx942", "gfx9-4-generic", False, id="one member does not"),
        pytest.param("gfx942:xnack- gfx950", "gfx9-4-generic:xnack+", False, id="a member with another setting"),
        pytest.param("gfx942:xnack+ gfx950", "gfx9-4-generic:xnack+", True, id="members with the setting"),
        pytest.param("gfx9-4-generic", "gfx950:xnack+", True, id="a generic serves a member"),
        pytest.param("", "gfx906", False, id="nothing serves nothing"),
    ],
)
def test_a_set_of_code_covers_a_target_if_every_setting_and_member_is_covered(
    codes: str, wanted: str, expected: bool
) -> None:
    assert covers(_ids(codes), _id(wanted)) is expected


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        pytest.param("amdgcnspirv", Fit.SPIRV, id="SPIR-V alone"),
        pytest.param("amdgcnspirv gfx9-4-generic", Fit.GENERIC, id="generic before SPIR-V"),
        pytest.param("amdgcnspirv gfx9-4-generic gfx942", Fit.OPEN, id="native before both"),
    ],
)
def test_spirv_is_the_last_resort(codes: str, expected: Fit) -> None:
    choice = choose(_ids(codes), _id("gfx942:sramecc+:xnack-"))
    assert choice is not None
    assert choice.fit is expected


def test_spirv_covers_every_gpu_but_no_gpu_covers_spirv() -> None:
    assert covers(_ids("amdgcnspirv"), _id("gfx1201"))
    assert not covers(_ids("gfx1200 gfx1201"), _id("amdgcnspirv"))


def test_an_unknown_processor_is_compatible_only_with_itself() -> None:
    assert fit(_id("gfx1999"), _id("gfx1999")) is Fit.EXACT
    assert covers(_ids("gfx1999"), _id("gfx1999:xnack+"))
    assert not covers(_ids("gfx1999"), _id("gfx1201"))
    assert not covers(_ids("gfx1201"), _id("gfx1999"))


def test_settings_include_only_named_features_of_the_processor() -> None:
    assert [str(target) for target in settings_of(_id("gfx90a:sramecc+"), ["sramecc", "xnack"])] == [
        "gfx90a:sramecc+:xnack+",
        "gfx90a:sramecc+:xnack-",
    ]
    assert settings_of(_id("gfx1030"), ["xnack"]) == [_id("gfx1030")]


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        pytest.param("gfx90a gfx90a:xnack-", "gfx90a:xnack-", id="what sets XNACK before what leaves it open"),
        pytest.param("gfx90a gfx90a:sramecc+", "gfx90a:sramecc+", id="what sets SRAMECC before what leaves it open"),
        pytest.param("gfx90a:sramecc+ gfx90a:xnack-", "gfx90a:xnack-", id="XNACK before SRAMECC"),
        pytest.param("gfx90a:xnack- gfx90a:sramecc+:xnack-", "gfx90a:sramecc+:xnack-", id="exact before all"),
    ],
)
def test_an_extended_runtime_prefers_code_with_more_feature_settings(codes: str, expected: str) -> None:
    choice = choose([_id(code) for code in codes.split()], _id("gfx90a:sramecc+:xnack-"), Runtime.EXTENDED)
    assert choice is not None
    assert str(choice.code) == expected
