"""Rules about the package that provides a library: it must be required, and a file's own package takes precedence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.artifacts.sdk_names import is_sdk_package
from rocwheel.audit.finding import Evidence, Rule, Severity
from rocwheel.environment.loader import How
from rocwheel.environment.run_path_entries import has_level

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.audit.subject import Subject, UndeclaredUse
    from rocwheel.environment.tree import InstalledFile


def _undeclared(subject: Subject) -> Iterator[Evidence]:
    for use in subject.undeclared_uses:
        found = f"{use.file.path} loads {use.name} from {use.provider}, which its package doesn't require"
        yield Evidence(use.owner.label, found, _requiring(subject, use), (use.provider,))


def _requiring(subject: Subject, use: UndeclaredUse) -> str:
    """Return the remedy if a repair adds the requirement only with a certain option, or an empty string otherwise."""
    toolkit = subject.toolkit_of(use.owner)
    is_given = use.provider in subject.tree.by_name
    if is_given or toolkit.is_sdk or not is_sdk_package(use.provider):
        return ""
    return f"Add the package to the dependencies, or run {toolkit.repair_command}."


def _unintended(subject: Subject) -> Iterator[Evidence]:
    for process in subject.processes:
        for search in process.loader.searches:
            if search.requester or search.found is None or search.how is How.LOADED:
                continue
            found = subject.file_of(process.loader.objects[search.found].library)
            other = "the system's copy" if search.how is How.SYSTEM else found.path if found else ""
            is_own = found is not None and found.distribution == process.file.distribution
            own = _own_library(subject, process.file, search.name) if other and not is_own else None
            if own:
                text = f"needs {search.name}, but finds {other} before its own {own.path}"
                yield Evidence(process.file.source, text, facts=(search.name, found.path if found else ""))


def _own_library(subject: Subject, user: InstalledFile, name: str) -> InstalledFile | None:
    """Return the first library in a file's package that has this name and is for the file's machine."""
    machine = user.elf.machine if user.elf else 0
    own = (
        file
        for file in subject.tree.libraries.get(name, ())
        if file.distribution == user.distribution and file.elf and file.elf.machine == machine
        if not has_level(file.folder)
    )
    return next(own, None)


RULES = (
    Rule(
        "undeclared-requirement",
        Severity.WARNING,
        "A package requires every package whose libraries it loads.",
        "Add the package to the dependencies. 'rocwheel repair' does this for you.",
        _undeclared,
    ),
    Rule(
        "unintended-library",
        Severity.WARNING,
        "A package that ships a library loads its own copy.",
        "Move the folder of the package's own copy to the start of the run path.",
        _unintended,
    ),
)
