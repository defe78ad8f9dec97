"""The ``.dist-info`` folder of a wheel: there is exactly one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rocwheel.core.errors import InputError
from rocwheel.distributions.zip.dist_info import find_dist_info, find_metadata

WHEEL = Path("a.whl")


def test_the_folder_of_a_wheel_is_found_whatever_it_holds() -> None:
    assert find_dist_info(WHEEL, ["a/__init__.py", "a-1.0.dist-info/WHEEL", "a-1.0.dist-info/RECORD"]) == (
        "a-1.0.dist-info"
    )


def test_a_folder_deeper_down_is_not_the_wheels_own() -> None:
    names = ["a/_vendor/b-1.0.dist-info/METADATA", "a-1.0.dist-info/METADATA"]
    assert find_metadata(WHEEL, names) == "a-1.0.dist-info/METADATA"


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["a.py"], "has no .dist-info folder; expected a wheel, which has one"),
        (
            ["a.dist-info/METADATA", "b.dist-info/WHEEL"],
            "has several .dist-info folders: a.dist-info, b.dist-info; expected a wheel, which has one",
        ),
        (["a.dist-info/WHEEL"], "has no a.dist-info/METADATA; expected a wheel"),
    ],
    ids=["none", "two", "no METADATA"],
)
def test_what_has_no_one_metadata_file_is_refused(names: list[str], found: str) -> None:
    with pytest.raises(InputError, match=re.escape(f"a.whl: {found}")):
        find_metadata(WHEEL, names)


def test_the_error_says_what_the_caller_expected() -> None:
    with pytest.raises(InputError, match=re.escape("a.whl: has no .dist-info folder; expected that of a 1.0")):
        find_metadata(WHEEL, ["a.py"], expected="that of a 1.0")
