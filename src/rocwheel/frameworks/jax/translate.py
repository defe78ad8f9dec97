"""Translates command lines of rocm-jax's ``build/build.py`` into settings and commands, including calls in files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from rocwheel.core.errors import InputError, ProblemsError
from rocwheel.core.reading import read_small
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
from rocwheel.frameworks.jax.calls import (
    OldCall,
    OldCalls,
    OptionalWords,
    UndecidedCall,
    UndecidedError,
    read_makefile_calls,
    read_shell_calls,
    read_workflow_calls,
)
from rocwheel.frameworks.jax.commands import BuildOptions, Command, commit_of, python_option, wheel_commands
from rocwheel.frameworks.jax.jax_tree import wheel_rule_commands
from rocwheel.frameworks.jax.python_calls import read_python_calls
from rocwheel.frameworks.jax.settings import BazelSettings, check_settings, settings_line
from rocwheel.frameworks.jax.words import MARKS, spell_line
from rocwheel.targets.target_set import parse_target_set

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from rocwheel.frameworks.jax.build_py import OldCommand
    from rocwheel.frameworks.jax.calls import OldCalls
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
    """Errors that the old tool made silently with this command line."""


def translate(
    words: Sequence[str],
    *,
    version: str = "VERSION",
    sdk: str = "",
    workspace: BazelSettings | None = None,
    tree: SourceTree = "rocm-jax",
) -> Translation:
    """Translate ``python build/build.py build ...``, optionally with variables before it.

    ``version`` is the version of the wheels, and ``sdk`` is the folder with the SDK's packages. If the settings of a
    ``workspace`` are passed, the commands use them, except for a Python version in the command line. With ``jax`` as
    the ``tree``, the commands build JAX's own targets in JAX's own tree, which has its own version.

    Raises `InputError` for a command line that the old tool would have rejected, or for a Python version that JAX's
    tree doesn't support. Raises `ProblemsError` for settings that `rocwheel.frameworks.jax.settings.read_settings`
    would reject.
    """
    old = parse_build_py(words)
    if tree == "jax":
        return _for_jax(old, sdk)
    fields = {"schema": 1, **{name: value for name, value in _fields(old).items() if value}}
    settings = _settings(fields)
    commands = _commands(old, _of_workspace(old, settings, workspace), version, sdk)
    return Translation(
        settings,
        "".join(settings_line(name, value) for name, value in fields.items()),
        tuple(commands),
        tuple(build_py.kept(old)),
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
            *jax_tree.carried_options(old),
            *given.options,
        ),
        python=old.carried.get("python_version", ""),
        is_editable=old.has("editable"),
    )
    return wheel_rule_commands(settings, options)


def _settings(fields: dict[str, Any]) -> BazelSettings:
    """Return the settings. Raises `InputError` or `ProblemsError` for invalid ones."""
    settings = msgspec.convert(fields, BazelSettings)
    parse_target_set(settings.targets, source=_TARGETS_OPTION)
    check_settings(settings, _COMMAND_SETTINGS)
    return settings


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
        found = f"names {', '.join(asked) or 'no wheel, which meant jaxlib and was rejected'}"
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


CallerKind = Literal["makefile", "shell", "workflow", "python"]

_NAMES: dict[CallerKind, re.Pattern[str]] = {
    "makefile": re.compile(r"(GNU)?[Mm]akefile([.-].*)?|.*\.(mk|mak|make)"),
    "shell": re.compile(r".*\.(sh|bash)"),
    "workflow": re.compile(r".*\.ya?ml"),
    "python": re.compile(r".*\.pyi?"),
}
_PROGRAM = re.compile(r"#!.*\b(?P<program>python|bash|dash|ksh|zsh|sh|make)[0-9.]*\b")


def caller_kind(text: str, name: str) -> CallerKind:
    """Return a file's kind, based on its name or its first line. Raises `InputError` for other files."""
    for kind, pattern in _NAMES.items():
        if pattern.fullmatch(name.rpartition("/")[2]):
            return kind
    program = _PROGRAM.match(text[:200])
    if program is None:
        found = "has neither a known file name nor a first line with #! and a program"
        raise InputError(name, found, expected="a Makefile, a shell script, a workflow (YAML), or Python")
    if program["program"] in {"python", "make"}:
        return "python" if program["program"] == "python" else "makefile"
    return "shell"


def read_old_calls(text: str, name: str) -> OldCalls:
    """Return the calls of ``build/build.py`` in a file's text. ``name`` is the file's path.

    This function runs nothing and reads no other file. Raises `InputError` for a file of another kind, for text with
    NUL or another control character, and for invalid Python.
    """
    if found := MARKS & set(text):
        character = min(found)
        message = f"isn't text: it contains the character {character!r}"
        raise InputError(name, message, expected="a Makefile, a shell script, a workflow, or Python")
    reader = _READERS[caller_kind(text, name)]
    try:
        return reader(text.replace("\r\n", "\n"))
    except UndecidedError as e:
        raise InputError(name, str(e), remedy="Pass the command line itself.") from e


_READERS: dict[CallerKind, Callable[[str], OldCalls]] = {
    "makefile": read_makefile_calls,
    "shell": read_shell_calls,
    "workflow": read_workflow_calls,
    "python": read_python_calls,
}


_LARGEST = 4 << 20
_WORKFLOW = re.compile(r"^(?:[\"']?(?:jobs|runs)[\"']?|[ ]*(?:-[ ]+)*[\"']?run[\"']?)[ ]*:", re.MULTILINE)
"""A key that only workflows and actions have, or the ``run`` key of a step in an excerpt."""


def read_calls_of_file(path: Path) -> OldCalls:
    """Return the calls in a file.

    Raises `InputError` if the file can't be read, isn't text, or is larger than 4 MiB.
    """
    data = read_small(path, _LARGEST, expected="a Makefile, a shell script, a workflow, or Python")
    try:
        text = data.decode()
    except UnicodeDecodeError as e:
        raise InputError(path, f"isn't text: {e.reason} at byte {e.start}", expected="UTF-8") from e
    text = text.removeprefix("\ufeff")
    found = read_old_calls(text, str(path))
    if caller_kind(text, str(path)) == "workflow" and not _WORKFLOW.search(text):
        message = "isn't a workflow: no line begins with jobs: or runs:, and no line has the key run"
        raise InputError(path, message, expected="a GitHub workflow or action, in YAML")
    return found


class Addition(msgspec.Struct, frozen=True):
    """The changes that a call's conditional argument makes."""

    given: OptionalWords
    new: tuple[str, ...]
    """Additional words in the new commands, or lines in ``rocm.toml``. Empty if the argument has no equivalent."""
    reason: str = ""
    """The reason why the argument can't be translated."""


class TranslatedCall(msgspec.Struct, frozen=True):
    """An old call and its current equivalent."""

    call: OldCall
    translation: Translation
    additions: tuple[Addition, ...]


class TranslatedCalls(msgspec.Struct, frozen=True):
    """The calls in a file, sorted by line."""

    calls: tuple[TranslatedCall, ...]
    undecided: tuple[UndecidedCall, ...]

    @property
    def complete(self) -> bool:
        """Whether all calls are translated, including their conditional arguments."""
        return not self.undecided and not any(item.reason for call in self.calls for item in call.additions)


def translate_calls(
    found: OldCalls,
    *,
    version: str = "VERSION",
    sdk: str = "",
    workspace: BazelSettings | None = None,
    tree: SourceTree = "rocm-jax",
) -> TranslatedCalls:
    """Translate each call with `translate`. If `translate` rejects a call, it is undecided for the same reason."""
    calls, undecided = [], list(found.undecided)
    for call in found.calls:
        try:
            translation = translate(call.words, version=version, sdk=sdk, workspace=workspace, tree=tree)
        except (InputError, ProblemsError) as e:
            undecided.append(UndecidedCall(call.first_line, call.last_line, " ".join(str(e).split())))
            continue
        additions = [_addition(call, translation, given, version, sdk, tree) for given in call.optional]
        calls.append(TranslatedCall(call, translation, tuple(additions)))
    undecided.sort(key=lambda item: item.first_line)
    return TranslatedCalls(tuple(calls), tuple(undecided))


def spell_call(call: OldCall, commands: Sequence[Command]) -> list[str]:
    """Return commands as lines in the syntax of the call's file."""
    return [spell_line(command.words, call.form, template=call.template) for command in commands]


def _addition(
    call: OldCall, plain: Translation, given: OptionalWords, version: str, sdk: str, tree: SourceTree
) -> Addition:
    try:
        other = translate([*call.words, *given.words], version=version, sdk=sdk, tree=tree)
    except (InputError, ProblemsError) as e:
        return Addition(given, (), " ".join(str(e).split()))
    return Addition(given, tuple(_added(call, plain, other)))


def _added(call: OldCall, plain: Translation, other: Translation) -> list[str]:
    """Return the distinct words and lines that only the other translation has."""
    known = {word for command in plain.commands for word in command.words}
    words = [word for command in other.commands for word in command.words if word not in known]
    lines = set(plain.settings_text.splitlines())
    settings = [f"rocm.toml: {line}" for line in other.settings_text.splitlines() if line not in lines]
    spelled = (spell_line([word], call.form, template=call.template) for word in words)
    return list(dict.fromkeys([*spelled, *settings]))
