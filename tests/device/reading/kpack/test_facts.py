"""Tests of the facts of kpack archives and split libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given

from rocwheel.binary.kpack.archive import Scheme
from rocwheel.core.errors import InputError, RocwheelError
from rocwheel.device.reading.facts import list_device_code, read_device_facts
from rocwheel.device.reading.inspection import inspect_paths
from rocwheel.device.reading.payload_facts import Look
from rocwheel.device.reading.target_facts import summarize_targets
from tests.support.damage import damaged
from tests.support.kpack_files import SPLIT_NAME, make_kpack, split_two
from tests.support.libraries import needs_compiler
from tests.support.places import FIXTURES

if TYPE_CHECKING:
    from pathlib import Path

CODE = (FIXTURES / "elf/gfx906.co").read_bytes()


def test_archive_says_what_it_is_and_what_is_in_it(tmp_path: Path) -> None:
    path = tmp_path / "x.kpack"
    path.write_bytes(make_kpack({("lib/a.so", 0, "gfx906|gfx906:xnack-"): CODE}, scheme=Scheme.NONE))
    facts = list_device_code(path)
    assert (facts.container, facts.wrappers, facts.problems) == ("kpack archive", 0, ())
    assert facts.kpack is not None
    [archive] = facts.kpack.archives
    assert (archive.group, archive.family, archive.scheme, archive.targets, archive.code_objects) == (
        "group", "gfx906", "none", ("gfx906", "gfx906:xnack-"), 1)  # fmt: skip
    assert [(entry.id, entry.target, entry.size, entry.is_shared) for entry in facts.entries] == [
        ("lib/a.so#0", "gfx906:xnack-", len(CODE), False),
        ("lib/a.so#0", "gfx906", len(CODE), True),
    ]


def test_code_object_of_several_targets_counts_once(tmp_path: Path) -> None:
    path = tmp_path / "x.kpack"
    path.write_bytes(make_kpack({("lib/a.so", 0, "gfx906|gfx906:xnack-"): CODE}))
    facts = list_device_code(path)
    assert facts.raw_size == len(CODE)
    assert 0 < facts.size < len(CODE)
    assert [(t.target, t.size, t.bundles, t.missing) for t in summarize_targets(facts)] == [
        ("gfx906", len(CODE), 1, 0),
        ("gfx906:xnack-", len(CODE), 1, 0),
    ]


@pytest.mark.parametrize(("scheme", "deep", "kernels"), [
    (Scheme.NONE, False, 1), (Scheme.ZSTD, False, None), (Scheme.ZSTD, True, 1)])  # fmt: skip
def test_kernels_are_counted_where_they_need_not_be_decompressed_or_on_demand(
    scheme: Scheme, deep: bool, kernels: int | None
) -> None:
    data = make_kpack({("lib/a.so", 0, "gfx906"): CODE}, scheme=scheme)
    facts = read_device_facts(memoryview(data), name="x.kpack", look=Look(deep=deep))
    assert facts is not None
    assert [entry.kernels for entry in facts.entries] == [kernels]


def test_code_for_another_processor_is_a_problem() -> None:
    data = make_kpack({("lib/a.so", 0, "gfx908"): CODE})
    facts = read_device_facts(memoryview(data), name="x.kpack", look=Look(deep=True))
    assert facts is not None
    [problem] = facts.problems
    assert problem.startswith("x.kpack: offset 0x48: lib/a.so#0 for gfx908 is code for gfx906")


def test_key_without_code_for_a_target_of_the_archive_is_a_problem() -> None:
    data = make_kpack({("a", 0, "gfx906|gfx906:xnack-"): CODE, ("a", 1, "gfx906"): CODE, ("b", 0, "gfx906"): CODE})
    facts = read_device_facts(memoryview(data), name="x.kpack")
    assert facts is not None
    assert facts.problems == (
        (
            "x.kpack: no code for gfx906:xnack- under a#1 and 1 other key, though an archive lists the target: "
            "runtimes refuse the library on such a GPU, and some on every GPU"
        ),
    )


def test_damaged_code_is_an_error_or_a_problem() -> None:
    data = bytearray(make_kpack({("a", 0, "gfx906"): CODE}))
    data[80:90] = bytes(10)
    with pytest.raises(InputError, match=r"^x.kpack: offset 0x48: a damaged zstd frame"):
        read_device_facts(memoryview(data), name="x.kpack", look=Look(deep=True))
    facts = read_device_facts(memoryview(data), name="x.kpack", look=Look(deep=True, strict=False))
    assert facts is not None
    assert facts.problems[0].startswith("x.kpack: offset 0x48: a damaged zstd frame")


@needs_compiler
def test_split_library_is_followed_to_its_archives(tmp_path: Path) -> None:
    library = split_two(tmp_path)
    facts = list_device_code(library)
    assert (facts.container, facts.wrappers, facts.problems) == ("kpacked fat binary", 2, ())
    assert facts.kpack is not None
    assert [unit.key for unit in facts.kpack.wrappers] == [f"{SPLIT_NAME}#0", f"{SPLIT_NAME}#1"]
    assert [archive.path for archive in facts.kpack.archives] == [
        str(tmp_path / f".kpack/two_{target}.kpack") for target in ("gfx1030", "gfx906", "gfx90a")
    ]
    assert [(t.target, t.bundles, t.missing) for t in summarize_targets(facts)] == [
        (target, 2, 0) for target in ("gfx1030", "gfx906", "gfx906:xnack+", "gfx906:xnack-", "gfx90a:xnack+")
    ]


@needs_compiler
def test_archives_of_a_library_in_memory_are_not_looked_for(tmp_path: Path) -> None:
    library = split_two(tmp_path)
    facts = read_device_facts(memoryview(library.read_bytes()), name=str(library))
    assert facts is not None
    assert (facts.container, facts.wrappers, facts.entries, facts.problems) == ("kpacked fat binary", 2, (), ())


@needs_compiler
def test_marker_of_missing_archives_is_a_problem(tmp_path: Path) -> None:
    library = split_two(tmp_path)
    for archive in (tmp_path / ".kpack").iterdir():
        archive.unlink()
    assert list_device_code(library).problems == (
        f"{library}: its code is in kpack archives that are not there: ../.kpack/two_@GFXARCH@.kpack",
    )


@needs_compiler
def test_damaged_archive_is_a_problem_of_its_library(tmp_path: Path) -> None:
    library = split_two(tmp_path)
    archive = tmp_path / ".kpack/two_gfx906.kpack"
    archive.write_bytes(archive.read_bytes()[:-9])
    facts = list_device_code(library)
    assert [problem.partition(": MessagePack")[0] for problem in facts.problems] == [f"{archive}: offset 0xa2b"]
    assert [(t.target, t.bundles) for t in summarize_targets(facts)] == [("gfx1030", 2), ("gfx90a:xnack+", 2)]


@needs_compiler
def test_unit_whose_code_another_target_has_is_a_problem(tmp_path: Path) -> None:
    library = split_two(tmp_path, lost=[(1, "gfx1030")])
    assert list_device_code(library).problems == (
        (
            f"{library}: no code for gfx1030 under {SPLIT_NAME}#1, though an archive lists the target: runtimes refuse "
            "the library on such a GPU, and some on every GPU"
        ),
    )


@needs_compiler
def test_indexes_that_were_counted_for_each_target_are_recognised(tmp_path: Path) -> None:
    library = split_two(tmp_path, lost=[(0, "gfx1030"), (0, "gfx90a:xnack+")], renumber=True)
    wrong = [problem for problem in list_device_code(library).problems if "is the code of" in problem]
    assert wrong == [
        f"{tmp_path}/.kpack/two_{name}.kpack: what is stored as {SPLIT_NAME}#0 for {target} is the code of "
        f"{SPLIT_NAME}#1: its indexes were counted for each target, as some releases of AMD's tool do"
        for name, target in (("gfx1030", "gfx1030"), ("gfx90a", "gfx90a:xnack+"))
    ]


@needs_compiler
def test_archives_in_a_folder_are_inspected_like_any_binary(tmp_path: Path) -> None:
    split_two(tmp_path)
    found = {
        facts.path.rpartition("/")[2]: facts.device.container for facts in inspect_paths([tmp_path]) if facts.device
    }
    assert found == {
        "libtwo.so": "kpacked fat binary",
        "two_gfx1030.kpack": "kpack archive",
        "two_gfx906.kpack": "kpack archive",
        "two_gfx90a.kpack": "kpack archive",
    }


KERNELS = {("a", 0, "gfx906|gfx906:xnack-"): CODE, ("b", 1, "gfx906"): CODE}


@given(damaged([make_kpack(KERNELS, scheme=scheme) for scheme in Scheme]))
def test_damaged_archive_gives_facts_or_errors_that_name_it(content: bytes) -> None:
    try:
        read_device_facts(memoryview(content), name="x.kpack", look=Look(deep=True, limit=1 << 24))
    except RocwheelError as e:
        assert str(e).startswith("x.kpack")  # noqa: PT017


@needs_compiler
def test_damaged_library_gives_facts_or_errors_that_name_it(tmp_path: Path) -> None:
    library = split_two(tmp_path)

    @given(damaged([library.read_bytes()]))
    def check(content: bytes) -> None:
        try:
            read_device_facts(memoryview(content), name="libtwo.so", folder=library.parent)
        except RocwheelError as e:
            assert str(e).startswith("libtwo.so")  # noqa: PT017

    check()
