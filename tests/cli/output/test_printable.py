"""Names with control characters, as a hostile archive may have them, never reach a terminal raw."""

from __future__ import annotations

import logging
import shutil
import time
from typing import TYPE_CHECKING

import pytest
from rich.table import Table
from rich.text import Text

from rocwheel.cli.output import (
    messages,
    prepare_streams,
    print_line,
    report_error,
    report_warning,
    results,
    setup_logging,
)
from rocwheel.cli.progress import end_progress, make_progress
from rocwheel.cli.tables import cell, print_table
from rocwheel.core.errors import InputError
from tests.cli.test_failures import ABSENT
from tests.support.bundles import bundle_of
from tests.support.places import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run

FIXTURES = ROOT / "tests/fixtures/elf"
HOSTILE = "a\x1b]0;owned\x1b[31m.so"
SHOWN = "a\\x1b]0;owned\\x1b[31m.so"


@pytest.mark.parametrize("words", ABSENT)
def test_an_error_shows_a_hostile_name_with_escapes(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fi\x1ble").write_text("x")
    given = ABSENT[words].replace("absent", "ab\x1bsent").replace("file", "fi\x1ble").replace("gfx9zz", "gfx\x1b9")
    finished = run(*words.split(), *given.split(" "))
    assert "\x1b" not in finished.stdout + finished.stderr


@pytest.mark.parametrize(
    "words",
    [
        "runpath show NAME",
        "runpath set $ORIGIN NAME -d out",
        "inspect NAME",
        "inspect -v .",
        "audit .",
        "targets runs-on gfx906 CODE",
        "targets runs-on gfx1030 CODE",
        "device extract CODE -d out",
        "device list .",
    ],
)
def test_a_result_shows_a_hostile_name_with_escapes(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    shutil.copy(FIXTURES / "program-pie", folder / HOSTILE)
    (folder / f"code{HOSTILE}").write_bytes(bundle_of("gfx906"))
    given = [{"NAME": HOSTILE, "CODE": f"code{HOSTILE}"}.get(word, word) for word in words.split()]
    finished = run(*given)
    printed = finished.stdout + finished.stderr
    assert "\x1b" not in printed
    assert SHOWN in printed


ODD = {
    "\x07": "\\x07",
    "\x08": "\\x08",
    "\x0b": "\\x0b",
    "\x0c": "\\x0c",
    "\r": "\\x0d",
    "\x9b": "\\x9b",
    "\u2028": "\\u2028",
    "\u2029": "\\u2029",
    "\u202a": "\\u202a",
    "\u202e": "\\u202e",
    "\u2066": "\\u2066",
    "\u2069": "\\u2069",
}


@pytest.mark.parametrize("character", ODD, ids=ascii)
def test_no_way_of_printing_leaves_out_or_obeys_a_character(capsys: pytest.CaptureFixture[str], character: str) -> None:
    prepare_streams()
    name, shown = f"a{character}b", f"a{ODD[character]}b"
    table = Table("name", "cell")
    table.add_row(name, cell(name))
    print_table(table)
    print_line(name)
    results.print(name, markup=False)
    report_warning(name)
    report_error(InputError(name, "is not there"))
    printed = capsys.readouterr()
    assert (printed.out.count(shown), printed.err.count(shown)) == (4, 2)
    assert character not in (printed.out + printed.err)


def test_what_every_way_of_printing_shows(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rocwheel.cli.progress._LINES_AFTER", 0)
    prepare_streams()
    setup_logging(quiet=False, verbose=True)
    table = Table("name")
    table.add_row(HOSTILE)
    table.add_row(Text(HOSTILE))
    print_table(table)
    print_line(HOSTILE)
    results.print(HOSTILE, markup=False)
    messages.print(HOSTILE, markup=False)
    report_warning(HOSTILE)
    report_error(InputError(HOSTILE, "is not there"))
    logging.getLogger("rocwheel.test").info("%s", HOSTILE)
    make_progress(quiet=False).begin(HOSTILE, 1)
    time.sleep(0.5)
    end_progress()
    printed = capsys.readouterr()
    assert printed.out.count("\\x1b[31m.so") == 4
    assert printed.err.count("\\x1b[31m.so") == 5
    assert "\x1b" not in printed.out + printed.err
