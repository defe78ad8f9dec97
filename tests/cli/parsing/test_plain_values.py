"""Values that are taken as they are: those that Typer would make of the same words."""

from __future__ import annotations

import json
import subprocess
import sys
from enum import Enum
from pathlib import Path  # noqa: TC003 (Typer evaluates the types)
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.main import get_command

from rocwheel.cli.app import CommandApp
from tests.support.bundles import bundle_of
from tests.support.command_line import as_user, needs_setpriv, rocwheel

if TYPE_CHECKING:
    from collections.abc import Callable


class Color(Enum):
    """A choice whose values are not its names."""

    RED = "red"
    NAVY = "dark-blue"


def make_command(app: typer.Typer, called: list[dict[str, Any]]) -> Callable[[list[str]], Any]:
    @app.command()
    def one(
        files: Annotated[list[Path] | None, typer.Argument()] = None,
        *,
        text: str = "none",
        place: Path | None = None,
        color: Color = Color.RED,
        side: Literal["left", "right"] = "left",
        number: Annotated[int, typer.Option(min=0, max=9)] = 4,
        factor: Annotated[float | None, typer.Option(min=0.5)] = None,
        word: list[str] | None = None,
        flag: bool = False,
    ) -> None:
        called.append({**locals(), "called": None})

    return lambda words: get_command(app)(words, standalone_mode=False)


WORDS = st.lists(
    st.one_of(
        st.sampled_from(["--text=", "--text=a b", "--place=/etc/hosts", "--place=.", "--place=/no/such"]),
        st.sampled_from(["--color=red", "--color=dark-blue", "--color=NAVY", "--color=", "--side=right", "--side=x"]),
        st.sampled_from(["--number=3", "--number=12", "--number= 3", "--number=x", "--word=a", "--word=", "--flag"]),
        st.sampled_from(
            ["--number=0", "--number=007", "--number=+3", "--number=-1", "--number=1_0", "--number=\u0663"]
        ),
        st.sampled_from(["--factor=1", "--factor=2.5", "--factor=0.1", "--factor=1e3", "--factor=nan", "--factor=.5"]),
        # Empty places are refused, unlike by Typer: tests/cli/parsing/test_place_words.py.
        st.sampled_from([".", "/etc/hosts", "/no/such", "\udcff", "a\0b", "/etc/hosts/below"]),
    ),
    max_size=6,
)


@given(words=WORDS)
def test_values_and_errors_are_those_of_typer(words: list[str]) -> None:
    outcomes: list[tuple[object, str]] = []
    for app in (CommandApp("one"), typer.Typer()):
        called: list[dict[str, Any]] = []
        try:
            make_command(app, called)(words)
        except typer.TyperException as e:
            outcomes.append((type(e), str(e)))
        else:
            outcomes.append(
                ([{name: value for name, value in each.items() if name != "called"} for each in called], "")
            )
    assert outcomes[0] == outcomes[1]


@pytest.mark.slow
@needs_setpriv
def test_a_file_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    closed = tmp_path / "closed.whl"
    closed.touch(0)
    done = rocwheel("inspect", closed, before=as_user())
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: {closed}: can't be read (Permission denied). Check that it exists and may be read.\n"


@pytest.mark.slow
@needs_setpriv
@pytest.mark.parametrize("command", [("device", "list"), ("targets", "runs-on", "gfx906"), ("inspect",)], ids=" ".join)
def test_one_file_that_may_not_be_read_does_not_keep_from_the_others(tmp_path: Path, command: tuple[str, ...]) -> None:
    for name in ("closed.hipfb", "open.hipfb"):
        (tmp_path / name).write_bytes(bundle_of("gfx906"))
    (tmp_path / "closed.hipfb").chmod(0)
    paths = [tmp_path / name for name in ("closed.hipfb", "open.hipfb")]
    done = rocwheel(*command, *paths, before=as_user())
    assert done.returncode == (1 if command == ("device", "list") else 2)
    assert f"{paths[0]}: can't be read (Permission denied)" in done.stderr
    assert str(paths[1]) in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "is_loaded"),
    [
        (["targets", "list", "gfx1100"], False),
        (["inspect", "no-such", "--limit", "2"], False),
        (["inspect", "no-such", "--limit", "no number"], True),
    ],
    ids=["plain", "a number", "refused"],
)
def test_pydantic_is_loaded_only_for_values_that_are_not_plain(
    tmp_path: Path, words: list[str], is_loaded: bool
) -> None:
    code = (
        f"import atexit, json, sys; sys.argv = ['rocwheel', *{words}]; from rocwheel.__main__ import main\n"
        "atexit.register(lambda: print(json.dumps('pydantic' in sys.modules))); main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert json.loads(done.stdout.splitlines()[-1]) is is_loaded
