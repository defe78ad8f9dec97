"""The settings of a Bazel build for ROCm, from one small TOML file: what ``.bazelrc`` and commands say.

Strings of TOML 1.0 are those of JSON, but that no pair of escapes stands for a character, and DEL is escaped.
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
    """Return the line of a setting, with its end; a list that is wider than a ``width`` has a line for each item."""
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
"""``release``: AVX, as published wheels have. ``native``: this machine's. ``default``: the compiler's."""

PYTHON_VERSION = re.compile(r"3\.([0-9]{1,2}|(1[3-9]|[2-9][0-9])-ft)")
"""A Python as JAX's rules name it: ``3.12``, or ``3.14-ft`` without the global lock."""

_SDK = "$SDK"
_FOLDER = r"/(?:(?![:$,'\"\\`])[!-~])"
_ENTRY = re.compile(rf"\$SDK|\$(?:ORIGIN|SITE_PACKAGES)(?:{_FOLDER}*)?|{_FOLDER}+")
_LOST_SITE_PACKAGES = "/_rocm_sdk"
"""How an entry begins of which a shell has taken ``$SITE_PACKAGES``."""
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


_UNKNOWN = "unknown field"  # of msgspec's errors


class SettingsError(InputError):
    """Settings can't be used."""


class BazelSettings(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """The settings of a build. Use `read_settings`; the constructor checks nothing."""

    schema: Literal[1]
    compiler: str
    """The C++ compiler's path."""
    python_versions: tuple[str, ...]
    """Such as ``3.12``, or ``3.13-ft`` for the free-threaded build."""
    targets: tuple[str, ...]
    """GPU targets, in any words of ``rocwheel targets``."""
    compiler_version: int = 0
    """Its major version; 0 if the path says it."""
    rocm_path: str = ""
    """The ROCm that is built against; empty if the workspace brings its own."""
    rocm_version: str = "7"
    """The major version in the wheels' names."""
    cpu_features: CpuFeatures = "release"
    compress_device_code: bool = True
    search: tuple[str, ...] = ()
    """Run path entries: ``$SITE_PACKAGES/FOLDER``, ``$ORIGIN/FOLDER``, absolute, or ``$SDK``, which is the default."""
    target_family: str = ""
    """For an SDK in the per-family layout: the family whose libraries are searched."""
    run_path_tag: Literal["rpath", "runpath"] = "runpath"
    crosstool: str = ""
    """The label of a C++ toolchain for ``--crosstool_top``, such as ``@local_config_rocm//crosstool:toolchain``."""
    configs: tuple[str, ...] = ()
    """Configs of the workspace that ``rocm_build`` includes."""
    options: tuple[str, ...] = ()
    """Further options of ``rocm_build``, literally."""
    remote_execution: str = ""
    """A file of the workspace that defines ``rocm_rbe``; with it, ``rocm_build_remote`` builds remotely."""
    wheel_sources: tuple[str, ...] = ("jaxlib_ext/tools/LICENSE.txt", "pjrt/python/__init__.py")
    """Files of the source tree that the wheels take, in addition to the outputs of Bazel."""
    pjrt_spec: str = ""
    """The description of the PJRT wheel, a file of the source tree; empty for the one of ROCm's JAX."""
    plugin_spec: str = ""
    """The description of the wheels of extension modules; empty for the one of ROCm's JAX."""
    commits: dict[str, str] = {}
    """Repository to the commit that is built: literally, or ``FILE:CONSTANT`` for one in a file of the source tree."""
    pjrt_targets: tuple[str, ...] = ("//pjrt:pjrt_c_api_gpu_plugin.so",)
    plugin_targets: tuple[str, ...] = ("//jaxlib_ext/tools:build_gpu_kernels_wheel",)

    @property
    def compiler_major(self) -> int | None:
        """The compiler's major version, as given or in its path."""
        found = _COMPILER_MAJOR.findall(self.compiler)
        return self.compiler_version or (int(found[-1]) if found else None)

    @property
    def is_clang(self) -> bool:
        """Whether the compiler is a clang."""
        return "clang" in self.compiler.rpartition("/")[2]

    @property
    def run_path(self) -> str:
        """The value of ``ROCM_WHEEL_RPATH``."""
        sdk = [f"$SITE_PACKAGES/{folder}" for folder in sdk_search_folders(self.target_family)]
        return ":".join(entry for word in self.search or (_SDK,) for entry in (sdk if word == _SDK else [word]))

    @property
    def system_run_paths(self) -> tuple[str, ...]:
        """The absolute entries that are searched. They are intended, though the audit would warn of them."""
        return tuple(entry for entry in self.search if entry.startswith("/"))


def read_settings(path: Path) -> BazelSettings:
    """Read settings; raise `SettingsError` for any other text, `ProblemsError` with every wrong value."""
    try:
        settings = decode_toml(read_regular(path), BazelSettings)
    except OSError as e:
        raise read_error(path, e, remedy="Check --settings.", kind=SettingsError) from e
    except msgspec.DecodeError as e:
        known = msgspec.structs.fields(BazelSettings) if _UNKNOWN in str(e) else ()
        expected = f"keys of {', '.join(field.encode_name for field in known)}" if known else ""
        raise SettingsError(
            path, f"doesn't hold settings: {e}", expected=expected, remedy="docs/jax.md has the fields."
        ) from e
    check_settings(settings, path)
    return settings


def check_settings(settings: BazelSettings, source: Path | str) -> None:
    """Raise `ProblemsError` with every value that Bazel, the fetch of the repository, or the wheels would refuse."""
    if problems := list(_problems(settings, source)):
        raise ProblemsError(str(source), problems)


def _problems(settings: BazelSettings, path: Path | str) -> Iterator[InputError]:
    yield from (SettingsError(path, found, expected=wanted) for fits, found, wanted in _values(settings) if not fits)
    try:
        if is_family(settings.target_family):
            check_family(settings.target_family, source=f"{path}: target-family")
    except UnknownTargetError as e:
        yield e
    yield from (SettingsError(path, found, expected=wanted) for fits, found, wanted in _names(settings) if not fits)


def _values(settings: BazelSettings) -> Iterator[tuple[bool, str, str]]:
    """Yield whether each value is one that Bazel and the wheels take, what is found otherwise, and what is expected."""
    versions, remote = settings.python_versions, settings.remote_execution
    yield bool(settings.compiler), "compiler is empty", "the path of clang or gcc"
    yield bool(versions), "python-versions is empty", "at least one"
    for version in versions:
        fits = PYTHON_VERSION.fullmatch(version) is not None
        yield fits, f"python-versions names {version!r}", "such as '3.12' or '3.13-ft'"
    for entry in settings.search:
        fits = bool(_ENTRY.fullmatch(entry)) and not lost_origin(entry) and not entry.startswith(_LOST_SITE_PACKAGES)
        expected = "$SDK, $SITE_PACKAGES/FOLDER, $ORIGIN/FOLDER or an absolute folder, ASCII without blanks and quotes"
        yield fits, f"search names {entry!r}", expected
    folders = [posixpath.normpath(entry) for entry in settings.run_path.split(":")]
    yield len(set(folders)) == len(folders), "search names a folder twice", "each once"
    yield len(set(versions)) == len(versions), "python-versions names a version twice", "each once"
    yield settings.compiler_version >= 0, f"compiler-version is {settings.compiler_version}", "a major version"
    yield settings.rocm_version.isdecimal(), f"rocm-version is {settings.rocm_version!r}", "a major version, '7'"
    yield settings.rocm_path[:1] in ("", "/"), f"rocm-path is {settings.rocm_path!r}", "an absolute path"
    yield is_family(settings.target_family), f"target-family is {settings.target_family!r}", "one word"
    yield bool(settings.pjrt_targets), "pjrt-targets is empty", "at least one"
    yield bool(settings.plugin_targets), "plugin-targets is empty", "at least one"
    parts = remote.split("/")
    is_below = not remote or (remote[0] != "/" and ".." not in parts and parts[-1] not in ("", "."))
    yield is_below, f"remote-execution is {remote!r}", "a file's path below the workspace"
    for name in settings.configs:
        yield bool(_CONFIG.fullmatch(name)), f"configs names {name!r}", "a config's name"
    for name in settings.configs:
        yield name not in _OWN_CONFIGS, f"configs names {name!r}, which includes them", "another config"
    for word in settings.options:
        fits = bool(_OPTION.fullmatch(word)) and not _VALUE_OPTION.fullmatch(word)
        yield fits, f"options names {word!r}", "an option, with its value after ="


def _names(settings: BazelSettings) -> Iterator[tuple[bool, str, str]]:
    """Yield the same of labels, commits, and texts that have to stand in one line."""
    for label in (*settings.pjrt_targets, *settings.plugin_targets, *filter(None, [settings.crosstool])):
        yield bool(_BAZEL_LABEL.fullmatch(label)), f"{label!r} is not a Bazel label", "such as //pjrt:plugin.so"
    for name, commit in settings.commits.items():
        fits = bool(_REPOSITORY.fullmatch(name) and _PINNED.fullmatch(commit))
        expected = "a repository, and 7 to 64 hexadecimal digits or FILE:CONSTANT"
        yield fits, f"commits names {name!r} = {commit!r}", expected
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
