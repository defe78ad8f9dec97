"""Reads the settings of a Bazel build for ROCm from a TOML file. ``.bazelrc`` and commands are rendered from them.

Strings in TOML 1.0 have the syntax of JSON strings, with two differences: no pair of escapes represents a character,
and DEL must be escaped.
"""

from __future__ import annotations

import json
import posixpath
import re
from typing import TYPE_CHECKING, Literal

import msgspec

from rocwheel.artifacts.sdk_names import is_family
from rocwheel.core.decoding import decode_toml
from rocwheel.core.errors import InputError, ProblemsError, read_error
from rocwheel.core.reading import read_regular
from rocwheel.environment.run_path_entries import lost_origin
from rocwheel.environment.sdk_layout import sdk_search_folders
from rocwheel.targets.catalog import check_family
from rocwheel.targets.errors import UnknownTargetError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def settings_line(name: str, value: object, *, width: int = 0) -> str:
    """Return the line of a setting, with its line ending.

    If a list is wider than ``width``, each item is on a separate line.
    """
    if isinstance(value, dict):
        pairs = ", ".join(f"{_spelled(key)} = {_spelled(item)}" for key, item in value.items())
        return f"{name} = {{ {pairs} }}\n"
    text = f"{name} = {_spelled(value)}\n"
    if width and isinstance(value, list) and len(text) > width:
        return f"{name} = [\n" + "".join(f"    {_spelled(item)},\n" for item in value) + "]\n"
    return text


def _spelled(value: object) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


CpuFeatures = Literal["release", "native", "default"]
"""``release``: AVX, as in published wheels. ``native``: this machine's features.

``default``: the compiler's default.
"""

SourceTree = Literal["rocm-jax", "jax"]
"""``rocm-jax``: the repository that AMD deprecated in May 2026. ``jax``: JAX's own repository, or a fork."""

PYTHON_VERSION = re.compile(r"3\.([0-9]{1,2}|(1[3-9]|[2-9][0-9])-ft)")
"""A Python version in the notation of JAX's rules: ``3.12``, or ``3.14-ft`` for the free-threaded build."""

_SDK = "$SDK"
_FOLDER = r"/(?:(?![:$,'\"\\`])[!-~])"
_ENTRY = re.compile(rf"\$SDK|\$(?:ORIGIN|SITE_PACKAGES)(?:{_FOLDER}*)?|{_FOLDER}+")
_LOST_SITE_PACKAGES = "/_rocm_sdk"
"""The beginning of an entry from which a shell removed ``$SITE_PACKAGES``."""
_COMPILER_MAJOR = re.compile(r"(?:llvm|clang|gcc|g\+\+)-(\d+)")
_REPOSITORY = re.compile(r"[\w./-]+")
_CONFIG = re.compile(r"[\w.+/:-]+")
_OWN_CONFIGS = ("rocm_build", "rocm_build_remote")
_OPTION = re.compile(r"--[^-=\s][^=\s]*(=.*)?|-[kst]-?", re.DOTALL)
_VALUE_OPTION = re.compile(
    r"--((host_)?(copt|cxxopt|conlyopt|linkopt|action_env|cpu)|config|define|repo_env|test_env|jobs|override_repository"
    r"|compilation_mode|crosstool_top|features|platforms|remote_cache|remote_executor|spawn_strategy|test_output)"
)
_PINNED = re.compile(r"[0-9a-f]{7,64}|[^:]+:[A-Za-z_]\w*")
_BAZEL_LABEL = re.compile(r"(@[\w.~-]*)?//[\w./+=,@~-]*(:[\w./+=,@~-]+)?|:[\w./+=,@~-]+")


_UNKNOWN = "unknown field"  # from msgspec's messages


class SettingsError(InputError):
    """The settings are invalid."""


class BazelSettings(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """The settings of a build. Use `read_settings`, because the constructor checks nothing."""

    schema: Literal[1]
    compiler: str = ""
    """The path of the C++ compiler. Empty in JAX's own tree, which has its own compiler."""
    python_versions: tuple[str, ...] = ()
    """Python versions, such as ``3.12``, or ``3.13-ft`` for the free-threaded build."""
    targets: tuple[str, ...] = ()
    """GPU targets, in the syntax of ``rocwheel targets``."""
    tree: SourceTree = "rocm-jax"
    compiler_version: int = 0
    """The compiler's major version. If 0, the path contains the version."""
    rocm_path: str = ""
    """The folder of the ROCm installation for the build. Empty if the workspace has its own."""
    rocm_version: str = "7"
    """ROCm's major version, which is part of the wheels' names."""
    cpu_features: CpuFeatures = "release"
    compress_device_code: bool = True
    search: tuple[str, ...] = ()
    """Run path entries: ``$SITE_PACKAGES/FOLDER``, ``$ORIGIN/FOLDER``, absolute folders, or ``$SDK``.

    The default is ``$SDK``.
    """
    target_family: str = ""
    """The target family of an SDK in the per-family layout. The libraries of this family are searched."""
    run_path_tag: Literal["rpath", "runpath"] = "runpath"
    crosstool: str = ""
    """The label of a C++ toolchain for ``--crosstool_top``, such as ``@local_config_rocm//crosstool:toolchain``."""
    configs: tuple[str, ...] = ()
    """The workspace's configs that ``rocm_build`` includes."""
    options: tuple[str, ...] = ()
    """Additional options for ``rocm_build``, copied literally."""
    remote_execution: str = ""
    """A file in the workspace that defines ``rocm_rbe``. With this file, ``rocm_build_remote`` builds remotely."""
    wheel_sources: tuple[str, ...] = ("jaxlib_ext/tools/LICENSE.txt", "pjrt/python/__init__.py")
    """Files from the source tree that the wheels contain, in addition to Bazel's outputs."""
    pjrt_spec: str = ""
    """The description of the PJRT wheel, a file in the source tree. The default is the description for ROCm's JAX."""
    plugin_spec: str = ""
    """The description of the extension modules' wheels. The default is the description for ROCm's JAX."""
    commits: dict[str, str] = {}
    """The commits of the build, keyed by repository: literal, or ``FILE:CONSTANT`` for a constant in the source tree.
    """
    pjrt_targets: tuple[str, ...] = ("//pjrt:pjrt_c_api_gpu_plugin.so",)
    plugin_targets: tuple[str, ...] = ("//jaxlib_ext/tools:build_gpu_kernels_wheel",)

    @property
    def compiler_major(self) -> int | None:
        """The compiler's major version, from the setting or from the path."""
        found = _COMPILER_MAJOR.findall(self.compiler)
        return self.compiler_version or (int(found[-1]) if found else None)

    @property
    def is_clang(self) -> bool:
        """Whether the compiler is Clang."""
        return "clang" in self.compiler.rpartition("/")[2]

    @property
    def run_path(self) -> str:
        """The value of ``ROCM_WHEEL_RPATH``."""
        sdk = [f"$SITE_PACKAGES/{folder}" for folder in sdk_search_folders(self.target_family)]
        return ":".join(entry for word in self.search or (_SDK,) for entry in (sdk if word == _SDK else [word]))

    @property
    def system_run_paths(self) -> tuple[str, ...]:
        """The absolute run path entries. They are intended, even though the audit would warn about them."""
        return tuple(entry for entry in self.search if entry.startswith("/"))


def read_settings(path: Path, *, needs_python: bool = True) -> BazelSettings:
    """Read settings. Raises `SettingsError` for an unreadable file, and `ProblemsError` with all invalid values.

    Without ``needs_python``, the settings may have no Python version.
    """
    try:
        settings = decode_toml(read_regular(path), BazelSettings)
    except OSError as e:
        raise read_error(path, e, remedy="Check --settings.", kind=SettingsError) from e
    except msgspec.DecodeError as e:
        known = msgspec.structs.fields(BazelSettings) if _UNKNOWN in str(e) else ()
        expected = f"these keys: {', '.join(field.encode_name for field in known)}" if known else ""
        raise SettingsError(
            path, f"doesn't contain valid settings: {e}", expected=expected, remedy="See docs/jax.md for the fields."
        ) from e
    check_settings(settings, path, needs_python=needs_python)
    return settings


def check_settings(settings: BazelSettings, source: Path | str, *, needs_python: bool = True) -> None:
    """Raise `ProblemsError` with all values that Bazel, the repository rule, or the wheels would reject."""
    problems = list(_problems(settings, source))
    if needs_python and not settings.python_versions:
        problems.append(SettingsError(source, "python-versions is empty", expected="at least one"))
    if problems:
        raise ProblemsError(str(source), problems)


def _problems(settings: BazelSettings, path: Path | str) -> Iterator[InputError]:
    yield from (SettingsError(path, found, expected=wanted) for fits, found, wanted in _values(settings) if not fits)
    try:
        if is_family(settings.target_family):
            check_family(settings.target_family, source=f"{path}: target-family")
    except UnknownTargetError as e:
        yield e
    yield from (SettingsError(path, found, expected=wanted) for fits, found, wanted in _names(settings) if not fits)


def is_search_entry(entry: str) -> bool:
    """Return whether an entry is valid in ``search``."""
    return bool(_ENTRY.fullmatch(entry)) and not lost_origin(entry) and not entry.startswith(_LOST_SITE_PACKAGES)


def _values(settings: BazelSettings) -> Iterator[tuple[bool, str, str]]:
    """For each value, yield whether it is valid, a description of the value, and the expected value."""
    versions, remote = settings.python_versions, settings.remote_execution
    if settings.tree == "jax":
        yield from _unused(settings)
    else:
        yield bool(settings.compiler), "compiler is empty", "the path of Clang or GCC"
    for version in versions:
        fits = PYTHON_VERSION.fullmatch(version) is not None
        yield fits, f"python-versions contains {version!r}", "versions such as '3.12' or '3.13-ft'"
    for entry in settings.search:
        fits = is_search_entry(entry)
        expected = (
            "$SDK, $SITE_PACKAGES/FOLDER, $ORIGIN/FOLDER, or an absolute folder, in ASCII without spaces or quotes"
        )
        yield fits, f"search contains {entry!r}", expected
    folders = [posixpath.normpath(entry) for entry in settings.run_path.split(":")]
    yield len(set(folders)) == len(folders), "search lists a folder twice", "different entries"
    yield len(set(versions)) == len(versions), "python-versions lists a version twice", "different entries"
    yield settings.compiler_version >= 0, f"compiler-version is {settings.compiler_version}", "a major version"
    yield (
        settings.rocm_version.isdecimal(),
        f"rocm-version is {settings.rocm_version!r}",
        "a major version, such as '7'",
    )
    yield settings.rocm_path[:1] in ("", "/"), f"rocm-path is {settings.rocm_path!r}", "an absolute path"
    yield is_family(settings.target_family), f"target-family is {settings.target_family!r}", "one word"
    yield bool(settings.pjrt_targets), "pjrt-targets is empty", "at least one"
    yield bool(settings.plugin_targets), "plugin-targets is empty", "at least one"
    parts = remote.split("/")
    is_below = not remote or (remote[0] != "/" and ".." not in parts and parts[-1] not in ("", "."))
    yield is_below, f"remote-execution is {remote!r}", "the path of a file in the workspace"
    for name in settings.configs:
        yield bool(_CONFIG.fullmatch(name)), f"configs contains {name!r}", "a config's name"
    for name in settings.configs:
        yield name not in _OWN_CONFIGS, f"configs contains {name!r}, which includes these configs", "another config"
    for word in settings.options:
        fits = bool(_OPTION.fullmatch(word)) and not _VALUE_OPTION.fullmatch(word)
        yield fits, f"options contains {word!r}", "an option, such as --name=VALUE"


_UNUSED_BY_JAX = {
    "compiler": "JAX's config rocm_release_wheel has its own compiler",
    "compiler_version": "JAX's config rocm_release_wheel has its own compiler",
    "run_path_tag": "JAX's wheels have DT_RUNPATH",
    "crosstool": "JAX's config rocm_release_wheel has its own toolchain",
    "remote_execution": "JAX's build/rocm/rocm.bazelrc defines rocm_rbe",
    "wheel_sources": "JAX's targets specify the wheel files",
    "commits": "JAX's targets record only JAX's own commit",
}
"""Settings that have no effect in JAX's own tree, and the reasons."""


def _unused(settings: BazelSettings) -> Iterator[tuple[bool, str, str]]:
    """Yield tuples of the same kind for settings that have no effect in JAX's own tree."""
    default, names = BazelSettings(1), {field.name: field.encode_name for field in msgspec.structs.fields(settings)}
    for name, reason in _UNUSED_BY_JAX.items():
        is_default = getattr(settings, name) == getattr(default, name)
        yield is_default, f'{names[name]} has no effect with tree = "jax", because {reason}', "no such setting"


def _names(settings: BazelSettings) -> Iterator[tuple[bool, str, str]]:
    """Yield tuples of the same kind for labels, for commits, and for texts that must be a single line."""
    for label in (*settings.pjrt_targets, *settings.plugin_targets, *filter(None, [settings.crosstool])):
        yield bool(_BAZEL_LABEL.fullmatch(label)), f"{label!r} is not a Bazel label", "a label such as //pjrt:plugin.so"
    for name, commit in settings.commits.items():
        fits = bool(_REPOSITORY.fullmatch(name) and _PINNED.fullmatch(commit))
        expected = "a repository, and either 7 to 64 hexadecimal digits or FILE:CONSTANT"
        yield fits, f"commits contains {name!r} = {commit!r}", expected
    texts = {
        "compiler": settings.compiler,
        "rocm-path": settings.rocm_path,
        "options": "".join(settings.options),
        "configs": "".join(settings.configs),
        "remote-execution": settings.remote_execution,
        "wheel-sources": "".join(settings.wheel_sources),
        "pjrt-spec": settings.pjrt_spec,
        "plugin-spec": settings.plugin_spec,
        "commits": "".join(settings.commits.values()),
    }
    for field, text in texts.items():
        yield min(text, default=" ") >= " ", f"{field} has a line break or control character", "one line of text"
