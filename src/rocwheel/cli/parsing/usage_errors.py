"""What is said about a command line that can't be read: the library's errors as rocwheel's own."""

from __future__ import annotations

import re
from typing import Any

import typer

from rocwheel.core.errors import InputError

__all__ = ["usage_error"]


def usage_error(error: typer.TyperException) -> InputError:
    """Return what is wrong with the command line: where, what was found, what was expected.

    Of Typer's errors only the base classes have public names, so that their attributes tell them apart.
    """
    context = getattr(error, "ctx", None)
    place = context.command_path if context else "rocwheel"
    parameter, option = getattr(error, "param", None), getattr(error, "option_name", "")
    if parameter and hasattr(error, "param_type"):
        found = f"the {parameter.param_type_name} {_named(parameter)} is missing"
        return InputError(place, found, remedy=f"See {place} --help.")
    if parameter and (given := _given(error)):
        return InputError(_named(parameter), f"is {given[0]!r}", expected=_expected(parameter))
    if option and context and hasattr(error, "possibilities"):
        return _unknown_option(option, place, error.possibilities, is_group=hasattr(context.command, "commands"))
    if option:
        return InputError(option, "takes no value" if "not take" in error.message else "has no value")
    if extra := re.fullmatch(r"Got unexpected extra argument\S* \((.*)\)", error.message):
        return _extra_argument(extra[1], place, context)
    found = f"{error.message[:1].lower()}{error.message[1:].rstrip('.')}"
    return InputError(_named(parameter) if parameter else place, found, remedy=f"See {place} --help.")


def _unknown_option(option: str, place: str, similar: list[str] | None, *, is_group: bool) -> InputError:
    if is_group:
        remedy = f"Options of a command come behind its name: {place} COMMAND {option}"
    else:
        remedy = f"Did you mean {' or '.join(similar)}?" if similar else f"See {place} --help."
    return InputError(place, f"has no option {option}", remedy=remedy)


def _extra_argument(given: str, place: str, context: Any) -> InputError:
    names = " ".join(_named(one) for one in context.command.params if one.param_type_name == "argument")
    found = f"takes no arguments but {names}" if names else "takes no arguments"
    # As in '--targets gfx906 gfx90a', and in 'build artifacts'.
    remedy = f"Leave it out, or put its option before it, and quote a value that has blanks. See {place} --help."
    return InputError(place, f"{found}, and is given {given!r}", remedy=remedy)


def _named(parameter: Any) -> str:
    if parameter.param_type_name == "option":
        return str(max(parameter.opts, key=len))
    return str(parameter.metavar or parameter.name.upper())


def _given(error: BaseException) -> list[Any]:
    """Return the value that the library refused, if it was the type that it refused."""
    cause = error.__cause__
    return [details["input"] for details in cause.errors()[:1]] if cause and hasattr(cause, "errors") else []


def _expected(parameter: Any) -> str:
    choices = parameter.type_descriptor.choices
    if choices:
        return f"one of {', '.join(str(getattr(choice, 'value', choice)) for choice in choices)}"
    low, high = parameter.min, parameter.max
    if low is not None and high is not None:
        return f"a whole number from {low} to {high}"
    return "a whole number" if low is None else f"a whole number, at least {low}"
