"""Every harness runs over its seeds and the same few changes of them, so that none goes out of date."""

from __future__ import annotations

import pytest

from trials.fuzz.attempt import attempt
from trials.fuzz.corpora import read_corpus
from trials.fuzz.harness import Harness, all_harnesses
from trials.fuzz.mutations import mutate

_HARNESSES = all_harnesses()
MUTATIONS = 200


@pytest.mark.parametrize("harness", _HARNESSES, ids=[harness.name for harness in _HARNESSES])
def test_a_harness_finds_no_fault_in_its_seeds_and_their_mutations(harness: Harness) -> None:
    seeds = list(harness.seeds())
    assert seeds
    for data in [*seeds, *mutate(harness.name, seeds, harness.tokens, MUTATIONS)]:
        fault = attempt(harness, data)
        assert fault is None, f"{data!r}: {fault.kind}: {fault.text}"


@pytest.mark.parametrize("harness", _HARNESSES, ids=[harness.name for harness in _HARNESSES])
def test_a_harness_finds_no_fault_in_its_corpus(harness: Harness) -> None:
    for data in read_corpus(harness.name):
        fault = attempt(harness, data)
        assert fault is None, f"{data!r}: {fault.kind}: {fault.text}"


@pytest.mark.parametrize("harness", _HARNESSES, ids=[harness.name for harness in _HARNESSES])
def test_a_harness_accepts_at_least_one_of_its_seeds(harness: Harness) -> None:
    def accepts(seed: bytes) -> bool:
        try:
            harness.run(seed)
        except harness.expected:
            return False
        return True

    assert any(map(accepts, harness.seeds()))


def test_harness_names_are_unique_and_begin_with_their_module() -> None:
    names = [harness.name for harness in _HARNESSES]
    assert len(set(names)) == len(names)
    for harness in _HARNESSES:
        assert harness.run.__module__ == f"trials.fuzz.harnesses.{harness.name.partition('.')[0]}"
