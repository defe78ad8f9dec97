"""Rules about files: their kinds, modes, and names, and conflicts between files."""

from __future__ import annotations

import hashlib
import re
import stat
from collections import defaultdict
from itertools import combinations
from typing import TYPE_CHECKING

from rocwheel.audit.finding import Evidence, Rule, Severity
from rocwheel.binary.elf.facts import ElfKind
from rocwheel.environment.tree import InstalledFile, find_conflicts
from rocwheel.targets.serving import split_overlay_path
from rocwheel.wheels.zip_refusals import outside_reason

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from rocwheel.audit.subject import Process, Subject

_AUDITWHEEL_NAME = re.compile(r"-[0-9a-f]{8}\.so(\.|$)")
"""The suffix that auditwheel adds to a SONAME: a hash of the library before its run path was changed."""


def _symlinks(subject: Subject) -> Iterator[Evidence]:
    if subject.tree.is_prefix:
        return
    for file in subject.tree.audited:
        owner = subject.tree.owners.get(file.distribution)
        if file.link is not None and owner is not None and owner.is_wheel:
            found = f"is a symlink to {file.link}: installers write a text file with the target's name instead"
            yield Evidence(file.source, found, facts=(file.link,))


def _modes(subject: Subject) -> Iterator[Evidence]:
    # Windows has no modes: all files that are packed on Windows have mode 0666.
    for file in () if subject.windows.is_platform else subject.tree.audited:
        bits = stat.S_IMODE(file.mode)
        if not file.mode or file.link is not None:
            continue
        is_program = file.elf is not None and file.elf.kind is ElfKind.EXECUTABLE
        mode = f"{bits:04o}"
        if bits & (stat.S_ISUID | stat.S_ISGID):
            yield Evidence(file.source, f"has mode {mode}, so it runs as another user", facts=(mode,))
        elif not bits & stat.S_IRUSR:
            yield Evidence(file.source, f"has mode {mode}, so its owner can't read it", facts=(mode,))
        elif bits & stat.S_IWOTH:
            yield Evidence(file.source, f"has mode {mode}, so anyone can write to it", facts=(mode,))
        elif is_program and not bits & stat.S_IXUSR:
            yield Evidence(file.source, f"is a program with mode {mode}, so it can't be run", facts=(mode,))
        elif not bits & stat.S_IXUSR and _is_command(subject, file):
            yield Evidence(file.source, f"is a script with mode {mode}, so it can't be run", facts=(mode,))


_FOR_WINDOWS = (".ps1", ".cmd", ".bat")


def _is_command(subject: Subject, file: InstalledFile) -> bool:
    """Return whether a script is a command, because it is in ``bin`` and ``bin`` isn't a Python package.

    Installers make every file in a wheel's ``.data/scripts`` executable.
    """
    if file.name.endswith(_FOR_WINDOWS):
        return False
    is_module = f"{file.folder}/__init__.py" in subject.tree.by_path
    is_installed_so = file.member.partition("/")[0].endswith(".data") and file.member.split("/")[1:2] == ["scripts"]
    return file.is_script and file.folder.rpartition("/")[2] == "bin" and not is_module and not is_installed_so


def _libraries(subject: Subject) -> dict[str, list[InstalledFile]]:
    found = defaultdict(list)
    for file in subject.tree.audited:
        if file.elf is not None and file.elf.is_shared_library and file.elf.soname and file.link is None:
            found[file.elf.soname].append(file)
    return found


def _duplicates(subject: Subject) -> Iterator[Evidence]:
    for soname, files in sorted(_libraries(subject).items()):
        kinds = [(file, _kind(file, is_prefix=subject.tree.is_prefix)) for file in files]
        named = {kind for file, kind in kinds if file.name == soname}
        for file, kind in kinds:
            if file.name != soname and kind in named and not split_overlay_path(file.path):
                found = f"has the same SONAME as another file in its package: {soname}"
                yield Evidence(file.source, found, facts=(soname,))


def _kind(file: InstalledFile, *, is_prefix: bool) -> Hashable:
    """Return a key that is equal for files that should be a single file.

    In a package, all files with the same SONAME should be a single file. In a prefix, this applies only if their folder
    and contents are also the same.
    """
    return (file.folder, file.size, file.elf) if is_prefix else file.distribution


def _clashes(subject: Subject) -> Iterator[Evidence]:
    """Find different loaded files with the same SONAME. The entire process uses the file that is loaded first.

    Files with the same auditwheel name come from the same library.
    """
    loaded: dict[str, dict[str, InstalledFile]] = defaultdict(dict)
    chosen: set[str] = set()
    for process in subject.processes:
        for file, is_chosen in _loaded_files(subject, process):
            if file.elf is not None and file.elf.soname and not _AUDITWHEEL_NAME.search(file.elf.soname):
                loaded[file.elf.soname][file.path] = file
                chosen |= {file.elf.soname} if is_chosen else set()
    for soname, files in sorted(loaded.items()):
        # Only a RECORD has digests. Without a RECORD, files with the same size and facts count as copies.
        kinds = {path: file.sha256 or (file.size, file.elf, file.traits) for path, file in files.items()}
        if len(set(kinds.values())) > 1 and soname in chosen:
            places = sorted(files)
            pairs = [(one, other) for one, other in combinations(places, 2) if kinds[one] != kinds[other]]
            together = any(subject.load_together(files[one], files[other]) for one, other in pairs)
            found = f"shares the SONAME {soname} with different files: {', '.join(places[1:])}"
            found += "" if together else "; no given package requires both of these packages"
            severity = None if together else Severity.NOTE
            yield Evidence(files[places[0]].source, found, facts=(soname, *places[1:]), severity=severity)


def _loaded_files(subject: Subject, process: Process) -> Iterator[tuple[InstalledFile, bool]]:
    """Yield the files that a process loads. The flag indicates whether the file or its loader is audited."""
    files = [subject.file_of(member.library) for member in process.loader.objects]
    for file, member in zip(files[1:], process.loader.objects[1:], strict=True):
        if file is not None:
            users = (file, files[member.loader])
            yield file, any(user is not None and not subject.tree.is_context(user) for user in users)


def _collisions(subject: Subject) -> Iterator[Evidence]:
    if subject.tree.is_prefix:
        return
    owners = subject.tree.owners
    for conflict in find_conflicts([*subject.tree.files, *_commands(subject)]):
        audited = [file for file in conflict.files if not subject.tree.is_context(file)]
        if not audited:
            continue
        holders = dict.fromkeys(file.distribution for file in conflict.files if file.distribution in owners)
        labels = [owners[holder].label for holder in holders]
        among = f" (in {' and '.join(labels)})" if len(labels) > 1 else ""
        names = (owners[holder].name for holder in holders)
        yield Evidence(audited[0].source, conflict.found + among, facts=(conflict.path, *names))


def _commands(subject: Subject) -> Iterator[InstalledFile]:
    """Yield the programs that installers create for the commands in the entry points of wheels."""
    for owner in subject.tree.distributions:
        folder = owner.layout.scheme_folder("scripts", "")
        suffix = ".exe" if owner.layout.is_windows else ""
        for name, reference in owner.commands:
            yield InstalledFile(
                path=f"{folder}{name}{suffix}",
                distribution=owner.source,
                source=f"{owner.source}!{owner.dist_info}/entry_points.txt",
                size=0,
                sha256=hashlib.sha256(reference.encode()).digest(),
            )


def _outside(subject: Subject) -> Iterator[Evidence]:
    for file in subject.tree.audited:
        owner = subject.tree.owners.get(file.distribution)
        if owner is not None and owner.is_wheel and (reason := outside_reason(file.member)):
            yield Evidence(
                file.source, f"has {reason}: installers reject the wheel, or write the file outside the environment"
            )


def _unreadable(subject: Subject) -> Iterator[Evidence]:
    for file in subject.tree.audited:
        if file.problem:
            yield Evidence(file.source, file.problem)
        elif _is_misnamed(subject, file):
            yield Evidence(file.source, "is named like a Windows DLL or program, but isn't one")


def _is_misnamed(subject: Subject, file: InstalledFile) -> bool:
    """Return whether a file that Windows would load is text, empty, or truncated in its headers."""
    is_named = file.name.lower().endswith((".dll", ".exe", ".pyd"))
    return is_named and file.windows is None and file.link is None and subject.windows.is_platform


RULES = (
    Rule("unreadable-binary", Severity.ERROR, "Every binary is intact.", "Build or copy the file again.", _unreadable),
    Rule(
        "symlink",
        Severity.ERROR,
        "A wheel contains no symlinks.",
        "Ship the file only under the required name.",
        _symlinks,
    ),
    Rule(
        "wrong-mode",
        Severity.WARNING,
        (
            "Owners can read every file and run every program. Other users can't write to the files. "
            "No file is setuid or setgid."
        ),
        "Pack files with mode 0644 and programs with mode 0755.",
        _modes,
    ),
    Rule(
        "duplicate-library",
        Severity.WARNING,
        "A package ships each library only once, under its SONAME.",
        "Remove the other names. A process that opens both names loads the library twice.",
        _duplicates,
    ),
    Rule(
        "soname-clash",
        Severity.WARNING,
        "Different libraries that a process can load have different SONAMEs.",
        "Share one file, or rename one of the libraries, for example, by adding a hash, as auditwheel does.",
        _clashes,
    ),
    Rule(
        "path-collision",
        Severity.ERROR,
        "Each path belongs to one file, and no file has the same path as a folder.",
        ("Keep the path in only one package. When you uninstall one package, the other package loses the file."),
        _collisions,
    ),
    Rule(
        "path-outside",
        Severity.ERROR,
        "Installers write every member of a wheel inside the environment.",
        "Build the wheel with a tool that uses paths relative to site-packages.",
        _outside,
    ),
)
