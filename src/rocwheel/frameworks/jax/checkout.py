"""A checkout of rocm-jax's kind: its files, what git says of them, and where everything is."""

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
    """A text file. Bytes that are no UTF-8 are kept as Python's ``surrogateescape`` spells them."""

    text: str
    """The text, with ``\\n`` at the end of each line whatever the file has."""
    line_end: str = _LF
    is_executable: bool = False
    is_mixed: bool = False
    """Whether lines end in both ways: such a text keeps its ``\\r``."""

    @property
    def data(self) -> bytes:
        """The file's bytes."""
        return self.text.replace(_LF, self.line_end).encode(errors="surrogateescape")

    def with_text(self, text: str) -> SourceFile:
        """Return the same file with another text."""
        return msgspec.structs.replace(self, text=text)


def read_source(data: bytes, *, is_executable: bool = False) -> SourceFile:
    """Return a file of the given bytes."""
    text = data.decode(errors="surrogateescape")
    ends = text.count(_LF)
    if "\r" in text and text.count(_CRLF) == ends == text.count("\r"):
        return SourceFile(text.replace(_CRLF, _LF), _CRLF, is_executable)
    return SourceFile(text, _LF, is_executable, is_mixed="\r" in text)


class Checkout(msgspec.Struct, frozen=True):
    """The tracked text files of a git checkout, by their paths below its root."""

    files: dict[str, SourceFile]
    unread: dict[str, str] = {}
    """Why other files that name build.py were not read, by their paths."""

    def text(self, path: str) -> str:
        """Return a file's text, empty if there is no such file."""
        return self.files[path].text if path in self.files else ""

    def below(self, folder: str) -> Iterator[str]:
        """Yield the paths of the files below a folder, sorted."""
        return (path for path in sorted(self.files) if path.startswith(f"{folder}/"))


def refuse_mixed(path: str, file: SourceFile) -> None:
    """Raise `InputError` for a file whose lines end in both ways: no edit could tell which way a new line ends."""
    if file.is_mixed:
        found = "has lines that end in CR LF, and others that don't"
        raise InputError(path, found, expected="one kind of line ends", remedy="Convert and commit it first.")


_MOST_BYTES = 1 << 20
"""Larger files are no build files; they are left alone."""
_TOOL = TOOL.encode()
_FIRST_LINE = 200
_REGULAR = {"100644": False, "100755": True}
_SETTINGS = ("core.fsmonitor=false", f"core.hooksPath={os.devnull}", "core.quotePath=false")
_VARIABLES = {"GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}
"""Objects that a partial clone lacks are not fetched: a remote's URL and its settings may be programs."""
_NOT_CHECKOUT = "a git checkout of rocm-jax's kind"


class GitCheckout(msgspec.Struct, frozen=True):
    """The root of a checkout, what is committed there, and the paths that differ from it."""

    root: Path
    committed: Checkout
    dirty: tuple[str, ...]
    """Tracked paths that are changed, staged or missing."""


def run_git(folder: Path, *arguments: str, data: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run git in a folder, without the caller's own settings of a repository, and no other program.

    A repository's ``.git/config`` may name programs that git then runs: nobody who asks what a checkout holds wants
    those of a stranger. ``arguments`` must be of plumbing that runs no pager, differ or editor; what else the commands
    here may start is turned off. Raises `WorkError` if there is no git, and `InputError` for a filter that it must run.
    """
    named = _start(folder, (), ("config", "-z", "--name-only", "--get-regexp", r"^filter\."), None)
    if named.returncode > 1:  # 1 is for no such names
        return named
    return _start(folder, _without_filters(folder, os.fsdecode(named.stdout)), arguments, data)


def _without_filters(folder: Path, keys: str) -> list[str]:
    """Return the settings that turn the filters off which keys of a configuration define.

    Those of the user's own, such as Git LFS's, take settings from the repository in turn.
    """
    parted = [key.partition(".")[2].rpartition(".") for key in keys.split("\0")]
    names = dict.fromkeys(name for name, dot, _ in parted if dot)
    for name in names:
        if "=" in name:  # ``git -c`` ends a key there
            found = f"has a git configuration with the filter {name!r}"
            raise InputError(folder, found, expected="a name without '='", remedy="Remove it: filters aren't run here.")
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
    """Read a checkout; raise `InputError` for any other folder."""
    if not folder.is_dir():
        raise InputError(folder, "is no folder", expected=_NOT_CHECKOUT)
    root = Path(os.fsdecode(_ask(folder, folder, "rev-parse", "--show-toplevel")).removesuffix("\n"))
    entries = _ask(folder, root, "ls-tree", "-r", "-z", "HEAD", remedy="Commit its files first.").split(b"\0")
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
    """Return why a file is no text that a build is made of; empty if it may be."""
    if len(data) > _MOST_BYTES:
        return "is larger than 1 MiB"
    return "holds a NUL character" if b"\0" in data else ""


def _is_script(path: str, data: bytes) -> bool:
    try:
        caller_kind(data[:_FIRST_LINE].decode(errors="replace"), path)
    except InputError:
        return False
    return True


def _names_tool(data: bytes, rest: IO[bytes]) -> bool:
    """Return whether a file names build.py in what was read of it, or in the rest."""
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
        found = f"is no git checkout with a commit (git says: {said[-1] if said else 'nothing'})"
        raise InputError(folder, found, expected=_NOT_CHECKOUT, remedy=remedy)
    return done.stdout


@contextmanager
def _committed(root: Path, path: str, is_dirty: bool) -> Iterator[IO[bytes]]:
    """Open the committed bytes of a file as they are on disk when it is clean."""
    if is_dirty:
        yield BytesIO(_ask(root / path, root, "cat-file", "--filters", f"HEAD:{path}"))
        return
    try:
        with open_regular(root / path) as file:
            yield file
    except OSError as e:
        raise read_error(root / path, e) from e


def disk_file(path: Path) -> SourceFile | None:
    """Return a file as it is on disk, ``None`` if nothing is there; raise `InputError` if it can't be read."""
    if not os.path.lexists(path):
        return None
    try:
        return read_source(read_regular(path), is_executable=os.access(path, os.X_OK))
    except OSError as e:
        raise read_error(path, e) from e


WORKSPACE = "jax_rocm_plugin"
"""The folder of the Bazel workspace."""

JAX_BUILD = "jaxlib/rocm/BUILD"
"""The file of JAX that links the extension modules."""

LINKING_RULES = ("cc_binary", "nanobind_extension", "pybind_extension")
"""Rules that link shared libraries; a ``cc_binary`` does with ``linkshared``."""

BUILD_NAMES = ("BUILD.bazel", "BUILD")
"""Names of a package's file, of which Bazel reads the first that is there."""

_STRIP = re.compile(r"[\"']-p(\d)[\"']")
_PATCHED = ("git_repository", "http_archive", "new_git_repository")


class Structure(msgspec.Struct, frozen=True):
    """Paths of files below the checkout's root."""

    bazelrc: str
    workspace: str
    """The file ``WORKSPACE``."""
    workspace_name: str
    """The name by which other repositories call the workspace."""
    pjrt_library: str
    """The plugin's target."""
    jax: str
    """The Starlark file that fetches ``@jax``."""


def is_linked(call: ast.Call) -> bool:
    """Return whether a rule links a shared library."""
    linkshared = attribute(call, "linkshared")
    is_shared = isinstance(linkshared, ast.Constant) and bool(linkshared.value)
    return called(call) in LINKING_RULES and (called(call) != "cc_binary" or is_shared)


def find_structure(checkout: Checkout, source: str) -> Structure:
    """Return where everything is; raise `ProblemsError` with all that was expected and is not there."""
    problems: list[InputError] = []

    def find(path: str, expected: str, look: Callable[[str, str], Iterable[str]]) -> tuple[str, str]:
        """Return the file, and what ``look`` sees in its text, given its path; empty unless it sees one thing."""
        paths = [f"{path[:-5]}{name}" for name in BUILD_NAMES] if path.endswith("/BUILD") else [path]
        there = next((one for one in paths if one in checkout.files), "")
        if not there:
            problems.append(InputError(path, "is not there", expected=f"this file with {expected}"))
            return "", ""
        try:
            seen = [*look(there, checkout.text(there))]
        except InputError as e:
            problems.append(e)
            return there, ""
        if len(seen) != 1 or not seen[0]:
            problems.append(InputError(there, "is of another kind", expected=expected))
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
        "one cc_binary with linkshared, the plugin",
        lambda path, text: _names(filter(is_linked, StarlarkFile(path, text).calls("cc_binary"))),
    )
    find(f"{WORKSPACE}/jaxlib_ext/tools/BUILD", "what the wheel of the extension modules takes", lambda path, _: [path])
    jax, _ = find(
        f"{WORKSPACE}/third_party/jax/workspace.bzl",
        "a rule that fetches @jax with patches",
        lambda path, text: _names(jax_rules(StarlarkFile(path, text)))[:1],
    )
    if problems:
        subject = f"{source}: is no checkout of rocm-jax's kind"
        raise ProblemsError(subject, problems)
    return Structure(bazelrc, workspace, name, library, jax)


def _names(rules: Iterable[ast.Call]) -> list[str]:
    return [string_attribute(rule, "name") for rule in rules]


def jax_rules(file: StarlarkFile) -> Iterator[ast.Call]:
    """Yield the calls of rules that fetch ``@jax``."""
    return (call for call in file.calls(*_PATCHED) if string_attribute(call, "name") == "jax")


def strip_level(file: StarlarkFile, rule: ast.Call) -> int:
    """Return how many folders a rule strips from the names in patches: ``-p0`` is Bazel's default."""
    given = attribute(rule, "patch_args")
    levels = _STRIP.findall(file.source(given)) if given else []
    return int(levels[-1]) if levels else 0


_OPTION = "--jax"


def read_jax_build(folder: Path, checkout: Checkout, structure: Structure) -> str:
    """Return the text with the workspace's patches applied.

    ``folder`` is a clone that has the workspace's commit, or JAX as Bazel has fetched and patched it. Raises
    `InputError` for any other one, and for patches that don't fit.
    """
    file = StarlarkFile(structure.jax, checkout.text(structure.jax))
    rule = next(jax_rules(file))
    if not (folder / ".git").exists():
        return _read(folder / JAX_BUILD)
    commit = _commit(file, rule)
    done = run_git(folder, "cat-file", "blob", f"{commit}:{JAX_BUILD}")
    if done.returncode:
        found = f"has no {JAX_BUILD} at {commit}"
        remedy = f"Fetch the commit that {structure.jax} names, or give the folder external/jax of Bazel's output base."
        raise InputError(folder, found, remedy=remedy)
    return _patched(done.stdout, [checkout.text(path) for path in _patches(rule)], strip_level(file, rule), folder)


def _read(path: Path) -> str:
    try:
        return read_regular(path).decode(errors="surrogateescape")
    except OSError as e:
        raise read_error(path, e, expected="JAX's source", remedy=f"Check {_OPTION}.") from e


def _commit(file: StarlarkFile, rule: ast.Call) -> str:
    """Return the commit that a rule fetches: a string, or a constant of its file."""
    given = string_attribute(rule, "commit")
    value = attribute(rule, "commit")
    return given or (file.constants().get(file.source(value), "") if value else "") or "HEAD"


def _patches(rule: ast.Call) -> list[str]:
    """Return the paths of the patches that a rule applies, those of the workspace."""
    value = attribute(rule, "patches")
    elements = value.elts if isinstance(value, ast.List) else []
    labels = [item.value for item in elements if isinstance(item, ast.Constant) and isinstance(item.value, str)]
    return [f"{WORKSPACE}/" + label.removeprefix("//").replace(":", "/") for label in labels if label.startswith("//")]


def _patched(data: bytes, patches: list[str], level: int, folder: Path) -> str:
    """Return a BUILD file with patches applied, as far as they are of this file."""
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
                    f"has a {JAX_BUILD} that patch {number} of the workspace doesn't fit ({said[0] if said else ''})"
                )
                raise InputError(folder, found, expected="JAX at the commit that the workspace fetches")
        return place.read_bytes().decode(errors="surrogateescape")
