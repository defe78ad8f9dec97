"""Chains of edits, as ``make corpus`` does them with the libraries of published wheels."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.support.libraries import needs_compiler
from tests.support.places import FIXTURES
from trials.corpora import chains
from trials.corpora.chains import STEPS, check_library, has_units, units_of

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, needs_compiler]


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """Return a library of two units, by clang 22."""
    shutil.copy(FIXTURES / "v22/libtwo.plain.so", tmp_path / "libtwo.so")
    return tmp_path / "libtwo.so"


def test_every_edit_is_made_once_and_the_library_is_not_modified(library: Path) -> None:
    before = library.read_bytes()
    done, wrong = check_library(library, "two!libtwo.so")
    assert wrong == []
    assert sorted(step.partition(" at level ")[0] for step in done) == sorted(STEPS)
    assert library.read_bytes() == before


def test_the_chain_of_edits_depends_only_on_the_library_name(library: Path) -> None:
    assert check_library(library, "a!libtwo.so") == check_library(library, "a!libtwo.so")
    assert check_library(library, "a!libtwo.so") != check_library(library, "b!libtwo.so")


def test_changed_code_is_detected(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def ruin(_step: str, _level: int, source: Path, place: Path, before: object, _dice: object) -> tuple[Path, object]:
        made = place / source.name
        data = bytearray(source.read_bytes())
        at = data.index(b"\x7fELF", 100)
        data[at + 100] ^= 1
        made.write_bytes(data)
        return made, before

    monkeypatch.setattr(chains, "_do", ruin)
    _, wrong = check_library(library, "two!libtwo.so")
    assert {one.fact for one in wrong} == {*STEPS}
    assert all(one.text.startswith("code is the same: False") for one in wrong)


def test_a_killed_chain_is_reported(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chains, "_do", lambda *_: os._exit(9))
    assert [(one.fact, one.text) for one in check_library(library, "two!libtwo.so")[1]] == [("ended", "9 after ")]


def test_libraries_without_device_code_have_no_units(library: Path) -> None:
    assert (has_units(library), len(units_of(library))) == (True, 2)
    assert not has_units(FIXTURES / "v22/saxpy.hipfb")
