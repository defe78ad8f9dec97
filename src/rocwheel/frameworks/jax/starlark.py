"""Writes the Starlark files for a user's workspace, and supports JAX's own wheel rules."""

from __future__ import annotations

import argparse
import importlib.resources
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import msgspec

from rocwheel.core.decoding import read_table
from rocwheel.core.errors import InputError, ProblemsError
from rocwheel.core.reading import read_regular
from rocwheel.frameworks.jax.bazelrc import GeneratedFile, HandEditedError, refuse_edited
from rocwheel.frameworks.jax.commands import require_values
from rocwheel.frameworks.wheel_draft import parse_commits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rocwheel.frameworks.jax.settings import BazelSettings


JaxWheel = Literal["pjrt", "plugin"]
"""``pjrt``: the PJRT plugin for all Python versions. ``plugin``: the extension modules for one Python version."""

_FILE = "wheel_descriptions.toml"
_ROCM_OPTION = "--rocm"
_VERSION = re.compile(r"[0-9]+(\.[0-9]+)*")


def jax_wheel_description(wheel: JaxWheel) -> dict[str, Any]:
    """Return the description of a wheel.

    The placeholders that remain without a value are ``{rocm}`` and the version.
    """
    return read_table(__package__, _FILE, dict[str, dict[str, Any]])[wheel]


def rocm_major(text: str, source: str = _ROCM_OPTION) -> str:
    """Return ROCm's major version, as used in the wheels' names, from a version such as 7 or 7.2.0.

    Raises `InputError` for any other text. ``source`` is where the version comes from, for the error message.
    """
    if not _VERSION.fullmatch(text):
        raise InputError(source, f"is {text!r}", expected="a version such as 7 or 7.2.0")
    return text.partition(".")[0]


_CALL = "the call to jax_wheel"
_GIT_HASH = "jaxlib_git_hash"
_PARAMETER_FILE = "@"
_REPOSITORY = "jax"


class RuleCall(msgspec.Struct, frozen=True):
    """The arguments of a call from the rule.

    The rule has already declared the wheel's file name, and expects it in ``folder``.
    """

    folder: Path
    cpu: str
    rocm: str
    """ROCm's major version."""
    commits: dict[str, str]
    """The commit of JAX, keyed by repository. Empty if the rule doesn't know the commit."""
    sources: tuple[Path, ...]


def read_rule_call(words: Sequence[str]) -> RuleCall:
    """Parse the words of a call. The lines of the parameter file, which Bazel writes, replace ``@FILE``.

    Raises `InputError` for words that the rule doesn't use, for a wheel that isn't for ROCm, and for an editable wheel.
    """
    given = _parser().parse_args(list(_expanded(words)))
    require_values(vars(given))
    if given.editable:
        remedy = "Build the target without _editable, or set wheel_binary to JAX's own tool."
        raise InputError(_CALL, "requests an editable wheel", expected="a regular wheel", remedy=remedy)
    if not _is_true(given.enable_rocm) or _is_true(given.enable_cuda):
        raise InputError(_CALL, "isn't for ROCm", expected="only enable_rocm = True", remedy="Correct the target.")
    if not given.srcs:
        raise InputError(_CALL, "has no files (--srcs)", expected="the files from wheel_sources in source_files")
    sources = tuple(map(Path, dict.fromkeys(given.srcs)))
    rocm = rocm_major(given.platform_version, "platform_version")
    commits = parse_commits([f"{_REPOSITORY}={given.jaxlib_git_hash}"] if given.jaxlib_git_hash else (), _GIT_HASH)
    return RuleCall(Path(given.output_path), given.cpu, rocm, commits, sources)


def parse_cpu_tags(texts: Sequence[str], option: str) -> dict[str, str]:
    """Parse ``CPU=TAG`` words. Raises `InputError` with the option's name for any other word."""
    pairs = [text.partition("=") for text in texts]
    for text, (cpu, _, tag) in zip(texts, pairs, strict=True):
        if not cpu or not tag:
            raise InputError(option, f"is {text!r}", expected="CPU=TAG, such as x86_64=manylinux_2_27_x86_64")
    return {cpu: tag for cpu, _, tag in pairs}


class _Parser(argparse.ArgumentParser):
    """A parser that raises errors instead of exiting."""

    def error(self, message: str) -> NoReturn:
        remedy = "Only the rule jax_wheel should call this program; to build a wheel by hand, use rocwheel jax wheel."
        raise InputError(_CALL, f"is invalid ({message})", remedy=remedy)


def _parser() -> argparse.ArgumentParser:
    """Return a parser for the options of JAX's ``build_gpu_plugin_wheel.py`` and ``build_gpu_kernels_wheel.py``."""
    parser = _Parser(add_help=False, allow_abbrev=False)
    parser.add_argument("--output_path", required=True)
    parser.add_argument("--cpu", required=True)
    parser.add_argument("--platform_version", required=True)
    parser.add_argument("--jaxlib_git_hash", default="")
    parser.add_argument("--enable-rocm", default="")
    parser.add_argument("--enable-cuda", default="")
    parser.add_argument("--editable", action="store_true")
    parser.add_argument("--srcs", action="append")
    return parser


def _is_true(text: str) -> bool:
    return text.lower() == "true"


def _expanded(words: Sequence[str]) -> Iterator[str]:
    for word in words:
        if word.startswith(_PARAMETER_FILE):
            yield from _lines(Path(word.removeprefix(_PARAMETER_FILE)))
        else:
            yield word


def _lines(path: Path) -> list[str]:
    try:
        return read_regular(path).decode().splitlines()
    except (OSError, UnicodeDecodeError) as e:
        raise InputError(path, f"can't be read as a parameter file ({e})", expected="one argument on each line") from e


Workspace = Literal["workspace", "bzlmod"]
"""The file in which the workspace declares its dependencies: WORKSPACE or MODULE.bazel."""

_PACKAGE = re.compile(r"[\w./+=,@~-]*", re.ASCII)
_NOTE = "Made by rocwheel jax starlark;"
_FOLDER = "starlark"
_VARIANT = "cc.bzl"
_EXTENSIONS = "extensions.bzl"
_COMMON = (
    "BUILD.bazel",
    "rocm_shared_library.bzl",
    "rocm_wheel.bzl",
    "rocm_wheel_repository.bzl",
    "run_path.bzl",
    "runtime_library.bzl",
)
_JAX_RULES = "jax_wheel_binary.bzl"
_MARKERS = ("MODULE.bazel", "WORKSPACE", "WORKSPACE.bazel")


class HandEditedFilesError(ProblemsError):
    """No file is written because files were edited manually, or because another tool wrote them."""

    exit_status = 1


class StarlarkPackage(msgspec.Struct, frozen=True):
    """The files of the package, keyed by name, and the lines that declare the package."""

    files: dict[str, GeneratedFile]
    declaration: str
    """Lines for WORKSPACE or MODULE.bazel."""

    def write(self, folder: Path, *, force: bool = False) -> str:
        """Write the files, and return the unified diffs from the old contents.

        Unless ``force`` is true, raises `HandEditedFilesError` with all edited files before writing any file. Raises
        the same errors as `GeneratedFile.write`.
        """
        if not force and (edited := list(self._edited(folder))):
            raise HandEditedFilesError(str(folder), edited)
        return "".join(file.write(folder / name, force=force) for name, file in self.files.items())

    def diff(self, folder: Path) -> str:
        """Return the unified diffs from the existing files in ``folder``."""
        return "".join(file.diff(folder / name) for name, file in self.files.items())

    def _edited(self, folder: Path) -> Iterator[HandEditedError]:
        for name in self.files:
            try:
                refuse_edited(folder / name)
            except HandEditedError as e:  # noqa: PERF203 (all of them are reported)
                yield e


def starlark_package(folder: Path, workspace: Workspace, *, jax_rules: bool = False) -> StarlarkPackage:
    """Return the package for ``folder``, which is in a workspace or becomes the package ``//NAME`` in a workspace.

    With ``jax_rules``, the package includes the program for JAX's own wheel rules, which loads files from JAX's
    repository. Raises `InputError` if the folder's name isn't valid in a label, or if ``workspace`` selects WORKSPACE
    but the folder has the files for MODULE.bazel.
    """
    if workspace == "workspace" and _is_generated(folder / _EXTENSIONS):
        remedy = f"Add --bzlmod, or delete {_EXTENSIONS}."
        raise InputError(
            folder, "has the files for MODULE.bazel", expected="the files for WORKSPACE, or no files", remedy=remedy
        )
    sources = {name: name for name in _COMMON} | {_VARIANT: f"cc.{workspace}.bzl"}
    if jax_rules:
        sources[_JAX_RULES] = _JAX_RULES
    if workspace == "bzlmod":
        sources[_EXTENSIONS] = _EXTENSIONS
    texts = importlib.resources.files(__package__) / _FOLDER
    files = {name: GeneratedFile(_NOTE, (texts / source).read_text()) for name, source in sorted(sources.items())}
    return StarlarkPackage(files, _declaration(_package_name(folder), workspace))


def _is_generated(path: Path) -> bool:
    return path.is_file() and path.read_bytes().startswith(f"# {_NOTE}".encode())


def _package_name(folder: Path) -> str:
    """Return the folder's path in its workspace, or the folder's name if it isn't in a workspace.

    The path of the workspace itself is empty. Raises `InputError` for a name that isn't valid in a label.
    """
    folder = folder.resolve()
    roots = [parent for parent in (folder, *folder.parents) if any((parent / marker).exists() for marker in _MARKERS)]
    name = folder.relative_to(roots[0]).as_posix().removeprefix(".") if roots else folder.name
    if not _PACKAGE.fullmatch(name):
        raise InputError(folder, "can't be a Bazel package", expected="a path with only letters, digits, and /-.@_+=,~")
    return name


def _declaration(package: str, workspace: Workspace) -> str:
    if workspace == "bzlmod":
        return (
            'bazel_dep(name = "rules_cc", version = "0.1.1")\n\n'
            f'rocm_wheel = use_extension("//{package}:extensions.bzl", "rocm_wheel")\n'
            'use_repo(rocm_wheel, "rocm_wheel")\n'
        )
    return (
        f'load("//{package}:rocm_wheel_repository.bzl", "rocm_wheel_repository")\n\n'
        'rocm_wheel_repository(name = "rocm_wheel")\n'
    )


class WheelTool(msgspec.Struct, frozen=True):
    """rocwheel as the rule's ``wheel_binary``."""

    rules: str = "//rocm_wheel"
    """The package that ``rocwheel jax starlark`` wrote."""
    library: str = "@pypi//rocwheel"
    """The Python library that contains rocwheel."""


_RULES_OPTION = "--rules"
_LIBRARY_OPTION = "--library"
_PACKAGE_LABEL = re.compile(r"(@[\w.~-]*)?//[\w./+=,@~-]*")
_TARGET_LABEL = re.compile(rf"{_PACKAGE_LABEL.pattern}(:[\w./+=,@~-]+)?|:[\w./+=,@~-]+")


def make_wheel_tool(rules: str, library: str) -> WheelTool:
    """Return the tool for the values of two options. Raises `InputError` for an invalid label."""
    if not _PACKAGE_LABEL.fullmatch(rules):
        raise InputError(_RULES_OPTION, f"is {rules!r}", expected="the label of a package, such as //rocm_wheel")
    if not _TARGET_LABEL.fullmatch(library):
        raise InputError(_LIBRARY_OPTION, f"is {library!r}", expected="a label, such as @pypi//rocwheel")
    return WheelTool(rules, library)


class _Wheel(msgspec.Struct, frozen=True):
    """The inputs of one of the wheels, as labels in JAX's workspace."""

    tool: str
    """JAX's own tool."""
    no_abi: bool
    data: tuple[str, ...]
    texts: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    """Files that JAX's own tool runs."""


_SUPPORT = "//jaxlib/rocm:rocm_gpu_support"
_LICENSE = "LICENSE.txt"
_WHEELS: dict[str, _Wheel] = {
    "pjrt": _Wheel(
        ":build_gpu_plugin_wheel_tool",
        no_abi=True,
        data=("//jax_plugins/rocm:rocm_plugin", _SUPPORT),
        texts=("//jax_plugins/rocm:__init__.py",),
        setup=("//jax_plugins/rocm:pyproject.toml", "//jax_plugins/rocm:setup.py"),
    ),
    "plugin": _Wheel(
        ":build_gpu_kernels_wheel_tool",
        no_abi=False,
        data=(_SUPPORT, "//jaxlib/rocm:rocm_plugin_extension"),
        setup=("//jax_plugins/rocm:plugin_pyproject.toml", "//jax_plugins/rocm:plugin_setup.py"),
    ),
}


def render_wheel_targets(settings: BazelSettings, tool: WheelTool | None) -> str:
    """Return lines for ``jaxlib/tools/BUILD.bazel`` that build both wheels for the ROCm version in the settings.

    JAX's own targets are for one version of ROCm. The new targets ``jax_rocmMAJOR_pjrt_wheel`` and
    ``jax_rocmMAJOR_plugin_wheel`` supplement them. The file already loads both rules. Without a ``tool``, JAX's own
    tools build the wheels.
    """
    load = f'load("{tool.rules}:jax_wheel_binary.bzl", "jax_wheel_binary")\n\n' if tool else ""
    return load + "\n".join(_targets(kind, wheel, settings, tool) for kind, wheel in _WHEELS.items())


def _targets(kind: str, wheel: _Wheel, settings: BazelSettings, tool: WheelTool | None) -> str:
    name = f"jax_rocm{settings.rocm_version}_{kind}"
    static = (*wheel.texts, *(() if tool else wheel.setup), _LICENSE)
    sources = [
        f'    name = "{name}_sources",',
        f"    data_srcs = {_list(wheel.data)},",
        f"    py_srcs = {_list((':version', _SUPPORT))},",
        f"    static_srcs = {_list(static)},",
    ]
    made = [
        f'    name = "{name}_wheel",',
        "    enable_rocm = True,",
        f"    no_abi = {wheel.no_abi},",
        f'    platform_version = "{settings.rocm_version}",',
        f'    source_files = [":{name}_sources"],',
        f'    wheel_binary = "{f":{name}_wheel_binary" if tool else wheel.tool}",',
        f'    wheel_name = "{name}",',
    ]
    binary = _binary(f"{name}_wheel_binary", kind, settings, tool) if tool else []
    return "\n".join([*binary, "wheel_sources(", *sources, ")", "", "jax_wheel(", *made, ")", ""])


def _binary(name: str, kind: str, settings: BazelSettings, tool: WheelTool) -> list[str]:
    spec = settings.pjrt_spec if kind == "pjrt" else settings.plugin_spec
    return [
        "jax_wheel_binary(",
        f'    name = "{name}",',
        f'    kind = "{kind}",',
        *([f"    spec = {json.dumps(_label(spec))},"] if spec else []),
        *([f"    system_run_paths = {_list(settings.system_run_paths)},"] if settings.system_run_paths else []),
        f'    deps = ["{tool.library}"],',
        ")",
        "",
    ]


def _label(path: str) -> str:
    """Return the label of a file in the source tree. Each folder is a package."""
    folder, _, name = path.rpartition("/")
    return f"//{folder}:{name}"


def _list(labels: Iterable[str]) -> str:
    return "[\n" + "".join(f"        {json.dumps(label)},\n" for label in labels) + "    ]"
