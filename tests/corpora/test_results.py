"""The tables of RESULTS.md that ``make corpus`` writes, and the lists behind it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec
import pytest

from tests.support.places import ROOT
from trials.corpora.__main__ import main
from trials.corpora.checks import CHECKS
from trials.corpora.results import RESULTS, write_page
from trials.corpora.row import Difference, Row, is_explained, read_explanations, unused_explanations
from trials.corpora.wheels import read_list

if TYPE_CHECKING:
    from pathlib import Path

_FOUND = msgspec.toml.decode((ROOT / "trials/corpora/found.toml").read_bytes())["finding"]


def test_the_results_page_is_up_to_date(tmp_path: Path) -> None:
    page = tmp_path / "RESULTS.md"
    page.write_bytes(RESULTS.read_bytes())
    write_page(page)
    assert page.read_text() == RESULTS.read_text()


def test_every_finding_belongs_to_an_existing_check() -> None:
    for finding in _FOUND:
        assert finding["check"] in CHECKS


def test_every_explanation_belongs_to_an_existing_check() -> None:
    assert {one.check for one in read_explanations()} <= CHECKS.keys()


def test_the_list_has_at_least_200_wheels_with_hashes() -> None:
    wheels = read_list()
    assert len({wheel.file for wheel in wheels}) == len(wheels) >= 200
    assert all(re.fullmatch("[0-9a-f]{64}", wheel.sha256) for wheel in wheels)
    assert {wheel.system for wheel in wheels} == {"linux", "windows", "musllinux", "macos"}
    (numpy,) = (wheel for wheel in wheels if wheel.system == "linux" and wheel.file.startswith("numpy-2.4.6-"))
    assert numpy.requirement == f"numpy==2.4.6 --hash=sha256:{numpy.sha256}"


@pytest.mark.parametrize(
    ("file", "fact", "expected"),
    [
        ("linux/jaxlib-0.10.2!jaxlib/_jax.so", "run-path-build-folder", True),
        ("linux/numpy-2.4.6!numpy/_core.so", "run-path-build-folder", False),
        ("linux/jaxlib-0.10.2!jaxlib/_jax.so", "unresolved-library", False),
    ],
)
def test_an_explanation_matches_by_check_tool_fact_and_file(file: str, fact: str, expected: bool) -> None:
    assert is_explained(Difference("audit", file, "error", fact, "searches x")) is expected
    assert not is_explained(Difference("elf", file, "error", fact, "searches x"))


def test_an_unknown_check_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["no-such"]) == 2
    assert capsys.readouterr().err.startswith("no such check: no-such; there are pe, elf, run-paths")


def test_unused_explanations_are_detected() -> None:
    known = [one for one in read_explanations() if one.check == "pe"]
    first = Difference("pe", "a.dll", known[0].tool, known[0].fact, known[0].says)
    assert unused_explanations(Row("pe", 1, 1, (first,))) == tuple(known[1:])
    assert unused_explanations(Row("pe", 1, 1)) == tuple(known)
