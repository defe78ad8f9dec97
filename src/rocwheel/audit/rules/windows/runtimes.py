"""Rules on DLLs that others than packages bring: Visual C++, AMD's driver."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from rocwheel.artifacts.sdk_names import is_sdk_package
from rocwheel.audit.dll_uses import DllPlace, DllUse
from rocwheel.audit.finding import Evidence, Rule, Severity
from rocwheel.core.messages import first_of
from rocwheel.environment.known_libraries import (
    DllKind,
    comes_with_any_driver,
    comes_with_python,
    find_sdk_dll,
    is_driver_dll,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.audit.subject import Subject


def _redistributable(subject: Subject) -> Iterator[Evidence]:
    """Find packages that need more of Visual C++ than Python brings: one finding for each package."""
    wanted: dict[str, dict[str, DllUse]] = defaultdict(dict)
    for use in subject.dll_uses:
        if use.where is DllPlace.SYSTEM and use.kind is DllKind.VISUAL_CPP and not _has_python(use):
            wanted[use.user.distribution].setdefault(use.name.lower(), use)
    for source, uses in wanted.items():
        names, first = sorted(uses), next(iter(uses.values()))
        owner = subject.tree.owners.get(source)
        found = f"needs {first_of(names)} of Visual C++ ({first.user.path} does), which Windows doesn't have"
        yield Evidence(owner.label if owner and owner.label else first.user.source, found, facts=(*names,))


def _has_python(use: DllUse) -> bool:
    """Return whether a DLL needs what Python has loaded before; a program is alone."""
    return use.user.windows is not None and use.user.windows.is_dll and comes_with_python(use.name)


def _debug(subject: Subject) -> Iterator[Evidence]:
    for use in subject.dll_uses:
        if use.where is DllPlace.SYSTEM and use.kind is DllKind.DEBUG:
            found = f"needs {use.name}, which only machines with Visual Studio have"
            yield Evidence(use.user.source, found, facts=(use.name.lower(),))


def _from_driver(subject: Subject) -> Iterator[Evidence]:
    for use in subject.dll_uses:
        if use.where is not DllPlace.DRIVER or (use.provider is None and comes_with_any_driver(use.name)):
            continue
        if use.provider is None:
            found = f"needs {use.name}, which no package has: only AMD's driver brings it, in whichever version"
            has_package = find_sdk_dll(use.name) is not None
            remedy = "Require the package of ROCm's that has it." if has_package else "Load it only where it is there."
        else:
            found = f"loads {use.name} of AMD's driver from System32, if there is one, not {use.provider.path}"
            remedy = ""
        yield Evidence(use.user.source, found, remedy, (use.name.lower(),))


def _driver_names(subject: Subject) -> Iterator[Evidence]:
    """Find DLLs with names of the driver's in packages that nothing of ROCm's loads by their path."""
    for file, report in subject.windows.audited:
        owner = subject.tree.owners.get(file.distribution)
        is_rocm = subject.tree.is_prefix or (owner is not None and is_sdk_package(owner.name))
        if report.is_dll and is_driver_dll(file.name) and not is_rocm:
            found = "has the name of a DLL that AMD's driver puts into System32: who loads it by that name may get the"
            yield Evidence(file.source, f"{found} driver's", facts=(file.name.lower(),))


RULES = (
    Rule(
        "dll-redistributable",
        Severity.NOTE,
        "A package needs no more of Visual C++ than Python brings.",
        "Tell users to install Microsoft's Visual C++ redistributable, or link with /MT.",
        _redistributable,
    ),
    Rule(
        "dll-debug-runtime",
        Severity.ERROR,
        "No file needs the debug libraries of Visual C++.",
        "Build for release (/MD instead of /MDd).",
        _debug,
    ),
    Rule(
        "dll-from-driver",
        Severity.WARNING,
        "No file gets from System32 what a package brings.",
        "Put the file and the DLL into one folder: before System32, a program looks only there.",
        _from_driver,
    ),
    Rule(
        "dll-of-driver",
        Severity.WARNING,
        "Only ROCm's own packages, which load them by their path, have DLLs with names of the driver's.",
        "Use those of rocm-sdk-core; else load it by its absolute path before anything that imports it.",
        _driver_names,
    ),
)
