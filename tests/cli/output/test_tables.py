"""Lines and tables of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from rocwheel.cli.tables import print_table

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.support.command_line import Run


def test_a_table_never_folds_or_cuts_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table("path")
    table.add_row("a" * 500)
    print_table(table)
    assert "a" * 500 in capsys.readouterr().out


def test_a_text_in_a_table_begins_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table("path\nof", show_footer=True)
    table.add_column("size", footer="2\n3")
    table.add_row("a\n::error::b", "1")
    print_table(table)
    out = capsys.readouterr().out
    assert next(line for line in out.splitlines() if "::error::" in line).split()[1] == "a\\n::error::b"
    assert "path\\nof" in out
    assert "2\\n3" in out


def test_a_file_name_with_what_looks_like_an_emoji_is_printed_as_it_is(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a:x:b"
    path.write_bytes(b"text")
    assert run("device", "list", path).stderr.startswith(f"error: {path}: no device code; ")
