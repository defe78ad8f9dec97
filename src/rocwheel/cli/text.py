"""Results as lines of text, and which files have no line of their own.

Kernel libraries have thousands of kernel files, for each target and type of data: those of a folder count together,
unless the user asks for all with ``-v``. Libraries are told one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import click

from rocwheel.core.messages import in_one_line, printable
from rocwheel.targets.kernel_files import is_kernel_file

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

T = TypeVar("T")


def print_line(text: object, *, err: bool = False) -> None:
    """Print one line, to standard error with ``err``: line ends and other control characters in it as escapes."""
    click.echo(in_one_line(str(text)), err=err)


def print_text(text: object, *, err: bool = False) -> None:
    """Print lines that are ours, such as a table; control characters in them, but for line ends, as escapes."""
    click.echo(printable(str(text)), err=err)


def kernel_folder(path: str) -> str | None:
    """Return the folder of a kernel file, whose files count together; none for what is told by itself."""
    end = max(path.rfind("/"), path.rfind("!"))
    return path[:end] if end > 0 and is_kernel_file(path[end + 1 :]) else None


def group_kernel_files(
    items: Iterable[T], path_of: Callable[[T], str], answer_of: Callable[[T], Hashable] = lambda _: None
) -> list[tuple[str | None, list[T]]]:
    """Return what is told of files: several kernel files of a folder with the same answer together, with their folder.

    Each other file is by itself, without a folder; so is a kernel file that nothing joins.
    """
    groups: dict[Hashable, list[T]] = {}
    for number, item in enumerate(items):
        folder = kernel_folder(path_of(item))
        groups.setdefault(number if folder is None else (folder, answer_of(item)), []).append(item)
    return [(kernel_folder(path_of(each[0])) if len(each) > 1 else None, each) for each in groups.values()]
