"""Writes a patch that shortens the run paths in the ROCm wheels that are built in JAX's own tree.

JAX's ``jaxlib/rocm/rocm_rpath.bzl`` adds the same entries to every library: for two folder depths, for each target
family, and for seven Python versions. After the patch, each library has only the entries for its own folder.
"""

from __future__ import annotations

import ast
import hashlib
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
from rocwheel.frameworks.jax.settings import BazelSettings, is_search_entry
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
"""JAX's macros that link, each with its libraries' wheel and the folder of the only package that calls the macro."""

_FAMILIES, _FUNCTION, _OLD = "_THEROCK_TARGET_FAMILIES", "_rocm_wheel_rpaths", "_WHEEL_RPATHS"
_LINKOPTS, _NEW = "_wheel_linkopts", "_WHEEL_RUN_PATH"
_RPATH = "-Wl,-rpath,"
_BUILD_FILES = ("BUILD", "BUILD.bazel")
_KNOWN = {
    _FUNCTION: {
        "1843c710a4e57d81",  # JAX 0.10.2 (990e6a0b), JAX 0.11.0 (a1521744), and cec06d11
        "38edb99f698fd157",  # the stand-in in tests/fixtures/jax_run_paths
    },
    _LINKOPTS: {"2ed9fb7fab0e274e"},  # since JAX 0.10.0
}
"""The beginnings of the SHA-256 hashes of the functions' texts.

A different version of a function may add entries that the patch would remove.
"""

_NEW_FUNCTION = '''\
def _rocm_wheel_rpaths(site_packages):
    """Builds the RUNPATH entries of a .so file as linkopts.

    Args:
        site_packages: The path from the .so file to site-packages.
    """
    entries = [entry.replace("$SITE_PACKAGES", site_packages) for entry in _WHEEL_RUN_PATH]
    return ["-Wl,-rpath," + entry.replace("$", "$$") for entry in entries]'''


def run_path_patch(checkout: Path, settings: BazelSettings | None = None) -> str:
    """Return the patch for a checkout of JAX, in the format that ``git apply`` reads.

    Without ``search`` in the settings, the entries point to the SDK's packages, followed by the system folders that the
    file already has, such as ``/opt/rocm/lib``.

    Raises `InputError` if the file can't be read or is already patched, and `ProblemsError` with all differences from
    the expected file.
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
    """Return the text of ``rocm_rpath.bzl`` with short run paths. Raises the same errors as `run_path_patch`."""
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
"""The definitions that the patch changes, and the only definitions that use each of them, exactly once."""


def _parts(file: StarlarkFile) -> dict[str, _Definition]:
    """Return the definitions in the file. Raises `InputError` or `ProblemsError` if the patch doesn't apply to them."""
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
        if isinstance(node, _Definition) and not (user := _user(node)).startswith("line "):
            yield user, node


def _user(node: ast.stmt) -> str:
    """Return the name that a top-level statement defines, or else its line."""
    if isinstance(node, ast.FunctionDef):
        return node.name
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    return f"line {node.lineno}"


def _uses(file: StarlarkFile, name: str) -> list[tuple[str, ast.Name]]:
    """Return the uses of a name, each with the definition or the line of the statement that contains the use."""
    return [
        (_user(statement), node)
        for statement in file.tree.body
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
    ]


def _bindings(file: StarlarkFile) -> list[str]:
    """Return the names that assignments, functions, and ``load`` statements bind, with one entry for each binding."""
    nodes = list(ast.walk(file.tree))
    assigned = [node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    functions = [node.name for node in nodes if isinstance(node, ast.FunctionDef)]
    loads = file.calls("load")
    loaded = [name for load in loads for name, _ in _loaded(load)]
    return [*assigned, *functions, *loaded]


def _loaded(load: ast.Call) -> list[tuple[str, str]]:
    """Return the names that a ``load`` statement binds, each with its name in the loaded file."""
    plain = [(item, item) for item in map(_string, load.args[1:])]
    return [*plain, *((keyword.arg or "", _string(keyword.value)) for keyword in load.keywords)]


def _string(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _differences(file: StarlarkFile, found: dict[str, _Definition]) -> Iterator[str]:
    """Yield the differences from the expected file."""
    if b"\r" in file.data:
        yield "has CR LF line endings"
        return
    missing = [name for name in (*_USERS, *_MACROS) if name not in found]
    yield from (f"doesn't define {name}" for name in missing) if missing else _other_structure(file, found)


def _other_structure(file: StarlarkFile, found: dict[str, _Definition]) -> Iterator[str]:
    """Yield the differences from the expected definitions; the file must contain all of them."""
    yield from _other_bindings(file)
    for name, users in _USERS.items():
        used = sorted(user for user, _ in _uses(file, name))
        if used != sorted(users):
            yield f"uses {name} in {', '.join(used) or 'no definition'} instead of once in {', '.join(sorted(users))}"
    for user, node in _uses(file, _LINKOPTS):
        if not file.data.startswith(b"()", file.end(node)):
            yield f"doesn't call {_LINKOPTS} without arguments in {user}"
    between = file.data[file.end(found[_FAMILIES]) : file.start(found[_FUNCTION])]
    is_next = file.start(found[_FAMILIES]) < file.start(found[_FUNCTION]) and not between.strip()
    checks = {
        f"defines {_FAMILIES} as something other than a list of strings": not _is_list(found[_FAMILIES]),
        f"has other statements or comments between {_FAMILIES} and {_FUNCTION}": not is_next,
        **{
            f"has another statement on the line of {name}": file.start(found[name])
            != file.line_start(found[name].lineno)
            for name in (_FAMILIES, _OLD)
        },
        **{
            f"has no function {name} without parameters": not file.source(found[name]).startswith(f"def {name}():")
            for name in (_FUNCTION, _LINKOPTS)
        },
        f"has no system folders at the end of {_OLD}": not _system_folders(found[_OLD]),
    }
    wrong = [text for text, is_wrong in checks.items() if is_wrong]
    yield from wrong or _other_texts(file, found)


def _other_bindings(file: StarlarkFile) -> Iterator[str]:
    """Yield names that the file doesn't define exactly once, and names that the patch would redefine."""
    bound = _bindings(file)
    for name in (*_USERS, *_MACROS):
        if (count := bound.count(name)) != 1:
            yield f"defines {name} {count} times"
    yield from (f"already defines {name}" for name in map(_constant, _MACROS) if name in bound)


def _other_texts(file: StarlarkFile, found: dict[str, _Definition]) -> Iterator[str]:
    """Yield system folders that can't be entries, and functions whose text differs from JAX's."""
    for entry in _system_folders(found[_OLD]):
        if not is_search_entry(entry):
            yield f"has {entry!r} in {_OLD}, which isn't an ASCII path without spaces, quotes, and dollar signs"
    for name, known in _KNOWN.items():
        digest = hashlib.sha256(file.source(found[name]).encode(errors="surrogateescape")).hexdigest()[:16]
        if digest not in known:
            yield f"has a different text for {name}, so the patch would drop its changes"


def _is_list(definition: _Definition) -> bool:
    if not (isinstance(definition, ast.Assign) and isinstance(definition.value, ast.List)):
        return False
    return all(map(_string, definition.value.elts))


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
    options = [option for option in map(_string, value.right.elts) if option.startswith(f"{_RPATH}/")]
    # In linkopts, "$$" is a dollar sign.
    folders = [option.removeprefix(_RPATH).replace("$$", "$") for option in options]
    return folders if len(folders) == len(value.right.elts) else []


def _other_callers(checkout: Path) -> Iterator[InputError]:
    """Yield an error for each file that would give another package the run path entries for this package's folder.

    Any package can load a ``.bzl`` file. Therefore, no such file may load the macros.
    """
    name = RPATH_FILE.rpartition("/")[2]
    for folder, folders, files in os.walk(checkout):
        package = Path(folder).relative_to(checkout).as_posix()
        is_root = package == "."
        folders[:] = sorted(
            part for part in folders if not part.startswith(".") and not (is_root and part.startswith("bazel-"))
        )
        for file in sorted(file for file in files if file in _BUILD_FILES or file.endswith(".bzl")):
            path = Path(folder, file)
            if not path.is_file() or path == checkout / RPATH_FILE:
                continue
            data = read_small(path, _LARGEST, expected="a BUILD or .bzl file")
            if name.encode() not in data:
                continue
            home = package if file in _BUILD_FILES else ""
            loads = StarlarkFile(str(path), data.decode(errors="surrogateescape")).calls("load")
            macros = {macro for load in loads if _loads_from(load, name) for _, macro in _loaded(load)}
            if wrong := sorted(macro for macro in macros & {*_MACROS} if _MACROS[macro][1] != home):
                expected = " and ".join(
                    f"{macro} only in the BUILD file of {place}" for macro, (_, place) in _MACROS.items()
                )
                yield InputError(path, f"loads {', '.join(wrong)}", expected=expected)


def _loads_from(load: ast.Call, name: str) -> bool:
    return bool(load.args) and _string(load.args[0]).replace(":", "/").rpartition("/")[2] == name
