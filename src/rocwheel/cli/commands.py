"""All commands: importing a module registers its command, and --help lists them in this order."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rocwheel.cli.parsing.app import app

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["load_commands"]

_MODULES = (
    "about",
    "audit.audit",
    "build",
    "plan",
    "promote",
    "demo",
    "index.index",
    "index.yank",
    "index.unyank",
    "index.mirror",
    "publish",
    "inspect",
    "lock.lock",
    "repair.repair",
    "wheel",
    "selector.group",
    "selector.merge",
    "artifacts.group",
    "artifacts.list",
    "artifacts.archive",
    "artifacts.extract",
    "artifacts.fetch",
    "artifacts.from_deb",
    "artifacts.from_prefix",
    "artifacts.merge",
    "targets.group",
    "targets.list",
    "targets.expand",
    "targets.flags",
    "targets.coherent",
    "targets.runs_on",
    "targets.detect",
    "targets.check",
    "device.group",
    "device.list",
    "device.extract",
    "device.bundle",
    "device.compress",
    "device.prune",
    "device.retarget",
    "device.split",
    "device.join",
    "jax.group",
    "jax.bazelrc",
    "jax.starlark",
    "jax.commands",
    "jax.translate",
    "jax.migrate",
    "jax.wheel",
    "jax.wheel_binary",
    "jax.wheel_targets",
    "runpath.group",
    "runpath.show",
    "runpath.set",
    "runpath.for_",
    "torch.group",
    "torch.init",
    "torch.requirements",
    "torch.runpath",
    "version",
    "help",
)
"""Each command's module, below this package. Its first part is the first word of the command line."""


def load_commands(words: Sequence[str] = ()) -> None:
    """Register the commands that a command line of these words may need, and all of them where that is not clear.

    A short command would spend most of its time with importing the others.
    """
    for name in _needed(words):
        import_module(f"{__package__}.{name}")
    groups: list[Any] = app.registered_groups
    groups.sort(key=lambda group: _place(group.typer_instance.registered_callback))
    for part in (app, *(group.typer_instance for group in groups)):
        part.registered_commands.sort(key=_place)


def _needed(words: Sequence[str]) -> Sequence[str]:
    if list(words) == ["--version"]:
        return ()
    return [name for name in _MODULES if words and name.split(".")[0] == words[0]] or _MODULES


def _place(registered: Any) -> int:
    """Return the place in the list of the module that registered this, since another may have been imported first."""
    return _MODULES.index(registered.callback.__module__.removeprefix(f"{__package__}."))
