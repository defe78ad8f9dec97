"""Reads a checkout of rocm-jax: its files, their git status, and the paths of important files."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import tempfile
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import IO, TYPE_CHECKING

import msgspec

from rocwheel.core.errors import InputError, ProblemsError, WorkError, read_error
from rocwheel.core.reading import open_regular, read_regular
from rocwheel.frameworks.jax.bazel_files import StarlarkFile, attribute, called, config_options, string_attribute
from rocwheel.frameworks.jax.build_py import TOOL
from rocwheel.frameworks.jax.translate import caller_kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence


_LF, _CRLF = "\n", "\r\n"


class SourceFile(msgspec.Struct, frozen=True):
    """A text file. ``surrogateescape`` represents bytes that aren't valid UTF-8."""

    text: str
    r"""The text with ``\n`` line endings, regardless of the file's line endings."""
    line_end: str = _LF
    is_executable: bool = False
    is_mixed: bool = False
    r"""Whether the file has both kinds of line endings. Such a text keeps its ``\r`` characters."""

    @property
    def data(self) -> bytes:
        """The file's contents."""
        return self.text.replace(_LF, self.line_end).encode(errors="surrogateescape")

    def with_text(self, text: str) -> SourceFile:
        """Return a copy of this file with another text."""
        return msgspec.structs.replace(self, text=text)


def read_source(data: bytes, *, is_executable: bool = False) -> SourceFile:
    """Return a file with these contents."""
    text = data.decode(errors="surrogateescape")
    ends = text.count(_LF)
    if "\r" in text and text.count(_CRLF) == ends == text.count("\r"):
        return SourceFile(text.replace(_CRLF, _LF), _CRLF, is_executable)
    return SourceFile(text, _LF, is_executable, is_mixed="\r" in text)


class Checkout(msgspec.Struct, frozen=True):
    """The tracked text files of a git checkout, keyed by path relative to its root."""

    files: dict[str, SourceFile]
    unread: dict[str, str] = {}
    """Reasons why other files that mention build.py weren't read, keyed by path."""

    def text(self, path: str) -> str:
        """Return a file's text, or an empty string if there is no such file."""
        return self.files[path].text if path in self.files else ""

    def below(self, folder: str) -> Iterator[str]:
        """Yield the paths of the files in a folder and its subfolders, sorted."""
        return (path for path in sorted(self.files) if path.startswith(f"{folder}/"))


def refuse_mixed(path: str, file: SourceFile) -> None:
    """Raise `InputError` for a file with mixed line endings. The right ending for a new line would be unclear."""
    if file.is_mixed:
        found = "mixes CR LF and LF line endings"
        raise InputError(path, found, expected="one kind of line ending", remedy="Convert the file, and commit it.")


_MOST_BYTES = 1 << 20
"""Larger files can't be build files. They aren't edited."""
_TOOL = TOOL.encode()
_FIRST_LINE = 200
_REGULAR = {"100644": False, "100755": True}
_SETTINGS = ("core.fsmonitor=false", f"core.hooksPath={os.devnull}", "core.quotePath=false")
_VARIABLES = {"GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}
"""A partial clone's missing objects aren't fetched, because a remote's URL and settings can run programs."""
_NOT_CHECKOUT = "a git checkout of rocm-jax or a fork"


class GitCheckout(msgspec.Struct, frozen=True):
    """A checkout's root, its committed files, and the paths with uncommitted changes."""

    root: Path
    committed: Checkout
    dirty: tuple[str, ...]
    """Tracked paths that are changed, staged, or missing."""


def run_git(folder: Path, *arguments: str, data: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run git in a folder without the caller's repository variables, and without any other program.

    A repository's ``.git/config`` can name programs that git runs. Reading an untrusted checkout must not run them.
    ``arguments`` must be a plumbing command that runs no pager, diff program, or editor. This function turns off the
    other programs that such commands can run.

    Raises `WorkError` if git isn't installed, and `InputError` for a filter that can't be turned off.
    """
    named = _start(folder, (), ("config", "-z", "--name-only", "--get-regexp", r"^filter\."), None)
    if named.returncode > 1:  # 1 means that there are no such keys
        return named
    return _start(folder, _without_filters(folder, os.fsdecode(named.stdout)), arguments, data)


def _without_filters(folder: Path, keys: str) -> list[str]:
    """Return the settings that turn off the filters that a configuration defines.

    This includes the user's own filters, such as Git LFS, because they read settings from the repository.
    """
    parted = [key.partition(".")[2].rpartition(".") for key in keys.split("\0")]
    names = dict.fromkeys(name for name, dot, _ in parted if dot)
    for name in names:
        if "=" in name:  # ``git -c`` ends the key at the first ``=``
            found = f"has a git configuration with the filter {name!r}"
            raise InputError(
                folder, found, expected="a name without '='", remedy="Remove the filter: rocwheel doesn't run filters."
            )
    values = ("clean=", "smudge=", "process=", "required=false")
    return [f"filter.{name}.{value}" for name in names for value in values]


def _start(
    folder: Path, settings: Sequence[str], arguments: Sequence[str], data: bytes | None
) -> subprocess.CompletedProcess[bytes]:
    variables = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    given = [word for setting in (*_SETTINGS, *settings) for word in ("-c", setting)]
    command = ["git", "--no-pager", *given, "-C", str(folder), *arguments]
    try:
        return subprocess.run(
            command,
            input=data,
            stdin=None if data is not None else subprocess.DEVNULL,
            capture_output=True,
            check=False,
            env={**variables, "LC_ALL": "C", **_VARIABLES},
        )
    except OSError as e:
        source, found = "git", f"can't be run ({e.strerror})"
        raise WorkError(source, found, remedy="Install git.") from e


def read_checkout(folder: Path) -> GitCheckout:
    """Read a checkout. Raises `InputError` for any other folder."""
    if not folder.is_dir():
        raise InputError(folder, "isn't a folder", expected=_NOT_CHECKOUT)
    root = Path(os.fsdecode(_ask(folder, folder, "rev-parse", "--show-toplevel")).removesuffix("\n"))
    entries = _ask(folder, root, "ls-tree", "-r", "-z", "HEAD", remedy="Commit its files.").split(b"\0")
    options = ("--porcelain", "-z", "--untracked-files=no", "--no-renames", "--ignore-submodules=all")
    changed = _ask(folder, root, "status", *options).split(b"\0")
    dirty = tuple(os.fsdecode(entry[3:]) for entry in changed if entry)
    files, unread = {}, {}
    for entry in filter(None, entries):
        head, _, name = entry.partition(b"\t")
        path, mode = os.fsdecode(name), head.split(b" ")[0].decode()
        if mode not in _REGULAR:
            continue
        with _committed(root, path, path in dirty) as file:
            data = file.read(_MOST_BYTES + 1)
            if not (reason := _no_text(data)):
                files[path] = read_source(data, is_executable=_REGULAR[mode])
            elif _is_script(path, data) and _names_tool(data, file):
                unread[path] = reason
    return GitCheckout(root, Checkout(files, unread), dirty)


def _no_text(data: bytes) -> str:
    """Return why a file can't be a text file of a build, or an empty string if it can be."""
    if len(data) > _MOST_BYTES:
        return "is larger than 1 MiB"
    return "contains a NUL character" if b"\0" in data else ""


def _is_script(path: str, data: bytes) -> bool:
    try:
        caller_kind(data[:_FIRST_LINE].decode(errors="replace"), path)
    except InputError:
        return False
    return True


def _names_tool(data: bytes, rest: IO[bytes]) -> bool:
    """Return whether a file mentions build.py, in the data that was already read or in the rest."""
    while data:
        if _TOOL in data:
            return True
        following = rest.read(_MOST_BYTES)
        data = data[-len(_TOOL) :] + following if following else b""
    return False


def _ask(folder: Path, root: Path, *arguments: str, remedy: str = "") -> bytes:
    done = run_git(root, *arguments)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        found = f"isn't a git checkout with a commit (git says: {said[-1] if said else 'nothing'})"
        raise InputError(folder, found, expected=_NOT_CHECKOUT, remedy=remedy)
    return done.stdout


@contextmanager
def _committed(root: Path, path: str, is_dirty: bool) -> Iterator[IO[bytes]]:
    """Open the committed contents of a file, as they are on disk in a clean checkout."""
    if is_dirty:
        yield BytesIO(_ask(root / path, root, "cat-file", "--filters", f"HEAD:{path}"))
        return
    try:
        with open_regular(root / path) as file:
            yield file
    except OSError as e:
        raise read_error(root / path, e) from e


def disk_file(path: Path) -> SourceFile | None:
    """Return a file from disk, or `None` if it doesn't exist. Raises `InputError` if the file can't be read."""
    if not os.path.lexists(path):
        return None
    try:
        return read_source(read_regular(path), is_executable=os.access(path, os.X_OK))
    except OSError as e:
        raise read_error(path, e) from e


WORKSPACE = "jax_rocm_plugin"
"""The folder of the Bazel workspace."""

JAX_BUILD = "jaxlib/rocm/BUILD"
"""JAX's file with the rules for the extension modules."""

LINKING_RULES = ("cc_binary", "nanobind_extension", "pybind_extension")
"""Rules that link shared libraries. A ``cc_binary`` does so only with ``linkshared``."""

BUILD_NAMES = ("BUILD.bazel", "BUILD")
"""File names for a package. Bazel reads the first existing file."""

_STRIP = re.compile(r"[\"']-p(\d)[\"']")
_PATCHED = ("git_repository", "http_archive", "new_git_repository")


class Structure(msgspec.Struct, frozen=True):
    """Paths of important files, relative to the checkout's root."""

    bazelrc: str
    workspace: str
    """The path of ``WORKSPACE``."""
    workspace_name: str
    """The workspace's name in other repositories."""
    pjrt_library: str
    """The name of the plugin's target."""
    jax: str
    """The Starlark file that fetches ``@jax``."""


def is_linked(call: ast.Call) -> bool:
    """Return whether a rule links a shared library."""
    linkshared = attribute(call, "linkshared")
    is_shared = isinstance(linkshared, ast.Constant) and bool(linkshared.value)
    return called(call) in LINKING_RULES and (called(call) != "cc_binary" or is_shared)


def find_structure(checkout: Checkout, source: str) -> Structure:
    """Return the paths of important files. Raises `ProblemsError` with all missing files and contents."""
    problems: list[InputError] = []

    def find(path: str, expected: str, look: Callable[[str, str], Iterable[str]]) -> tuple[str, str]:
        """Return the file, and the single result of ``look`` for its path and text.

        The result is empty if ``look`` returns no result or several results.
        """
        paths = [f"{path[:-5]}{name}" for name in BUILD_NAMES] if path.endswith("/BUILD") else [path]
        there = next((one for one in paths if one in checkout.files), "")
        if not there:
            problems.append(InputError(path, "doesn't exist", expected=f"a file with {expected}"))
            return "", ""
        try:
            seen = [*look(there, checkout.text(there))]
        except InputError as e:
            problems.append(e)
            return there, ""
        if len(seen) != 1 or not seen[0]:
            problems.append(InputError(there, "doesn't have the expected contents", expected=expected))
        return there, "".join(seen)

    bazelrc, _ = find(
        f"{WORKSPACE}/.bazelrc",
        "the configs rocm or rocm_base",
        lambda _, text: [*({"rocm", "rocm_base"} & config_options(text).keys())][:1],
    )
    workspace, name = find(
        f"{WORKSPACE}/WORKSPACE",
        "workspace(name = ...)",
        lambda path, text: [*filter(None, _names(StarlarkFile(path, text).calls("workspace")))][:1],
    )
    _, library = find(
        f"{WORKSPACE}/pjrt/BUILD",
        "one cc_binary with linkshared, which is the plugin",
        lambda path, text: _names(filter(is_linked, StarlarkFile(path, text).calls("cc_binary"))),
    )
    find(
        f"{WORKSPACE}/jaxlib_ext/tools/BUILD",
        "the inputs for the wheel with the extension modules",
        lambda path, _: [path],
    )
    jax, _ = find(
        f"{WORKSPACE}/third_party/jax/workspace.bzl",
        "a rule that fetches @jax with patches",
        lambda path, text: _names(jax_rules(StarlarkFile(path, text)))[:1],
    )
    if problems:
        subject = f"{source}: isn't a checkout of rocm-jax or a fork"
        raise ProblemsError(subject, problems)
    return Structure(bazelrc, workspace, name, library, jax)


def _names(rules: Iterable[ast.Call]) -> list[str]:
    return [string_attribute(rule, "name") for rule in rules]


def jax_rules(file: StarlarkFile) -> Iterator[ast.Call]:
    """Yield the calls that fetch ``@jax``."""
    return (call for call in file.calls(*_PATCHED) if string_attribute(call, "name") == "jax")


def strip_level(file: StarlarkFile, rule: ast.Call) -> int:
    """Return the number of folders that a rule strips from file names in patches. Bazel's default is ``-p0``."""
    given = attribute(rule, "patch_args")
    levels = _STRIP.findall(file.source(given)) if given else []
    return int(levels[-1]) if levels else 0


_OPTION = "--jax"


def read_jax_build(folder: Path, checkout: Checkout, structure: Structure) -> str:
    """Return the text of JAX's BUILD file after the workspace's patches.

    ``folder`` is a clone with the workspace's commit of JAX, or JAX's source after Bazel fetched and patched it. Raises
    `InputError` for any other folder, and for patches that don't apply.
    """
    file = StarlarkFile(structure.jax, checkout.text(structure.jax))
    rule = next(jax_rules(file))
    if not (folder / ".git").exists():
        return _read(folder / JAX_BUILD)
    commit = _commit(file, rule)
    done = run_git(folder, "cat-file", "blob", f"{commit}:{JAX_BUILD}")
    if done.returncode:
        found = f"has no {JAX_BUILD} in commit {commit}"
        remedy = f"Fetch the commit in {structure.jax}, or pass the folder external/jax in Bazel's output base."
        raise InputError(folder, found, remedy=remedy)
    return _patched(done.stdout, [checkout.text(path) for path in _patches(rule)], strip_level(file, rule), folder)


def _read(path: Path) -> str:
    try:
        return read_regular(path).decode(errors="surrogateescape")
    except OSError as e:
        raise read_error(path, e, expected="JAX's source", remedy=f"Check {_OPTION}.") from e


def _commit(file: StarlarkFile, rule: ast.Call) -> str:
    """Return the commit that a rule fetches. The rule has a string, or a constant of the same file."""
    given = string_attribute(rule, "commit")
    value = attribute(rule, "commit")
    return given or (file.constants().get(file.source(value), "") if value else "") or "HEAD"


def _patches(rule: ast.Call) -> list[str]:
    """Return the paths of the workspace's patches that a rule applies."""
    value = attribute(rule, "patches")
    elements = value.elts if isinstance(value, ast.List) else []
    labels = [item.value for item in elements if isinstance(item, ast.Constant) and isinstance(item.value, str)]
    return [f"{WORKSPACE}/" + label.removeprefix("//").replace(":", "/") for label in labels if label.startswith("//")]


def _patched(data: bytes, patches: list[str], level: int, folder: Path) -> str:
    """Return JAX's BUILD file after those parts of the patches that change this file."""
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch) / JAX_BUILD
        place.parent.mkdir(parents=True)
        place.write_bytes(data)
        for number, patch in enumerate(patches, 1):
            if JAX_BUILD not in patch:
                continue
            options = ("apply", f"-p{level}", "-C1", "--whitespace=nowarn", f"--include={JAX_BUILD}", "-")
            done = run_git(Path(scratch), *options, data=patch.encode(errors="surrogateescape"))
            if done.returncode:
                said = done.stderr.decode(errors="replace").strip().splitlines()
                found = (
                    f"has a {JAX_BUILD} to which the workspace's patch {number} doesn't apply "
                    f"({said[0] if said else ''})"
                )
                raise InputError(folder, found, expected="JAX at the commit in the workspace")
        return place.read_bytes().decode(errors="surrogateescape")
