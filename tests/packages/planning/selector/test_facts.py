"""What the selector knows of the packages: which family is the default."""

from __future__ import annotations

import re

import pytest

from rocwheel.core.errors import InputError
from rocwheel.packages.planning.options import PlanOptions
from tests.packages.selectors import build_info, literals, plan


def test_no_target_is_a_default_just_for_being_first() -> None:
    assert build_info("gfx906", "gfx1030")["DEFAULT_FAMILY"] == ""


def test_a_lone_target_is_the_default() -> None:
    assert build_info("gfx906")["DEFAULT_FAMILY"] == "gfx906"


def test_a_default_that_a_person_chose_is_written() -> None:
    made = plan("gfx906", "gfx1030", options=PlanOptions(default_family="gfx1030"))
    assert literals(made.sdists[0].files["src/rocm_sdk/_build_info.py"])["DEFAULT_FAMILY"] == "gfx1030"


def test_a_default_without_packages_is_refused() -> None:
    expected = "--default-family: 'gfx942' has no packages; expected one of gfx906, gfx1030"
    with pytest.raises(InputError, match=re.escape(expected)):
        plan("gfx906", "gfx1030", options=PlanOptions(default_family="gfx942"))
