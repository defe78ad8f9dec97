"""Rules about imported DLLs: the DLLs exist, the loader finds them, and their packages are required."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from rocwheel.artifacts.sdk_names import is_sdk_package
from rocwheel.audit.dll_uses import DllPlace, DllUse, LoadTime
from rocwheel.audit.finding import Evidence, Rule, Severity
from rocwheel.audit.unresolved import where_else
from rocwheel.binary.pe.header import machine_name
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


_OF_MINGW = re.compile(r"lib(gcc_s_\w+|stdc\+\+|winpthread|gomp|quadmath)-\d+\.dll", re.IGNORECASE)


def _missing(subject: Subject) -> Iterator[Evidence]:
    for use in subject.dll_uses:
        if use.where is not DllPlace.NOWHERE:
            continue
        elsewhere = None if use.provider or _OF_MINGW.fullmatch(use.name) else where_else(subject, use.user)
        if elsewhere:
            found, remedy = f"{_needs(use)}, {elsewhere.words}", elsewhere.remedy
        else:
            found, remedy = f"{_needs(use)}, but {_absence(use)}", _STATIC if _OF_MINGW.fullmatch(use.name) else ""
        severity = Severity.WARNING if elsewhere or use.when is LoadTime.DELAYED else None
        yield Evidence(use.user.source, found, remedy, (use.name.lower(),), severity)


def _needs(use: DllUse) -> str:
    words = {
        LoadTime.AT_ONCE: "needs {}",
        LoadTime.DELAYED: "delay-loads {}",
        LoadTime.OPENED: "opens {} by name",
    }
    return words[use.when].format(use.name)


def _absence(use: DllUse) -> str:
    if use.provider is not None and use.provider.windows is not None:
        return f"the DLL in {_place(use.provider.folder)} is for {machine_name(use.provider.windows.machine)}"
    is_dll = use.user.windows is None or use.user.windows.is_dll
    outcome = (
        "loading fails with error 126, which doesn't name the DLL"
        if is_dll
        else "the program doesn't start (0xC0000135)"
    )
    return f"no package contains this DLL, and neither ROCm nor Windows provides it: {outcome}"


def _place(folder: str) -> str:
    return folder or "the top folder"


def _unreachable(subject: Subject) -> Iterator[Evidence]:
    for use in subject.dll_uses:
        if use.where is DllPlace.OUT_OF_REACH and use.provider is not None:
            yield _out_of_reach(subject, use, use.provider.folder)


def _out_of_reach(subject: Subject, use: DllUse, folder: str) -> Evidence:
    found = f"{_needs(use)}, which is in {_place(folder)}, a folder that Windows doesn't search"
    if use.user.windows is not None and not use.user.windows.is_dll:
        remedy = "Put the program and the DLL into one folder, or add the DLL's folder to PATH."
        return Evidence(use.user.source, found, remedy, (use.name.lower(),), Severity.WARNING)
    owner = subject.tree.owners.get(use.user.distribution)
    is_arranged = subject.tree.is_prefix or (owner is not None and is_sdk_package(owner.name))
    provider = subject.tree.owners.get(use.provider.distribution) if use.provider else None
    remedy = _INITIALIZE if provider and is_sdk_package(provider.name) and not is_arranged else ""
    # The files don't show which folders other packages add during an import.
    severity = None if is_arranged and use.when is not LoadTime.DELAYED else Severity.WARNING
    return Evidence(use.user.source, found, remedy, (use.name.lower(),), severity)


def _functions(subject: Subject) -> Iterator[Evidence]:
    """Find functions that a file imports from a DLL in the packages, but that the DLL doesn't export."""
    exported: dict[str, frozenset[str]] = {}
    for use in subject.dll_uses:
        report = use.provider.windows if use.provider else None
        if (
            use.where not in {DllPlace.OWN, DllPlace.ADDED}
            or use.provider is None
            or report is None
            or report.pe is None
        ):
            continue
        if use.provider.path not in exported:
            exported[use.provider.path] = frozenset(report.pe.exports.names if report.pe.exports else ())
        missing = [name for name in _imported(use) if name not in exported[use.provider.path]]
        if missing:
            found = f"{_needs(use)} for {first_of(missing)}, which {use.provider.path} doesn't export"
            severity = Severity.WARNING if use.when is LoadTime.DELAYED else None
            yield Evidence(use.user.source, found, facts=(use.name.lower(), *missing), severity=severity)


def _imported(use: DllUse) -> list[str]:
    """Return the names of the functions that a file imports from a DLL. Imports by ordinal can't be compared."""
    pe = use.user.windows.pe if use.user.windows else None
    tables = {LoadTime.AT_ONCE: pe.imports, LoadTime.DELAYED: pe.delay_imports}.get(use.when, ()) if pe else ()
    names = (name for dll in tables if dll.name.lower() == use.name.lower() for name in dll.functions)
    return [name for name in dict.fromkeys(names) if not name.startswith("#")]


def _undeclared(subject: Subject) -> Iterator[Evidence]:
    seen = set()
    for use in subject.dll_uses:
        owner, name = subject.tree.owners.get(use.user.distribution), _provider(subject, use)
        if owner is None or not owner.dist_info or not name:
            continue
        key = (owner.source, name)
        if name not in {owner.name, *subject.required[owner.name]} and key not in seen:
            seen.add(key)
            found = f"{use.user.path} loads {use.name} from {name}, which its package doesn't require"
            yield Evidence(owner.label, found, facts=(name,))


def _provider(subject: Subject, use: DllUse) -> str:
    """Return the package that provides a DLL, which can be an assumed SDK package, or an empty string."""
    if use.where is DllPlace.ASSUMED and use.kind is not DllKind.DRIVER:
        assumed = find_sdk_dll(use.name)
        return assumed.distribution if assumed else ""
    other = subject.tree.owners.get(use.provider.distribution) if use.provider else None
    return other.name if other else ""


_STATIC = "Link with -static-libgcc, -static-libstdc++, or -static, or ship the DLL in the file's folder."
_INITIALIZE = "In the package, call rocm_sdk.initialize_process before you load the file. This call adds the folders."
_SHIP = "Ship the DLL, require the package that provides it, or add it to system-libraries in the settings."


def _redistributable(subject: Subject) -> Iterator[Evidence]:
    """Find packages that need Visual C++ DLLs that Python doesn't include. Yield one finding for each package."""
    wanted: dict[str, dict[str, DllUse]] = defaultdict(dict)
    for use in subject.dll_uses:
        if use.where is DllPlace.SYSTEM and use.kind is DllKind.VISUAL_CPP and not _has_python(use):
            wanted[use.user.distribution].setdefault(use.name.lower(), use)
    for source, uses in wanted.items():
        names, first = sorted(uses), next(iter(uses.values()))
        owner = subject.tree.owners.get(source)
        found = f"needs {first_of(names)} from Visual C++ (for {first.user.path}), which Windows doesn't include"
        yield Evidence(owner.label if owner and owner.label else first.user.source, found, facts=(*names,))


def _has_python(use: DllUse) -> bool:
    """Return whether Python and its DLLs are already loaded. This isn't the case for a program."""
    return use.user.windows is not None and use.user.windows.is_dll and comes_with_python(use.name)


def _debug(subject: Subject) -> Iterator[Evidence]:
    for use in subject.dll_uses:
        if use.where is DllPlace.SYSTEM and use.kind is DllKind.DEBUG:
            found = f"needs {use.name}, which exists only on machines with Visual Studio"
            yield Evidence(use.user.source, found, facts=(use.name.lower(),))


def _from_driver(subject: Subject) -> Iterator[Evidence]:
    for use in subject.dll_uses:
        if use.where is not DllPlace.DRIVER or (use.provider is None and comes_with_any_driver(use.name)):
            continue
        if use.provider is None:
            found = (
                f"needs {use.name}, which no package contains: only AMD's driver installs it, and its version varies"
            )
            has_package = find_sdk_dll(use.name) is not None
            remedy = (
                "Require the ROCm package that contains the DLL." if has_package else "Load the DLL only if it exists."
            )
        else:
            found = f"loads AMD's driver DLL {use.name} from System32, if it exists, instead of {use.provider.path}"
            remedy = ""
        yield Evidence(use.user.source, found, remedy, (use.name.lower(),))


def _driver_names(subject: Subject) -> Iterator[Evidence]:
    """Find DLLs with the names of driver DLLs in packages other than ROCm's own, which ROCm loads by path."""
    for file, report in subject.windows.audited:
        owner = subject.tree.owners.get(file.distribution)
        is_rocm = subject.tree.is_prefix or (owner is not None and is_sdk_package(owner.name))
        if report.is_dll and is_driver_dll(file.name) and not is_rocm:
            found = "has the name of a DLL that AMD's driver installs in System32: loading it by name may load the"
            yield Evidence(file.source, f"{found} driver's DLL", facts=(file.name.lower(),))


RULES = (
    Rule(
        "dll-missing",
        Severity.ERROR,
        "Every imported DLL is in the packages, in ROCm's packages, or in Windows.",
        _SHIP,
        _missing,
    ),
    Rule(
        "dll-unreachable",
        Severity.ERROR,
        ("Every imported DLL is in the folder of the file or in an added folder, where the Windows loader searches."),
        (
            "Move the DLL to the folder of the file. Or add its folder with os.add_dll_directory, and "
            "list the folder under dll-folders in the settings."
        ),
        _unreachable,
    ),
    Rule(
        "dll-function",
        Severity.ERROR,
        "A DLL exports every function that other files import from it.",
        ("Ship the DLL version that the file was linked with. Without the function, loading fails with error 127."),
        _functions,
    ),
    Rule(
        "dll-undeclared",
        Severity.WARNING,
        "A package requires every package whose DLLs it imports.",
        "Add the package to the dependencies.",
        _undeclared,
    ),
    Rule(
        "dll-redistributable",
        Severity.NOTE,
        "A package needs no Visual C++ libraries except the libraries that Python includes.",
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
        "No file loads a DLL from System32 that a package ships.",
        ("Put the file and the DLL into the same folder. A program searches only this folder before System32."),
        _from_driver,
    ),
    Rule(
        "dll-of-driver",
        Severity.WARNING,
        ("Only ROCm's own packages ship DLLs with the names of driver DLLs, because ROCm loads these DLLs by path."),
        (
            "Use the DLLs of rocm-sdk-core. Otherwise, load the DLL by its absolute path before any "
            "file that imports it."
        ),
        _driver_names,
    ),
)
