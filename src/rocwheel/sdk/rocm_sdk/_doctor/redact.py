"""Removes from a report what should not be published: the path of the home folder, passwords and tokens."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .._gpus.system import System

__all__ = ["hide_secret", "shorten_home"]

SECRET_NAME = re.compile("TOKEN|SECRET|PASS|KEY|CREDENTIAL|AUTH", re.IGNORECASE)
USER_OF_URL = re.compile(r"(?<=://)[^/@\s]+(?=@)")
HIDDEN = "***"


def hide_secret(name: str, value: str) -> str:
    """Return the value of a variable: ``***`` when its name says that it is secret; without the user of an URL."""
    return HIDDEN if SECRET_NAME.search(name) else USER_OF_URL.sub(HIDDEN, value)


def shorten_home(system: System, value: object) -> object:
    """Return a JSON value in whose texts ``~`` stands for the home folder of the user."""
    home = system.home().rstrip("/")
    # A path ends where a name of a file or folder can't go on.
    return _replace(re.compile(rf"(?<![\w./-]){re.escape(home)}(?![\w.-])"), value) if home else value


def _replace(home: re.Pattern[str], value: object) -> object:
    if isinstance(value, str):
        return home.sub("~", value)
    if isinstance(value, dict):
        return {name: _replace(home, item) for name, item in value.items()}
    if isinstance(value, list):
        return [_replace(home, item) for item in value]
    return value
