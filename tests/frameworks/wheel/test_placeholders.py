"""Placeholders of descriptions, and the values that words give them."""

from __future__ import annotations

import pytest

from rocwheel.core.errors import InputError
from rocwheel.frameworks.jax.wheel_descriptions import JaxWheel, jax_wheel_description
from rocwheel.frameworks.wheel.placeholders import parse_values, placeholder_names
from rocwheel.frameworks.wheel.spec import settable_values


def test_placeholders_are_found_in_keys_and_values_but_not_in_the_values_table() -> None:
    data = {"name": "a{rocm}", "texts": {"{place}/x": "{text}"}, "files": [{"from": "{file}"}], "values": {"x": "{y}"}}
    assert placeholder_names(data) == {"rocm", "place", "text", "file"}


@pytest.mark.parametrize(("kind", "names"), [("pjrt", {"init", "rocm", "version"}), ("plugin", {"rocm", "version"})])
def test_the_descriptions_that_ship_tell_what_can_be_set(kind: JaxWheel, names: set[str]) -> None:
    assert settable_values(jax_wheel_description(kind)) == names


def test_values_are_parsed() -> None:
    assert parse_values(["rocm=7", "x=a=b"], {"rocm", "x"}) == {"rocm": "7", "x": "a=b"}
    with pytest.raises(InputError) as caught:
        parse_values(["rocm"], {"rocm"})
    assert str(caught.value) == "--set: is 'rocm'; expected NAME=VALUE"


@pytest.mark.parametrize(("known", "expected"), [({"rocm", "init"}, "init, rocm"), (set(), "none")])
def test_a_value_that_nothing_takes_is_refused(known: set[str], expected: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_values(["rocn=8"], known)
    assert str(caught.value) == (
        f"--set: gives rocn a value, but the description has no such placeholder; expected one of {expected}"
    )


def test_a_value_that_is_given_twice_has_to_be_the_same() -> None:
    assert parse_values(["version=1.0"], (), {"version": "1.0"}) == {"version": "1.0"}
    with pytest.raises(InputError) as caught:
        parse_values(["version=2.0"], (), {"version": "1.0"})
    assert str(caught.value) == "--set: gives version the value '2.0', but it has the value '1.0'; expected one value"
