"""Tests of `rocwheel.audit.report_files`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.libraries import needs_compiler

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run


pytestmark = [pytest.mark.slow, needs_compiler, pytest.mark.usefixtures("in_an_empty_folder")]


NESTED = "[" * 100_000


def test_a_deeply_nested_baseline_is_an_error(run: Run, bad_wheel: Path, tmp_path: Path) -> None:
    (tmp_path / "known.json").write_text(f'{{"x": {NESTED}')
    done = run("audit", bad_wheel, "--baseline", tmp_path / "known.json")
    assert (
        done.status,
        done.stderr.startswith(f"error: {tmp_path}/known.json: isn't a baseline (it is nested too deeply"),
    ) == (
        2,
        True,
    )


def test_known_findings_do_not_fail_after_the_wheel_is_moved(run: Run, bad_wheel: Path, tmp_path: Path) -> None:
    assert run("audit", bad_wheel, "--baseline", tmp_path / "known.json", "--update-baseline").status == 0
    moved = bad_wheel.rename(tmp_path / bad_wheel.name)
    finished = run("audit", moved, "--baseline", tmp_path / "known.json")
    assert finished.status == 0
    assert finished.stdout.endswith("0 errors, 0 warnings, 0 notes, 1 known\n")


def test_a_baseline_path_is_relative_to_the_settings_file(run: Run, bad_wheel: Path, tmp_path: Path) -> None:
    settings = tmp_path / "settings/audit.toml"
    settings.parent.mkdir()
    settings.write_text('[tool.rocwheel.audit]\nbaseline = "known.json"\n')
    assert run("audit", bad_wheel, "--config", settings, "--update-baseline").status == 0
    assert (settings.parent / "known.json").exists()
    assert run("audit", bad_wheel, "--config", settings).stdout.endswith("0 errors, 0 warnings, 0 notes, 1 known\n")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (None, "can't be read (No such file or directory). Create one with --update-baseline."),
        (
            "{}",
            (
                "isn't a baseline (Object missing required field `schema`). "
                "Create a new baseline in another file with --update-baseline."
            ),
        ),
        (
            '{"schema": "rocwheel.audit-baseline/3", "findings": []}',
            (
                "is a baseline with schema 'rocwheel.audit-baseline/3'; expected rocwheel.audit-baseline/4. "
                "Create a new baseline with --update-baseline."
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


@pytest.mark.parametrize("options", [("--sarif",), ("--update-baseline", "--baseline")], ids=["SARIF", "baseline"])
def test_an_audited_wheel_is_never_overwritten(run: Run, bad_wheel: Path, options: tuple[str, ...]) -> None:
    before = bad_wheel.read_bytes()
    done = run("audit", bad_wheel, *options, bad_wheel)
    assert (done.status, bad_wheel.read_bytes() == before) == (2, True)
    assert "is one of the audited files; expected a different output file" in " ".join(done.stderr.split())


@pytest.mark.parametrize("options", [("--sarif",), ("--update-baseline", "--baseline")], ids=["SARIF", "baseline"])
@pytest.mark.parametrize("place", ["folder of wheels", "environment", "linked environment"])
def test_no_file_in_an_audited_folder_is_overwritten(
    run: Run, bad_wheel: Path, tmp_path: Path, place: str, options: tuple[str, ...]
) -> None:
    environment = tmp_path / "env"
    (environment / "demo").mkdir(parents=True)
    (tmp_path / "link").symlink_to(environment)
    target = bad_wheel if place == "folder of wheels" else environment / "demo/a.so"
    if target != bad_wheel:
        target.write_bytes((tmp_path / "tree/a.so").read_bytes())
    before = target.read_bytes()
    audited = {
        "folder of wheels": bad_wheel.parent,
        "environment": environment,
        "linked environment": tmp_path / "link",
    }
    done = run("audit", audited[place], *options, target)
    assert (done.status, target.read_bytes() == before) == (2, True)
    assert "is one of the audited files; expected a different output file" in " ".join(done.stderr.split())


def test_reports_inside_the_audited_folder_can_be_updated(run: Run, bad_wheel: Path, tmp_path: Path) -> None:
    folder = tmp_path / "tree"
    options = (folder, "--sarif", folder / "a.sarif", "--update-baseline", "--baseline", folder / "known.json")
    assert run("audit", *options).status == 0
    (folder / "known.json").write_text(
        known := (folder / "known.json").read_text().replace("audit-baseline/4", "audit-baseline/1")
    )
    assert run("audit", *options).status == 0
    assert (folder / "known.json").read_text() != known
    assert run("audit", bad_wheel.parent, "--sarif", bad_wheel.parent / "a.sarif").status == 1


@pytest.mark.parametrize("options", [("--sarif",), ("--update-baseline", "--baseline")], ids=["SARIF", "baseline"])
def test_no_folder_is_created_for_a_report(run: Run, bad_wheel: Path, tmp_path: Path, options: tuple[str, ...]) -> None:
    target = tmp_path / "nosuch/report.json"
    assert run("audit", bad_wheel, *options, target) == (
        2,
        "",
        f"error: {target}: would be written to {target.parent}; expected an existing folder\n",
    )
    assert not target.parent.exists()


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    """Return a file with settings of an audit."""
    path = tmp_path / "audit.toml"
    path.write_text("[tool.rocwheel.audit]\n")
    return path


@pytest.mark.parametrize("options", [("--sarif",), ("--update-baseline", "--baseline")], ids=["SARIF", "baseline"])
@pytest.mark.parametrize("is_named", [True, False], ids=["--config", "pyproject.toml"])
def test_the_settings_file_is_never_overwritten(
    run: Run, bad_wheel: Path, settings: Path, options: tuple[str, ...], *, is_named: bool
) -> None:
    config = ("--config", settings) if is_named else ()
    path = settings if is_named else settings.rename(settings.with_name("pyproject.toml"))
    link = path.with_name("link")
    link.symlink_to(path)
    for target in (path, link):
        found = "is the settings file of this audit; expected a different output file"
        assert run("audit", bad_wheel, *config, *options, target) == (2, "", f"error: {target}: {found}\n")
    assert (path.read_text(), link.is_symlink()) == ("[tool.rocwheel.audit]\n", True)


@pytest.mark.parametrize("update", [(), ("--update-baseline",)], ids=["read", "updated"])
def test_a_report_never_overwrites_the_baseline(
    run: Run, bad_wheel: Path, tmp_path: Path, update: tuple[str, ...]
) -> None:
    known = tmp_path / "known.json"
    assert run("audit", bad_wheel, "--baseline", known, "--update-baseline").status == 0
    before = known.read_text()
    done = run("audit", bad_wheel, "--baseline", known, *update, "--sarif", tmp_path / "dist/../known.json")
    found = "is the baseline of this audit; expected a different output file"
    assert done == (2, "", f"error: {tmp_path}/dist/../known.json: {found}\n")
    assert known.read_text() == before


def test_a_new_baseline_does_not_replace_other_files(run: Run, bad_wheel: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("Notes\n")
    done = run("audit", bad_wheel, "--baseline", tmp_path / "notes.txt", "--update-baseline")
    found = "isn't a baseline; expected a new file, or a baseline to update"
    assert done == (2, "", f"error: {tmp_path}/notes.txt: {found}\n")
    assert (tmp_path / "notes.txt").read_text() == "Notes\n"


@pytest.mark.parametrize("text", ["", '{"schema": "rocwheel.audit-baseline/4", "find'], ids=["empty", "cut off"])
def test_an_empty_file_or_a_damaged_baseline_is_replaced(run: Run, bad_wheel: Path, tmp_path: Path, text: str) -> None:
    (tmp_path / "known.json").write_text(text)
    assert run("audit", bad_wheel, "--baseline", tmp_path / "known.json", "--update-baseline").status == 0
    assert run("audit", bad_wheel, "--baseline", tmp_path / "known.json").status == 0
