"""Consoles that have Rich print only what they can't print themselves."""

from __future__ import annotations

import sys

import pytest

from rocwheel.cli.output import LazyConsole


@pytest.fixture
def console() -> LazyConsole:
    return LazyConsole(stderr=True)


def test_plain_text_is_printed_without_rich_and_with_escapes(
    console: LazyConsole, capsys: pytest.CaptureFixture[str]
) -> None:
    console.print("[bold]a\x1b.so[/]", markup=False)
    assert (capsys.readouterr().err, "rich" in vars(console)) == ("[bold]a\\x1b.so[/]\n", False)


def test_plain_text_goes_through_rich_where_a_bar_may_be_shown(
    console: LazyConsole, capsys: pytest.CaptureFixture[str]
) -> None:
    with console.rich.capture() as captured:
        console.print("above the bar", markup=False)
    assert (captured.get(), capsys.readouterr().err) == ("above the bar\n", "")


@pytest.mark.parametrize("is_loaded", [False, True])
@pytest.mark.parametrize("markup", [False, True])
def test_a_text_is_one_line(
    console: LazyConsole, capsys: pytest.CaptureFixture[str], *, is_loaded: bool, markup: bool
) -> None:
    if is_loaded:
        assert console.rich
    console.print("a\n::error::b\tc", markup=markup)
    assert capsys.readouterr().err == "a\\n::error::b\\tc\n"


@pytest.mark.parametrize("text", ["x" * 300, "[bold]é[/]  b ", ""], ids=ascii)
def test_plain_text_looks_the_same_as_by_rich(
    console: LazyConsole, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    console.print(text, markup=False)
    own = capsys.readouterr().err
    console.rich.print(text, markup=False)
    assert capsys.readouterr().err == own


def test_markup_is_for_rich(console: LazyConsole, capsys: pytest.CaptureFixture[str]) -> None:
    console.print("[bold]a[/]")
    assert capsys.readouterr().err == "a\n"


def test_a_closed_output_takes_everything(console: LazyConsole, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    console.print("a", markup=False)
    assert not console.is_terminal


@pytest.mark.parametrize(("variable", "expected"), [(None, False), ("FORCE_COLOR", True), ("TTY_COMPATIBLE", True)])
def test_what_is_no_terminal_counts_as_one_where_the_user_says_so(
    console: LazyConsole, monkeypatch: pytest.MonkeyPatch, variable: str | None, *, expected: bool
) -> None:
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    if variable:
        monkeypatch.setenv(variable, "1")
    assert console.is_terminal is expected
