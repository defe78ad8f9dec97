"""Rules on symbols that a file leaves to others: something that it loads defines them (gABI, "Symbol Table")."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.audit.finding import Evidence, Rule, Severity, first_of
from rocwheel.audit.symbol_scopes import Scopes, unmet_references, version_gaps

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rocwheel.audit.subject import Subject
    from rocwheel.binary.elf.linkage import SymbolReference

__all__ = ["RULES"]


def _underlinked(subject: Subject) -> Iterator[Evidence]:
    scopes = Scopes(subject)
    for process in subject.processes:
        if process.file.traits is None:
            continue
        unmet = unmet_references(process.file.traits.linkage, scopes.of(process))
        if unmet:
            found = f"leaves {len(unmet)} symbols to others, and loads nothing that defines them: {_shown(unmet)}"
            yield Evidence(process.file.source, found + _holder(subject, unmet))


def _undefined(subject: Subject) -> Iterator[Evidence]:
    yield from _underlinked(subject)
    for process in subject.processes:
        gaps = list(version_gaps(subject, process))
        if gaps:
            names = _shown([gap.reference for gap in gaps])
            found = f"asks {gaps[0].library.path} for {names}, which has no versions at all: the loader aborts"
            yield Evidence(process.file.source, found, "Link both files anew: one was built with a version script.")


def _shown(unmet: Sequence[SymbolReference]) -> str:
    return first_of(list(map(str, unmet)))


def _holder(subject: Subject, unmet: Sequence[SymbolReference]) -> str:
    """Tell which library of the packages defines most of them."""
    counts = {
        file.path: sum(map(file.traits.linkage.defines, unmet))
        for file in subject.tree.files
        if file.is_loadable and file.traits is not None
    }
    best = max(counts, key=lambda path: counts[path], default="")
    return f" ({best} defines {counts[best]} of them)" if best and counts[best] else ""


RULES = (
    Rule(
        "undefined-symbol",
        Severity.ERROR,
        "What a file loads defines every symbol that it leaves to others.",
        "Link it with the libraries that define them; -Wl,-z,defs has the linker tell. Symbols of what loads the file: "
        "name that under loaded-by in the settings.",
        _undefined,
    ),
)
