"""What planned wheels declare about GPU targets: those of their files, and whether the packages fit together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from packaging.utils import canonicalize_name

from rocwheel.binary.code_objects.target_id import parse_target_id
from rocwheel.installed.coherence.carriers import WheelFacts, carriers_of
from rocwheel.installed.coherence.check import CoherenceReport, check_coherence
from rocwheel.targets.declaration import encode_declaration

if TYPE_CHECKING:
    from rocwheel.packages.plan import PlannedWheel

__all__ = ["declare_targets"]


def declare_targets(wheels: list[PlannedWheel]) -> tuple[list[PlannedWheel], CoherenceReport]:
    """Return wheels that are installed together, each with its declaration, and the outcome of comparing them.

    Those without device code declare that they carry none, and are the same whichever packages they are built with.
    """
    facts = [_facts(wheel) for wheel in wheels]
    report = check_coherence(carriers_of(facts))
    declared = [
        msgspec.structs.replace(
            wheel, declaration=encode_declaration(known.targets, report.recorded if known.targets else None).decode()
        )
        for wheel, known in zip(wheels, facts, strict=True)
    ]
    return declared, report


def _facts(wheel: PlannedWheel) -> WheelFacts:
    return WheelFacts(
        wheel.name.file_name,
        canonicalize_name(wheel.name.distribution),
        wheel.metadata.requires,
        tuple(parse_target_id(text, source=wheel.name.file_name) for text in wheel.targets),
        frozenset(member.path.partition("/")[0] for member in wheel.members),
    )
