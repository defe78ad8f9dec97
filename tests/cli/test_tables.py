"""Tables, and how they fit a terminal."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rocwheel.cli.tables import UNLIMITED, fit_table, print_table

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run


def test_a_table_never_wraps_or_truncates_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table("path")
    table.add_row("a" * 500)
    print_table(table)
    assert "a" * 500 in capsys.readouterr().out


def test_a_newline_in_a_table_cell_does_not_start_a_new_line(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table("path\nof", show_footer=True)
    table.add_column("size", footer="2\n3")
    table.add_row("a\n::error::b", "1")
    print_table(table)
    out = capsys.readouterr().out
    assert next(line for line in out.splitlines() if "::error::" in line).split()[1] == "a\\n::error::b"
    assert "path\\nof" in out
    assert "2\\n3" in out


def test_a_file_name_that_looks_like_an_emoji_code_is_printed_literally(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a:x:b"
    path.write_bytes(b"text")
    assert run("device", "list", path).stderr.startswith(f"error: {path}: no device code; ")


def shown(table: Table, width: int) -> str:
    """Return what a terminal of a width shows of a table, without the spaces at the ends of lines."""
    console = Console(file=io.StringIO(), width=UNLIMITED)
    for part in fit_table(table, width):
        console.print(part, soft_wrap=not isinstance(part, Table))
    assert isinstance(console.file, io.StringIO)
    return "".join(f"{line.rstrip()}\n" for line in console.file.getvalue().splitlines())


@pytest.fixture
def table() -> Table:
    made = Table(box=box.SIMPLE_HEAD, show_footer=True)
    made.add_column("package", footer="2 packages")
    made.add_column("size", footer="13.2 MB", justify="right")
    made.add_column("requested by")
    made.add_row("rocm-sdk-core", "1.2 MB", "lib/libhsa.so.1: GLIBC_2.17 and more")
    made.add_row("rocm", "12.0 MB", "")
    return made


def test_a_table_that_fits_is_not_changed(table: Table) -> None:
    assert shown(table, 67) == (
        "\n"
        "  package            size   requested by\n"
        " ────────────────────────────────────────────────────────────────\n"
        "  rocm-sdk-core    1.2 MB   lib/libhsa.so.1: GLIBC_2.17 and more\n"
        "  rocm            12.0 MB\n"
        "\n"
        "  2 packages      13.2 MB\n"
        "\n"
    )


def test_text_wraps_between_words_and_numbers_keep_their_units(table: Table) -> None:
    assert shown(table, 48) == (
        "\n"
        "  package            size   requested by\n"
        " ──────────────────────────────────────────────\n"
        "  rocm-sdk-core    1.2 MB   lib/libhsa.so.1:\n"
        "                            GLIBC_2.17 and more\n"
        "  rocm            12.0 MB\n"
        "\n"
        "  2 packages      13.2 MB\n"
        "\n"
    )


def test_columns_that_do_not_fit_are_moved_below_their_rows(table: Table) -> None:
    assert shown(table, 36) == (
        "\n"
        "  package            size\n"
        " ──────────────────────────────────\n"
        "  rocm-sdk-core    1.2 MB\n"
        "    requested by: lib/libhsa.so.1:\n"
        "      GLIBC_2.17 and more\n"
        "  rocm            12.0 MB\n"
        "\n"
        "  2 packages      13.2 MB\n"
        "\n"
    )


def test_the_first_column_always_remains(table: Table) -> None:
    assert shown(table, 18) == (
        "\n"
        "  package\n"
        " ────────────────\n"
        "  rocm-sdk-core\n"
        "    size:\n"
        "      1.2 MB |\n"
        "      requested\n"
        "      by:\n"
        "  lib/libhsa.so.1:\n"
        "      GLIBC_2.17\n"
        "      and more\n"
        "  rocm\n"
        "    size:\n"
        "      12.0 MB\n"
        "\n"
        "  2 packages\n"
        "    size:\n"
        "      13.2 MB\n"
        "\n"
    )


def test_a_word_wider_than_the_terminal_is_not_broken(table: Table) -> None:
    assert shown(table, 8) == (
        "\n"
        " package\n"
        " ──────\n"
        "rocm-sdk-core\n"
        "   size:\n"
        "1.2 MB |\n"
        "requested\n"
        "     by:\n"
        "lib/libhsa.so.1:\n"
        "GLIBC_2.17\n"
        "     and\n"
        "    more\n"
        "  rocm\n"
        "   size:\n"
        " 12.0 MB\n"
        "\n"
        "  2\n"
        "packages\n"
        "   size:\n"
        " 13.2 MB\n"
        "\n"
    )


_TEXTS = st.text(st.sampled_from("ab \n€語"), max_size=30)


@given(
    rows=st.lists(st.tuples(_TEXTS, _TEXTS, _TEXTS), min_size=1, max_size=5),
    width=st.integers(1, 60),
    is_right=st.booleans(),
)
def test_no_word_is_lost_or_broken(rows: list[tuple[str, str, str]], width: int, is_right: bool) -> None:
    table = Table("one", "two", box=box.SIMPLE_HEAD)
    table.add_column("three", justify="right" if is_right else "left")
    for row in rows:
        table.add_row(*map(Text, row))
    words = shown(table, width).replace("two:", "").replace("three:", "").split()
    for row in rows:
        for text in row:
            for word in text.split():
                assert word in words
