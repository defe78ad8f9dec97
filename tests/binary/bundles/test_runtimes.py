"""What each release of the HIP runtime reads, which one a library needs, and which packages have a fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocwheel.binary.bundles.runtimes import (
    find_faults,
    find_runtime,
    known_release,
    next_release,
    release_of,
    releases,
)
from rocwheel.core.errors import InputError


@pytest.mark.parametrize(
    ("needed", "first"),
    [
        (["libc.so.6", "libamdhip64.so.6"], "6.0"),
        (["KERNEL32.dll", "amdhip64_7.dll"], "7.0"),
        (["AMDHIP64_6.DLL"], "6.0"),
        (["amdhip64.dll"], "5.0"),
        (["amdhip64_99.dll"], None),
        ([], None),
        ([""], None),
    ],
)
def test_a_runtime_is_recognized_by_its_soname_or_file_name(needed: list[str], first: str | None) -> None:
    runtime = find_runtime(needed)
    assert (runtime.first if runtime else None) == first


@pytest.mark.parametrize(
    ("rocm", "since", "compressed", "code_objects", "others"),
    [
        ("5.2.3", "4.0", (), (3, 4), ("none", "none")),
        ("6.1", "5.6", (), (3, 4, 5), ("none", "none")),
        ("6.2.4", "6.2", (2,), (3, 4, 5, 6), ("none", "none")),
        ("6.4.3", "6.4", (2,), (2, 3, 4, 5, 6), ("first", "none")),
        ("7.1.1", "7.1", (2, 3), (2, 3, 4, 5, 6), ("any", "none")),
        ("7.2.4", "7.2", (2, 3), (4, 5, 6), ("same-features", "none")),
        ("7.14.0", "7.14", (2, 3), (4, 5, 6), ("same-features", "first")),
        ("10.0", "7.15", (2, 3), (4, 5, 6), ("same-features", "all")),
    ],
)
def test_a_release_uses_the_last_table_row_at_or_before_its_version(
    rocm: str, since: str, compressed: tuple[int, ...], code_objects: tuple[int, ...], others: tuple[str, str]
) -> None:
    row = release_of(rocm)
    assert (row.since, row.compressed, row.code_objects) == (since, compressed, code_objects)
    assert (row.generics.value, row.archives.value) == others
    assert row.kinds == ("hipv4", "hip", "hcc")


@pytest.mark.parametrize(
    ("rocm", "known"),
    [
        ("6.4.3", "6.4"),
        ("7", "7.0"),
        ("6.9", "6.4"),
        ("7.5", "7.2"),
        ("7.99.0", "7.15"),
        ("9.0", "7.15"),
        ("10.1", "10.1"),
        ("99", "10.1"),
        ("3.9", ""),
    ],
)
def test_an_unknown_release_counts_as_the_newest_known_earlier_release(rocm: str, known: str) -> None:
    assert known_release(rocm) == known


@pytest.mark.parametrize(("rocm", "later"), [("6.4.3", "7.0"), ("7.1", "7.2"), ("7.2", "7.9"), ("10.1", "")])
def test_the_next_release_is_the_next_known_release(rocm: str, later: str) -> None:
    assert next_release(rocm) == later


def test_releases_before_the_table_are_refused() -> None:
    with pytest.raises(InputError, match=r"^--rocm: '3\.9'; expected 4\.0 or later"):
        release_of("3.9", source="--rocm")


def test_each_row_ends_before_the_next_row_begins() -> None:
    rows = releases()
    assert [(row.since, row.last) for row in rows] == [
        ("4.0", "5.5"),
        ("5.6", "6.1"),
        ("6.2", "6.3"),
        ("6.4", "7.0"),
        ("7.1", "7.1"),
        ("7.2", "7.13"),
        ("7.14", "7.14"),
        ("7.15", ""),
    ]


@pytest.mark.parametrize(
    ("first", "last", "number"),
    [
        ("", "", 1),
        ("6.2", "", 1),
        ("6.4.1", "", 1),
        ("7.0", "", 0),
        ("6.0", "6.4", 1),
        ("5.0", "5.7", 0),
        ("", "6.3", 0),
    ],
)
def test_a_package_fault_applies_to_the_releases_that_contain_the_package(first: str, last: str, number: int) -> None:
    assert len(find_faults(first, last)) == number


def test_the_comgr_fault_describes_a_workaround() -> None:
    [fault] = find_faults()
    assert str(fault) == (
        "comgr 7.0.2 of Debian sid (libamd-comgr3 7.0.2+dfsg) returns the first compressed bundle's code for "
        "every later bundle while its cache is on, which is the default. "
        "Set AMD_COMGR_CACHE=0, or leave the device code uncompressed."
    )


def test_the_documentation_contains_the_table() -> None:
    text = Path("docs/device-code.md").read_text(encoding="utf-8")
    for row in releases():
        span = f"{row.since} through {row.last}" if row.last else f"{row.since} and later"
        numbers = [", ".join(map(str, versions)) for versions in (row.compressed, row.code_objects)]
        [compressed, codes] = [f"version{'s' * (',' in listed)} {listed}" if listed else "no" for listed in numbers]
        assert f"| {row.since if row.since == row.last else span} | {compressed} | {codes} |" in text
