"""The public Python API: what the commands of the same names do, as functions that return values.

Everything that is stable is in ``__all__`` of this module. All other modules of rocwheel are private: they change
without notice.

The functions print nothing and log their warnings. They raise `InputError` for input that can't be used, `WorkError`
for work that failed, such as on a full disk, and `ProblemsError` for several problems together: all of them are
`RocwheelError`. The values that they return have the fields of the JSON documents of the commands, by the same names.
"""

from __future__ import annotations

from rocwheel.api.device import join, join_wheels, split, split_wheel
from rocwheel.api.packages import build, index, plan, promote
from rocwheel.api.wheels import audit, inspect, repair
from rocwheel.audit.audit import AuditReport
from rocwheel.audit.finding import Finding, Severity
from rocwheel.audit.settings import AuditSettings
from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.binary.platform import Platform
from rocwheel.build.building import BuildResult
from rocwheel.build.plan import Plan
from rocwheel.build.planning.options import PlanOptions
from rocwheel.build.promoting.promote import PromotionResult
from rocwheel.core.errors import InputError, ProblemsError, RocwheelError, WorkError
from rocwheel.device.facts import DeviceFacts
from rocwheel.device.inspection import ElfFacts, FileFacts
from rocwheel.device.split.join_tree import JoinReport
from rocwheel.device.split.join_wheels import WheelJoin
from rocwheel.device.split.split_tree import SplitReport
from rocwheel.device.split.split_wheel import WheelSplit
from rocwheel.index.write_index import IndexReport
from rocwheel.repair.job import RepairResult
from rocwheel.repair.options import RepairOptions
from rocwheel.repair.plan import RepairPlan

__all__ = [
    "AuditReport",
    "AuditSettings",
    "BuildResult",
    "DeviceFacts",
    "ElfFacts",
    "FileFacts",
    "Finding",
    "IndexReport",
    "InputError",
    "JoinReport",
    "Plan",
    "PlanOptions",
    "Platform",
    "ProblemsError",
    "PromotionResult",
    "RepairOptions",
    "RepairPlan",
    "RepairResult",
    "RocwheelError",
    "RunpathTag",
    "Severity",
    "SplitReport",
    "WheelJoin",
    "WheelSplit",
    "WorkError",
    "audit",
    "build",
    "index",
    "inspect",
    "join",
    "join_wheels",
    "plan",
    "promote",
    "repair",
    "split",
    "split_wheel",
]
