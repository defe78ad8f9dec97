"""A Makefile that builds JAX's wheels for ROCm: one target for each, and variables to override."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.frameworks.jax.commands import BuildOptions, check_version, wheel_commands
from rocwheel.frameworks.jax.spelling import spell_line, spell_make_value
from rocwheel.frameworks.jax.words import reference

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rocwheel.frameworks.jax.commands import Command
    from rocwheel.frameworks.jax.settings import BazelSettings

__all__ = ["render_makefile"]

_HEAD = """\
# make, or make wheels: all wheels. make jax-rocm-pjrt, make jax-rocm-plugin: one of them.
# Variables are overridden on the command line: make VERSION=0.12.1 BAZEL_OPTIONS=--jobs=8 wheels
"""
_PLUGIN = "jax-rocm-plugin"


def render_makefile(
    settings: BazelSettings,
    options: BuildOptions,
    commands_for: Callable[[BazelSettings, BuildOptions], Sequence[Command]] = wheel_commands,
) -> str:
    """Return the Makefile's text; raise what ``commands_for`` raises."""
    check_version(options.version)
    variables = _variables(settings, options)
    given = msgspec.structs.replace(
        options,
        version=_made("$(VERSION)"),
        sdk="",
        dest_dir=_made("$(DEST_DIR)"),
        config=_made("$(CONFIG)"),
        bazel=(_made("$(BAZEL)"),),
        bazel_options=(_made("$(BAZEL_OPTIONS)"),),
    )
    recipes: dict[str, list[Command]] = {}
    for command in commands_for(settings, given):
        recipes.setdefault(command.wheel, []).append(command)
    lines = [f"{name} = {value}".rstrip() for name, value in variables.items()]
    return _HEAD + "\n".join([*lines, "", *_targets(recipes), ""])


def _variables(settings: BazelSettings, options: BuildOptions) -> dict[str, str]:
    """Return the values of the Makefile's variables, as it spells them."""
    return {
        "BAZEL": spell_make_value(options.bazel),
        "BAZEL_OPTIONS": spell_make_value(options.bazel_options),
        "CONFIG": spell_make_value([options.config]),
        "ROCWHEEL": "rocwheel",
        "VERSION": spell_make_value([options.version]),
        "SDK": spell_make_value([options.sdk]) if options.sdk else "",
        "DEST_DIR": spell_make_value([options.dest_dir]),
        "PYTHON_VERSIONS": " ".join(settings.python_versions),
    }


def _targets(recipes: dict[str, list[Command]]) -> Iterator[str]:
    plugins = [name for name in recipes if name.startswith(_PLUGIN)]
    wheels = [*(name for name in recipes if name not in plugins), *([_PLUGIN] if plugins else [])]
    yield f".PHONY: {' '.join(dict.fromkeys(['wheels', *wheels, *plugins]))}"
    yield "# The builds share bazel-bin."
    yield ".NOTPARALLEL:"
    yield ""
    yield f"wheels: {' '.join(wheels)}"
    if plugins:
        yield ""
        yield f"{_PLUGIN}: $(PYTHON_VERSIONS:%={_PLUGIN}-%)"
    for name, commands in recipes.items():
        yield ""
        yield f"{name}:"
        yield from (f"\t{spell_line(_overridable(command.words), 'makefile')}" for command in commands)


def _overridable(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words of a command, for the assembly with the variables for its program and for the SDK."""
    if words[0] != "rocwheel":
        return words
    end = words.index("--dest-dir") if "--dest-dir" in words else len(words)
    return (_made("$(ROCWHEEL)"), *words[1:end], _made("$(if $(SDK),--with $(SDK))"), *words[end:])


def _made(text: str) -> str:
    return reference(text, "make", "unquoted")
