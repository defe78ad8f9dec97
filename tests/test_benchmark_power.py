"""The power that benchmarks say a command's cost grows with."""

from __future__ import annotations

import math

import pytest

from rocwheel.binary.elf.facts import read_elf
from trials.benchmarks.cases.worst import make_library
from trials.benchmarks.commands import power


@pytest.mark.parametrize(
    ("costs", "expected"),
    [((0.5, 1.5, 2.5, 4.5), 1.0), ((0.5, 1.5, 4.5, 16.5), 2.0), ((0.0, 1.0, 1.0, 1.0), 0.0)],
    ids=["linear", "quadratic", "constant"],
)
def test_startup_is_not_counted_in_the_power(costs: tuple[float, ...], expected: float) -> None:
    assert power((1, 100, 200, 400), costs) == pytest.approx(expected)


def test_costs_no_larger_than_startup_have_no_power() -> None:
    assert math.isnan(power((1, 100, 200), (0.5, 0.4, 0.6)))


def test_the_libraries_of_the_worst_inputs_have_the_names_and_entries_that_they_are_made_of() -> None:
    elf = read_elf(memoryview(make_library("liba.so", ["libb.so"], "$ORIGIN:/opt/lib", tag=15)), name="liba.so")
    assert (elf.soname, elf.needed, elf.rpath, elf.runpath) == ("liba.so", ("libb.so",), "$ORIGIN:/opt/lib", None)
    assert elf.is_loadable
