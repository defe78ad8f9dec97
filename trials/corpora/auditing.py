"""What the audit says of published wheels that work: each error and warning has to be true, and to be looked at."""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from itertools import chain
from typing import TYPE_CHECKING, get_args

from rocwheel.audit.audit import audit
from rocwheel.audit.finding import Severity
from rocwheel.audit.settings import AuditSettings
from rocwheel.environment.read_tree import read_environments
from trials.corpora.row import Difference, Row
from trials.corpora.wheels import System, local_wheels

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["audit_wheels", "findings_of"]

_LONGEST = 200


def audit_wheels() -> Row:
    """Audit each published wheel by itself."""
    wheels = [wheel for system in get_args(System) for wheel in local_wheels(system)]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        found = tuple(sorted(chain.from_iterable(pool.map(findings_of, wheels))))
    return Row("audit", len(wheels), len(wheels), found)


def findings_of(wheel: Path) -> list[Difference]:
    """Return the errors and warnings of a wheel, each as one difference from a wheel without."""
    name = "-".join(wheel.name.split("-")[:2])
    system = wheel.parent.name
    return [
        Difference(
            "audit",
            f"{system}/{name}!{finding.path}",
            finding.severity.value,
            finding.rule,
            finding.found[:_LONGEST],
        )
        for finding in audit(read_environments([wheel], ()), AuditSettings()).findings
        if finding.severity is not Severity.NOTE
    ]
