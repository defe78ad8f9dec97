"""Rules on DLLs and programs of Windows as files: what of their layout the loader, or who checks them, refuses."""

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
                # Where one number is wrong, many others are out of place: they are counted. No text is a fact, since
                # addresses change with every version.
                more = f"; and {count(len(faults) - 1, 'more fault')}" if len(faults) > 1 else ""
                yield Evidence(file.source, faults[0] + more)

    return find


def _signed(subject: Subject) -> Iterator[Evidence]:
    for file, report in subject.windows.audited:
        stale = any(fault.kind is FaultKind.SIGNATURE for fault in report.faults)
        if report.pe is not None and report.pe.certificate is not None and not stale:
            yield Evidence(
                file.source, "is signed: any edit, such as taking device code out of it, voids the signature"
            )


_LINK = "Link it again, or have the tool that edited it corrected."

RULES = (
    Rule(
        "image-layout",
        Severity.ERROR,
        "DLLs and programs are laid out as Windows loads them.",
        _LINK,
        _faults(FaultKind.LAYOUT),
    ),
    Rule(
        "image-size",
        Severity.ERROR,
        "DLLs and programs have less than 2 GiB.",
        "Split the library, or its device code off (rocwheel device split).",
        _faults(FaultKind.SIZE),
    ),
    Rule(
        "image-checksum",
        Severity.WARNING,
        "The checksum of a DLL or program is right, or 0 for none.",
        "Write it anew after every edit, or set it to 0.",
        _faults(FaultKind.CHECKSUM),
    ),
    Rule(
        "image-signature",
        Severity.WARNING,
        "A signature is of the bytes that the file has.",
        "Sign the file after its last edit, or take the signature out.",
        _faults(FaultKind.SIGNATURE),
    ),
    Rule(
        "image-signed",
        Severity.NOTE,
        "It is known which files are signed.",
        "Edit such a file before it is signed.",
        _signed,
    ),
)
