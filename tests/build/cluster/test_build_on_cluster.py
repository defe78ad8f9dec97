"""Tests of `rocwheel.build.cluster.build_on_cluster`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.build.cluster.build_on_cluster import divide_wheel
from rocwheel.build.members import PlacedMember
from rocwheel.build.plan import FileMember, TarEntry, TarMember, TextMember
from rocwheel.core.reading import FileRange
from rocwheel.wheels.packing import Span

MIB = 1 << 20


def file(name: str, size: int, *, compress_for: str | None = None) -> PlacedMember:
    source = FileRange(f"/in/{name}", 0, size)
    member = FileMember(name, 0o644, source, "core_lib", name, compress_for=compress_for)
    return PlacedMember(name, 0o644, member)


def tar(compression: str, size: int) -> PlacedMember:
    member = file("inside", size).member
    assert isinstance(member, FileMember)
    entries = (TarEntry("inside", 0o644, member),)
    return PlacedMember("devel.tar", 0o644, TarMember("devel.tar", compression, entries))  # type: ignore[arg-type]


def shape(members: list[PlacedMember], level: int = 6) -> list[object]:
    """Return the names of each group, and name and starts of each cut member."""
    return [
        (unit.members[0].name, [span.start // MIB for span in unit.spans])
        if unit.spans
        else [placed.name for placed in unit.members]
        for unit in divide_wheel(members, level)
    ]


def test_small_members_are_grouped_up_to_32_mib() -> None:
    members = [file("a", 20 * MIB), file("b", 12 * MIB), file("c", 1), file("d", 1)]
    assert shape(members) == [["a", "b"], ["c", "d"]]


def test_a_member_without_a_file_counts_toward_the_group_size() -> None:
    text = PlacedMember("text", 0o644, TextMember("text", "x"))
    assert shape([text, file("a", 32 * MIB - 1)]) == [["text"], ["a"]]


def test_many_tiny_files_are_divided_into_several_tasks() -> None:
    groups = shape([file(str(number), 1) for number in range(1200)])
    assert [len(group) for group in groups if isinstance(group, list)] == [512, 512, 176]


def test_a_member_compressed_as_a_whole_is_a_separate_task() -> None:
    assert shape([file("a", 47 * MIB), file("b", 1)]) == [["a"], ["b"]]


def test_a_large_member_is_divided_into_spans_and_the_last_span_is_open_ended() -> None:
    (unit,) = divide_wheel([file("a", 150 * MIB)], 6)
    assert unit.spans == (
        Span(0, 32 * MIB),
        Span(32 * MIB, 64 * MIB),
        Span(64 * MIB, 96 * MIB),
        Span(96 * MIB, 128 * MIB),
        Span(128 * MIB, None),
    )


def test_stored_members_make_larger_tasks() -> None:
    assert shape([file("a", 150 * MIB), file("b", 100 * MIB), file("c", 20 * MIB)], level=0) == [
        ("a", [0, 128]),
        ["b", "c"],
    ]


def test_device_code_to_be_compressed_is_never_divided() -> None:
    assert shape([file("a", 1000 * MIB, compress_for="7.0")]) == [["a"]]


@pytest.mark.parametrize(
    ("compression", "expected"),
    [("xz", [("devel.tar", [0, 16, 32])]), ("zst", [("devel.tar", [0, 32])]), ("none", [["devel.tar"]])],
)
def test_a_compressed_tar_is_divided_by_the_cost_of_its_codec(compression: str, expected: list[object]) -> None:
    assert shape([tar(compression, 40 * MIB)]) == expected


@given(st.lists(st.integers(0, 400 * MIB)), st.sampled_from([0, 1, 6]))
def test_every_member_is_in_one_unit_in_wheel_order(sizes: list[int], level: int) -> None:
    members = [file(str(number), size) for number, size in enumerate(sizes)]
    assert [placed for unit in divide_wheel(members, level) for placed in unit.members] == members


@given(st.integers(1, 5000 * MIB), st.sampled_from([0, 6]))
def test_the_spans_of_a_member_are_contiguous(size: int, level: int) -> None:
    for unit in divide_wheel([file("a", size)], level):
        spans = unit.spans or (Span(0),)
        assert spans[0].start == 0
        assert [span.stop for span in spans[:-1]] == [span.start for span in spans[1:]]
        assert spans[-1].stop is None
