"""All commands: importing a module registers its commands, and --help lists them in this order."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rocwheel.cli.app import app

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
    groups: list[Any] = app.registered_groups
    groups.sort(key=lambda group: _place(group.typer_instance.registered_callback))
    for part in (app, *(group.typer_instance for group in groups)):
        part.registered_commands.sort(key=_place)


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


def _place(registered: Any) -> int:
    """Return the place in the list of the module that registered this, since another may have been imported first."""
    return list(_COMMANDS).index(registered.callback.__module__.removeprefix(f"{__package__}."))
