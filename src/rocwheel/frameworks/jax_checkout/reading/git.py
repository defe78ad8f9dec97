"""A checkout as git and the disk have it."""

from __future__ import annotations

import os
import subprocess
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import IO, TYPE_CHECKING

import msgspec

from rocwheel.core.errors import InputError, WorkError, read_error
from rocwheel.core.reading import open_regular, read_regular
from rocwheel.frameworks.jax_checkout.checkout import Checkout, SourceFile, read_source
from rocwheel.frameworks.jax_migration.build_py import TOOL
from rocwheel.frameworks.jax_migration.reading.read_calls import caller_kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["GitCheckout", "disk_file", "read_checkout", "run_git"]

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
    dirty = _dirty(folder, root)
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


def _dirty(folder: Path, root: Path) -> tuple[str, ...]:
    arguments = ("status", "--porcelain", "-z", "--untracked-files=no", "--no-renames", "--ignore-submodules=all")
    entries = _ask(folder, root, *arguments).split(b"\0")
    return tuple(os.fsdecode(entry[3:]) for entry in entries if entry)


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
