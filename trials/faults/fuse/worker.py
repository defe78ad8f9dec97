"""Runs a case on disks that fail: ``unshare --mount python -m trials.faults.fuse.worker CASE FOLDER NUMBER``.

So many operations of the disk fail, half as many writes fail after they had ended well, and the disk once lacks each
thing that disks may lack. What came of it is printed as JSON. NUMBER may be ``trace``, to print the operations instead.
The shim has to be loaded, as for `trials.faults.worker`.
"""

from __future__ import annotations

import errno
import gc
import signal
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tests.support.command_server import load
from trials.faults.attempt import Met, attempt_by, look_at, prepare
from trials.faults.case import Place, find_case
from trials.faults.folder_state import read_through
from trials.faults.forked import run
from trials.faults.fuse.choice import LACKS, UNUSUAL, all_disk_faults, late_faults, sample_faults
from trials.faults.fuse.mount import Mount
from trials.faults.fuse.plan import DiskFault, Manner, SharedPlan
from trials.faults.messages import Expected
from trials.faults.row import FuseRow, found_in

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trials.faults.attempt import Attempt, Undisturbed
    from trials.faults.case import Case
    from trials.faults.forked import Command, Ended
    from trials.faults.fuse.choice import Unusual

_DEAD = (errno.ENOTCONN, errno.ECONNABORTED, errno.EIO)
_LATE = (errno.EIO, errno.ENOSPC)
"""What the system tells of a write that it did too late: it keeps no other reasons."""


class _Trial:
    """A case on a disk, which is mounted anew where it dies."""

    def __init__(self, case: Case, place: Place) -> None:
        self.case, self.place, self.plan = case, place, SharedPlan()
        self.mount = Mount(place.root.with_name(f"{place.root.name}-disk"), place.root, self.plan)
        self._apart = _below(place.root, case.watched(place).apart)

    def look(self) -> tuple[Undisturbed, list[tuple[str, str]]]:
        """Return what an undisturbed run makes, and the operations of the disk."""
        operations: list[tuple[str, str]] = []

        def run_first(command: Command) -> Ended:
            ended = self._run(command, None)
            operations.extend(self.plan.operations())
            return ended

        return look_at(self.case, self.place, run_first), operations

    def _run(self, command: Command, fault: DiskFault | None) -> Ended:
        self.plan.arm(fault, self._apart)
        ended = run(command)
        self.plan.disarm()
        return ended

    def fail(self, calm: Undisturbed, faults: Iterable[DiskFault], *, is_late: bool = False) -> list[Attempt]:
        """Have the case meet faults, one after the other."""
        name = " late" if is_late else ""
        meet = partial(self._meet, is_late=is_late)
        return [
            attempt_by(self.case, self.place, calm, partial(meet, fault=fault), f"{fault}{name}") for fault in faults
        ]

    def _meet(self, command: Command, fault: DiskFault, *, is_late: bool) -> Met:
        ended, hit = self._run(command, fault), self.plan.hit
        if hit and fault.manner == Manner.DIE:
            self.mount.end()
            self.mount.begin(is_late=is_late)
            self._sweep()
        errors = _DEAD if fault.manner == Manner.DIE else (fault.error, *(_LATE if is_late else ()))
        is_lost = self.plan.has_lost_map or fault.manner == Manner.DIE
        return Met(ended, hit, Expected(errors, hit.path if hit else "", signals=(signal.SIGBUS,) if is_lost else ()))

    def _sweep(self) -> None:
        """Remove temporary files that were about to lose their names; disks that make them without one leave none."""
        for path in self.place.temporary.glob("rocwheel-*"):
            if path.is_file():
                path.unlink()

    def be_unusual(self, calm: Undisturbed, unusual: Unusual) -> Attempt:
        """Have the case run on an unusual disk."""

        def meet(command: Command) -> Met:
            ended, hit = self._run(command, unusual.fault), self.plan.hit
            errors = (unusual.fault.error,) if unusual.is_lack else ()
            return Met(ended, hit, Expected(errors, hit.path if hit else "", must_end_well=not unusual.is_lack))

        return attempt_by(self.case, self.place, calm, meet, unusual.name)


def _below(root: Path, path: Path | None) -> str:
    return f"/{path.relative_to(root).as_posix()}" if path else ""


def main(name: str, folder: str, number: str) -> None:
    """Run the case on disks that fail in so many ways."""
    gc.disable()
    load()
    case, place = find_case(name), Place(Path(folder).resolve())
    trial = _Trial(case, place)
    trial.mount.begin()
    prepare(case.prepare, place)
    gc.freeze()
    gc.enable()
    calm, operations = trial.look()
    if number == "trace":
        print("\n".join(map(" ".join, operations)))
        return
    print(msgspec.json.encode(_try(trial, calm, operations, int(number))).decode())


def _try(trial: _Trial, calm: Undisturbed, operations: list[tuple[str, str]], number: int) -> FuseRow:
    name = trial.case.name
    faults = all_disk_faults(operations, may_die=trial.case.site(trial.place) is None)
    failed = trial.fail(calm, sample_faults(faults, number, name))
    unusual = [trial.be_unusual(calm, one) for one in UNUSUAL]
    through = look_at(trial.case, trial.place, read=read_through)
    unusual += [trial.be_unusual(through, one) for one in LACKS]
    trial.mount.end()
    trial.mount.begin(is_late=True)
    calm, late_operations = trial.look()
    chosen = sample_faults(late_faults(late_operations), number // 2, name)
    late = trial.fail(calm, chosen, is_late=True)
    trial.mount.end()
    met = [one for one in (*failed, *late, *unusual) if one.hit]
    return FuseRow(
        name,
        operations=len(operations),
        failed=_met(failed),
        late=_met(late),
        unusual=_met(unusual),
        tolerated=sum(one.status == 0 for one in met),
        found=tuple(found_in(one) for one in (*failed, *late, *unusual) if one.problems),
    )


def _met(attempts: list[Attempt]) -> int:
    return sum(one.hit is not None for one in attempts)


if __name__ == "__main__":
    main(*sys.argv[1:])
