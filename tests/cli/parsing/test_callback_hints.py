"""Checks of parameters are written so that Typer reads their hints on every Python."""

from __future__ import annotations

from types import GenericAlias
from typing import TYPE_CHECKING, Any, get_type_hints

from rocwheel.cli import load_commands
from rocwheel.cli.app import app

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def _functions(typer_app: Any) -> Iterator[Callable[..., Any]]:
    yield from (command.callback for command in typer_app.registered_commands)
    for group in typer_app.registered_groups:
        yield from _functions(group.typer_instance)


def _checks() -> set[Callable[..., Any]]:
    load_commands()
    hints = [hint for function in _functions(app) for hint in get_type_hints(function, include_extras=True).values()]
    settings = [setting for hint in hints for setting in getattr(hint, "__metadata__", ())]
    return {setting.callback for setting in settings if getattr(setting, "callback", None)}


def test_no_check_of_a_parameter_takes_what_python_3_10_holds_for_a_class() -> None:
    # There, `isinstance(list[Path], type)` is true, and Typer calls `issubclass` with it, which ends in a traceback.
    checks = _checks()
    assert "regular_places" in {check.__name__ for check in checks}
    assert [check for check in checks if any(isinstance(hint, GenericAlias) for hint in _parameters(check))] == []


def _parameters(check: Callable[..., Any]) -> list[Any]:
    return [hint for name, hint in get_type_hints(check).items() if name != "return"]
