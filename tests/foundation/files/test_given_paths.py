"""Paths that a program gives, one or several."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rocwheel.foundation.errors import InputError
from rocwheel.foundation.files.given_paths import paths_given, some_paths_given

if TYPE_CHECKING:
    from rocwheel.foundation.files.given_paths import GivenPaths


@pytest.mark.parametrize("given", ["a/b", Path("a/b"), ["a/b"], (Path("a/b"),), iter(["a/b"])])
def test_one_path_and_an_iterable_of_paths_are_taken(given: GivenPaths) -> None:
    assert paths_given(given) == (Path("a/b"),)


def test_several_paths_keep_their_order() -> None:
    assert paths_given(["b", Path("a")]) == (Path("b"), Path("a"))


def test_none_is_refused_where_some_are_needed() -> None:
    with pytest.raises(InputError, match=r"^paths: is empty; expected at least one path$"):
        some_paths_given("paths", iter(()))
