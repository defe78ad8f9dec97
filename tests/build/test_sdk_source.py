"""Files that the SDK's source gets when packages are planned."""

from __future__ import annotations

import pytest

from rocwheel.build.sdk_source import render_literals
from tests.build.selectors import literals


@pytest.mark.parametrize("name", ["x'; import os #", 'a"b', "back\\slash", "line\nbreak"])
def test_any_name_is_written_as_a_string_literal(name: str) -> None:
    assert literals(render_literals({"NAME": name})) == {"NAME": name}
