"""All commands: importing a module registers its command, and --help lists them in this order."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rocwheel.cli.parsing.app import app

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["load_commands", "needed_modules"]

_MODULES = (
    "about",
    "audit.audit",
    "build",
    "plan.plan",
    "promote",
    "demo",
    "diff.diff",
    "index.index",
    "index.yank",
    "index.unyank",
    "index.mirror",
    "publish",
    "inspect",
    "lock.lock",
    "repair.repair",
    "report.report",
    "verify",
    "attest",
    "wheel.wheel",
    "cache.group",
    "cache.info",
    "cache.prune",
    "cache.verify",
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

    A group's command needs the group but none of the group's others.

    A short command would spend most of its time with importing the others.
    """
    for name in needed_modules(words):
        import_module(f"{__package__}.{name}")
    groups: list[Any] = app.registered_groups
    groups.sort(key=lambda group: _place(group.typer_instance.registered_callback))
    for part in (app, *(group.typer_instance for group in groups)):
        part.registered_commands.sort(key=_place)


def needed_modules(words: Sequence[str]) -> Sequence[str]:
    """Return the modules below this package that a command line of these words may need."""
    if list(words) == ["--version"]:
        return ()
    if list(words[:1]) == ["help"]:  # which describes any of them
        return _MODULES
    named = [name for name in _MODULES if words and name.split(".")[0] == words[0]]
    second = words[1] if len(words) > 1 else ""
    own = [name for name in named if _last_part(name) == second]
    if own:
        return [name for name in named if _last_part(name) == "group"] + own
    # `index` is a command beside `index yank`, and no group, which would list its commands.
    return [name for name in named if name == f"{words[0]}.{words[0]}"] or named or _MODULES


def _last_part(name: str) -> str:
    """Return the command that a module holds as it is typed, without what keeps it from being a word of Python."""
    return name.rpartition(".")[2].rstrip("_").replace("_", "-")


def _place(registered: Any) -> int:
    """Return the place in the list of the module that registered this, since another may have been imported first."""
    return _MODULES.index(registered.callback.__module__.removeprefix(f"{__package__}."))
