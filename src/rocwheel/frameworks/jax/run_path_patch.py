"""Writes a patch that gives the ROCm wheels from JAX's own tree short run paths.

JAX's ``jaxlib/rocm/rocm_rpath.bzl`` adds the same entries to every library: for two folder depths, for each target
family, and for seven Python versions. After the patch, each library has only the entries for its own folder.
"""

from __future__ import annotations

import ast
import os
import posixpath
from pathlib import Path
from typing import TYPE_CHECKING

from rocwheel.core.errors import InputError, ProblemsError
from rocwheel.core.reading import read_small
from rocwheel.environment.run_path_choice import origin_relative
from rocwheel.frameworks.jax.bazel_files import Splice, StarlarkFile, called, spliced
from rocwheel.frameworks.jax.jax_tree import jax_tree
from rocwheel.frameworks.jax.migrate import text_patch
from rocwheel.frameworks.jax.settings import BazelSettings
from rocwheel.frameworks.jax.starlark import jax_wheel_description

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rocwheel.frameworks.jax.starlark import JaxWheel

RPATH_FILE = "jaxlib/rocm/rocm_rpath.bzl"
"""The file in JAX's tree with the run paths."""

_LARGEST = 1 << 20
_MACROS: dict[str, tuple[JaxWheel, str]] = {
    "rocm_nanobind_extension": ("plugin", "jaxlib/rocm"),
    "rocm_cc_binary": ("pjrt", "jax_plugins/rocm"),
}
"""JAX's macros that link, with the wheel of their libraries and the folder of the only package that calls them."""

_FAMILIES, _FUNCTION, _OLD = "_THEROCK_TARGET_FAMILIES", "_rocm_wheel_rpaths", "_WHEEL_RPATHS"
_LINKOPTS, _NEW = "_wheel_linkopts", "_WHEEL_RUN_PATH"
_RPATH = "-Wl,-rpath,"
_BUILD_FILES = ("BUILD", "BUILD.bazel")

_NEW_FUNCTION = '''\
def _rocm_wheel_rpaths(site_packages):
    """Builds the RUNPATH entries of a .so file as linkopts.

    Args:
        site_packages: The path from the .so file to site-packages.
    """
    entries = [entry.replace("$SITE_PACKAGES", site_packages) for entry in _WHEEL_RUN_PATH]
    return ["-Wl,-rpath," + entry.replace("$", "$$") for entry in entries]'''


def run_path_patch(checkout: Path, settings: BazelSettings | None = None) -> str:
    """Return the patch for a checkout of JAX, in the form that ``git apply`` reads.

    Without ``search`` in the settings, the entries point to the SDK's packages, followed by the system folders that the
    file already has, such as ``/opt/rocm/lib``.

    Raises `InputError` if the file can't be read or already has the patch, and `ProblemsError` with all differences
    from the expected file.
    """
    path = checkout / RPATH_FILE
    data = read_small(path, _LARGEST, expected="a checkout of JAX")
    try:
        before = data.decode()
    except UnicodeDecodeError as e:
        raise InputError(path, f"isn't text: {e.reason} at byte {e.start}", expected="UTF-8") from e
    if problems := list(_other_callers(checkout)):
        raise ProblemsError(str(checkout), problems)
    after = shorten_run_paths(before, settings or BazelSettings(1), str(path))
    return text_patch((f"a/{RPATH_FILE}", f"b/{RPATH_FILE}"), before, after)


def shorten_run_paths(text: str, settings: BazelSettings, path: str = RPATH_FILE) -> str:
    """Return the text of ``rocm_rpath.bzl`` with short run paths. Raises the errors of `run_path_patch`."""
    file = StarlarkFile(path, text)
    parts = _parts(file)
    families, function, old, linkopts = (parts[name] for name in (_FAMILIES, _FUNCTION, _OLD, _LINKOPTS))
    system = _system_folders(old)
    entries = [*settings.run_path.split(":"), *([] if settings.search else system)]
    # A comment in the file says that the system folders come last. The comment stays while it is true.
    first = old.lineno if entries[-len(system) :] == system else _first_line(file, old)
    ((_, used),) = _uses(file, _OLD)
    splices: list[Splice] = [
        (file.line_start(_first_line(file, families)), file.line_start(function.lineno), ""),
        (file.start(function), file.end(function), _NEW_FUNCTION),
        (file.line_start(first), file.end(old), _constants(entries)),
        _argument(file, file.start(linkopts), "site_packages"),
        (file.start(used), file.end(used), f"{_FUNCTION}(site_packages)"),
    ]
    splices += [_argument(file, file.start(use), _constant(macro)) for macro, use in _uses(file, _LINKOPTS)]
    return spliced(file, splices)


def _constants(entries: Sequence[str]) -> str:
    folders = "".join(f'    "{entry}",\n' for entry in entries)
    origins = "\n".join(f'{_constant(macro)} = "{_site_packages(wheel)}"' for macro, (wheel, _) in _MACROS.items())
    return f"{_NEW} = [\n{folders}]\n\n# The path from each wheel's .so files to site-packages.\n{origins}"


def _constant(macro: str) -> str:
    return f"_FROM_{_MACROS[macro][0].upper()}"


def _site_packages(wheel: JaxWheel) -> str:
    """Return the path from a wheel's libraries to site-packages."""
    files: list[dict[str, str]] = jax_wheel_description(wheel)["files"]
    (folder,) = {posixpath.dirname(file["to"]) for file in files if file["from"].endswith(".so")}
    return origin_relative("", folder)


def _argument(file: StarlarkFile, start: int, text: str) -> Splice:
    """Return the splice that adds an argument or a parameter between the first empty parentheses after ``start``."""
    place = file.data.index(b"()", start) + 1
    return (place, place, text)


def _first_line(file: StarlarkFile, node: ast.stmt) -> int:
    """Return the number of the first line of the comment above a statement."""
    lines = file.data.split(b"\n")
    first = node.lineno
    while first > 1 and lines[first - 2].startswith(b"#"):
        first -= 1
    return first


_Definition = ast.Assign | ast.FunctionDef
_USERS = {_FAMILIES: {_FUNCTION}, _FUNCTION: {_OLD}, _OLD: {_LINKOPTS}, _LINKOPTS: {*_MACROS}}
"""The definitions that the patch changes, and the only definitions that use each of them, once."""


def _parts(file: StarlarkFile) -> dict[str, _Definition]:
    """Return the definitions in the file. Raises `InputError` or `ProblemsError` if the patch doesn't fit them."""
    found = dict(_definitions(file))
    if _NEW in found:
        remedy = f"To change the run paths, restore the file first: git checkout -- {RPATH_FILE}"
        raise InputError(file.path, "already has short run paths", remedy=remedy)
    if wrong := list(_differences(file, found)):
        tree = jax_tree()
        expected = f"the structure that the file has in JAX at {tree.commit[:8]} ({tree.date})"
        raise ProblemsError(file.path, [InputError(file.path, text, expected=expected) for text in wrong])
    return found


def _definitions(file: StarlarkFile) -> Iterator[tuple[str, _Definition]]:
    for node in file.tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node


def _uses(file: StarlarkFile, name: str) -> list[tuple[str, ast.Name]]:
    """Return the uses of a name, each with the definition that contains the use."""
    return [
        (user, node)
        for user, definition in _definitions(file)
        for node in ast.walk(definition)
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
    ]


def _differences(file: StarlarkFile, found: dict[str, _Definition]) -> Iterator[str]:
    """Yield the differences from the expected file."""
    if b"\r" in file.data:
        yield "has CR LF line endings"
    missing = [name for name in (*_USERS, *_MACROS) if name not in found]
    yield from (f"doesn't define {name}" for name in missing) if missing else _other_structure(file, found)


def _other_structure(file: StarlarkFile, found: dict[str, _Definition]) -> Iterator[str]:
    """Yield the differences from the expected definitions, all of which the file has."""
    for name, users in _USERS.items():
        used = sorted(user for user, _ in _uses(file, name))
        if used != sorted(users):
            yield f"uses {name} in {', '.join(used) or 'no definition'} instead of once in {', '.join(sorted(users))}"
    for user, node in _uses(file, _LINKOPTS):
        if not file.data.startswith(b"()", file.end(node)):
            yield f"doesn't call {_LINKOPTS} without arguments in {user}"
    following = list(found)[list(found).index(_FAMILIES) + 1 :]
    checks = {
        f"defines {_FAMILIES} as something other than a list": not _is_list(found[_FAMILIES]),
        f"has other definitions between {_FAMILIES} and {_FUNCTION}": following[:1] != [_FUNCTION],
        **{
            f"has no function {name} without parameters": not file.source(found[name]).startswith(f"def {name}():")
            for name in (_FUNCTION, _LINKOPTS)
        },
        f"has no system folders at the end of {_OLD}": not _system_folders(found[_OLD]),
    }
    yield from (text for text, is_wrong in checks.items() if is_wrong)


def _is_list(definition: _Definition) -> bool:
    return isinstance(definition, ast.Assign) and isinstance(definition.value, ast.List)


def _system_folders(definition: _Definition) -> list[str]:
    """Return the system folders at the end of the old constant, which adds a list of options to a call."""
    value = definition.value if isinstance(definition, ast.Assign) else None
    if not (
        isinstance(value, ast.BinOp)
        and isinstance(value.left, ast.Call)
        and called(value.left) == _FUNCTION
        and isinstance(value.right, ast.List)
    ):
        return []
    options = [item.value for item in value.right.elts if isinstance(item, ast.Constant)]
    folders = [str(option).removeprefix(_RPATH) for option in options if str(option).startswith(f"{_RPATH}/")]
    return folders if len(folders) == len(value.right.elts) else []


def _other_callers(checkout: Path) -> Iterator[InputError]:
    """Yield an error for each package that would get the entries for another package's folder."""
    name = RPATH_FILE.rpartition("/")[2].encode()
    for folder, folders, files in os.walk(checkout):
        folders[:] = sorted(part for part in folders if not part.startswith("."))
        package = Path(folder).relative_to(checkout).as_posix()
        for file in sorted(set(files) & set(_BUILD_FILES)):
            path = Path(folder, file)
            data = read_small(path, _LARGEST, expected="a BUILD file")
            if name not in data:
                continue
            calls = StarlarkFile(str(path), data.decode(errors="surrogateescape")).calls(*_MACROS)
            macros = sorted({called(call) for call in calls})
            if wrong := [macro for macro in macros if _MACROS[macro][1] != package]:
                expected = " and ".join(f"{macro} only in {home}" for macro, (_, home) in _MACROS.items())
                yield InputError(path, f"calls {', '.join(wrong)}", expected=expected)
