"""What argparse takes for the end of the options, though it was given as a value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["require_values"]


def require_values(options: Mapping[str, object]) -> None:
    """Raise `InputError` for a value ``--``, which argparse takes for the end of the options and removes.

    ``options`` are its values by the option's name without dashes. Before Python 3.13 it leaves an empty list in the
    value's place.
    """
    for name, value in options.items():
        values = value if isinstance(value, list) and value else [value]
        if any(item in ("--", []) for item in values):
            option = f"--{name}"
            raise InputError(option, "is '--', which ends the options", expected="a value")
