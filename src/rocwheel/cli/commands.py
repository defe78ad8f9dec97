"""All commands: importing a module registers its commands, and --help lists them in this order."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from rocwheel.cli.app import Group, app

if TYPE_CHECKING:
    from collections.abc import Sequence

_COMMANDS = {
    "about": "about",
    "audit": "audit",
    "build": "build",
    "plan": "plan",
    "promote": "release",
    "demo": "build",
    "diff": "diff",
    "index": "index",
    "index yank": "index_yank",
    "index unyank": "index_yank",
    "index mirror": "index_mirror",
    "publish": "publish",
    "inspect": "inspect",
    "lock": "lock",
    "repair": "repair",
    "report": "inspect",
    "verify": "verify",
    "attest": "release",
    "wheel": "wheel",
    "cache info": "cache",
    "cache prune": "cache",
    "cache verify": "cache",
    "selector merge": "release",
    "artifacts list": "artifacts",
    "artifacts archive": "artifacts",
    "artifacts extract": "artifacts",
    "artifacts fetch": "artifacts_make",
    "artifacts from-deb": "artifacts_make",
    "artifacts from-prefix": "artifacts_make",
    "artifacts merge": "artifacts_make",
    "targets list": "targets",
    "targets expand": "targets",
    "targets flags": "targets",
    "targets coherent": "targets_code",
    "targets runs-on": "targets_code",
    "targets detect": "targets",
    "targets check": "targets",
    "device list": "device_read",
    "device extract": "device_read",
    "device bundle": "device_read",
    "device compress": "device_edit",
    "device prune": "device_edit",
    "device retarget": "device_edit",
    "device split": "device_split",
    "device join": "device_split",
    "jax bazelrc": "jax",
    "jax starlark": "jax",
    "jax commands": "jax",
    "jax translate": "jax_migrate",
    "jax migrate": "jax_migrate",
    "jax wheel": "jax_wheel",
    "jax wheel-binary": "jax_wheel",
    "jax wheel-targets": "jax_wheel",
    "runpath show": "runpath",
    "runpath set": "runpath",
    "runpath for": "runpath",
    "torch init": "torch",
    "torch requirements": "torch",
    "torch runpath": "torch",
    "version": "about",
    "help": "about",
}
"""The commands as they are typed, in the order of the help, and the module below this package that has each."""


def load_commands(words: Sequence[str] = ()) -> None:
    """Register the commands that a command line of these words may need, and all of them where that is not clear.

    A short command would spend most of its time with importing the others.
    """
    for name in needed_modules(words):
        import_module(f"{__package__}.{name}")
    _sort(app)
    for name, group in app.commands.items():
        if isinstance(group, Group):
            _sort(group, f"{name} ")


def _sort(group: Group, words: str = "") -> None:
    """Sort the commands of a group as in the list, and groups behind commands; another may have been imported first."""

    def place(name: str) -> tuple[bool, int]:
        is_group = isinstance(group.commands[name], Group)
        return is_group, next(n for n, one in enumerate(_COMMANDS) if f"{one} ".startswith(f"{words}{name} "))

    group.commands = {name: group.commands[name] for name in sorted(group.commands, key=place)}


def needed_modules(words: Sequence[str]) -> Sequence[str]:
    """Return the modules below this package that a command line of these words may need."""
    if list(words) == ["--version"]:
        return ()
    # `index` is a command beside `index yank`, and no group, which would list its commands.
    for command in (" ".join(words[:2]), *words[:1]):
        if command in _COMMANDS and command != "help":  # which describes any of them
            return (_COMMANDS[command],)
    group = [module for command, module in _COMMANDS.items() if words and command.startswith(f"{words[0]} ")]
    return tuple(dict.fromkeys(group or _COMMANDS.values()))
