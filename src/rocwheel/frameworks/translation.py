"""Old command lines of rocm-jax's ``build/build.py`` as settings, plain commands, and what to know about them."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import msgspec

from rocwheel.errors import InputError
from rocwheel.frameworks.bazel_settings import BazelSettings
from rocwheel.frameworks.bazelrc import python_config
from rocwheel.frameworks.build_commands import BuildOptions, Command, commit_of, wheel_commands
from rocwheel.frameworks.build_py import option_fates, parse_build_py, variable_fates

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rocwheel.frameworks.build_py import OldCommand

__all__ = ["Note", "Translation", "translate"]

_OPTION = "--wheels"
_TARGETS = "gfx908,gfx90a,gfx9-4-generic,gfx10-3-generic,gfx11-generic,gfx12-generic"
_CLANG = "/usr/lib/llvm-18/bin/clang"
_PYTHON = "3.12"
_WHEELS = {"jax-rocm-plugin": "plugin", "jax-rocm-pjrt": "pjrt"}
_REPOSITORIES = {"xla": "ROCm/xla", "jax": "jax"}
_SOURCES = ("jaxlib_ext/tools/LICENSE.txt", "jax_plugins/rocm/__init__.py")
_CLANG_CONFIG_FROM = 16
_FALSE = {"n", "no", "f", "false", "off", "0"}
_OVERRIDE = re.compile(r"--override_repository=(xla|jax)=(.+)")
_EATEN = re.compile(r"(?:^|[=:,])/\.\.(?:/|$)")


class Note(msgspec.Struct, frozen=True):
    """An option, or a variable, and what is said of it."""

    option: str
    text: str


class Translation(msgspec.Struct, frozen=True):
    """What an old command line stands for today."""

    settings: BazelSettings
    settings_text: str
    """The text of ``rocm.toml``."""
    commands: tuple[Command, ...]
    kept: tuple[Note, ...]
    dropped: tuple[Note, ...]
    wrong: tuple[Note, ...]
    """What the old command line did without telling."""


def translate(words: Sequence[str], *, version: str = "VERSION", sdk: str = "") -> Translation:
    """Translate ``python build/build.py build ...``, with variables before it if any.

    ``version`` is that of the wheels, ``sdk`` the folder of the packages that they run beside. Raises `InputError` for
    a command line that the old tool would not have taken.
    """
    old = parse_build_py(words)
    fields = {"schema": 1, **{name: value for name, value in _fields(old).items() if value}}
    settings = msgspec.convert(fields, BazelSettings)
    commands = _commands(old, settings, version, sdk)
    given = [(f"--{name}", fate) for name, fate in option_fates().items() if old.has(name)]
    given += [(name, fate) for name, fate in variable_fates().items() if name in old.variables]
    return Translation(
        settings,
        "".join(f"{name} = {json.dumps(value)}\n" for name, value in fields.items()),
        tuple(commands),
        tuple(Note(name, fate.now) for name, fate in given if fate.now),
        (*(Note(name, fate.dropped) for name, fate in given if fate.dropped), *_dropped(old)),
        (*(Note(name, fate.wrong) for name, fate in given if fate.wrong), *_wrong(old)),
    )


def _fields(old: OldCommand) -> dict[str, Any]:
    compiler = _compiler(old)
    return {
        "compiler": compiler,
        "rocm-path": old.text("rocm_path"),
        "rocm-version": old.text("rocm_version", "7").partition(".")[0],
        "targets": old.text("rocm_amdgpu_targets", _TARGETS).split(","),
        "python-versions": [old.text("python_version", _PYTHON)],
        "cpu-features": old.text("target_cpu_features", "release"),
        "configs": _configs(old, compiler),
        "options": ["--verbose_failures", *([f"--cpu={cpu}"] if (cpu := old.text("target_cpu")) else [])],
        "wheel-sources": list(_SOURCES),
        "remote-execution": "rbe.bazelrc" if old.has("rbe") else "",
    }


def _compiler(old: OldCommand) -> str:
    uses_clang = old.text("use_clang", "true").lower() not in _FALSE
    return old.text("clang_path", _CLANG) if uses_clang else old.text("gcc_path", "/usr/bin/gcc")


def _configs(old: OldCommand, compiler: str) -> list[str]:
    configs = ["rocm_base", "rocm"]
    major = BazelSettings(1, compiler, (), ()).compiler_major
    if "clang" in compiler and (major or 0) >= _CLANG_CONFIG_FROM:
        configs.append("clang")
    if not old.has("disable_mkl_dnn"):
        configs.append("mkl_aarch64_threadpool" if old.text("target_cpu") == "aarch64" else "mkl_open_source_only")
    return configs


def _commands(old: OldCommand, settings: BazelSettings, version: str, sdk: str) -> list[Command]:
    bazel = (old.text("bazel_path", "bazel"), *old.texts("bazel_startup_options"))
    if old.subcommand == "requirements_update":
        python = python_config(settings.python_versions[0])
        return [Command("Pin the requirements", (*bazel, "run", f"--config={python}", "//build:requirements.update"))]
    if old.has("configure_only"):
        return []
    options = BuildOptions(
        version=_version(version, old.variables),
        sdk=sdk,
        dest_dir=old.text("output_path", "dist"),
        kinds=_kinds(old),
        commits=_commits(old),
        config="rocm_build_remote" if old.has("rbe") else "rocm_build",
        bazel=bazel,
        bazel_options=tuple(_bazel_options(old)),
    )
    return wheel_commands(settings, options)


def _kinds(old: OldCommand) -> tuple[str, ...]:
    asked = [word for word in old.text("wheels").split(",") if word]
    kinds = tuple(kind for name, kind in _WHEELS.items() if name in asked)
    if not kinds:
        found = f"names {', '.join(asked) or 'none, which stood for jaxlib and was refused'}"
        raise InputError(_OPTION, found, expected=f"one of {' and '.join(_WHEELS)}")
    return kinds


def _local_xla(old: OldCommand) -> str:
    return old.text("local_xla_path", old.variables.get("JAXCI_XLA_GIT_DIR", ""))


def _bazel_options(old: OldCommand) -> Iterator[str]:
    if old.has("detailed_timestamped_log"):
        yield "--show_timestamps"
    if _local_xla(old):
        yield f"--override_repository=xla={_local_xla(old)}"
    yield from old.texts("bazel_options")


def _commits(old: OldCommand) -> dict[str, str]:
    overrides = [match.groups() for option in _bazel_options(old) if (match := _OVERRIDE.fullmatch(option))]
    commits = {_REPOSITORIES[name]: commit_of(path) for name, path in overrides}
    given = old.variables.get("ROCM_JAX_COMMIT")
    return commits | ({"ROCm/rocm-jax": given} if given else {})


def _version(version: str, variables: Mapping[str, str]) -> str:
    post, extra = variables.get("WHEEL_POST_RELEASE"), variables.get("ROCM_VERSION_EXTRA")
    version += variables.get("WHEEL_VERSION_SUFFIX", "")
    return version + (f".post{post}" if post else "") + (f"+rocm{extra}" if extra else "")


def _dropped(old: OldCommand) -> Iterator[Note]:
    for name in old.text("wheels").split(","):
        if name and name not in _WHEELS:
            yield Note(f"--wheels={name}", "this workspace builds the wheels for ROCm alone")
    known = variable_fates()
    for name in old.variables:
        if name not in known:
            yield Note(
                name, "the old tool did not read this variable; set it with --repo_env or --action_env if rules do"
            )
    yield Note("patchelf", "the run path is set when linking (ROCM_WHEEL_RPATH), and the finished wheel is audited")


def _wrong(old: OldCommand) -> Iterator[Note]:
    yield Note(
        ".jax_configure.bazelrc",
        "flags were applied twice, on the command line and from this file, which all later builds read: delete it",
    )
    for option in (*old.texts("bazel_options"), *old.texts("bazel_startup_options")):
        yield from _wrong_text(option)
        if "rpath" in option and "ROCM_WHEEL_RPATH" not in option:
            yield Note(option, "patchelf replaced every run path afterwards, so that this one never reached a wheel")
    if old.text("target_cpu") == "x86_64":
        yield Note("--target_cpu=x86_64", "ended with a KeyError: the table of wheel tags lacked it")
    if old.subcommand == "requirements_update":
        yield Note("requirements_update", "ended with an AttributeError: it read an option that only build has")
    if old.subcommand == "build":
        yield Note(
            "jax-rocm*-pjrt", "its version.py was never stamped: the wheel told the day of its import as version"
        )


def _wrong_text(option: str) -> Iterator[Note]:
    if _EATEN.search(option):
        yield Note(option, "holds /.., so a shell has expanded $ORIGIN already; write the option in single quotes")
    elif "$" in option:
        name = option[option.index("$") :].partition("/")[0]
        yield Note(option, f"went through a second shell, which expanded {name}; here it arrives as it is written")
