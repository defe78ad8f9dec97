"""What a person asks of a plan, and what is refused."""

from __future__ import annotations

import re

import pytest

from rocwheel.foundation.errors import InputError
from rocwheel.packages.planning.options import PlanOptions
from tests.packages.selectors import plan


def test_a_suffix_that_fits_no_module_name_is_refused() -> None:
    expected = "--version-suffix: is '-x'; expected letters, digits and underscores, as in a module's name"
    with pytest.raises(InputError, match=re.escape(expected)):
        plan(options=PlanOptions(module_suffix="-x"))
