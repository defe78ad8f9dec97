"""Rules about how ELF files are linked: every loader can map the files, and writable memory is never executable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.audit.finding import Evidence, Rule, Severity
from rocwheel.binary.elf.header import PF_X, PT_LOAD
from rocwheel.binary.elf.mapping import PAGES, find_small_pages, find_unreservable
from rocwheel.wheels.file_names import wheel_platforms
from rocwheel.wheels.tags import lowest_glibc

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.audit.subject import Subject
    from rocwheel.binary.elf.facts import Elf


def _alignment(subject: Subject) -> Iterator[Evidence]:
    for file in subject.tree.loadable:
        owner = subject.tree.owners.get(file.distribution)
        if file.elf is not None and not (owner and owner.is_for_musl):
            yield from _pages(file.source, file.elf)
    yield from _misaligned(subject)


def _pages(source: str, elf: Elf) -> Iterator[Evidence]:
    """Find libraries that aren't compatible with the page size of some kernels or the address space of a process."""
    if not elf.is_shared_library:
        return
    if (segment := find_unreservable(elf.segments, elf.machine)) is not None:
        found = (
            f"requests an alignment of 2**{segment.alignment.bit_length() - 1} bytes: glibc 2.35 and later can't "
            "map the file, because no process has enough address space"
        )
        facts = (f"{segment.alignment:#x}",)
        yield Evidence(source, found, "Link the file again.", facts=facts, severity=Severity.ERROR)
    elif (segment := find_small_pages(elf.segments, elf.machine)) is not None:
        pages = PAGES[elf.machine]
        found = (
            f"is aligned for {segment.alignment}-byte pages: kernels with {pages >> 10} KiB pages reject the file "
            "(ELF load command alignment not page-aligned)"
        )
        yield Evidence(
            source, found, f"Link the file with -Wl,-z,max-page-size={pages:#x}.", facts=(f"{segment.alignment:#x}",)
        )


def _misaligned(subject: Subject) -> Iterator[Evidence]:
    """Find misaligned segments in files without a platform tag. The other files are covered by the rules about tags."""
    for file in subject.tree.loadable:
        segment = file.elf.misaligned if file.elf else None
        owner = subject.tree.owners.get(file.distribution)
        if segment is None or (owner and owner.is_for_musl):
            continue
        if owner and owner.is_wheel and lowest_glibc(wheel_platforms(owner.label)):
            continue
        found = (
            f"has a segment at {segment.offset:#x} in the file and {segment.address:#x} in memory that requests an "
            f"alignment of {segment.alignment:#x}: glibc versions before 2.35 reject the file"
        )
        yield Evidence(file.source, found, facts=(f"{segment.alignment:#x}",))


def _stack(subject: Subject) -> Iterator[Evidence]:
    for file in subject.tree.audited:
        if file.traits is not None and file.traits.has_executable_stack:
            yield Evidence(file.source, "requests an executable stack: newer systems refuse to dlopen the file")


def _text(subject: Subject) -> Iterator[Evidence]:
    for file in subject.tree.audited:
        if file.traits is not None and file.traits.has_text_relocations:
            yield Evidence(file.source, "has text relocations: the loader changes its code")


def _writable(subject: Subject) -> Iterator[Evidence]:
    for file in subject.tree.audited:
        if file.traits is not None and file.traits.has_writable_code:
            yield Evidence(file.source, "has a segment that is both writable and executable")


def _build_id(subject: Subject) -> Iterator[Evidence]:
    for file in subject.tree.loadable:
        elf = file.elf
        if elf is None or not elf.is_shared_library or elf.build_id is not None:
            continue
        # A library without code has nothing to debug.
        if any(segment.type == PT_LOAD and segment.flags & PF_X for segment in elf.segments):
            yield Evidence(file.source, "has no build ID, so debuggers can't find its debug information")


RULES = (
    Rule(
        "segment-alignment",
        Severity.WARNING,
        "Every glibc version can map a library's segments, regardless of the page size.",
        (
            "Run 'rocwheel repair' on wheels or 'rocwheel runpath set' on files to correct the "
            "alignment. Don't use patchelf 0.18."
        ),
        _alignment,
    ),
    Rule(
        "executable-stack",
        Severity.ERROR,
        "No file requires an executable stack.",
        "Link with -Wl,-z,noexecstack, and add .note.GNU-stack to assembler sources.",
        _stack,
    ),
    Rule("text-relocations", Severity.ERROR, "No file has text relocations.", "Compile all sources with -fPIC.", _text),
    Rule(
        "writable-code",
        Severity.WARNING,
        "No segment is both writable and executable.",
        "Link without -N and without old linker scripts.",
        _writable,
    ),
    Rule("missing-build-id", Severity.NOTE, "Libraries have a build ID.", "Link with -Wl,--build-id.", _build_id),
)
