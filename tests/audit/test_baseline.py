"""Known findings in a file: what it keeps, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.libraries import needs_compiler

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run

pytestmark = [pytest.mark.slow, needs_compiler, pytest.mark.usefixtures("in_an_empty_folder")]


NESTED = "[" * 100_000


def test_a_baseline_nested_without_end_is_an_error(run: Run, bad_wheel: Path, tmp_path: Path) -> None:
    (tmp_path / "known.json").write_text(f'{{"x": {NESTED}')
    done = run("audit", bad_wheel, "--baseline", tmp_path / "known.json")
    assert (
        done.status,
        done.stderr.startswith(f"error: {tmp_path}/known.json: is not a baseline (it is nested too deeply"),
    ) == (
        2,
        True,
    )


def test_known_findings_do_not_fail_wherever_the_wheel_lies(run: Run, bad_wheel: Path, tmp_path: Path) -> None:
    assert run("audit", bad_wheel, "--baseline", tmp_path / "known.json", "--update-baseline").status == 0
    moved = bad_wheel.rename(tmp_path / bad_wheel.name)
    finished = run("audit", moved, "--baseline", tmp_path / "known.json")
    assert finished.status == 0
    assert finished.stdout.endswith("0 errors, 0 warnings, 0 notes, 1 known\n")


def test_the_path_of_a_baseline_is_relative_to_the_settings_that_name_it(
    run: Run, bad_wheel: Path, tmp_path: Path
) -> None:
    settings = tmp_path / "settings/audit.toml"
    settings.parent.mkdir()
    settings.write_text('[tool.rocwheel.audit]\nbaseline = "known.json"\n')
    assert run("audit", bad_wheel, "--config", settings, "--update-baseline").status == 0
    assert (settings.parent / "known.json").exists()
    assert run("audit", bad_wheel, "--config", settings).stdout.endswith("0 errors, 0 warnings, 0 notes, 1 known\n")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (None, "can't be read (No such file or directory). Use --update-baseline to make one."),
        (
            "{}",
            (
                "is not a baseline (Object missing required field `schema`). "
                "Use --update-baseline to make one in another file."
            ),
        ),
        (
            '{"schema": "rocwheel.audit-baseline/3", "findings": []}',
            (
                "is a baseline of schema 'rocwheel.audit-baseline/3'; expected rocwheel.audit-baseline/4. "
                "Use --update-baseline to make a new one."
            ),
        ),
    ],
    ids=["absent", "another file", "another schema"],
)
def test_a_file_that_is_not_a_baseline_is_refused(
    run: Run, bad_wheel: Path, tmp_path: Path, text: str | None, found: str
) -> None:
    path = tmp_path / "known.json"
    if text is not None:
        path.write_text(text)
    assert run("audit", bad_wheel, "--baseline", path) == (2, "", f"error: {path}: {found}\n")
