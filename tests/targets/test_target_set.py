"""Tests of `rocwheel.targets.target_set`."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.binary.code_objects import TargetId
from rocwheel.core.errors import InputError, ProblemsError, RocwheelError
from rocwheel.targets.catalog import load_catalog
from rocwheel.targets.compatibility import covers
from rocwheel.targets.errors import (
    AmbiguousProductError,
    ConflictError,
    EmptySetError,
    IllegalFeatureError,
    UnknownTargetError,
)
from rocwheel.targets.spelling import spell_cmake, spell_commas, spell_offload_arch, spell_spaces
from rocwheel.targets.target_set import (
    TargetSet,
    fold_to_families,
    fold_to_generics,
    parse_known_target,
    parse_target_set,
    product_words,
    target_of_product,
    target_words,
)


def test_the_error_for_a_mistyped_product_suggests_the_nearest_name() -> None:
    with pytest.raises(UnknownTargetError) as caught:
        parse_target_set("RX7900XTXX")
    assert caught.value.nearest[0] == "RX-7900-XTX"


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("MI300X", "gfx942"),
        ("mi300x", "gfx942"),
        ("AMD Instinct MI300X", "gfx942"),
        ("Instinct-MI300X", "gfx942"),
        ("MI300", "gfx942"),
        ("MI250X:xnack+", "gfx90a:xnack+"),
        ("RX 7900 XTX", "gfx1100"),
        ("Radeon RX 7900 XTX", "gfx1100"),
        ("rx7900xtx", "gfx1100"),
        ("RX-7900-XTX", "gfx1100"),
        ("7900 XTX", "gfx1100"),
        ("AMD Radeon RX 7600", "gfx1102"),
        ("Radeon VII", "gfx906"),
        ("W6800", "gfx1030"),
        ("MI350P", "gfx950"),
        ("AMD Instinct MI308X", "gfx942"),
        ("Ryzen AI MAX+ 395", "gfx1151"),
        ("AMD Ryzen AI 9 HX PRO 475", "gfx1150"),
        ("Radeon 8050S", "gfx1151"),
        ("AMD Radeon 740M Graphics", "gfx1103"),
        ("840M", "gfx1152"),
        ("RX 5600 XT", "gfx1010"),
        ("RX 7900M", "gfx1100"),
        ("RX 580", "gfx803"),
        ("Strix Halo", "gfx1151"),
        ("AMD Radeon(TM) 8060S Graphics", "gfx1151"),
        ("RX 9060 XT 16GB", "gfx1200"),
        ("Radeon RX 9050 (4GB)", "gfx1200"),
        ("R9700", "gfx1201"),
        ("AMD Instinct MI300X VF", "gfx942"),
        ("Radeon RX 580 Series", "gfx803"),
        ("radeon  610m", "gfx1036"),
        ("RX 6700", "gfx1031"),
        ("W6600", "gfx1032"),
        ("RX 7400", "gfx1102"),
        ("AMD Custom GPU 0932", "gfx1033"),
        ("Steam Machine", "gfx1102"),
        ("RX 7650 GRE", "gfx1102"),
        ("Strix", None),
        ("RX", None),
        ("gfx906", None),
        ("MI30", None),
        ("", None),
    ],
)
def test_a_product_in_any_spelling_maps_to_its_target(text: str, target: str | None) -> None:
    assert target_of_product(text) == target


def test_every_product_in_the_catalog_is_found_by_its_name_and_its_one_word_form() -> None:
    products = {name: row.name for row in load_catalog().targets for name in row.products if re.search(r"\d|VII", name)}
    assert {name: target_of_product(name) for name in products} == products
    words = [word for word in product_words() if re.search(r"\d|VII", word)]
    assert [word for word in words if not target_of_product(word)] == []


def test_the_error_for_an_ambiguous_product_lists_the_gpus() -> None:
    expected = "GPU targets: '5600M' matches several products; expected one of Radeon RX 5600M (gfx1010), "
    with pytest.raises(AmbiguousProductError, match=re.escape(expected + "Radeon Pro 5600M (gfx1011)")):
        parse_target_set("5600M")
    assert parse_target_set("RX 5600M").words == ("gfx1010",)
    assert parse_target_set("Pro 5600M").words == ("gfx1011",)


@pytest.mark.parametrize(
    "words",
    [
        "RX 7900 XTX;MI300X",
        "MI300X,Radeon RX 7900 XTX",
        ["RX", "7900", "XTX", "MI300X"],
        ["-DGPU_TARGETS=RX 7900 XTX;gfx942"],
        "gfx1100 mi300x",
    ],
)
def test_products_with_or_without_spaces_are_accepted_in_a_set(words: str | list[str]) -> None:
    assert parse_target_set(words).words == ("gfx942", "gfx1100")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("GFX906", ("gfx906",)),
        ("Gfx90A:XNACK+", ("gfx90a:xnack+",)),
        ("GFX94x-DCGPU", ("gfx942",)),
        ("rx 7900 xt", ("gfx1100",)),
        ("AMD RYZEN AI MAX+ 395 w/ Radeon 8060S", ("gfx1151",)),
        ("Ryzen AI Max+ 395;MI 300 X", ("gfx942", "gfx1151")),
        ("LIST@rocm-jax", parse_target_set("list@rocm-jax").words),
        ("AMD@10.0", parse_target_set("amd@10.0").words),
    ],
)
def test_the_case_of_a_word_does_not_matter(text: str, words: tuple[str, ...]) -> None:
    assert parse_target_set(text).words == words


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("RX 5650 XT", ["RX 5650 XT"]),
        ("Ryzen AI MAX+ 999", ["Ryzen AI MAX+ 999"]),
        ("GeForce RTX 4090", ["GeForce RTX 4090"]),
        ("GeForce RTX 4090 MI300X", ["GeForce RTX 4090", "MI300X"]),
        ("GeForce RTX 4090 gfx906", ["GeForce RTX 4090", "gfx906"]),
        ("gfx9O6 gfx9O8", ["gfx9O6", "gfx9O8"]),
        ("foo;bar", ["foo", "bar"]),
        ("foo official@7.1", ["foo", "official@7.1"]),
    ],
)
def test_consecutive_unknown_words_form_one_name(text: str, names: list[str]) -> None:
    assert target_words([text]) == names


def test_the_error_for_an_unknown_product_quotes_its_whole_name() -> None:
    expected = (
        "'Ryzen AI MAX+ 999' isn't a known GPU target, family, product, or policy. Similar names: Ryzen-AI-Max+-395, "
    )
    with pytest.raises(UnknownTargetError, match=re.escape(expected)):
        parse_target_set("Ryzen AI MAX+ 999")


@pytest.mark.parametrize(
    ("words", "unknown", "others"),
    [
        ("RX 79000", "RX 79000", ""),
        ("Radeon RX 7950 XTX gfx906", "Radeon RX 7950 XTX", "gfx906"),
        pytest.param("RX 6750 GRE gfx906", "RX 6750 GRE", "gfx906", id="other models are known"),
        ("RX gfx906", "RX", "gfx906"),
        ("radeon", "radeon", ""),
    ],
)
def test_the_words_of_an_unknown_product_form_one_name(words: str, unknown: str, others: str) -> None:
    assert target_words([words]) == [unknown, *others.split()]
    with pytest.raises(UnknownTargetError) as caught:
        parse_target_set(words)
    assert caught.value.name == unknown


@pytest.mark.parametrize("word", ["gfx115x", "GFX115X", "gfx115X-all"])
def test_a_family_that_covers_all_gpus_of_a_series_has_a_short_name(word: str) -> None:
    assert parse_target_set(word).words == ("gfx1150", "gfx1151", "gfx1152", "gfx1153")


def test_a_target_is_not_a_short_family_name() -> None:
    assert parse_target_set("gfx950:xnack+").words == ("gfx950:xnack+",)


def test_a_name_that_is_neither_a_target_nor_a_product_is_unknown() -> None:
    with pytest.raises(UnknownTargetError, match="'RX-9999' isn't a known GPU target, family, product, or policy"):
        parse_target_set("RX-9999")


def _known_ids() -> st.SearchStrategy[TargetId]:
    def settings(name: str) -> st.SearchStrategy[TargetId]:
        features = load_catalog().processor(name).features
        values = st.sampled_from([None, True, False])
        return st.builds(TargetId, st.just(name), **dict.fromkeys(features, values))

    return st.sampled_from(sorted(load_catalog().processors)).flatmap(settings)


@given(_known_ids())
def test_a_printed_target_id_parses_to_itself(target: TargetId) -> None:
    assert parse_known_target(str(target)) == target


@given(st.lists(_known_ids(), min_size=1, max_size=8, unique_by=lambda target: target.processor))
def test_a_set_round_trips_through_every_spelling(ids: list[TargetId]) -> None:
    targets = TargetSet.of(ids)
    for text in (
        spell_cmake(targets),
        spell_commas(targets),
        spell_spaces(targets),
        " ".join(spell_offload_arch(targets)),
    ):
        assert parse_target_set(text) == targets


@given(st.permutations(["gfx90a:xnack+", "gfx1100", "gfx11-generic", "gfx906", "gfx90a:xnack-", "gfx906"]))
def test_order_and_repetition_do_not_matter(words: list[str]) -> None:
    assert str(parse_target_set(words)) == "gfx906;gfx90a:xnack+;gfx90a:xnack-;gfx11-generic;gfx1100"


@given(st.text(max_size=40))
def test_any_text_is_parsed_or_refused_with_a_rocwheel_error(text: str) -> None:
    with suppress(RocwheelError):
        assert parse_target_set(text).ids


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("gfx906;gfx1030;", "gfx906;gfx1030", id="CMake list with a trailing separator"),
        pytest.param("gfx906, gfx1030", "gfx906;gfx1030", id="commas and spaces"),
        pytest.param("--offload-arch=gfx906 --offload-arch=gfx1030", "gfx906;gfx1030", id="arguments of hipcc"),
        pytest.param("-DGPU_TARGETS=gfx906;gfx1030", "gfx906;gfx1030", id="CMake setting"),
        pytest.param("-DCMAKE_HIP_ARCHITECTURES:STRING=gfx906;gfx1030", "gfx906;gfx1030", id="with its type"),
        pytest.param("--repo_env=TF_ROCM_AMDGPU_TARGETS=gfx906,gfx1030", "gfx906;gfx1030", id="Bazel setting"),
        pytest.param("--amdgpu-target=gfx906", "gfx906", id="argument of old compilers"),
        pytest.param("AMDGPU_TARGETS=gfx906 gfx1030", "gfx906;gfx1030", id="variable"),
        pytest.param("gfx906:xnack-:sramecc+", "gfx906:sramecc+:xnack-", id="features in canonical order"),
        pytest.param("gfx94X-dcgpu gfx120X-all", "gfx942;gfx1200;gfx1201", id="families"),
        pytest.param("gfx90X-dcgpu:xnack+", "gfx906:xnack+;gfx908:xnack+;gfx90a:xnack+", id="family with a feature"),
        pytest.param("official@6.4", "gfx908;gfx90a;gfx942;gfx1030;gfx1100", id="official targets of a version"),
        pytest.param("amd@6.4.2", "gfx908;gfx90a;gfx942;gfx1030;gfx1100;gfx1101;gfx1200;gfx1201", id="AMD's targets"),
        pytest.param("gpu-generic", "amdgcnspirv", id="family of SPIR-V"),
        pytest.param("unofficial@5.3", "gfx803;gfx900;gfx1010;gfx1011;gfx1012;gfx1031", id="unofficial targets"),
        pytest.param(
            "list@rocm-jax",
            "gfx908;gfx90a;gfx9-4-generic;gfx10-3-generic;gfx11-generic;gfx12-generic",
            id="list of a packager",
        ),
    ],
)
def test_words_expand_to_a_canonical_set(text: str, expected: str) -> None:
    assert str(parse_target_set(text)) == expected


def test_supported_means_official_and_unofficial() -> None:
    both = {*parse_target_set("official@7.1"), *parse_target_set("unofficial@7.1")}
    assert set(parse_target_set("supported@7.1")) == both


@pytest.mark.parametrize(
    ("version", "added"),
    [
        pytest.param("5.1", "gfx1031;gfx1032;gfx1033;gfx1034;gfx1035;gfx1036", id="siblings of gfx1030"),
        pytest.param("10.0", "", id="all siblings are official"),
    ],
)
def test_extended_adds_targets_that_run_official_code_under_another_name(version: str, added: str) -> None:
    extended = set(parse_target_set(f"extended@{version}"))
    assert str(TargetSet.of(extended - set(parse_target_set(f"official@{version}")))) == added
    assert extended >= set(parse_target_set(f"official@{version}"))


def test_all_means_every_specific_processor() -> None:
    assert len(parse_target_set("all")) == len(load_catalog().targets)


def test_native_means_the_detected_targets() -> None:
    assert str(parse_target_set("native gfx906", native=lambda: ["gfx1100", "gfx1036"])) == "gfx906;gfx1036;gfx1100"


def test_features_after_a_word_apply_to_all_of_its_targets() -> None:
    assert str(parse_target_set("native:xnack-", native=lambda: ["gfx90a"])) == "gfx90a:xnack-"
    message = (
        "--targets: 'gfx1030:xnack+' sets xnack, which compilers don't accept for its processor; expected no features"
    )
    with pytest.raises(IllegalFeatureError, match=f"^{re.escape(message)}$"):
        parse_target_set("official@5.0:xnack+", source="--targets")


def test_a_setting_is_recognized_only_at_the_start_of_a_word() -> None:
    with pytest.raises(InputError, match=re.escape("'x-DGPU_TARGETS=gfx906' isn't a target ID")):
        parse_target_set("x-DGPU_TARGETS=gfx906")


def test_native_is_refused_without_detection() -> None:
    with pytest.raises(InputError, match="'native' means the GPUs of this machine, but GPUs aren't detected here") as e:
        parse_target_set("native")
    assert e.value.remedy == "To print the targets of this machine, use 'rocwheel targets detect'."


def test_no_targets_are_accepted_if_none_are_required() -> None:
    assert parse_target_set(" ; ", required=False) == TargetSet()


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        pytest.param(
            "gfx1109",
            UnknownTargetError,
            "--targets: 'gfx1109' isn't a known GPU target, family, product, or policy. "
            "Similar names: gfx1103, gfx1102, gfx1101.",
            id="unknown target",
        ),
        pytest.param(
            "gfx1030:xnack+",
            IllegalFeatureError,
            "--targets: 'gfx1030:xnack+' sets xnack, which compilers don't accept for its processor; expected "
            "no features",
            id="feature that the processor lacks",
        ),
        pytest.param(
            "gfx900:sramecc+",
            IllegalFeatureError,
            "--targets: 'gfx900:sramecc+' sets sramecc, which compilers don't accept for its processor; "
            "expected no features other than xnack",
            id="other feature than the processor has",
        ),
        pytest.param(
            "gfx90a:xnack+:xnack-",
            InputError,
            "--targets: 'gfx90a:xnack+:xnack-' isn't a target ID because of xnack, which occurs twice; "
            "expected a processor and at most one setting each for sramecc and xnack, such as gfx90a:sramecc+:xnack-",
            id="feature given twice",
        ),
        pytest.param(
            "gfx90a;gfx90a:xnack+",
            ConflictError,
            "--targets: 'gfx90a' and 'gfx90a:xnack+' set different features for the same processor; "
            "expected the same features in every target ID for a processor. "
            "Specify only 'gfx90a', which covers every setting, or each setting that you want.",
            id="any and specific mixed",
        ),
        pytest.param(
            "gfx90a:sramecc+;gfx90a:xnack+",
            ConflictError,
            "--targets: 'gfx90a:sramecc+' and 'gfx90a:xnack+' set different features for the same processor; "
            "expected the same features in every target ID for a processor. "
            "Specify only 'gfx90a', which covers every setting, or each setting that you want.",
            id="different features",
        ),
        pytest.param(
            "",
            EmptySetError,
            "--targets: doesn't specify a GPU target; expected at least one, such as gfx1100",
            id="nothing",
        ),
        pytest.param(
            "list@jaxx",
            UnknownTargetError,
            "--targets: 'jaxx' isn't a known packager's list. Similar names: jax.",
            id="unknown list",
        ),
        pytest.param(
            "list@",
            UnknownTargetError,
            "--targets: '' isn't a known packager's list. The lists are debian-12, debian-13, debian-forky, "
            "debian-sid, debian-experimental, ubuntu-26.04, ubuntu-26.10, fedora-gfx9, fedora-generic, nix, "
            "conda-forge, rocm-jax, jax, spack.",
            id="no list",
        ),
        pytest.param(
            "GFX95x-dcgpu",
            UnknownTargetError,
            "--targets: 'GFX95x-dcgpu' isn't a known GPU target, family, product, or policy. "
            "Similar names: gfx950-dcgpu, gfx94X-dcgpu, gfx90X-dcgpu.",
            id="other name in another case",
        ),
        pytest.param(
            "offical@7.1",
            UnknownTargetError,
            "--targets: 'offical@7.1' isn't a known policy. Similar names: official@7.0, official@6.4, official@6.0.",
            id="unknown policy",
        ),
    ],
)
def test_bad_words_are_refused_with_the_reason(text: str, kind: type[InputError], message: str) -> None:
    with pytest.raises(kind, match=f"^{re.escape(message)}$"):
        parse_target_set(text, source="--targets")


def test_several_bad_words_are_reported_together() -> None:
    with pytest.raises(ProblemsError, match="2 problems"):
        parse_target_set("gfx1030:xnack+ gfx906 gfx1100:sramecc-")


def test_too_many_words_are_refused_at_once() -> None:
    with pytest.raises(InputError, match=r"^GPU targets: contains 1001 words for GPU targets; expected at most 1000$"):
        parse_target_set("a1 b2 " * 500 + "c3")


NAMES = st.lists(st.sampled_from([target.name for target in load_catalog().targets]), min_size=1, max_size=20)


@given(NAMES)
def test_families_expand_to_exactly_the_targets_they_were_folded_from(names: list[str]) -> None:
    targets = parse_target_set(names)
    assert parse_target_set(fold_to_families(targets)) == targets


@given(NAMES)
def test_generics_cover_every_target_they_were_folded_from(names: list[str]) -> None:
    targets = parse_target_set(names)
    folded = fold_to_generics(targets).ids
    assert all(covers(folded, target) for target in targets)


def test_folding_prefers_the_largest_complete_family() -> None:
    assert fold_to_families(parse_target_set("gfx103X-all gfx942 gfx1100")) == ("gfx103X-all", "gfx942", "gfx1100")


def test_a_target_with_features_belongs_to_no_family() -> None:
    assert fold_to_families(parse_target_set("gfx1010 gfx1011 gfx1012 gfx908:xnack+")) == (
        "gfx101X-all",
        "gfx908:xnack+",
    )


def test_features_are_kept_if_the_generic_supports_them() -> None:
    assert str(fold_to_generics(parse_target_set("gfx942:xnack+ gfx906:sramecc+"))) == (
        "gfx906:sramecc+;gfx9-4-generic:xnack+"
    )


def test_members_with_different_features_share_generic_code_without_features() -> None:
    assert str(fold_to_generics(parse_target_set("gfx900 gfx902:xnack+ gfx942:xnack+"))) == (
        "gfx9-generic;gfx9-4-generic:xnack+"
    )


def test_sets_that_cannot_be_folded_are_unchanged() -> None:
    assert fold_to_families(TargetSet()) == ()
    assert fold_to_generics(TargetSet((TargetId("gfx803"),))) == TargetSet((TargetId("gfx803"),))
