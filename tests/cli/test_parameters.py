"""What the words of options and arguments become, and which are refused: places that are empty or hardly URLs."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest

from rocwheel.cli.app import Command
from rocwheel.cli.parameters import FolderToMake, argument, option
from rocwheel.core.errors import InputError

if TYPE_CHECKING:
    from tests.support.command_line import Run


class Color(Enum):
    """A choice whose values are not its names."""

    RED = "red"
    NAVY = "dark-blue"


def values(*words: str) -> dict[str, Any]:
    """Return what the function of a command gets for these words, but for what it gets without any."""
    called: list[dict[str, Any]] = []

    def one(
        files: Annotated[list[Path] | None, argument(help="", metavar="PATH")] = None,
        *,
        text: Annotated[str, option(help="")] = "none",
        output: Annotated[Path | None, option("--output", "-o", help="", metavar="OUTPUT")] = None,
        library: Annotated[str, option(help="", metavar="LIBRARY")] = "none",
        table: Annotated[Path | None, option(help="", metavar="FILE")] = None,
        color: Annotated[Color, option(help="")] = Color.RED,
        side: Annotated[Literal["left", "right"] | None, option(help="")] = None,
        number: Annotated[int, option(help="", min=0, max=9)] = 4,
        word: Annotated[list[str] | None, option(help="", check=lambda words: words and sorted(words))] = None,
        flag: Annotated[bool, option(help="")] = False,
        maybe: Annotated[bool | None, option(help="")] = None,
    ) -> None:
        called.append(dict(locals()))

    Command("one", one).main([*words], standalone_mode=False)
    without = {"text": "none", "library": "none", "color": Color.RED, "number": 4, "flag": False}
    return {name: value for name, value in called[0].items() if name != "called" and value != without.get(name)}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], {}),
        (["a", "b/"], {"files": [Path("a"), Path("b")]}),
        (["--text="], {"text": ""}),
        (["-o", "out/"], {"output": FolderToMake("out")}),
        (["--color=dark-blue", "--side", "right"], {"color": Color.NAVY, "side": "right"}),
        (["--number=0"], {"number": 0}),
        (["--number=+3"], {"number": 3}),
        (["--word=b", "--word=a"], {"word": ["a", "b"]}),
        (["--flag", "--no-maybe"], {"flag": True, "maybe": False}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_arguments_are_converted_according_to_their_type_hints(words: list[str], expected: dict[str, Any]) -> None:
    assert values(*words) == expected


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("--color=NAVY", "--color: is 'NAVY'; expected one of red, dark-blue"),
        ("--side=", "--side: is ''; expected one of left, right"),
        ("--number=10", "--number: is '10'; expected a whole number from 0 to 9"),
        ("--number=1e3", "--number: is '1e3'; expected a whole number from 0 to 9"),
        ("--number=\u0663", "--number: is '\u0663'; expected a whole number from 0 to 9"),
        (
            "--output=",
            (
                "--output: is empty; expected a file, folder, or URL. Check for an unset variable. For the current "
                "folder, use '.'."
            ),
        ),
        (
            "--library=",
            "--library: is empty; expected the name of a library, such as librccl.so.1. Check for an unset variable.",
        ),
        (
            "",
            (
                "PATH: is empty; expected a file, folder, or URL. Check for an unset variable. For the current folder, "
                "use '.'."
            ),
        ),
        (
            "s3:/a",
            (
                "s3:/a: has only one slash after its scheme; expected s3:// for a URL. For a path that begins this "
                "way, write ./s3:/..."
            ),
        ),
        (
            "s3:b",
            (
                "s3:b: has no slashes after its scheme; expected s3:// for a URL. For a path that begins this way, "
                "write ./s3:..."
            ),
        ),
        ("--table=a/", "a/: is a folder; expected a file. Change --table."),
    ],
)
def test_a_value_outside_the_choices_is_refused(word: str, told: str) -> None:
    with pytest.raises(InputError) as raised:
        values(word)
    assert str(raised.value) == told


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["index", "."], "--output"),
        (["lock", "rocm"], "--index-url"),
    ],
)
def test_an_empty_option_value_is_not_a_path(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run(*words, name, "")
    expected = f"error: {name}: is empty; expected a file, folder, or URL. Check for an unset variable."
    assert (done.status, expected in done.stderr) == (2, True), done.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_empty_option_value_is_not_a_library_name(run: Run) -> None:
    done = run("repair", "a.whl", "--dlopen", "")
    assert (done.status, done.stderr) == (
        2,
        (
            "error: --dlopen: is empty; expected the name of a library, such as librccl.so.1. Check for an unset "
            "variable.\n"
        ),
    )


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["publish", ".", ""], "STORE"),
        (["audit", ""], "PATH"),
    ],
)
def test_an_empty_argument_is_not_a_path(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run(*words)
    assert (done.status, f"error: {name}: is empty" in done.stderr) == (2, True), done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [
        ("publish", ".", "s3:/bucket/rocm"),
        ("index", ".", "--output", "file:/somewhere"),
    ],
)
def test_a_url_with_one_slash_is_not_a_path(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    word = next(word for word in words if ":/" in word)
    done = run(*words)
    begin = f"{word.partition(':')[0]}:/"
    expected = (
        f"{word}: has only one slash after its scheme; expected {begin}/ for a URL. For a path that begins this way, "
        f"write ./{begin}..."
    )
    assert (done.status, expected in done.stderr) == (2, True), done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_url_like_path_needs_a_leading_dot(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "error: file:x: can't be read (No such file" in run("inspect", "./file:x").stderr
