"""Renders the commands that build JAX's wheels as a shell script, a Makefile, or workflow steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from packaging.version import Version

from rocwheel.core.errors import InputError
from rocwheel.frameworks.jax.bazelrc import python_config
from rocwheel.frameworks.jax.words import (
    CommandForm,
    has_references,
    lookup,
    pieces,
    reference,
    shown,
    spell_line,
    spell_make_value,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rocwheel.frameworks.jax.settings import BazelSettings


def require_values(options: Mapping[str, object]) -> None:
    """Raise `InputError` for the value ``--``, because argparse treats it as the end of the options and removes it.

    ``options`` contains argparse's values, keyed by option name without dashes. Before Python 3.13, argparse replaces
    the value with an empty list.
    """
    for name, value in options.items():
        values = value if isinstance(value, list) and value else [value]
        if any(item in ("--", []) for item in values):
            option = f"--{name}"
            raise InputError(option, "is '--', which ends the options", expected="a value")


_LATER = "VERSION"
_VERSION_OPTION = "--version"
_MAIN_REPOSITORY = "ROCm/rocm-jax"


class Command(msgspec.Struct, frozen=True):
    """A command and the title of its step. Words are literal, except for results of `commit_of` and `commit_in`."""

    title: str
    words: tuple[str, ...]
    wheel: str = ""
    """The command's wheel as a make target, such as ``jax-rocm-pjrt`` or ``jax-rocm-plugin-3.12``."""


class BuildOptions(msgspec.Struct, frozen=True):
    """Options for the commands, in addition to the build's settings."""

    version: str
    """The wheels' version."""
    sdk: str = ""
    """The folder with the SDK's packages. If empty, their known layout is used."""
    dest_dir: str = "dist"
    kinds: tuple[str, ...] = ("pjrt", "plugin")
    commits: dict[str, str] = {}
    """Commits that override the settings' commits, keyed by repository. They are literal or results of `commit_of`."""
    config: str = "rocm_build"
    bazel: tuple[str, ...] = ("bazel",)
    """The program and its startup options."""
    bazel_options: tuple[str, ...] = ()
    """Further options. The options come after the configs, so that they take precedence."""
    python: str = ""
    """The Python version that overrides the settings, if it isn't known until the commands run."""
    rocm: str = ""
    """The ROCm version that overrides the settings."""
    is_editable: bool = False
    """Whether to build folders for development instead of wheels. Only JAX's own rules can do this."""


def commit_of(checkout: str = "") -> str:
    """Return a placeholder in a word for a checkout's commit. The command looks up the commit when it runs."""
    return lookup("git", *(("-C", checkout) if checkout else ()), "rev-parse", "HEAD")


def commit_in(file: str, constant: str) -> str:
    """Return a placeholder in a word for the commit in a constant of a Starlark file."""
    script = rf's/^{constant} *= *"\([0-9a-f]*\)".*/\1/p'
    return lookup("sed", "-n", script, file)


def wheel_commands(settings: BazelSettings, options: BuildOptions) -> list[Command]:
    """Return the commands that build and assemble the PJRT wheel, and the plugin's wheel for each Python version.

    Raises `InputError` for an invalid version. The version may begin with ``VERSION``, to be filled in later.
    """
    check_version(options.version)
    commands = []
    if "pjrt" in options.kinds:
        wheel, python = "jax-rocm-pjrt", options.python or settings.python_versions[0]
        commands += [
            _bazel(wheel, "Build the PJRT plugin", python, settings.pjrt_targets, options),
            _assembly(wheel, "Assemble the PJRT wheel", ("pjrt",), settings, options),
        ]
    pythons = (options.python,) if options.python else settings.python_versions
    for python in pythons if "plugin" in options.kinds else ():
        wheel, name = f"jax-rocm-plugin-{python}", shown(python)
        title = f"Build the extension modules for Python {name}"
        commands.append(_bazel(wheel, title, python, settings.plugin_targets, options))
        title, kind = f"Assemble the plugin wheel for Python {name}", ("plugin", "--python-version", python)
        commands.append(_assembly(wheel, title, kind, settings, options))
    return commands


def check_version(version: str) -> None:
    """Raise `InputError` for an invalid version. The version may begin with ``VERSION``, to be filled in later."""
    filled = "".join(part if isinstance(part, str) else "0" for part in pieces(version))
    try:
        Version(f"0{filled.removeprefix(_LATER)}" if filled.startswith(_LATER) else filled)
    except ValueError as e:
        raise InputError(_VERSION_OPTION, f"is {version!r}", expected="a version such as 0.12.0 (PEP 440)") from e


def python_option(python: str) -> str:
    """Return the Bazel option that selects a Python version.

    The fragment has configs only for the settings' versions.
    """
    if has_references(python):
        return f"--repo_env=HERMETIC_PYTHON_VERSION={python}"
    return f"--config={python_config(python)}"


def _bazel(wheel: str, title: str, python: str, targets: Sequence[str], options: BuildOptions) -> Command:
    configs = (f"--config={options.config}", python_option(python))
    return Command(title, (*options.bazel, "build", *configs, *options.bazel_options, *targets), wheel)


def _assembly(wheel: str, title: str, kind: tuple[str, ...], settings: BazelSettings, options: BuildOptions) -> Command:
    spec = settings.pjrt_spec if kind[0] == "pjrt" else settings.plugin_spec
    words = ["rocwheel", "jax", "wheel", *kind, *(("--spec", spec) if spec else ())]
    words += ["--version", options.version, "--rocm", options.rocm or settings.rocm_version]
    words += [word for path in ("bazel-bin", *settings.wheel_sources) for word in ("--src", path)]
    commits = {_MAIN_REPOSITORY: commit_of(), **_pinned(settings), **options.commits}
    words += [word for name, commit in sorted(commits.items()) for word in ("--commit", f"{name}={commit}")]
    words += [word for entry in settings.system_run_paths for word in ("--system-run-path", entry)]
    words += ["--with", options.sdk] if options.sdk else []
    return Command(title, (*words, "--output", options.dest_dir), wheel)


def _pinned(settings: BazelSettings) -> dict[str, str]:
    """Return the commits in the settings.

    A commit that is defined in a file is represented by a command that looks it up.
    """
    parts = {name: commit.rpartition(":") for name, commit in settings.commits.items()}
    return {name: commit_in(file, value) if file else value for name, (file, _, value) in parts.items()}


def spell_commands(commands: Sequence[Command], form: CommandForm) -> str:
    """Return the commands as the text of a file, with each word quoted as necessary."""
    lines = {"shell": ["#!/bin/sh", "set -eu"], "makefile": [".PHONY: wheels", "wheels:"]}.get(form, [])
    for command in commands:
        line = spell_line(command.words, form)
        if form == "shell":
            lines += ["", f"# {command.title}.", line]
        elif form == "makefile":
            lines += [f"\t# {command.title}.", f"\t{line}"]
        else:
            lines += [f"- name: {command.title}", "  run: |", f"    {line}"]
    return "\n".join([*lines, ""])


_HEAD = """\
# "make" or "make wheels" builds all wheels. "make jax-rocm-pjrt" or "make jax-rocm-plugin" builds one of them.
# To override variables, use the command line: make {}BAZEL_OPTIONS=--jobs=8 wheels
"""
_PLUGIN = "jax-rocm-plugin"


def render_makefile(
    settings: BazelSettings,
    options: BuildOptions,
    commands_for: Callable[[BazelSettings, BuildOptions], Sequence[Command]] = wheel_commands,
) -> str:
    """Return the Makefile's text. If the options have no version, neither does the Makefile.

    Raises the same errors as ``commands_for``.
    """
    if options.version:
        check_version(options.version)
    variables = {
        "BAZEL": spell_make_value(options.bazel),
        "BAZEL_OPTIONS": spell_make_value(options.bazel_options),
        "CONFIG": spell_make_value([options.config]),
        "ROCWHEEL": "rocwheel",
        **({"VERSION": spell_make_value([options.version])} if options.version else {}),
        "SDK": spell_make_value([options.sdk]) if options.sdk else "",
        "DEST_DIR": spell_make_value([options.dest_dir]),
        "PYTHON_VERSIONS": " ".join(settings.python_versions),
    }
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
    head = _HEAD.format("VERSION=0.12.1 " if options.version else "")
    return head + "\n".join([*lines, "", *_targets(recipes), ""])


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
    """Return a command's words. In assembly commands, variables replace the program and the SDK."""
    if words[0] != "rocwheel":
        return words
    end = words.index("--output") if "--output" in words else len(words)
    return (_made("$(ROCWHEEL)"), *words[1:end], _made("$(if $(SDK),--with $(SDK))"), *words[end:])


def _made(text: str) -> str:
    return reference(text, "make", "unquoted")
