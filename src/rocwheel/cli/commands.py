"""All commands. Importing a module registers its commands, and --help lists them in this order."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from rocwheel.cli.app import Group, app

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SECTIONS = {
    "Start here": {
        "demo": "build",
        "build": "build",
        "audit": "audit",
        "repair": "repair",
        "index": "index",
        "publish": "publish",
        "inspect": "inspect",
        "targets list": "targets",
        "targets flags": "targets",
        "targets detect": "targets",
        "targets runs-on": "targets_code",
        "targets coherent": "targets_code",
    },
    "Build and release": {
        "promote": "release",
        "lock": "lock",
        "index mirror": "index_mirror",
        "index yank": "index_yank",
        "attest": "release",
        "cache info": "cache",
        "cache prune": "cache",
        "selector merge": "release",
    },
    "Check and compare": {
        "verify": "verify",
        "diff": "diff",
        "report": "inspect",
        "about": "about",
    },
    "ROCm's parts": {
        "artifacts list": "artifacts",
        "artifacts fetch": "artifacts_make",
        "artifacts import": "artifacts_make",
        "artifacts merge": "artifacts_make",
        "artifacts archive": "artifacts",
        "artifacts extract": "artifacts",
        "device list": "device_read",
        "device extract": "device_read",
        "device bundle": "device_read",
        "device compress": "device_edit",
        "device prune": "device_edit",
        "device retarget": "device_edit",
        "device split": "device_split",
        "device join": "device_split",
        "runpath show": "runpath",
        "runpath for": "runpath",
        "runpath set": "runpath",
    },
    "Frameworks": {
        "jax bazelrc": "jax",
        "jax starlark": "jax",
        "jax commands": "jax",
        "jax patch": "jax",
        "jax migrate": "jax_migrate",
        "jax wheel": "jax_wheel",
        "jax translate": "jax_migrate",
        "jax wheel-binary": "jax_wheel",
        "jax wheel-targets": "jax_wheel",
        "torch init": "torch",
        "torch requirements": "torch",
        "torch runpath": "torch",
        "wheel": "wheel",
    },
}
"""The commands in the order and sections of the help, each with its module in this package."""
_COMMANDS = {command: module for section in SECTIONS.values() for command, module in section.items()}


def load_commands(words: Sequence[str] = ()) -> None:
    """Register the commands that a command line with these words might need, or all commands if that isn't clear.

    Loading all commands would make a short command spend most of its time on imports.
    """
    for name in needed_modules(words):
        import_module(f"{__package__}.{name}")
    _sort(app)
    app.known = tuple(_COMMANDS)
    app.sections = {title: _listed(section) for title, section in SECTIONS.items()}
    for name, group in app.commands.items():
        if isinstance(group, Group):
            _sort(group, f"{name} ")


def _listed(section: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the root's commands and groups in a section."""
    names = (command if command in app.commands else command.partition(" ")[0] for command in section)
    return tuple(dict.fromkeys(names))


def _sort(group: Group, words: str = "") -> None:
    """Sort the commands of a group in the order of the list. Another command might have been imported first."""

    def place(name: str) -> int:
        return next(n for n, one in enumerate(_COMMANDS) if f"{one} ".startswith(f"{words}{name} "))

    group.commands = {name: group.commands[name] for name in sorted(group.commands, key=place)}


def needed_modules(words: Sequence[str]) -> Sequence[str]:
    """Return the modules in this package that a command line with these words might need."""
    if words and words[0] in {"--version", "-V"}:
        return ()
    # `index` is a command in addition to `index yank`, so it isn't a group that lists its commands.
    for command in (" ".join(words[:2]), *words[:1]):
        if command in _COMMANDS:
            return (_COMMANDS[command],)
    group = [module for command, module in _COMMANDS.items() if words and command.startswith(f"{words[0]} ")]
    return tuple(dict.fromkeys(group or _COMMANDS.values()))
