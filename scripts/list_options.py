"""Print the option names of each command of the rocwheel that this Python has, as JSON; compare_outputs.py runs it."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

from rocwheel import cli


def options(command: Any, name: str) -> dict[str, list[str]]:
    """Return the option names of a command and of those below it, by the words that call it."""
    found = {name: sorted({text for one in command.params for text in (*one.opts, *one.secondary_opts)})}
    for part in getattr(command, "commands", {}).values():
        found |= options(part, f"{name} {part.name}")
    return found


if __name__ == "__main__":
    # Earlier versions have an application of Typer; the earliest register all commands when they are imported.
    getattr(cli, "load_commands", lambda: None)()
    app: Any = cli.app
    if not hasattr(app, "commands"):
        app = import_module("typer.main").get_command(app)
    print(json.dumps(options(app, "rocwheel")))
