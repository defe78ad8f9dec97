"""``scripts/environments``: which runs there are, what they mean, and the table."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.environments.matrix import PYTHONS, Interpreter, Release, Run, absent_pythons, make_runs
from scripts.environments.table import Result, make_table, read_outcome, replace_table
from tests.support.places import ROOT

OLD = Release("bookworm", Path("/chroots/bookworm"), "2.36", "3.11")
NEW = Release("sid", Path("/chroots/sid"), "2.43", "3.14")
OTHER = Interpreter("3.12", Path("/opt/python"), Path("/opt/python/bin/python3.12"))


def test_every_python_and_user_tests_the_packages_and_the_default_python_also_tests_rocwheel() -> None:
    runs = [(run.release.name, run.python, run.user, run.subject) for run in make_runs([OLD, NEW], [OTHER])]
    assert runs == [
        ("bookworm", "3.11", "root", "packages"),
        ("bookworm", "3.11", "user", "packages"),
        ("bookworm", "3.12", "root", "packages"),
        ("bookworm", "3.12", "user", "packages"),
        ("bookworm", "3.11", "user", "rocwheel"),
        ("sid", "3.14", "root", "packages"),
        ("sid", "3.14", "user", "packages"),
        ("sid", "3.12", "root", "packages"),
        ("sid", "3.12", "user", "packages"),
        ("sid", "3.14", "user", "rocwheel"),
    ]


def test_an_interpreter_with_the_default_version_of_the_release_is_not_used() -> None:
    same = Interpreter("3.11", Path("/opt/python"), Path("/opt/python/bin/python3.11"))
    assert {run.interpreter for run in make_runs([OLD], [same])} == {None}


def test_pythons_missing_from_all_releases_run_on_the_build_machine() -> None:
    assert absent_pythons([OLD, NEW]) == ["3.10", "3.12", "3.13"]


def test_the_tested_pythons_match_the_project_classifiers() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    assert all(f'"Programming Language :: Python :: {version}"' in text for version in PYTHONS)
    assert text.count('"Programming Language :: Python :: 3.') == len(PYTHONS)


@pytest.mark.parametrize(
    ("status", "output", "outcome"),
    [
        (0, "== rocm-sdk test\n14 checks: 11 passed, 0 failed, 3 left out\n== bye\n", (True, "11 passed, 3 left out")),
        (0, "14 checks: 14 passed, 0 failed, 0 left out\n", (True, "14 passed")),
        (0, "14 checks: 14 passed, 0 failed\n", (True, "14 passed")),
        (1, "== venv\n== pip install\nERROR: no\n", (False, "**failed: pip install**")),
        (1, "mount: permission denied\n", (False, "**failed: start**")),
        (0, "== rocm-sdk test\n", (False, "**failed: no sum of the self-test**")),
        (0, "14 checks: 13 passed, 1 failed, 0 left out\n", (False, "**failed: no sum of the self-test**")),
    ],
)
def test_the_output_of_a_check_becomes_a_short_outcome(status: int, output: str, outcome: tuple[bool, str]) -> None:
    assert read_outcome(status, output) == outcome


def test_the_table_has_a_row_for_each_python_in_each_release() -> None:
    results = [
        Result(Run(OLD, "root", "packages"), passed=True, outcome="11 passed"),
        Result(Run(OLD, "user", "packages"), passed=False, outcome="**failed: venv**"),
        Result(Run(OLD, "user", "packages", OTHER), passed=True, outcome="12 passed"),
        Result(Run(OLD, "user", "rocwheel"), passed=True, outcome="13 passed"),
    ]
    assert make_table(results) == (
        "| Debian | glibc | Python | packages, as root | packages, as a user | rocwheel itself |\n"
        "| --- | --- | --- | --- | --- | --- |\n"
        "| bookworm | 2.36 | 3.11 | 11 passed | **failed: venv** | 13 passed |\n"
        "| bookworm | 2.36 | 3.12 (build machine's) | not run | 12 passed | not run |\n"
    )


def test_the_new_table_replaces_the_old_table_in_the_page() -> None:
    begin = "<!-- environments: make environments writes this table -->"
    page = f"# Title\n\n{begin}\n| old |\n<!-- environments end -->\n\nEnd.\n"
    assert replace_table(page, "| new |\n") == page.replace("old", "new")
    with pytest.raises(ValueError, match="the page has no place for the table"):
        replace_table("# Title\n", "| new |\n")
