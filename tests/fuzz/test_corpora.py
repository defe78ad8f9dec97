"""The corpora in the repository."""

from __future__ import annotations

import random
from pathlib import Path

from trials.fuzz.corpora import FOLDER, MOST_BYTES, MOST_INPUTS, read_corpus, write_corpus
from trials.fuzz.harness import all_harnesses
from trials.fuzz.merging import order_inputs


def test_a_corpus_is_read_back_sorted_by_size(tmp_path: Path) -> None:
    write_corpus("elf.facts", [b"three", b"", b"one", b"three"], tmp_path)
    assert read_corpus("elf.facts", tmp_path) == [b"", b"one", b"three"]


def test_a_harness_without_a_corpus_has_no_inputs(tmp_path: Path) -> None:
    assert read_corpus("elf.facts", tmp_path) == []
    write_corpus("elf.facts", [], tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_bytes_of_a_corpus_do_not_depend_on_the_order_of_inputs(tmp_path: Path) -> None:
    write_corpus("a.b", [b"x", b"y"], tmp_path)
    write_corpus("c.d", [b"y", b"x"], tmp_path)
    assert (tmp_path / "a.b.tar.xz").read_bytes() == (tmp_path / "c.d.tar.xz").read_bytes()


def test_a_corpus_keeps_the_first_inputs_up_to_the_maximum_number(tmp_path: Path) -> None:
    write_corpus("a.b", [b"%d" % number for number in range(99)], tmp_path)
    assert len(read_corpus("a.b", tmp_path)) == MOST_INPUTS
    assert b"29" in read_corpus("a.b", tmp_path)
    assert b"30" not in read_corpus("a.b", tmp_path)


def test_a_corpus_keeps_the_first_inputs_up_to_the_maximum_size(tmp_path: Path) -> None:
    noise = [random.Random(number).randbytes(10_000) for number in range(3)]  # cannot be compressed
    write_corpus("a.b", noise, tmp_path)
    assert sorted(read_corpus("a.b", tmp_path)) == sorted(noise[:2])
    assert (tmp_path / "a.b.tar.xz").stat().st_size <= MOST_BYTES


def test_inputs_are_ordered_by_the_coverage_they_add_to_the_seeds() -> None:
    control = """4
1
seed
few
many
none
STARTED 0 5
FT 0 1 2 3 4
COV 0 8
STARTED 1 7
FT 1 5
COV 1 9
STARTED 2 9
FT 2 6 7
COV 2 10 11
STARTED 3 9
FT 3
COV 3
"""
    assert order_inputs(control) == [Path("many"), Path("few")]


def test_the_corpora_in_the_repository_are_small_and_belong_to_existing_harnesses() -> None:
    files = list(FOLDER.iterdir())
    assert {file.name.removesuffix(".tar.xz") for file in files} <= {harness.name for harness in all_harnesses()}
    assert max(file.stat().st_size for file in files) <= MOST_BYTES
    assert max(len(read_corpus(file.name.removesuffix(".tar.xz"))) for file in files) <= MOST_INPUTS
    assert sum(file.stat().st_size for file in files) < 2 << 20
