"""What a person asks of a plan, and what is refused."""

from __future__ import annotations

import re

import pytest

from rocwheel.build.planning.options import PlanOptions, check_options
from rocwheel.core.errors import InputError
from tests.build.selectors import plan


def test_a_suffix_that_cannot_be_in_a_module_name_is_refused() -> None:
    expected = "--version-suffix: is '-x'; expected letters, digits, and underscores, as in a module name"
    with pytest.raises(InputError, match=re.escape(expected)):
        plan(options=PlanOptions(module_suffix="-x"))


def test_a_platform_given_as_a_string_is_refused() -> None:
    with pytest.raises(InputError, match="platform: is 'windows'; expected a member of Platform: linux, windows"):
        check_options(PlanOptions(platform="windows"))  # type: ignore[arg-type]
