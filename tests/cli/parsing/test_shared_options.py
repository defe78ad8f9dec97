"""Options that are read into one value for several commands."""

from __future__ import annotations

from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from rocwheel.cli.options import takes


def read_size(width: Annotated[int, typer.Option()], height: Annotated[int, typer.Option()] = 2) -> int:
    return width * height


def sized_app() -> typer.Typer:
    app = typer.Typer(add_completion=False)

    @app.command()
    @takes(size=read_size)
    def show(name: Annotated[str, typer.Argument()], *, plain: bool = False, size: int) -> None:
        """Show a size."""
        typer.echo(f"{name} {size} {plain}")

    return app


def test_a_command_gets_the_value_that_is_made_from_the_shared_options() -> None:
    finished = CliRunner().invoke(sized_app(), ["box", "--width", "3", "--height", "5"])
    assert finished.output == "box 15 False\n"


def test_shared_options_keep_their_defaults() -> None:
    assert CliRunner().invoke(sized_app(), ["box", "--width", "3", "--plain"]).output == "box 6 True\n"


@pytest.mark.parametrize("arguments", [["box"], ["--width", "3"]], ids=["of the value", "of the command"])
def test_what_has_no_default_is_required(arguments: list[str]) -> None:
    assert CliRunner().invoke(sized_app(), arguments).exit_code == 2


def test_the_help_is_that_of_the_command_with_required_options_first() -> None:
    command = typer.main.get_command(sized_app())
    assert command.help == "Show a size."
    assert [parameter.name for parameter in command.params] == ["name", "width", "plain", "height"]
