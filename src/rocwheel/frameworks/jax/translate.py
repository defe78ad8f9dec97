"""Translates command lines of rocm-jax's ``build/build.py`` into settings and commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from rocwheel.core.errors import InputError
from rocwheel.frameworks.jax import build_py, jax_tree
from rocwheel.frameworks.jax.build_py import (
    STAMPED,
    WHEEL_KINDS,
    Note,
    bazel_configs,
    carried_options,
    compiler,
    cpu_features,
    gpu_targets,
    overridden_repositories,
    parse_build_py,
    python_version,
    wheel_names,
)
from rocwheel.frameworks.jax.commands import BuildOptions, Command, commit_of, python_option, wheel_commands
from rocwheel.frameworks.jax.jax_tree import wheel_rule_commands
from rocwheel.frameworks.jax.settings import BazelSettings, check_settings, settings_line
from rocwheel.targets.target_set import parse_target_set

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rocwheel.frameworks.jax.build_py import OldCommand
    from rocwheel.frameworks.jax.jax_tree import GivenOptions
    from rocwheel.frameworks.jax.settings import SourceTree


_OPTION = "--wheels"
_TARGETS_OPTION = "--rocm_amdgpu_targets"
_BAZEL_OPTIONS = "--bazel_options"
_PINNED = {"ROCm/xla": "third_party/xla/workspace.bzl:XLA_COMMIT", "jax": "third_party/jax/workspace.bzl:JAX_COMMIT"}
_PYTHON_VARIABLE = "HERMETIC_PYTHON_VERSION="
_COMMAND_SETTINGS = "the command line's settings"


class Translation(msgspec.Struct, frozen=True):
    """The current equivalent of an old command line."""

    settings: BazelSettings
    settings_text: str
    """The text of ``rocm.toml``."""
    commands: tuple[Command, ...]
    kept: tuple[Note, ...]
    assumed: tuple[Note, ...]
    """Assumptions about values that the command line omits, because the old tool detected them on the machine."""
    dropped: tuple[Note, ...]
    wrong: tuple[Note, ...]
    """The bugs in the old tool that affect this command line."""


def translate(
    words: Sequence[str],
    *,
    version: str = "VERSION",
    sdk: str = "",
    tree: SourceTree = "rocm-jax",
) -> Translation:
    """Translate ``python build/build.py build ...``, optionally with variables before it.

    ``version`` is the version of the wheels, and ``sdk`` is the folder with the SDK's packages. With ``jax`` as the
    ``tree``, the commands build JAX's own targets in JAX's own tree, which has its own version.

    Raises `InputError` for a command line that the old tool would have rejected, or for a Python version that JAX's
    tree doesn't support. Raises `ProblemsError` for settings that `rocwheel.frameworks.jax.settings.read_settings`
    would reject.
    """
    old = parse_build_py(words)
    if tree == "jax":
        return _for_jax(old, sdk)
    fields = {"schema": 1, **{name: value for name, value in _fields(old).items() if value}}
    settings = _settings(fields)
    commands = _commands(old, settings, version, sdk)
    return Translation(
        settings,
        "".join(settings_line(name, value) for name, value in fields.items()),
        tuple(commands),
        tuple(build_py.kept(old, build_py.old_tables())),
        tuple(build_py.assumed(old)),
        tuple(build_py.dropped(old)),
        tuple(build_py.wrong(old)),
    )


def _for_jax(old: OldCommand, sdk: str) -> Translation:
    jax_tree.require_python(old)
    given = jax_tree.sort_options(list(_bazel_options(old)))
    fields = {"schema": 1, **{name: value for name, value in jax_tree.jax_settings(old, given).items() if value}}
    settings = _settings(fields)
    return Translation(
        settings,
        "".join(settings_line(name, value) for name, value in fields.items()),
        tuple(_jax_commands(old, settings, given, sdk)),
        tuple(jax_tree.kept(old)),
        tuple(jax_tree.assumed(old, given)),
        tuple(jax_tree.dropped(old, given)),
        tuple(jax_tree.wrong(old)),
    )


def _jax_commands(old: OldCommand, settings: BazelSettings, given: GivenOptions, sdk: str) -> list[Command]:
    if old.subcommand == "requirements_update":
        return [jax_tree.requirements_command(old)]
    if old.has("configure_only"):
        return []
    git_hash = old.value("JAX_GIT_HASH")
    options = BuildOptions(
        version="",
        sdk=sdk,
        dest_dir=old.value("output_path", "dist"),
        kinds=jax_tree.wheel_kinds(old),
        commits={"jax": git_hash} if git_hash else {},
        config="rocm_build_remote" if old.has("rbe") else "rocm_build",
        bazel=(old.value("bazel_path", "bazel"), *jax_tree.startup_options(old.texts("bazel_startup_options"))),
        bazel_options=(
            *jax_tree.suffix_options(_version("", old)),
            *carried_options(old, jax_tree.jax_tree().tables),
            *given.options,
        ),
        python=old.carried.get("python_version", ""),
        is_editable=old.has("editable"),
    )
    return wheel_rule_commands(settings, options)


def _settings(fields: dict[str, Any]) -> BazelSettings:
    """Return the settings. Raises `InputError` or `ProblemsError` for invalid settings."""
    settings = msgspec.convert(fields, BazelSettings)
    parse_target_set(settings.targets, source=_TARGETS_OPTION)
    check_settings(settings, _COMMAND_SETTINGS)
    return settings


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
        bazel_options=(*carried_options(old, build_py.old_tables()), *_bazel_options(old)),
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
        found = f"lists {', '.join(asked) or 'no wheels, which meant jaxlib and was rejected'}"
        raise InputError(_OPTION, found, expected=" or ".join(WHEEL_KINDS))
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
            remedy = "Pass the version with --python_version."
            raise InputError(
                _BAZEL_OPTIONS,
                f"is {option!r}",
                expected="no option that sets the Python version",
                remedy=remedy,
            )
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
