"""Products in place of targets."""

from __future__ import annotations

import re

import pytest

from rocwheel.targets.catalog import load_catalog
from rocwheel.targets.errors import AmbiguousProductError, UnknownTargetError
from rocwheel.targets.target_set import parse_target_set, product_words, target_of_product, target_words


def test_a_mistyped_product_has_its_nearest_name() -> None:
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
        ("Strix Halo", None),
        ("RX", None),
        ("gfx906", None),
        ("MI30", None),
        ("", None),
    ],
)
def test_a_product_stands_for_its_target_however_it_is_spelled(text: str, target: str | None) -> None:
    assert target_of_product(text) == target


def test_every_product_of_the_catalog_is_found_by_its_name_and_by_its_one_word() -> None:
    products = {name: row.name for row in load_catalog().targets for name in row.products if re.search(r"\d|VII", name)}
    assert {name: target_of_product(name) for name in products} == products
    words = [word for word in product_words() if re.search(r"\d|VII", word)]
    assert [word for word in words if not target_of_product(word)] == []


def test_a_name_of_several_gpus_lists_them() -> None:
    expected = "GPU targets: '5600M' may be several products; expected one of Radeon RX 5600M (gfx1010), "
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
def test_products_are_words_of_a_set_even_with_spaces(words: str | list[str]) -> None:
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
def test_words_without_a_meaning_that_follow_one_another_are_one_name(text: str, names: list[str]) -> None:
    assert target_words([text]) == names


def test_a_message_about_an_unknown_product_quotes_its_whole_name() -> None:
    expected = "'Ryzen AI MAX+ 999' is not a known GPU target, family, product or policy. Nearest: Ryzen-AI-Max+-395, "
    with pytest.raises(UnknownTargetError, match=re.escape(expected)):
        parse_target_set("Ryzen AI MAX+ 999")


@pytest.mark.parametrize(
    ("words", "unknown", "others"),
    [
        ("RX 79000", "RX 79000", ""),
        ("Radeon RX 7950 XTX gfx906", "Radeon RX 7950 XTX", "gfx906"),
        ("RX gfx906", "RX", "gfx906"),
        ("radeon", "radeon", ""),
    ],
)
def test_the_words_of_a_product_that_is_unknown_are_one_name(words: str, unknown: str, others: str) -> None:
    assert target_words([words]) == [unknown, *others.split()]
    with pytest.raises(UnknownTargetError) as caught:
        parse_target_set(words)
    assert caught.value.name == unknown


def test_what_is_neither_a_target_nor_a_product_is_unknown() -> None:
    with pytest.raises(UnknownTargetError, match="'RX-9999' is not a known GPU target, family, product or policy"):
        parse_target_set("RX-9999")
