"""The commands that build JAX's wheels, as a shell script, a Makefile, or workflow steps."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Literal

import msgspec
from packaging.version import InvalidVersion, Version

from rocwheel.foundation.errors import InputError
from rocwheel.frameworks.jax.bazelrc import python_config

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rocwheel.frameworks.jax.settings import BazelSettings

__all__ = ["BuildOptions", "Command", "CommandForm", "commit_in", "commit_of", "spell_commands", "wheel_commands"]

CommandForm = Literal["shell", "makefile", "ci"]
"""``ci``: steps of a workflow file, YAML."""

_LOOKUP = re.compile("\0([^\0]*)\0")
_LATER = "VERSION"
_VERSION_OPTION = "--version"
_MAIN_REPOSITORY = "ROCm/rocm-jax"


class Command(msgspec.Struct, frozen=True):
    """A command with the name of its step. Words are literal, but for what `commit_of` and `commit_in` return."""

    title: str
    words: tuple[str, ...]


class BuildOptions(msgspec.Struct, frozen=True):
    """What commands are asked for, in addition to the build's settings."""

    version: str
    """The wheels' version."""
    sdk: str = ""
    """The folder of the packages that the wheels run with; empty to go by the packages' known layout."""
    dest_dir: str = "dist"
    kinds: tuple[str, ...] = ("pjrt", "plugin")
    commits: dict[str, str] = {}
    """Repository to a commit, literal or from `commit_of`, in place of the one that the settings name."""
    config: str = "rocm_build"
    bazel: tuple[str, ...] = ("bazel",)
    """The program and its startup options."""
    bazel_options: tuple[str, ...] = ()
    """Further options, after the configs, so that they take precedence."""


def commit_of(checkout: str = "") -> str:
    """Return a part of a word that stands for the commit of a checkout, looked up when the command runs."""
    return f"\0git {'-C ' + shlex.quote(checkout) + ' ' if checkout else ''}rev-parse HEAD\0"


def commit_in(file: str, constant: str) -> str:
    """Return a part of a word that stands for the commit that a Starlark file assigns to a constant."""
    script = rf's/^{constant} *= *"\([0-9a-f]*\)".*/\1/p'
    return f"\0sed -n {shlex.quote(script)} {shlex.quote(file)}\0"


def wheel_commands(settings: BazelSettings, options: BuildOptions) -> list[Command]:
    """Return the commands that build and assemble the PJRT wheel, and the plugin's wheel for each Python.

    Raises `InputError` for a version that wheels can't have; it may begin with ``VERSION``, to be filled in later.
    """
    _check_version(options.version)
    commands = []
    if "pjrt" in options.kinds:
        commands += [
            _bazel("Build the PJRT plugin", settings.python_versions[0], settings.pjrt_targets, options),
            _assembly("Assemble its wheel", ("pjrt",), settings, options),
        ]
    for python in settings.python_versions if "plugin" in options.kinds else ():
        title = f"Build the extension modules for Python {python}"
        commands += [
            _bazel(title, python, settings.plugin_targets, options),
            _assembly(f"Assemble their wheel for Python {python}", ("plugin", "--python", python), settings, options),
        ]
    return commands


def _check_version(version: str) -> None:
    try:
        Version(f"0{version.removeprefix(_LATER)}" if version.startswith(_LATER) else version)
    except InvalidVersion as e:
        raise InputError(_VERSION_OPTION, f"is {version!r}", expected="a version such as 0.12.0 (PEP 440)") from e


def _bazel(title: str, python: str, targets: Sequence[str], options: BuildOptions) -> Command:
    configs = (f"--config={options.config}", f"--config={python_config(python)}")
    return Command(title, (*options.bazel, "build", *configs, *options.bazel_options, *targets))


def _assembly(title: str, kind: tuple[str, ...], settings: BazelSettings, options: BuildOptions) -> Command:
    spec = settings.pjrt_spec if kind[0] == "pjrt" else settings.plugin_spec
    words = ["rocwheel", "jax", "wheel", *kind, *(("--spec", spec) if spec else ())]
    words += ["--version", options.version, "--rocm", settings.rocm_version]
    words += [word for path in ("bazel-bin", *settings.wheel_sources) for word in ("--src", path)]
    commits = {_MAIN_REPOSITORY: commit_of(), **_pinned(settings), **options.commits}
    words += [word for name, commit in sorted(commits.items()) for word in ("--commit", f"{name}={commit}")]
    words += [word for entry in settings.system_run_paths for word in ("--system-run-path", entry)]
    words += ["--with", options.sdk] if options.sdk else []
    return Command(title, (*words, "--dest-dir", options.dest_dir))


def _pinned(settings: BazelSettings) -> dict[str, str]:
    """Return the commits of the settings; those that are in a file are looked up there when the command runs."""
    parts = {name: commit.rpartition(":") for name, commit in settings.commits.items()}
    return {name: commit_in(file, value) if file else value for name, (file, _, value) in parts.items()}


def spell_commands(commands: Sequence[Command], form: CommandForm) -> str:
    """Return the commands as the text of a file, each word quoted so that it arrives as it is."""
    return _FORMS[form](commands)


def _shell_line(command: Command) -> str:
    return " ".join(map(_shell_word, command.words))


def _shell_word(word: str) -> str:
    """Quote a word for a POSIX shell; a commit is looked up by a command substitution."""
    literals, lookups = _LOOKUP.split(word)[::2], _LOOKUP.findall(word)
    if not lookups:
        return shlex.quote(word)
    parts = [shlex.quote(literals[0]) if literals[0] else ""]
    for lookup, literal in zip(lookups, literals[1:], strict=True):
        parts += [f'"$({lookup})"', shlex.quote(literal) if literal else ""]
    return "".join(parts)


def _shell(commands: Sequence[Command]) -> str:
    lines = ["#!/bin/sh", "set -eu"]
    for command in commands:
        lines += ["", f"# {command.title}.", _shell_line(command)]
    return "\n".join([*lines, ""])


def _makefile(commands: Sequence[Command]) -> str:
    lines = [".PHONY: wheels", "wheels:"]
    for command in commands:
        # make expands $ before it gives a line to the shell.
        lines += [f"\t# {command.title}.", "\t" + _shell_line(command).replace("$", "$$")]
    return "\n".join([*lines, ""])


def _ci(commands: Sequence[Command]) -> str:
    lines = [line for command in commands for line in _ci_step(command)]
    return "\n".join([*lines, ""])


def _ci_step(command: Command) -> list[str]:
    # A workflow's own expressions begin with ${{, wherever they stand.
    line = _shell_line(command).replace("${{", "$'{{'")
    return [f"- name: {command.title}", "  run: |", f"    {line}"]


_FORMS: dict[CommandForm, Callable[[Sequence[Command]], str]] = {"shell": _shell, "makefile": _makefile, "ci": _ci}
