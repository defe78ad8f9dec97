"""Rules about DLLs and programs as files: layouts that the loader rejects, and invalid signatures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.audit.finding import Evidence, Rule, Severity
from rocwheel.binary.pe.layout import FaultKind
from rocwheel.core.messages import count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rocwheel.audit.subject import Subject


def _faults(kind: FaultKind) -> Callable[[Subject], Iterator[Evidence]]:
    def find(subject: Subject) -> Iterator[Evidence]:
        for file, report in subject.windows.audited:
            faults = [fault.found for fault in report.faults if fault.kind is kind]
            if faults:
                # One wrong number causes many faults, so the finding quotes only the first fault and counts the others.
                # The facts contain no text, because addresses change with every version.
                more = f"; and {count(len(faults) - 1, 'more fault')}" if len(faults) > 1 else ""
                yield Evidence(file.source, faults[0] + more)

    return find


def _signed(subject: Subject) -> Iterator[Evidence]:
    for file, report in subject.windows.audited:
        stale = any(fault.kind is FaultKind.SIGNATURE for fault in report.faults)
        if report.pe is not None and report.pe.certificate is not None and not stale:
            yield Evidence(file.source, "is signed: any edit, such as removing device code, invalidates the signature")


_LINK = "Link the file again, or fix the tool that edited it."

RULES = (
    Rule(
        "image-layout",
        Severity.ERROR,
        "DLLs and programs have a layout that Windows can load.",
        _LINK,
        _faults(FaultKind.LAYOUT),
    ),
    Rule(
        "image-size",
        Severity.ERROR,
        "DLLs and programs are smaller than 2 GiB.",
        "Split the library, or move its device code out with 'rocwheel device split'.",
        _faults(FaultKind.SIZE),
    ),
    Rule(
        "image-checksum",
        Severity.WARNING,
        "The checksum of a DLL or program is correct or 0.",
        "Update the checksum after every edit, or set it to 0.",
        _faults(FaultKind.CHECKSUM),
    ),
    Rule(
        "image-signature",
        Severity.WARNING,
        "A signature matches the file's contents.",
        "Sign the file after its last edit, or remove the signature.",
        _faults(FaultKind.SIGNATURE),
    ),
    Rule(
        "image-signed",
        Severity.NOTE,
        "The audit lists signed files.",
        "Edit such a file before you sign it.",
        _signed,
    ),
)
