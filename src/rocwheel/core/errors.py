"""Defines rocwheel's errors. Each error stores its details and creates its message from them."""

from __future__ import annotations

import errno
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from rocwheel.core.messages import absent_remedy, count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping


_WRITE_REMEDIES: Mapping[int | None, str] = {
    errno.EISDIR: "Choose another output, or remove the folder.",
    errno.ENOTDIR: "Choose another output, or remove the file at the path of its parent folder.",
}


class RocwheelError(Exception):
    """The base class of all errors that rocwheel raises intentionally.

    ``exit_status`` is the exit status of a command that fails with this error: 2 for unusable input or a usage error, 1
    for failed work.
    """

    exit_status: int = 2

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines to print. A line break inside a line is part of a name or a quotation."""
        return (str(self),)

    def __reduce__(self) -> tuple[Callable[..., RocwheelError], tuple[object, ...], dict[str, object]]:
        """Restore the attributes when an error is unpickled, for process pools.

        By default, pickle calls ``__init__`` with ``args``.
        """
        return _restored, (type(self), self.args), self.__dict__


def _restored(kind: type[RocwheelError], args: tuple[object, ...]) -> RocwheelError:
    return kind.__new__(kind, *args)


class InputError(RocwheelError):
    """An input that can't be used: the file, the found and expected contents, and the remedy."""

    def __init__(self, source: Path | str, found: str, *, expected: str = "", remedy: str = "") -> None:
        self.source = source
        self.found = found
        self.expected = expected
        self.remedy = remedy
        super().__init__(source, found)

    @property
    def fault(self) -> str:
        """The found and expected contents, without the source and the remedy."""
        return f"{self.found}; expected {self.expected}" if self.expected else self.found

    def __str__(self) -> str:
        place = str(self.source).replace("\n", "\\n")  # a name must not begin a line
        text = f"{place}: {self.fault}"
        return f"{text}. {self.remedy}" if self.remedy else text


AnyInputError = TypeVar("AnyInputError", bound=InputError)


class WorkError(InputError):
    """Work that failed even though the input is valid, for example, because of a full disk or a missing permission."""

    exit_status = 1


class ProblemsError(RocwheelError):
    """Several problems from one check. The most severe problem determines the exit status.

    Problems inside another `ProblemsError` are extracted, so that each problem is reported separately.
    """

    def __init__(self, subject: str, problems: Iterable[RocwheelError]) -> None:
        self.subject = subject
        self.problems = tuple(each_problem(problems))
        self.exit_status = max((problem.exit_status for problem in self.problems), default=2)
        super().__init__(subject, self.problems)

    @property
    def lines(self) -> tuple[str, ...]:
        """The number of problems, followed by each problem.

        If there is a single problem that begins with the subject, only this problem is returned.
        """
        if len(self.problems) == 1 and self.problems[0].lines[0].startswith(self.subject):
            return self.problems[0].lines
        below = (f"  {line}" for problem in self.problems for line in problem.lines)
        return (f"{self.subject}: {count(len(self.problems), 'problem')}", *below)

    def __str__(self) -> str:
        return "\n".join(self.lines)


def each_problem(errors: Iterable[RocwheelError]) -> Iterator[RocwheelError]:
    """Yield each error. For a `ProblemsError`, yield its problems instead."""
    for error in errors:
        if isinstance(error, ProblemsError):
            yield from error.problems
        else:
            yield error


def raise_work(error: RocwheelError) -> None:
    """Raise the error if it is or contains a `WorkError`, because then the cause is the system rather than an input."""
    if any(isinstance(problem, WorkError) for problem in each_problem([error])):
        raise error


def read_error(
    source: Path | str,
    error: OSError,
    *,
    expected: str = "",
    remedy: str = "Check whether it exists and is readable.",
    kind: type[AnyInputError] = InputError,  # type: ignore[assignment]  # python/mypy#3737
) -> AnyInputError:
    """Return the error of the given ``kind`` for a file or folder that can't be read.

    If the process reached one of its limits, the remedy for that limit replaces ``remedy``. A `WorkError` then replaces
    an `InputError`, because the input is valid. Other remedies replace ``remedy`` in two cases: if a folder has the
    path of a file or vice versa, and if a missing path is a pattern or a URL without its scheme.
    """
    limit = limit_remedy(error)
    if limit and issubclass(WorkError, kind):
        kind = WorkError  # type: ignore[assignment]  # mypy doesn't narrow type variables
    meant = absent_remedy(source) if error.errno == errno.ENOENT else ""
    return kind(
        source,
        f"can't be read ({error.strerror or error})",
        expected=expected,
        remedy=limit or meant or _kind_remedy(source, error) or remedy,
    )


def _kind_remedy(source: Path | str, error: OSError) -> str:
    """Return the remedy if a file is a folder or vice versa, or an empty string for other errors."""
    if error.errno == errno.EISDIR:
        return "Pass a file instead of a folder."
    if error.errno != errno.ENOTDIR:
        return ""
    is_there = Path(source).exists()  # otherwise, one of its parent folders is a file
    return "Pass a folder instead of a file." if is_there else "Correct the path: a parent folder is a file."


def write_error(
    place: Path | str, error: OSError, *, remedy: str = "Check the free space and the permissions of the folder."
) -> WorkError:
    """Return the error for an output that can't be written. For ``remedy``, see `read_error`."""
    found = f"can't be written ({error.strerror or error})"
    return WorkError(place, found, remedy=limit_remedy(error) or _write_remedy(error) or remedy)


def _write_remedy(error: OSError) -> str:
    """Return the remedy if the path of a file or folder is in use, or an empty string for other errors."""
    if error.errno != errno.EEXIST or not isinstance(error.filename, str):
        return _WRITE_REMEDIES.get(error.errno, "")
    there = Path(error.filename)
    with suppress(OSError):
        if there.is_symlink() and not there.exists():
            return f"Choose another output, or remove the broken link {there}."
        return "" if there.is_dir() else _WRITE_REMEDIES[errno.ENOTDIR]
    return ""


def limit_remedy(error: BaseException) -> str:
    """Return the remedy if the process ran out of open files or memory, or an empty string for other errors."""
    number = error.errno if isinstance(error, OSError) else None
    if number in {errno.EMFILE, errno.ENFILE}:
        return "Allow more open files, for example with 'ulimit -n 1024'."
    is_thread = isinstance(error, RuntimeError) and "new thread" in str(error)
    if number == errno.ENOMEM or isinstance(error, MemoryError) or is_thread:
        return "Allow more memory (see 'ulimit -v'), end other programs, or use fewer workers (--jobs)."
    return ""


def is_fault(error: OSError) -> bool:
    """Return whether the cause is the machine and not the input: a failing disk, or a limit of the process.

    A file that can't be read for such a reason might contain anything. It must not be treated as missing.
    """
    return error.errno in {errno.EIO, errno.ESTALE} or bool(limit_remedy(error))


def memory_error() -> WorkError:
    """Return the error for a lack of memory or threads."""
    source, found = "this process", "ran out of memory"
    return WorkError(source, found, remedy=limit_remedy(MemoryError()))
