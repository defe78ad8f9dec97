"""Rules on undefined symbols: something that a file loads defines them (gABI, "Symbol Table")."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from rocwheel.audit.finding import Evidence, Rule, Severity
from rocwheel.audit.loaded_files import UNLOADED, loaded_paths
from rocwheel.audit.symbol_scopes import Scopes, absent_versioned, is_of_interpreter, unmet_references, version_gaps
from rocwheel.core.messages import count, first_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rocwheel.audit.subject import Subject
    from rocwheel.audit.symbol_scopes import VersionGap
    from rocwheel.binary.elf.symbols import SymbolReference


def _underlinked(subject: Subject) -> Iterator[Evidence]:
    scopes, loaded = Scopes(subject), loaded_paths(subject)
    for process in subject.processes:
        if process.file.traits is None:
            continue
        unmet = unmet_references(process.file.traits.linkage, scopes.of(process))
        if unmet:
            found = f"has {count(len(unmet), 'undefined symbol')} that nothing it loads defines: {_shown(unmet)}"
            is_pythons = all(map(is_of_interpreter, unmet))
            found += _IN_PYTHON if is_pythons else _holder(subject, unmet)
            is_loaded = process.file.path in loaded
            severity = None if is_loaded else Severity.NOTE if is_pythons else Severity.WARNING
            found += "" if is_loaded else UNLOADED
            remedy = _EMBED if is_pythons else ""
            yield Evidence(process.file.source, found, remedy, tuple(map(str, unmet)), severity)


def _undefined(subject: Subject) -> Iterator[Evidence]:
    yield from _underlinked(subject)
    for process in subject.processes:
        gaps: dict[str, list[VersionGap]] = defaultdict(list)
        for gap in version_gaps(subject, process):
            gaps[gap.library.path].append(gap)
        for library, group in gaps.items():
            references = [gap.reference for gap in group]
            elf = group[0].library.elf
            without = "lacks that version: the loader refuses it" if elf and elf.version_definitions else _UNVERSIONED
            found = f"asks {library} for {_shown(references)}, but that {without}"
            yield Evidence(process.file.source, found, _RELINK, (library, *map(str, references)))


def _unneeded(subject: Subject) -> Iterator[Evidence]:
    for process in subject.processes:
        for library in absent_versioned(subject, process):
            found = f"asks for versions of {library}, which nothing it loads needs: the loader aborts"
            yield Evidence(process.file.source, found, facts=(library,))


def _shown(unmet: Sequence[SymbolReference]) -> str:
    return first_of(list(map(str, unmet)))


def _holder(subject: Subject, unmet: Sequence[SymbolReference]) -> str:
    """Return which library of the packages defines most of them, or what it takes to use that; empty if none does."""
    counts = {
        file.path: sum(map(file.traits.linkage.defines, unmet))
        for file in subject.tree.files
        if file.is_loadable and file.traits is not None
    }
    best = max(counts, key=lambda path: counts[path], default="")
    if best and counts[best] == len(unmet):
        return _AFTER.format(best, "it" if len(unmet) == 1 else "them")
    return f" ({best} defines {counts[best]} of them)" if best and counts[best] else ""


_AFTER = "; it works only where {}, which defines {}, is loaded before with RTLD_GLOBAL"
_EMBED = "If a program that is not Python loads it, link it with libpython."
_IN_PYTHON = "; it works only in a process of Python, whose interpreter defines them"
_UNVERSIONED = "has no symbol versions: the loader aborts"
_RELINK = "Link both files again: one of them was built with a version script."

RULES = (
    Rule(
        "undefined-symbol",
        Severity.ERROR,
        "What a file loads defines every symbol that it leaves undefined.",
        "Link it with the libraries that define them; -Wl,-z,defs makes the linker report them. If what loads the file "
        "defines them, name that under loaded-by in the settings.",
        _undefined,
    ),
    Rule(
        "version-of-unneeded",
        Severity.ERROR,
        "A file needs the libraries that it asks for versions of.",
        "Link it again without that library, or name it as NEEDED again: patchelf --remove-needed leaves the table of "
        "versions.",
        _unneeded,
    ),
)
