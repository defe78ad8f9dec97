"""What commands print: results apart from messages, the same to people and to machines."""

from __future__ import annotations

import io
import json
import logging
from typing import TYPE_CHECKING

import msgspec
import pytest
from rich.console import Console
from rich.table import Table

from rocwheel.cli import output
from rocwheel.foundation.errors import InputError
from rocwheel.foundation.progress import SILENT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.command_line import Run


class _Facts(msgspec.Struct, frozen=True):
    path: str
    targets: tuple[str, ...]


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    yield
    root.setLevel(level)
    root.handlers[:] = handlers


@pytest.fixture
def messages(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """Catch what goes to standard error, as a log would."""
    stream = io.StringIO()
    monkeypatch.setattr(output, "messages", Console(file=stream, soft_wrap=True, highlight=False))
    return stream


def test_json_is_one_object_led_by_its_schema(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_json("device", 1, _Facts("libfat.so", ("gfx906", "gfx1030")))
    printed = capsys.readouterr()
    assert printed.err == ""
    assert list(json.loads(printed.out).items()) == [
        ("schema", "rocwheel.device/1"), ("path", "libfat.so"), ("targets", ["gfx906", "gfx1030"]),
    ]  # fmt: skip


def test_json_keeps_text_of_any_language(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_json("device", 1, _Facts("bibliothèque/ライブラリ.so", ()))
    assert json.loads(capsys.readouterr().out)["path"] == "bibliothèque/ライブラリ.so"


def test_a_table_never_folds_or_cuts_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table("path")
    table.add_row("a" * 500)
    output.print_table(table)
    assert "a" * 500 in capsys.readouterr().out


def test_an_error_is_one_line_on_standard_error_with_its_brackets(messages: io.StringIO) -> None:
    found = "[bold]not markup[/] " + "x" * 300
    output.report_error(InputError("libfat.so", found))
    assert messages.getvalue() == f"error: libfat.so: {found}\n"


@pytest.mark.parametrize(
    ("quiet", "verbose", "shown"),
    [
        pytest.param(False, False, ["warning", "error"], id="by default"),
        pytest.param(False, True, ["debug", "warning", "error"], id="verbose"),
        pytest.param(True, False, ["error"], id="quiet"),
        pytest.param(True, True, ["error"], id="quiet wins"),
    ],
)
def test_log_records_are_shown_by_level(messages: io.StringIO, quiet: bool, verbose: bool, shown: list[str]) -> None:
    output.setup_logging(quiet=quiet, verbose=verbose)
    logger = logging.getLogger("rocwheel.test")
    logger.debug("debug")
    logger.warning("warning")
    logger.error("error")
    assert [line.split()[-1] for line in messages.getvalue().splitlines()] == shown


def test_quiet_work_reports_no_progress() -> None:
    assert output.make_progress(quiet=True) is SILENT


def test_a_log_gets_a_line_for_each_step_and_each_quarter(messages: io.StringIO) -> None:
    progress = output.make_progress(quiet=False)
    progress.begin("building [rocm]", 1000)
    for _ in range(100):
        progress.advance(10)
    progress.end()
    assert messages.getvalue().splitlines() == [
        "building [rocm] ...", "building [rocm] 25 %", "building [rocm] 50 %", "building [rocm] 75 %",
    ]  # fmt: skip


def test_a_step_of_unknown_length_gets_one_line(messages: io.StringIO) -> None:
    progress = output.make_progress(quiet=False)
    progress.begin("installing", 0)
    progress.advance(10)
    progress.end()
    assert messages.getvalue() == "installing ...\n"


def test_a_jump_over_several_quarters_is_reported_once(messages: io.StringIO) -> None:
    progress = output.make_progress(quiet=False)
    progress.begin("building", 100)
    progress.advance(60)
    progress.advance(40)
    progress.end()
    assert messages.getvalue().splitlines() == ["building ...", "building 50 %"]


def test_a_terminal_shows_a_bar_and_clears_it(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(output, "messages", Console(file=stream, force_terminal=True, width=80))
    progress = output.make_progress(quiet=False)
    progress.advance(5)
    progress.begin("reading", 100)
    progress.begin("building", 100)
    progress.advance(50)
    progress.end()
    progress.end()
    assert "building" in stream.getvalue()
    assert stream.getvalue().endswith("\x1b[2K")


def test_a_file_name_with_what_looks_like_an_emoji_is_printed_as_it_is(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a:x:b"
    path.write_bytes(b"text")
    assert run("device", "list", path).stderr.startswith(f"error: {path}: no device code; ")
