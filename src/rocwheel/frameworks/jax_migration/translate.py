"""Translates old command lines of rocm-jax's ``build/build.py`` into settings, plain commands, and notes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from rocwheel.core.errors import InputError
from rocwheel.frameworks.jax.commands import BuildOptions, Command, commit_of, python_option, wheel_commands
from rocwheel.frameworks.jax.settings import BazelSettings, check_settings
from rocwheel.frameworks.jax.settings_line import settings_line
from rocwheel.frameworks.jax.wheel_rules import wheel_rule_commands
from rocwheel.frameworks.jax_migration import notes
from rocwheel.frameworks.jax_migration.build_py import parse_build_py
from rocwheel.frameworks.jax_migration.notes import Note
from rocwheel.frameworks.jax_migration.values import (
    STAMPED,
    WHEEL_KINDS,
    bazel_configs,
    carried_options,
    compiler,
    cpu_features,
    gpu_targets,
    overridden_repositories,
    python_version,
    wheel_names,
)
from rocwheel.targets.spelling.target_set import parse_target_set

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rocwheel.frameworks.jax_migration.build_py import OldCommand

__all__ = ["Translation", "translate"]

_OPTION = "--wheels"
_TARGETS_OPTION = "--rocm_amdgpu_targets"
_BAZEL_OPTIONS = "--bazel_options"
_PINNED = {"ROCm/xla": "third_party/xla/workspace.bzl:XLA_COMMIT", "jax": "third_party/jax/workspace.bzl:JAX_COMMIT"}
_PYTHON_VARIABLE = "HERMETIC_PYTHON_VERSION="
_COMMAND_SETTINGS = "the command line's settings"


class Translation(msgspec.Struct, frozen=True):
    """What an old command line means today."""

    settings: BazelSettings
    settings_text: str
    """The text of ``rocm.toml``."""
    commands: tuple[Command, ...]
    kept: tuple[Note, ...]
    assumed: tuple[Note, ...]
    """What the command line doesn't say, since the old tool took it from the machine."""
    dropped: tuple[Note, ...]
    wrong: tuple[Note, ...]
    """What the old command line got wrong without saying so."""


def translate(
    words: Sequence[str], *, version: str = "VERSION", sdk: str = "", workspace: BazelSettings | None = None
) -> Translation:
    """Translate ``python build/build.py build ...``, with variables before it if any.

    ``version`` is that of the wheels, ``sdk`` the folder of the packages that they run with. With the settings of a
    ``workspace``, commands are made with these in place of the command line's own, but for the Python that this one
    names. Raises `InputError` for a command line that the old tool would not have taken, and `ProblemsError` for one
    whose settings `rocwheel.frameworks.jax.settings.read_settings` would refuse.
    """
    old = parse_build_py(words)
    fields = {"schema": 1, **{name: value for name, value in _fields(old).items() if value}}
    settings = msgspec.convert(fields, BazelSettings)
    parse_target_set(settings.targets, source=_TARGETS_OPTION)
    check_settings(settings, _COMMAND_SETTINGS)
    commands = _commands(old, _of_workspace(old, settings, workspace), version, sdk)
    return Translation(
        settings,
        "".join(settings_line(name, value) for name, value in fields.items()),
        tuple(commands),
        tuple(notes.kept(old)),
        tuple(notes.assumed(old)),
        tuple(notes.dropped(old)),
        tuple(notes.wrong(old)),
    )


def _of_workspace(old: OldCommand, settings: BazelSettings, workspace: BazelSettings | None) -> BazelSettings:
    if workspace is None:
        return settings
    says_python = bool(old.text("python_version") or old.interpreter)
    return msgspec.structs.replace(workspace, python_versions=settings.python_versions) if says_python else workspace


def _fields(old: OldCommand) -> dict[str, Any]:
    cpu = old.text("target_cpu")
    return {
        "compiler": compiler(old),
        "rocm-path": old.text("rocm_path", old.variables.get("ROCM_PATH", "")),
        "rocm-version": old.text("rocm_version", "7").partition(".")[0],
        "targets": gpu_targets(old),
        "target-family": old.variables.get("ROCM_SDK_TARGET_FAMILY", ""),
        "python-versions": [python_version(old)],
        "cpu-features": cpu_features(old),
        "configs": bazel_configs(old),
        "options": ["--verbose_failures", *([f"--cpu={cpu}"] if cpu else [])],
        "wheel-sources": list(BazelSettings(1, "", (), ()).wheel_sources),
        "commits": _PINNED,
        "remote-execution": "rbe.bazelrc" if old.has("rbe") else "",
    }


def _commands(old: OldCommand, settings: BazelSettings, version: str, sdk: str) -> list[Command]:
    bazel = (old.value("bazel_path", "bazel"), *old.texts("bazel_startup_options"))
    if old.subcommand == "requirements_update":
        return [_requirements_command(old, settings, bazel)]
    if old.has("configure_only"):
        return []
    options = BuildOptions(
        version=_version(version, old),
        sdk=sdk,
        dest_dir=old.value("output_path", "dist"),
        kinds=_kinds(old),
        commits=_commits(old),
        config="rocm_build_remote" if old.has("rbe") else "rocm_build",
        bazel=bazel,
        bazel_options=(*carried_options(old), *_bazel_options(old)),
        python=old.carried.get("python_version", ""),
        rocm=old.carried.get("rocm_version", ""),
    )
    commands_for = wheel_rule_commands if old.has("use_new_wheel_build_rule") else wheel_commands
    return commands_for(settings, options)


def _requirements_command(old: OldCommand, settings: BazelSettings, bazel: Sequence[str]) -> Command:
    target = "//build:requirements_nightly.update" if old.has("nightly_update") else "//build:requirements.update"
    python = python_option(old.carried.get("python_version") or settings.python_versions[0])
    return Command("Pin the requirements", (*bazel, "run", python, *_given_options(old), target))


def _kinds(old: OldCommand) -> tuple[str, ...]:
    asked = wheel_names(old)
    kinds = tuple(kind for name, kind in WHEEL_KINDS.items() if name in asked)
    if not kinds:
        found = f"names {', '.join(asked) or 'none, which stood for jaxlib and was refused'}"
        raise InputError(_OPTION, found, expected=f"one of {' and '.join(WHEEL_KINDS)}")
    return kinds


def _local_xla(old: OldCommand) -> str:
    return old.value("local_xla_path") or old.value("JAXCI_XLA_GIT_DIR")


def _bazel_options(old: OldCommand) -> Iterator[str]:
    if _local_xla(old):
        yield f"--override_repository=xla={_local_xla(old)}"
    yield from _given_options(old)


def _given_options(old: OldCommand) -> Iterator[str]:
    if old.has("detailed_timestamped_log"):
        yield "--show_timestamps"
    for option in old.texts("bazel_options"):
        if option.removeprefix("--repo_env=").startswith(_PYTHON_VARIABLE):
            remedy = "Give the version as --python_version."
            raise InputError(_BAZEL_OPTIONS, f"is {option!r}", expected="no option that sets the Python", remedy=remedy)
        yield option


def _commits(old: OldCommand) -> dict[str, str]:
    local = {"xla": _local_xla(old)} if _local_xla(old) else {}
    overrides = {**local, **overridden_repositories(old)}
    commits = {STAMPED[name]: commit_of(path) for name, path in overrides.items() if name in STAMPED}
    given = old.value("ROCM_JAX_COMMIT")
    return commits | ({"ROCm/rocm-jax": given} if given else {})


def _version(version: str, old: OldCommand) -> str:
    post, extra = old.value("WHEEL_POST_RELEASE"), old.value("ROCM_VERSION_EXTRA")
    version += old.value("WHEEL_VERSION_SUFFIX")
    return version + (f".post{post}" if post else "") + (f"+rocm{extra}" if extra else "")
