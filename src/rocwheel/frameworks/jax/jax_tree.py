"""Builds ROCm wheels in JAX's own tree with JAX's rules, and translates rocm-jax's old command lines for that tree.

``jax_tree.toml`` lists the names that JAX's tree has: configs, targets, and options.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from rocwheel.core.decoding import read_table
from rocwheel.core.errors import InputError
from rocwheel.frameworks.jax import build_py
from rocwheel.frameworks.jax.bazelrc import JAX_ROCM_BAZELRC
from rocwheel.frameworks.jax.build_py import (
    WHEEL_KINDS,
    Note,
    OldOption,
    OldTables,
    carried_rows,
    given_rows,
    gpu_targets,
    python_version,
    unread_variables,
    wheel_names,
)
from rocwheel.frameworks.jax.commands import Command, commit_of, python_option
from rocwheel.frameworks.jax.settings import BazelSettings
from rocwheel.frameworks.jax.words import has_references, only_reference, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rocwheel.frameworks.jax.build_py import OldCommand
    from rocwheel.frameworks.jax.commands import BuildOptions


class JaxTree(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """The names in JAX's own tree at one commit."""

    source: str
    commit: str
    date: str
    python_versions: tuple[str, ...]
    """The Python versions with pinned requirements."""
    included: frozenset[str]
    """The configs that ``rocm_release_wheel`` includes, including itself."""
    git_hash: str
    release: str
    suffix: str
    requirements: str
    outputs: str
    configs: dict[str, tuple[str, ...]]
    """The configs, keyed by the file that defines them."""
    targets: dict[str, str]
    """The targets of the ROCm wheels, keyed by their names in ``rocwheel jax wheel``."""
    other_targets: dict[str, str]
    """The targets of other wheels, keyed by their names in the old tool."""
    options: dict[str, OldOption]
    """The old tool's options whose replacement differs in this tree."""
    variables: dict[str, OldOption]

    @property
    def tables(self) -> OldTables:
        """The replacements of the old tool's options and variables in this tree."""
        before = build_py.old_tables()
        return OldTables({**before.options, **self.options}, {**before.variables, **self.variables})


@functools.cache
def jax_tree() -> JaxTree:
    """Return the names from the table next to this module."""
    return read_table(__package__, "jax_tree.toml", JaxTree)


_PYTHON_OPTION, _WHEELS_OPTION = "--python_version", "--wheels"
_REQUIREMENTS, _NIGHTLY = "requirements_update", "nightly_update"
_DEFAULT = BazelSettings(1)
_DEFAULTS = (_DEFAULT.pjrt_targets, _DEFAULT.plugin_targets)


def wheel_rule_commands(settings: BazelSettings, options: BuildOptions) -> list[Command]:
    """Return the commands that build wheels with JAX's rules, audit them, and copy them to the destination.

    The targets are JAX's own unless the settings specify others. The version is JAX's release version, so
    ``options.version`` isn't used.
    """
    commands = []
    if "pjrt" in options.kinds:
        python = options.python or settings.python_versions[0]
        commands += _wheel("jax-rocm-pjrt", python, _chosen("pjrt", settings.pjrt_targets), options)
    pythons = (options.python,) if options.python else settings.python_versions
    for python in pythons if "plugin" in options.kinds else ():
        targets = _chosen("plugin", settings.plugin_targets)
        commands += _wheel(f"jax-rocm-plugin-{python}", python, targets, options)
    return commands


def _chosen(kind: str, targets: tuple[str, ...]) -> tuple[str, ...]:
    """Return the targets in the settings. JAX's own targets replace the default targets, which are from rocm-jax."""
    return (jax_tree().targets[kind],) if targets in _DEFAULTS else targets


def _wheel(wheel: str, python: str, targets: tuple[str, ...], options: BuildOptions) -> list[Command]:
    tree = jax_tree()
    flags = (
        f"--config={options.config}",
        python_option(python),
        tree.release,
        f"{tree.git_hash}={options.commits.get('jax') or commit_of()}",
    )
    beside = ("--with", options.sdk) if options.sdk else ()
    named = tuple(f"{target}_editable" for target in targets) if options.is_editable else targets
    build = (*options.bazel, "build", *flags, *options.bazel_options, *named)
    audit = Command("Audit the built wheels", ("rocwheel", "audit", tree.outputs, *beside), wheel)
    return [
        Command(f"Build {shown(wheel)}", build, wheel),
        *([] if options.is_editable else [audit]),
        Command("Create the destination", ("mkdir", "-p", options.dest_dir), wheel),
        # Bazel's outputs are read-only.
        Command("Copy the built wheels", ("cp", "-rf", f"{tree.outputs}/.", options.dest_dir), wheel),
    ]


def require_python(old: OldCommand) -> None:
    """Raise `InputError` if the old command line is for a Python version that JAX's tree doesn't support."""
    known = jax_tree().python_versions
    if "python_version" not in old.carried and python_version(old) not in known:
        expected = f"one of {', '.join(known)}, because JAX has no requirements for other versions"
        raise InputError(_PYTHON_OPTION, f"is {python_version(old)!r}", expected=expected)


def wheel_kinds(old: OldCommand) -> tuple[str, ...]:
    """Return the ROCm wheels by their names in ``rocwheel jax wheel``.

    Raises `InputError` if there is no such wheel.
    """
    names = wheel_names(old)
    kinds = tuple(kind for name, kind in WHEEL_KINDS.items() if name in names)
    if not kinds:
        targets = jax_tree().other_targets
        remedies = [f"For {name}, build {targets[name]}." for name in names if name in targets]
        found = f"lists {', '.join(names) or 'no wheels'}"
        raise InputError(_WHEELS_OPTION, found, expected=" or ".join(WHEEL_KINDS), remedy=" ".join(remedies))
    return kinds


class GivenOptions(NamedTuple):
    """The old tool's ``--bazel_options``, sorted by their use in JAX's tree."""

    configs: tuple[str, ...]
    """JAX's configs. Settings include them before ``rocm_release_wheel``."""
    options: tuple[str, ...]
    dropped: tuple[Note, ...]


_JOINED = ("--config", "--override_repository", "--override_module", "--repo_env")


def sort_options(words: Sequence[str]) -> GivenOptions:
    """Sort Bazel options by their use in JAX's tree. A config that JAX doesn't define is dropped."""
    configs, options, dropped = list[str](), list[str](), list[Note]()
    for word in _joined(words):
        option, _, value = word.partition("=")
        reason = _drop_reason(option, value)
        if reason:
            dropped.append(Note(shown(word), reason))
        elif option == "--config" and not has_references(value):
            configs.append(value)
        else:
            options.append(word)
    return GivenOptions(tuple(dict.fromkeys(configs)), tuple(options), tuple(dropped))


def _joined(words: Sequence[str]) -> Iterator[str]:
    """Yield the options. If the value of one of these options is a separate word, join the two words with ``=``."""
    rest = iter(words)
    for word in rest:
        yield f"{word}={next(rest, '')}" if word in _JOINED else word


def _drop_reason(option: str, value: str) -> str:
    tree = jax_tree()
    if option == "--config" and not has_references(value):
        if value in tree.included:
            return "rocm_build includes this config"
        known = {name for names in tree.configs.values() for name in names}
        return "" if value in known else "JAX's tree doesn't define this config"
    if option.startswith("--override_") and value.startswith("jax="):
        return "the workspace is JAX itself"
    if option == "--repo_env" and value.partition("=")[0] == "ROCM_WHEEL_RPATH":
        return "JAX's run paths are in jaxlib/rocm/rocm_rpath.bzl, which rocwheel jax patch changes"
    return ""


def startup_options(words: Sequence[str]) -> list[str]:
    """Return Bazel's startup options without the file that the fragment imports."""
    return [word for word in words if word != f"--bazelrc={JAX_ROCM_BAZELRC}"]


def jax_settings(old: OldCommand, given: GivenOptions) -> dict[str, Any]:
    """Return the settings for JAX's tree, keyed by their names in the file."""
    cpu = old.text("target_cpu")
    mkl = "mkl_aarch64_threadpool" if cpu == "aarch64" else "mkl_open_source_only"
    own = [*(["nonccl"] if old.has("disable_nccl") else []), *([] if old.has("disable_mkl_dnn") else [mkl])]
    return {
        "tree": "jax",
        "rocm-path": old.text("rocm_path", old.variables.get("ROCM_PATH", "")),
        "targets": gpu_targets(old),
        "target-family": old.variables.get("ROCM_SDK_TARGET_FAMILY", ""),
        "python-versions": [python_version(old)],
        "cpu-features": build_py.cpu_features(old),
        "configs": list(dict.fromkeys([*own, *given.configs])),
        "options": ["--verbose_failures", *([f"--cpu={cpu}"] if cpu else [])],
    }


def suffix_options(suffix: str) -> list[str]:
    """Return the option that adds a suffix to JAX's version, such as ``.post1``."""
    return [f"{jax_tree().suffix}={suffix}"] if suffix else []


def requirements_command(old: OldCommand) -> Command:
    """Return the command that pins the requirements."""
    nightly = ["--nightly"] if old.has(_NIGHTLY) else []
    return Command("Pin the requirements", ("python", jax_tree().requirements, *nightly))


def kept(old: OldCommand) -> Iterator[Note]:
    """Yield the replacements of options and variables in JAX's tree."""
    if old.subcommand == _REQUIREMENTS:
        if old.has(_NIGHTLY):
            yield Note(f"--{_NIGHTLY}", jax_tree().tables.options[_NIGHTLY].now)
        return
    yield from build_py.kept(old, jax_tree().tables)


def assumed(old: OldCommand, given: GivenOptions) -> Iterator[Note]:
    """Yield assumptions about values that the command line omits, and about the workspace."""
    if old.subcommand == _REQUIREMENTS:
        return
    text = "isn't known before the command runs; rocwheel assumes that it has only options for JAX's tree"
    yield from (Note(shown(word), text) for word in given.options if only_reference(word))
    yield from (note for note in build_py.assumed(old) if note.option in {"--python_version", "--rocm_amdgpu_targets"})
    text = "rocwheel assumes that this file imports the fragment: import %workspace%/rocm.bazelrc"
    yield Note(".bazelrc.user", text)


def dropped(old: OldCommand, given: GivenOptions) -> Iterator[Note]:
    """Yield options and variables that have no meaning in JAX's tree, with the reasons."""
    tree, tables = jax_tree(), jax_tree().tables
    rows = (*given_rows(old, tables), *carried_rows(old, tables))
    if old.subcommand == _REQUIREMENTS:
        text = f"has no effect on {tree.requirements}, which updates the requirements of every Python version"
        reasons = {name: text for name in (*old.variables, *old.carried) if name not in tables.options}
        reasons |= {name: old_option.dropped or text for name, old_option in rows if name != f"--{_NIGHTLY}"}
        yield from (Note(name, reason) for name, reason in reasons.items())
        return
    yield from (Note(name, old_option.dropped) for name, old_option in rows if old_option.dropped)
    for name in wheel_names(old):
        if name in tree.other_targets:
            yield Note(f"--wheels={name}", f"isn't for ROCm; JAX's target is {tree.other_targets[name]}")
        elif name not in WHEEL_KINDS:
            yield Note(f"--wheels={name}", "isn't for ROCm")
    yield from given.dropped
    if len(startup_options(old.texts("bazel_startup_options"))) < len(old.texts("bazel_startup_options")):
        yield Note(f"--bazelrc={JAX_ROCM_BAZELRC}", "rocm.bazelrc imports this file")
    yield from unread_variables(old, tables)
    text = "JAX sets the run path when linking (jaxlib/rocm/rocm_rpath.bzl); rocwheel jax patch shortens it"
    yield Note("patchelf", text)


def wrong(old: OldCommand) -> Iterator[Note]:
    """Yield the bugs in the old tool that affect this command line. JAX's wheels have no ``commit_info.py``."""
    yield from (note for note in build_py.wrong(old) if not re.search(r"commit_info\.py|--commit", note.text))
