"""What the commands about indexes print."""

from __future__ import annotations

import os
from pathlib import Path

from rocwheel.cli.edited_pages import print_edited
from rocwheel.cli.output.consoles import messages
from rocwheel.cli.output.printable import in_one_line
from rocwheel.cli.output.text import print_line, print_text
from rocwheel.core.messages import count, first_of
from rocwheel.index.write_index import IndexReport

__all__ = ["print_index", "print_notes"]

_NAMED = 10
"""Files that a message names."""


def print_index(report: IndexReport, *, verbose: bool) -> None:
    """Print the projects of an index, and how to install from it and from those of its families."""
    for project, names in report.projects.items():
        yanked = sum(name in report.yanked for name in names)
        print_line(f"{project}: {count(len(names), 'file')}{f', {yanked} yanked' if yanked else ''}")
        if verbose:
            print_text("\n".join(f"  {in_one_line(name)}" for name in names))
    if report.projects or not report.families:
        print_line(f"install with: pip install --index-url {_url(report)} PROJECT")
    for name, family in report.families.items():
        projects = count(len(family.projects), "project")
        print_line(f"for {name}, {projects}: pip install --index-url {_url(family)} PROJECT")


def _url(report: IndexReport) -> str:
    return Path(report.output).resolve().as_uri()


def _path(name: str, dist_dirs: list[Path]) -> str:
    """Return the path of what was passed over, in the first of the folders that has it."""
    return str(next((folder for folder in dist_dirs if os.path.lexists(folder / name)), dist_dirs[0]) / name)


def print_notes(report: IndexReport, dist_dirs: list[Path]) -> None:
    """Print on standard error what is not in an index, and what is in it in another way than it was found."""
    for name in report.ignored:
        path = in_one_line(_path(name, dist_dirs))
        messages.print(f"not in the index, as it is not a wheel or .tar.gz sdist: {path}", markup=False)
    for name in report.subfolders:
        if name not in report.families:
            path = in_one_line(_path(name, dist_dirs))
            text = f"not in the index, as it is a folder: {path}. Index it by itself, as two folders can have"
            messages.print(f"{text} different files of one name.", markup=False)
    if report.future:
        named = f"{count(len(report.future), 'file')} ({first_of(list(report.future), _NAMED)})"
        text = "dated in the future, so the index says that they were uploaded now"
        messages.print(f"{text}: {named}. Is the clock right, here and where they were made?", markup=False)
    print_edited(report.edited)
