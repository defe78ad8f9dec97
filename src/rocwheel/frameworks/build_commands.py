"""The commands that build JAX's wheels, as a shell script, a Makefile, or a step of continuous integration."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Literal

import msgspec

from rocwheel.frameworks.bazelrc import python_config

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rocwheel.frameworks.bazel_settings import BazelSettings

__all__ = ["COMMIT", "Command", "CommandForm", "spell_commands", "wheel_commands"]

CommandForm = Literal["shell", "makefile", "ci"]
"""``ci``: steps of a workflow file, YAML."""

COMMIT = "\0commit\0"
"""Stands in a word for the commit that is checked out, which is looked up when the commands run."""

_COMMIT_LOOKUP = "git rev-parse HEAD"


class Command(msgspec.Struct, frozen=True):
    """A command with the name of its step; words are literal, but for `COMMIT`."""

    title: str
    words: tuple[str, ...]


def wheel_commands(
    settings: BazelSettings,
    *,
    version: str,
    sdk: str = "",
    repository: str = "ROCm/rocm-jax",
    dest_dir: str = "dist",
    source: str = "bazel-bin",
) -> list[Command]:
    """Return the commands that build and assemble the PJRT wheel, and the plugin's wheel for each Python.

    ``sdk`` is the folder of the packages that the wheels run beside; ``source`` where Bazel leaves its outputs.
    """
    commands = [_bazel("Build the PJRT plugin", settings.python_versions[0], settings.pjrt_targets)]
    options: tuple[str, ...] = ("--version", version, "--rocm", settings.rocm_version)
    options += tuple(word for path in (source, *settings.wheel_sources) for word in ("--src", path))
    options += ("--commit", f"{repository}={COMMIT}", *(("--with", sdk) if sdk else ()), "--dest-dir", dest_dir)
    commands = [
        _bazel("Build the PJRT plugin", settings.python_versions[0], settings.pjrt_targets),
        _assembly("Assemble its wheel", "pjrt", settings.pjrt_spec, options),
    ]
    for python in settings.python_versions:
        words = ("--python", python, *options)
        commands += [
            _bazel(f"Build the extension modules for Python {python}", python, settings.plugin_targets),
            _assembly(f"Assemble their wheel for Python {python}", "plugin", settings.plugin_spec, words),
        ]
    return commands


def _assembly(title: str, kind: str, spec: str, options: Sequence[str]) -> Command:
    return Command(title, ("rocwheel", "jax", "wheel", kind, *(("--spec", spec) if spec else ()), *options))


def _bazel(title: str, python: str, targets: Sequence[str]) -> Command:
    return Command(title, ("bazel", "build", "--config=rocm_build", f"--config={python_config(python)}", *targets))


def spell_commands(commands: Sequence[Command], form: CommandForm) -> str:
    """Return the commands as the text of a file, each word quoted so that it arrives as it is."""
    return _FORMS[form](commands)


def spell_shell_word(word: str, commit: str = "$commit") -> str:
    """Quote a word for a POSIX shell, `COMMIT` in it as the variable ``commit``."""
    before, found, after = word.partition(COMMIT)
    if not found:
        return shlex.quote(word)
    return (shlex.quote(before) if before else "") + f'"{commit}"' + (shlex.quote(after) if after else "")


def _shell(commands: Sequence[Command]) -> str:
    lines = ["#!/bin/sh", "set -eu", f"commit=$({_COMMIT_LOOKUP})"]
    for command in commands:
        lines += ["", f"# {command.title}.", " ".join(map(spell_shell_word, command.words))]
    return "\n".join([*lines, ""])


def _makefile(commands: Sequence[Command]) -> str:
    lines = [f"commit := $(shell {_COMMIT_LOOKUP})", "", ".PHONY: wheels", "wheels:"]
    for command in commands:
        words = " ".join(_make_word(word) for word in command.words)
        lines += [f"\t# {command.title}.", f"\t{words}"]
    return "\n".join([*lines, ""])


def _make_word(word: str) -> str:
    """Quote a word for the shell, then for make, which expands ``$`` before."""
    before, found, after = word.partition(COMMIT)
    parts = [shlex.quote(part).replace("$", "$$") if part else "" for part in (before, after)]
    return f"{parts[0]}$(commit){parts[1]}" if found else shlex.quote(word).replace("$", "$$")


def _ci(commands: Sequence[Command]) -> str:
    lines = []
    for command in commands:
        words = " ".join(map(spell_shell_word, command.words))
        lines += [f"- name: {command.title}", "  run: |"]
        lines += [f"    commit=$({_COMMIT_LOOKUP})"] if '"$commit"' in words else []
        lines += [f"    {words}"]
    return "\n".join([*lines, ""])


_FORMS: dict[CommandForm, Callable[[Sequence[Command]], str]] = {"shell": _shell, "makefile": _makefile, "ci": _ci}
