"""Rules about RPATH and RUNPATH entries: each is relative to the file, unique, and points to a possible folder."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from rocwheel.audit.finding import Evidence, Rule, Severity
from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.core.messages import count, first_of
from rocwheel.environment.installed_paths import SITE
from rocwheel.environment.requirements import packages_elsewhere, release_folders
from rocwheel.environment.run_path_entries import (
    BUILD_FOLDER,
    EATEN_ORIGIN,
    HOST_FOLDER,
    RELATIVE,
    EntryRule,
    expand_entry,
    folders_beyond,
    goes_back,
    is_build_folder,
    is_python_build_folder,
    is_writable_by_all,
    leads_nowhere,
    names_one_python,
    resolve_entry,
    split_run_path,
)
from rocwheel.environment.sdk_layout import sdk_folders

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rocwheel.audit.subject import Subject
    from rocwheel.environment.tree import InstalledFile


def _entries(subject: Subject) -> Iterator[tuple[InstalledFile, tuple[str, ...]]]:
    for file in subject.tree.loadable:
        if file.run_path is not None:
            yield file, split_run_path(file.run_path)


def _shown(entries: list[str]) -> str:
    return first_of(list(map(repr, dict.fromkeys(entries))))


def _broken_by_spelling(rule: EntryRule) -> Callable[[Subject], Iterator[Evidence]]:
    def find(subject: Subject) -> Iterator[Evidence]:
        for file, entries in _entries(subject):
            if bad := [entry for entry in entries if rule.is_broken_by(entry)]:
                yield _on_folders(file, rule, bad, None)

    return find


def _on_folders(file: InstalledFile, rule: EntryRule, bad: list[str], severity: Severity | None) -> Evidence:
    """Return the violation of a rule. It is an error if every user of the machine can write to the folder."""
    if open_to_all := list(filter(is_writable_by_all, bad)):
        found = f"{rule.describe(bad)}; any user on the machine can put a library into {_shown(open_to_all)}"
        return Evidence(file.source, found, _WRITABLE, (*bad,), Severity.ERROR)
    return Evidence(file.source, rule.describe(bad), facts=(*bad,), severity=severity)


def _build_folders(subject: Subject) -> Iterator[Evidence]:
    for file, entries in _entries(subject):
        bad = [entry for entry in entries if BUILD_FOLDER.is_broken_by(entry) and not _is_there(subject, file, entry)]
        if bad:
            is_dead = all(leads_nowhere(entry, file.folder) for entry in bad)
            yield _on_folders(file, BUILD_FOLDER, bad, Severity.NOTE if is_dead else None)


def _is_there(subject: Subject, file: InstalledFile, entry: str) -> bool:
    """Return whether the folder exists, at least for one of the wheel's Python versions."""
    folder = resolve_entry(entry, file.folder)
    if folder is None:
        return False
    owner = subject.tree.owners.get(file.distribution)
    is_for_several = owner is not None and not owner.layout.site
    return subject.has_folder(folder) or (is_for_several and names_one_python(folder))


def _repeated(subject: Subject) -> Iterator[Evidence]:
    for file, entries in _entries(subject):
        folders = [resolve_entry(entry, file.folder) or entry.rstrip("/") for entry in entries]
        bad = [entry for index, entry in enumerate(entries) if folders[index] in folders[:index]]
        if bad:
            yield Evidence(file.source, f"lists {_shown(bad)} more than once", facts=(*bad,))


def _dead(subject: Subject) -> Iterator[Evidence]:
    for file, entries in _entries(subject):
        bad = [
            entry
            for entry in entries
            if (folder := resolve_entry(entry, file.folder)) is not None
            and not is_build_folder(entry)
            and not _is_misplaced(folder)
            and not _may_come(subject, file, folder)
            and (_never_exists(subject, folder) or _goes_astray(subject, file, entry))
        ]
        if bad:
            yield Evidence(file.source, f"searches {_shown(bad)}, which can't exist after installation", facts=(*bad,))


def _never_exists(subject: Subject, folder: str) -> bool:
    """Return whether a folder is part of a build environment, or belongs to a given package that doesn't contain it.

    Another package might contain the folder.
    """
    top = folder.partition("/")[0]
    is_package_s = top in subject.folders and top not in _absent_tops(subject)
    return not subject.has_folder(folder) and (is_package_s or is_python_build_folder(folder))


def _may_come(subject: Subject, file: InstalledFile, folder: str) -> bool:
    """Return whether the folder might be in a package that isn't given, and have a library that the file lacks."""
    owner = subject.tree.owners.get(file.distribution)
    if owner is None or file.path not in subject.lacking or folder.startswith("..") or subject.has_folder(folder):
        return False
    return bool(packages_elsewhere(subject.tree, owner))


def _goes_astray(subject: Subject, file: InstalledFile, entry: str) -> bool:
    """Return whether ``..`` after a missing folder keeps the loader from reaching the intended folder."""
    return goes_back(entry) and not subject.disk.is_folder(expand_entry(entry, f"{SITE}/{file.folder}"))


def _absent_tops(subject: Subject) -> set[str]:
    """Return the platform folders of SDK packages that aren't given, and the folders of other assumed packages."""
    given = {owner.name for owner in subject.tree.distributions}
    assumed = {folder.folder.partition("/")[0] for folder in subject.assumed.values()}
    return assumed | {folder.folder.partition("/")[0] for folder in sdk_folders() if folder.distribution not in given}


def _is_misplaced(folder: str) -> bool:
    tops = tuple(sorted({layout.folder.partition("/")[0] for layout in sdk_folders()}))
    parts = folder.split("/")
    return folder.startswith("..") or any(part.startswith(tops) for part in parts[1:])


def _wrong_depth(subject: Subject) -> Iterator[Evidence]:
    if subject.tree.is_prefix:
        return
    for file, entries in _entries(subject):
        bad = [
            entry
            for entry in entries
            if (folder := resolve_entry(entry, file.folder)) is not None
            and not is_build_folder(entry)
            and not subject.has_folder(folder)
            and not file.path.startswith("..")
            and _is_misplaced(folder)
        ]
        if bad:
            depth = len(posixpath.dirname(file.path).split("/"))
            found = f"is {count(depth, 'folder')} deep, but these entries are for a different depth: {_shown(bad)}"
            yield Evidence(file.source, found, facts=(*bad,))


def _mixed(subject: Subject) -> Iterator[Evidence]:
    for owner in subject.tree.audited_distributions:
        files = [file for file in subject.tree.files_of[owner.source] if file.is_loadable and file.run_path]
        old = [file for file in files if file.tag is RunpathTag.RPATH]
        if old and len(old) < len(files):
            found = f"has {count(len(old), 'file')} with RPATH (such as {old[0].path})"
            yield Evidence(owner.label or owner.source, f"{found} and {len(files) - len(old)} with RUNPATH")


def _into_others(subject: Subject) -> Iterator[Evidence]:
    for owner in subject.tree.audited_distributions:
        if not owner.dist_info:
            continue
        release = release_folders(subject.tree, owner)
        for file in subject.tree.files_of[owner.source]:
            if not file.is_loadable or file.tag is not RunpathTag.RPATH:
                continue
            if bad := folders_beyond(release, file.run_path, file.folder):
                found = f"has an RPATH entry into {first_of(bad)}, which LD_LIBRARY_PATH can't override"
                yield Evidence(file.source, f"{found} and which the libraries in that folder inherit", facts=(*bad,))


def _expected(subject: Subject) -> Iterator[Evidence]:
    expected = subject.settings.expect_runpath
    for file in subject.tree.loadable:
        is_judged = bool(file.run_path) or _searches(subject, file)
        if expected is not None and is_judged and _is_library(file) and _plain(file.run_path) != _plain(expected):
            run_path = file.run_path or ""
            found = f"has the run path {run_path!r}, but the settings expect {expected!r}"
            yield Evidence(file.source, found, facts=(run_path, expected))


def _is_library(file: InstalledFile) -> bool:
    return file.elf is not None and file.elf.is_shared_library


def _searches(subject: Subject, file: InstalledFile) -> bool:
    """Return whether a file needs libraries other than the system's, or may open other libraries.

    Neither is true for some bundled files.
    """
    assert file.elf is not None
    names = (*file.elf.needed, *subject.settings.opened_by(file.path))
    is_given = (subject.system.find(name, file.elf.machine) for name in names)
    return file.elf.imports_dlopen or not all(is_given)


def _plain(run_path: str | None) -> str:
    """Return a run path with ``$ORIGIN`` instead of the equivalent ``${ORIGIN}``."""
    return (run_path or "").replace("${ORIGIN}", "$ORIGIN")


def _expected_tag(subject: Subject) -> Iterator[Evidence]:
    expected = subject.settings.expect_tag
    for file in subject.tree.loadable:
        if expected is not None and file.run_path and file.tag is not RunpathTag(expected):
            found = "RUNPATH" if expected == "rpath" else "RPATH"
            yield Evidence(file.source, f"has {found}, but the settings expect {expected.upper()}", facts=(expected,))


def _severity(rule: EntryRule) -> Severity:
    return Severity.ERROR if rule.is_error else Severity.WARNING


_TAG = (
    "Link with -Wl,--enable-new-dtags or -Wl,--disable-new-dtags, or run 'rocwheel repair' with --rpath or --no-rpath."
)
_DROP = "Link with the run path that 'rocwheel runpath for' prints. 'rocwheel repair' removes unused entries."
_WRITABLE = (
    "Remove that folder from the run path, as 'rocwheel repair' does: other users could put their own library into it."
)
_ONE_KIND = "Link with -Wl,--enable-new-dtags, or run 'rocwheel repair --no-rpath'."

RULES = (
    Rule(
        RELATIVE.name,
        _severity(RELATIVE),
        "No run path entry depends on the working folder.",
        _DROP,
        _broken_by_spelling(RELATIVE),
    ),
    Rule(
        EATEN_ORIGIN.name,
        _severity(EATEN_ORIGIN),
        "$ORIGIN reaches the linker unchanged.",
        ("Quote $ORIGIN for your build tool. 'rocwheel runpath for --tool TOOL' prints the correct form."),
        _broken_by_spelling(EATEN_ORIGIN),
    ),
    Rule(
        BUILD_FOLDER.name,
        Severity.WARNING,
        "No run path entry points to a build folder.",
        _DROP,
        _build_folders,
    ),
    Rule(
        HOST_FOLDER.name,
        _severity(HOST_FOLDER),
        "No run path entry is an absolute path.",
        _DROP,
        _broken_by_spelling(HOST_FOLDER),
    ),
    Rule("run-path-repeated", Severity.NOTE, "A run path lists each folder only once.", _DROP, _repeated),
    Rule("run-path-dead", Severity.NOTE, "Every run path entry points to a folder that can exist.", _DROP, _dead),
    Rule(
        "run-path-wrong-depth",
        Severity.WARNING,
        "The number of '..' in a run path entry matches the depth of the file.",
        _DROP,
        _wrong_depth,
    ),
    Rule(
        "run-path-mixed", Severity.WARNING, "All files in a package use the same kind of run path.", _ONE_KIND, _mixed
    ),
    Rule(
        "rpath-into-others",
        Severity.WARNING,
        ("RPATH entries point only into packages of the same release. Entries for other packages are in a RUNPATH."),
        _ONE_KIND,
        _into_others,
    ),
    Rule("run-path-unexpected", Severity.ERROR, "Libraries have the expected run path.", _DROP, _expected),
    Rule("run-path-tag", Severity.ERROR, "Files have the expected kind of run path.", _TAG, _expected_tag),
)
