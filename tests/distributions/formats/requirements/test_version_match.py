"""Requirements of a release: by its first numbers, or exactly."""

from __future__ import annotations

import pytest
from packaging.version import Version

from rocwheel.distributions.formats.requirements.version_match import prefix_match, release_match


@pytest.mark.parametrize(
    ("version", "numbers", "expected"),
    [
        ("7.14.0", 2, "7.14.*"),
        ("7.14.0.post1+local", 2, "7.14.*"),
        ("7", 2, "7.0.*"),
        ("1.2", 3, "1.2.0.*"),
        ("1!2.3.4", 2, "1!2.3.*"),
        ("7.14.0rc1", 2, "7.14.*"),
    ],
)
def test_a_prefix_names_the_first_numbers_of_the_release(version: str, numbers: int, expected: str) -> None:
    assert prefix_match(Version(version), numbers) == expected


def test_a_pre_release_is_named_exactly_without_its_local_version() -> None:
    assert release_match(Version("7.14.0rc1+local"), 2) == "7.14.0rc1"


def test_a_final_release_is_named_by_its_prefix() -> None:
    assert release_match(Version("7.14.2"), 2) == "7.14.*"
