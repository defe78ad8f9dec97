"""The rule about split DLLs: the runtime finds the archives with their device code."""

from __future__ import annotations

import ntpath
import posixpath
from typing import TYPE_CHECKING

from rocwheel.audit.finding import Evidence, Rule, Severity
from rocwheel.binary.kpack.markers import leads_to
from rocwheel.core.messages import first_of, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.audit.subject import Subject
    from rocwheel.environment.tree import InstalledFile

_SUFFIX = ".kpack"


def _archives(subject: Subject) -> Iterator[Evidence]:
    for file, report in subject.windows.audited:
        if report.kpack_fault:
            yield Evidence(
                file.source, f"can't load its device code: {report.kpack_fault}", facts=(report.kpack_fault,)
            )
        problems = [(path, problem) for path in report.archives if (problem := _problem(subject, file, path))]
        # A single path that points to archives is enough, because runtimes try the paths in order.
        if problems and len(problems) == len(report.archives):
            paths = [quoted(path) for path, _ in problems]
            found = f"looks for its device code in {first_of(paths)}, which {problems[0][1]}"
            yield Evidence(file.source, found, facts=report.archives)


def _problem(subject: Subject, file: InstalledFile, path: str) -> str:
    """Return why a search path points to no archive after installation, or an empty string if it may point to one."""
    if ntpath.isabs(path) or ntpath.splitdrive(path)[0] or path.startswith("/"):
        return "is a path on the build machine"
    place = posixpath.normpath(posixpath.join(file.folder, path.replace("\\", "/")))
    if place.startswith("../"):
        return "is outside the installed files"
    named = [one.path for one in subject.tree.files if one.name.endswith(_SUFFIX)]
    if any(leads_to(place, one) for one in named):
        return ""
    alike = [one for one in named if leads_to(posixpath.basename(place), posixpath.basename(one))]
    if alike:
        return f"doesn't exist; the folder contains {first_of(sorted(alike))}"
    # Archives are in device packages, which are optional, except in a closed set of packages.
    return "no given package has" if subject.is_closed else ""


RULES = (
    Rule(
        "image-archives",
        Severity.ERROR,
        "The search paths of split DLLs point to the archives with their device code.",
        ("Split the DLL again with 'rocwheel device split', and keep the archives in ../.kpack, relative to bin."),
        _archives,
    ),
)
