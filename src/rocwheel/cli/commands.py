"""All commands: importing a module registers its commands, and --help lists them in this order."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from rocwheel.cli.app import Group, app

if TYPE_CHECKING:
    from collections.abc import Sequence

_COMMANDS = {
    "about": ("about",),
    "audit": ("audit",),
    "build": ("build",),
    "plan": ("plan",),
    "promote": ("promote",),
    "demo": ("demo",),
    "diff": ("diff",),
    "index": ("index",),
    "index_yank": ("index yank", "index unyank"),
    "index_mirror": ("index mirror",),
    "publish": ("publish",),
    "inspect": ("inspect",),
    "lock": ("lock",),
    "repair": ("repair",),
    "report": ("report",),
    "verify": ("verify",),
    "attest": ("attest",),
    "wheel": ("wheel",),
    "cache": ("cache info", "cache prune", "cache verify"),
    "selector": ("selector merge",),
    "artifacts": ("artifacts list", "artifacts archive", "artifacts extract"),
    "artifacts_make": ("artifacts fetch", "artifacts from-deb", "artifacts from-prefix", "artifacts merge"),
    "targets": ("targets list", "targets expand", "targets flags"),
    "targets_code": ("targets coherent", "targets runs-on"),
    "targets_machine": ("targets detect", "targets check"),
    "device": (),
    "device_read": ("device list", "device extract", "device bundle"),
    "device_edit": ("device compress", "device prune", "device retarget"),
    "device_split": ("device split",),
    "device_join": ("device join",),
    "jax": ("jax bazelrc", "jax starlark", "jax commands"),
    "jax_migrate": ("jax translate", "jax migrate"),
    "jax_wheel": ("jax wheel", "jax wheel-binary", "jax wheel-targets"),
    "runpath": ("runpath show", "runpath set", "runpath for"),
    "torch": ("torch init", "torch requirements", "torch runpath"),
    "version": ("version",),
    "help": ("help",),
}
"""The modules below this package, and the commands of each as they are typed."""


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
    typed = [command for commands in _COMMANDS.values() for command in commands]

    def place(name: str) -> tuple[bool, int]:
        is_group = isinstance(group.commands[name], Group)
        return is_group, next(n for n, one in enumerate(typed) if f"{one} ".startswith(f"{words}{name} "))

    group.commands = {name: group.commands[name] for name in sorted(group.commands, key=place)}


def needed_modules(words: Sequence[str]) -> Sequence[str]:
    """Return the modules below this package that a command line of these words may need."""
    if list(words) == ["--version"]:
        return ()
    named = [name for name in _COMMANDS if words and name.partition("_")[0] == words[0]]
    if not named or words[0] == "help":  # which describes any of them
        return tuple(_COMMANDS)
    # `index` is a command beside `index yank`, and no group, which would list its commands.
    for command in (" ".join(words[:2]), words[0]):
        if own := [name for name in named if command in _COMMANDS[name]]:
            return own
    return named
