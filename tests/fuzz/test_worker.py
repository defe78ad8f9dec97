"""A run of the fuzzer itself, where it is installed."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.places import ROOT
from trials.fuzz.harness import find_harness
from trials.fuzz.merging import best_inputs
from trials.fuzz.runner import Row, run_harness, table

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


def test_a_run_counts_executions_and_coverage_and_finds_no_fault_in_good_code(tmp_path: Path) -> None:
    pytest.importorskip("atheris")
    row = run_harness("wheels.record", tmp_path, 2)
    assert row.executions > 100
    assert row.coverage > 0
    assert row.found == ()
    assert list((tmp_path / "corpus/wheels.record").iterdir())


def test_inputs_that_add_coverage_to_the_seeds_are_kept(tmp_path: Path) -> None:
    pytest.importorskip("atheris")
    harness = find_harness("texts.size")
    (tmp_path / "inputs").mkdir()
    for name, data in (("seed", next(iter(harness.seeds()))), ("refused", b"1 yard")):
        (tmp_path / "inputs" / name).write_bytes(data)
    assert best_inputs(harness, tmp_path / "inputs") == [b"1 yard"]


def test_an_old_finding_that_is_fixed_is_removed(tmp_path: Path) -> None:
    pytest.importorskip("atheris")
    (tmp_path / "found").mkdir()
    (tmp_path / "found/texts.size-0123456789ab").write_bytes(b"10 GB")
    (tmp_path / "found/texts.size-0123456789ab.txt").write_text("texts.size: crash: x\n")
    assert run_harness("texts.size", tmp_path, 1).found == ()
    assert list((tmp_path / "found").iterdir()) == []


_LOADED = """
import sys, types
sys.modules["atheris"] = types.ModuleType("atheris")
import trials.fuzz.worker
print([name for name in trials.fuzz.worker.GUIDES if name in sys.modules])
print([name for name in sys.modules if name.startswith("rocwheel.") and "core" not in name])
"""


def test_instrumented_modules_are_not_loaded_before_coverage_is_counted() -> None:
    """What is loaded before is not counted, apart from our errors: all inputs of a harness would look alike."""
    done = subprocess.run([sys.executable, "-c", _LOADED], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "['rocwheel']\n[]\n"


def test_coverage_for_metadata_includes_the_email_parser(tmp_path: Path) -> None:
    pytest.importorskip("atheris")
    assert run_harness("wheels.metadata", tmp_path, 2).coverage > 100


def test_a_process_that_exits_is_reported(tmp_path: Path) -> None:
    row = run_harness("wheels.nothing", tmp_path, 2)
    assert row.found == ("wheels.nothing: the process ended with status 1",)


def test_the_table_has_a_row_for_each_harness() -> None:
    rows = [Row("a.b", 10, 12345, 99, ()), Row("c.d", 0, 0, 0, ("c.d: crash: x",))]
    assert table(rows).splitlines()[2:] == ["| a.b | 12,345 | 1,234 | 99 | nothing |", "| c.d | 0 | 0 | 0 | 1 |"]
