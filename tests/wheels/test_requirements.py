"""Tests of `rocwheel.wheels.requirements`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.specifiers import InvalidSpecifier
from packaging.version import Version

from rocwheel.core.errors import InputError
from rocwheel.wheels.requirements import (
    RequirementError,
    applies,
    asked_for,
    follow_requirements,
    parse_requirement,
    prefix_match,
    read_build_requires,
    read_requirement,
    read_specifier,
    readable_requirements,
    release_match,
    requirements_for_extra,
)
from tests.support.sdists import write_sdist

if TYPE_CHECKING:
    from pathlib import Path


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
def test_a_prefix_match_uses_the_first_numbers_of_the_release(version: str, numbers: int, expected: str) -> None:
    assert prefix_match(Version(version), numbers) == expected


def test_a_pre_release_is_matched_exactly_without_its_local_version() -> None:
    assert release_match(Version("7.14.0rc1+local"), 2) == "7.14.0rc1"


def test_a_final_release_is_matched_by_its_prefix() -> None:
    assert release_match(Version("7.14.2"), 2) == "7.14.*"


BROUGHT = {
    ("one", ""): [("two", ""), ("two", "fast")],
    ("two", ""): [("one", "")],
    ("two", "fast"): [("three", "")],
}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("one ==", r"^a malformed Requires-Dist \("),
        ("one; python_version ~= 'x'", r"^a Requires-Dist with a marker that can't be evaluated \("),
        (
            f"one; {'(' * 5000}os_name == 'posix'{')' * 5000}",
            r"^a malformed Requires-Dist \(more than 32 nested brackets\)$",
        ),
        (
            "one; os_name != 'posix' and extras == 'x'",
            r"^a Requires-Dist with a marker that is only for lock files \(extras\)$",
        ),
        (r"one; extra == '\\'", r"^a malformed Requires-Dist \(the marker has a backslash\)$"),
        (f"one>={'1' * 4001}", r"^a malformed Requires-Dist \(a number with more than 4,000 digits\)$"),
        ("one" + "(" * 5000, r"^a malformed Requires-Dist \(more than 32 nested brackets\)$"),
    ],
    ids=["malformed", "no order", "brackets in a marker", "of lock files", "a backslash", "digits", "brackets"],
)
def test_an_invalid_requirement_is_refused(text: str, problem: str) -> None:
    with pytest.raises(RequirementError, match=problem):
        parse_requirement(text)


def test_a_version_with_more_digits_than_python_accepts_is_not_a_specifier() -> None:
    with pytest.raises(InvalidSpecifier, match=r"^a number with more than 4,000 digits$"):
        read_specifier(f">=3.{'1' * 4001}")
    assert read_specifier(f">=3.{'1' * 4000}").contains("4")


def test_a_url_may_contain_a_backslash() -> None:
    assert parse_requirement(r"one @ file:///C:\d\one.whl ; os_name == 'nt'").url == r"file:///C:\d\one.whl"


def test_a_requirement_is_read_with_any_comparison_in_its_marker() -> None:
    assert read_requirement("one; python_version ~= 'x'").name == "one"


def test_an_invalid_requirement_with_many_brackets_is_refused_before_the_parser_fails() -> None:
    with pytest.raises(RequirementError, match=r"^more than 32 nested brackets$"):
        read_requirement("one; " + "(" * 5000)


def test_many_brackets_side_by_side_are_read() -> None:
    parse_requirement("one; " + " or ".join(["(os_name == 'posix')"] * 500))
    parse_requirement(f"one; {'(' * 32}os_name == 'posix'{')' * 32}")


def test_only_readable_requirements_are_kept() -> None:
    assert readable_requirements(["one ==", "two>=1"]) == [Requirement("two>=1")]


@pytest.mark.parametrize(("extras", "holds"), [(("",), False), (("fast",), True), (("", "fast"), True)])
def test_a_requirement_with_an_extra_applies_only_with_the_extra(extras: tuple[str, ...], *, holds: bool) -> None:
    assert applies(Requirement("one; extra == 'fast'"), extras) is holds


@pytest.mark.parametrize(
    ("file_name", "holds"),
    [
        ("a-1.0-cp310-cp310-linux_x86_64.whl", False),
        ("a-1.0-cp313-cp313-linux_x86_64.whl", True),
        ("a-1.0.tar.gz", True),
    ],
)
def test_a_marker_is_evaluated_against_the_tags_of_a_wheel(file_name: str, *, holds: bool) -> None:
    assert applies(Requirement("one; python_version >= '3.12' and sys_platform == 'linux'"), ("",), file_name) is holds


def test_an_extra_also_requests_the_distribution_itself() -> None:
    assert asked_for(Requirement("My.Lib[Fast_IO]")) == [("my-lib", ""), ("my-lib", "fast-io")]


def test_requirements_are_followed_transitively_even_in_a_cycle() -> None:
    reached = follow_requirements("one", lambda name, extra: BROUGHT.get((name, extra), ()))
    assert reached == {"one", "two", "three"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b'[build-system]\nrequires = ["setuptools>=61", "wheel"]\n', ("setuptools>=61", "wheel")),
        (b"[build-system]\nrequires = []\n", ()),
        (b"[project]\nname = 'x'\n", ("setuptools>=40.8.0",)),
        (None, ("setuptools>=40.8.0",)),
    ],
    ids=["setuptools", "nothing", "no table", "no file"],
)
def test_build_requirements_are_read_from_the_project(
    tmp_path: Path, text: bytes | None, expected: tuple[str, ...]
) -> None:
    path = write_sdist(tmp_path, "x-1.0", {"PKG-INFO": b"", **({"pyproject.toml": text} if text else {})})
    assert read_build_requires(path) == expected


@pytest.mark.parametrize(
    "text",
    [b"[", b"\xff", b"[build-system]\nrequires = 'x'\n", b"[build-system]\nrequires = [1]\n", b"build-system = 1\n",
     b"x = " + b"[" * 100_000],
)  # fmt: skip
def test_an_unreadable_file_is_named(tmp_path: Path, text: bytes) -> None:
    path = write_sdist(tmp_path, "x-1.0", {"pyproject.toml": text})
    with pytest.raises(
        InputError, match=r"x-1\.0\.tar\.gz!pyproject\.toml: can't be read \(.*\); expected the format of PEP 518"
    ):
        read_build_requires(path)


@pytest.mark.parametrize(
    ("marker", "expected"),
    [
        ("extra == 'X_7'", True),
        ("extra == 'gone'", False),
        ("extra != 'x-7'", True),
        ("extra == 'x-7' and python_version < '3'", False),
    ],
)
def test_a_requirement_of_many_extras_is_evaluated_for_those_that_it_names(
    monkeypatch: pytest.MonkeyPatch, marker: str, expected: bool
) -> None:
    evaluated = []
    evaluate = Marker.evaluate

    def counted(self: Marker, environment: dict[str, str]) -> bool:
        evaluated.append(environment["extra"])
        return evaluate(self, environment)

    requirement = Requirement(f"a; {marker}")
    monkeypatch.setattr(Marker, "evaluate", counted)
    assert applies(requirement, frozenset({"", *(f"x-{number}" for number in range(1000))})) is expected
    assert len(evaluated) <= 3


def test_an_extra_adds_only_the_requirements_that_name_it() -> None:
    texts = ("always", *(f"a{number}; extra == 'X_{number}'" for number in range(9)), "b; extra != ''")
    assert [str(one) for one in requirements_for_extra(texts, "x-7")] == ['a7; extra == "x-7"', 'b; extra != ""']
    assert len(requirements_for_extra(texts, "")) == len(texts)


def test_equal_requirements_are_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    monkeypatch.setattr("rocwheel.wheels.requirements.parse_requirement", parsed.append)
    readable_requirements(["only-of-this-test>=1"] * 100)
    assert parsed == ["only-of-this-test>=1"]
