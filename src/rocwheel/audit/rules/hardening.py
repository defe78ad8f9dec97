"""Rules on how ELF files were linked: what is writable is never executed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.audit.finding import Evidence, Rule, Severity
from rocwheel.binary.elf.header import PF_X, PT_LOAD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.audit.subject import Subject

__all__ = ["RULES"]


def _stack(subject: Subject) -> Iterator[Evidence]:
    for file in subject.tree.audited:
        if file.traits is not None and file.traits.has_executable_stack:
            yield Evidence(file.source, "asks for an executable stack: newer systems refuse to dlopen it")


def _text(subject: Subject) -> Iterator[Evidence]:
    for file in subject.tree.audited:
        if file.traits is not None and file.traits.has_text_relocations:
            yield Evidence(file.source, "has text relocations: its code is changed when it is loaded")


def _writable(subject: Subject) -> Iterator[Evidence]:
    for file in subject.tree.audited:
        if file.traits is not None and file.traits.has_writable_code:
            yield Evidence(file.source, "has a segment that is both writable and executable")


def _build_id(subject: Subject) -> Iterator[Evidence]:
    for file in subject.tree.loadable:
        elf = file.elf
        if elf is None or not elf.is_shared_library or elf.build_id is not None:
            continue
        # A library without code of its own has nothing to debug.
        if any(segment.type == PT_LOAD and segment.flags & PF_X for segment in elf.segments):
            yield Evidence(file.source, "has no build id: its debug information can't be found by it")


RULES = (
    Rule(
        "executable-stack",
        Severity.ERROR,
        "No file asks for an executable stack.",
        "Link with -Wl,-z,noexecstack, and add .note.GNU-stack to assembler sources.",
        _stack,
    ),
    Rule("text-relocations", Severity.ERROR, "No file has text relocations.", "Compile all of it with -fPIC.", _text),
    Rule(
        "writable-code",
        Severity.WARNING,
        "No segment is both writable and executable.",
        "Link without -N and without old linker scripts.",
        _writable,
    ),
    Rule("missing-build-id", Severity.NOTE, "Libraries carry a build id.", "Link with -Wl,--build-id.", _build_id),
)
