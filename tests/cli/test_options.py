"""Options that are read into one value for several commands."""

from __future__ import annotations

from typing import Annotated

import click
import pytest
from click.testing import CliRunner

from rocwheel.cli.app import Group
from rocwheel.cli.options import takes
from rocwheel.cli.parameters import argument, option


def read_size(width: Annotated[int, option(help="")], height: Annotated[int, option(help="")] = 2) -> int:
    return width * height


def sized_command() -> click.Command:
    group = Group()

    @group.command()
    @takes(size=read_size)
    def show(
        name: Annotated[str, argument(help="")],
        *,
        plain: Annotated[bool, option("--plain", help="")] = False,
        size: int,
    ) -> None:
        """Show a size."""
        click.echo(f"{name} {size} {plain}")

    return show


def test_a_command_receives_the_value_built_from_the_shared_options() -> None:
    finished = CliRunner().invoke(sized_command(), ["box", "--width", "3", "--height", "5"])
    assert finished.output == "box 15 False\n"


def test_shared_options_keep_their_defaults() -> None:
    assert CliRunner().invoke(sized_command(), ["box", "--width", "3", "--plain"]).output == "box 6 True\n"


@pytest.mark.parametrize("arguments", [["box"], ["--width", "3"]], ids=["of the value", "of the command"])
def test_a_parameter_without_a_default_is_required(arguments: list[str]) -> None:
    assert CliRunner().invoke(sized_command(), arguments).exit_code == 2


def test_the_help_comes_from_the_command_and_lists_required_options_first() -> None:
    command = sized_command()
    assert command.help == "Show a size."
    assert [parameter.name for parameter in command.params] == ["name", "width", "plain", "height"]
