"""What commands print: documents, messages, and names that can forge no line."""

from __future__ import annotations

import json
import logging
import shutil
import sys
import time
from typing import TYPE_CHECKING

import msgspec
import pytest
from rich.table import Table
from rich.text import Text

from rocwheel.cli.output import (
    LazyConsole,
    messages,
    prepare_streams,
    print_json,
    print_line,
    report_error,
    report_warning,
    results,
    setup_logging,
)
from rocwheel.cli.progress import end_progress, make_progress
from rocwheel.cli.tables import cell, print_table
from rocwheel.core.errors import InputError, ProblemsError
from tests.cli.test_failures import ABSENT
from tests.support.bundles import bundle_of
from tests.support.fat_libraries import build_fat_library, make_bundle
from tests.support.places import FIXTURES, ROOT
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    import io
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.command_line import Run


@pytest.fixture
def console() -> LazyConsole:
    return LazyConsole(stderr=True)


def test_plain_text_is_printed_with_escapes_and_without_rich(
    console: LazyConsole, capsys: pytest.CaptureFixture[str]
) -> None:
    console.print("[bold]a\x1b.so[/]", markup=False)
    assert (capsys.readouterr().err, "rich" in vars(console)) == ("[bold]a\\x1b.so[/]\n", False)


def test_plain_text_is_printed_through_rich_if_a_bar_may_be_shown(
    console: LazyConsole, capsys: pytest.CaptureFixture[str]
) -> None:
    with console.rich.capture() as captured:
        console.print("above the bar", markup=False)
    assert (captured.get(), capsys.readouterr().err) == ("above the bar\n", "")


@pytest.mark.parametrize("is_loaded", [False, True])
@pytest.mark.parametrize("markup", [False, True])
def test_a_message_is_printed_on_one_line(
    console: LazyConsole, capsys: pytest.CaptureFixture[str], *, is_loaded: bool, markup: bool
) -> None:
    if is_loaded:
        assert console.rich
    console.print("a\n::error::b\tc", markup=markup)
    assert capsys.readouterr().err == "a\\n::error::b\\tc\n"


@pytest.mark.parametrize("text", ["x" * 300, "[bold]é[/]  b ", ""], ids=ascii)
def test_plain_text_looks_the_same_with_and_without_rich(
    console: LazyConsole, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    console.print(text, markup=False)
    own = capsys.readouterr().err
    console.rich.print(text, markup=False)
    assert capsys.readouterr().err == own


def test_markup_is_rendered_by_rich(console: LazyConsole, capsys: pytest.CaptureFixture[str]) -> None:
    console.print("[bold]a[/]")
    assert capsys.readouterr().err == "a\n"


def test_printing_to_a_closed_stream_does_not_fail(console: LazyConsole, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    console.print("a", markup=False)
    assert not console.is_terminal


@pytest.mark.parametrize(("variable", "expected"), [(None, False), ("FORCE_COLOR", True), ("TTY_COMPATIBLE", True)])
def test_an_environment_variable_can_force_terminal_output(
    console: LazyConsole, monkeypatch: pytest.MonkeyPatch, variable: str | None, *, expected: bool
) -> None:
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    if variable:
        monkeypatch.setenv(variable, "1")
    assert console.is_terminal is expected


class _Facts(msgspec.Struct, frozen=True):
    path: str
    targets: tuple[str, ...]


def test_json_is_one_object_that_begins_with_its_schema(capsys: pytest.CaptureFixture[str]) -> None:
    print_json("device", 1, _Facts("libfat.so", ("gfx906", "gfx1030")))
    printed = capsys.readouterr()
    assert printed.err == ""
    assert list(json.loads(printed.out).items()) == [
        ("schema", "rocwheel.device/1"), ("path", "libfat.so"), ("targets", ["gfx906", "gfx1030"]),
    ]  # fmt: skip


def test_json_preserves_non_ascii_text(capsys: pytest.CaptureFixture[str]) -> None:
    print_json("device", 1, _Facts("bibliothèque/ライブラリ.so", ()))
    assert json.loads(capsys.readouterr().out)["path"] == "bibliothèque/ライブラリ.so"


def test_an_error_is_one_line_on_standard_error_with_literal_brackets(messages: io.StringIO) -> None:
    found = "[bold]not markup[/] " + "x" * 300
    report_error(InputError("libfat.so", found))
    assert messages.getvalue() == f"error: libfat.so: {found}\n"


def test_each_problem_is_one_line_for_any_names(messages: io.StringIO) -> None:
    problems = [InputError("a\nb", "is for c\nd", expected="e\nf", remedy="Name g\nh."), InputError("i", "j")]
    report_error(ProblemsError("k\nl", problems))
    assert messages.getvalue() == (
        "error: k\\nl: 2 problems\n  a\\nb: is for c\\nd; expected e\\nf. Name g\\nh.\n  i: j\n"
    )


def test_a_warning_is_one_line(messages: io.StringIO) -> None:
    report_warning("no code for gfx942 in a\n::error::[bold]b[/]")
    assert messages.getvalue() == "warning: no code for gfx942 in a\\n::error::[bold]b[/]\n"


LIBRARY = FIXTURES / "v22/libtwo.plain.so"
NAME = "a\n::error::forged.so"


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """Return a library of such a name."""
    (tmp_path / "in").mkdir()
    return shutil.copyfile(LIBRARY, tmp_path / "in" / NAME)


@pytest.mark.parametrize(
    "words",
    [
        ("inspect",),
        ("inspect", "--verbose"),
        ("runpath", "show"),
        ("runpath", "set", "$ORIGIN", "--output", "out"),
        ("device", "extract", "--output", "out"),
    ],
    ids=" ".join,
)
def test_a_file_name_cannot_start_a_new_output_line(
    run: Run, library: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run(*words, library)
    assert "::error::" in done.stdout + done.stderr
    assert [line for line in (done.stdout + done.stderr).splitlines() if line.startswith("::")] == []


def test_a_library_name_in_a_warning_cannot_start_a_new_line(run: Run, library: Path, tmp_path: Path) -> None:
    other = build_fat_library(tmp_path / "in/libx.so", [make_bundle(0, "gfx942")])
    words = ("--targets", "gfx942", "--dest-dir", tmp_path / "out")
    done = run("device", "split", other.parent, *words)
    assert f"warning: no code for gfx942 in {library.name}".replace("\n", "\\n") in done.stderr.splitlines()


def test_a_wheel_name_cannot_start_a_new_line(run: Run, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "demo", {"demo/a.so": LIBRARY})
    forged = wheel.rename(tmp_path / f"demo\n::error::x{wheel.name.removeprefix('demo')}")
    done = run("device", "prune", forged, "--targets", "gfx906", "--output", tmp_path / "other-1.0-py3-none-any.whl")
    assert done.status == 2
    assert "::error::" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_report_name_cannot_start_a_new_line(run: Run, library: Path, tmp_path: Path) -> None:
    place = tmp_path / "a\n::error::b.html"
    done = run("report", library, "-o", place)
    assert done.stderr.startswith(f"{tmp_path}/a\\n::error::b.html: ")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("words", [("inspect",), ("repair", "--dry-run"), ("audit",), ("device", "list")], ids=" ".join)
def test_a_member_name_cannot_start_a_new_line(run: Run, tmp_path: Path, words: tuple[str, ...]) -> None:
    wheel = make_wheel(tmp_path, "demo", {f"demo/{NAME}": LIBRARY})
    done = run(*words, wheel)
    assert "::error::" in done.stdout + done.stderr
    assert [line for line in (done.stdout + done.stderr).splitlines() if line.startswith("::")] == []


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    yield
    root.setLevel(level)
    root.handlers[:] = handlers


@pytest.mark.parametrize(
    ("quiet", "verbose", "shown"),
    [
        pytest.param(False, False, ["warning", "error"], id="by default"),
        pytest.param(False, True, ["debug", "warning", "error"], id="verbose"),
        pytest.param(True, False, ["error"], id="quiet"),
        pytest.param(True, True, ["error"], id="quiet wins"),
    ],
)
def test_log_records_are_filtered_by_level(messages: io.StringIO, quiet: bool, verbose: bool, shown: list[str]) -> None:
    setup_logging(quiet=quiet, verbose=verbose)
    logger = logging.getLogger("rocwheel.test")
    logger.debug("debug")
    logger.warning("warning")
    logger.error("error")
    assert [line.split()[-1] for line in messages.getvalue().splitlines()] == shown


ELF_FIXTURES = ROOT / "tests/fixtures/elf"
HOSTILE = "a\x1b]0;owned\x1b[31m.so"
SHOWN = "a\\x1b]0;owned\\x1b[31m.so"


@pytest.mark.parametrize("words", ABSENT)
def test_a_hostile_name_is_escaped_in_an_error(
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
        "runpath set $ORIGIN NAME -o out",
        "inspect NAME",
        "inspect -v .",
        "audit .",
        "targets runs-on gfx906 CODE",
        "targets runs-on gfx1030 CODE",
        "device extract CODE -o out",
        "device list .",
    ],
)
def test_a_hostile_name_is_escaped_in_a_result(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    shutil.copy(ELF_FIXTURES / "program-pie", folder / HOSTILE)
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
def test_every_print_function_escapes_special_characters(capsys: pytest.CaptureFixture[str], character: str) -> None:
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


def test_output_escapes_control_characters(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
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
