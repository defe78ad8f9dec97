"""Runs a case on failing disks: ``unshare --mount python -m trials.faults.disk_worker CASE FOLDER NUMBER``.

All that the case reads and writes lies on one disk in memory, which nobody else sees. It fills up so many times, and
turns read-only as many times. What came of it is printed as JSON. The shim has to be loaded, as for
`trials.faults.worker`.
"""

from __future__ import annotations

import errno
import gc
import random
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tests.support.command_server import load
from trials.faults.attempt import Met, attempt_by, begin, look_at, prepare
from trials.faults.case import Place, find_case
from trials.faults.disks import make_disk, on_full_disk, on_read_only_disk, used
from trials.faults.messages import Expected
from trials.faults.row import DiskRow
from trials.faults.shim import Hit

if TYPE_CHECKING:
    from collections.abc import Callable

    from trials.faults.forked import Command, Ended


def main(name: str, folder: str, number: str) -> None:
    """Run the case on so many disks of each kind."""
    gc.disable()
    load()
    place = Place(Path(folder).resolve())
    make_disk(place.root)
    case = find_case(name)
    prepare(case.prepare, place)
    gc.freeze()
    gc.enable()
    calm = look_at(case, place)
    after = used(place.root)
    begin(case, place)
    needed, choice = max(after - used(place.root), 1), random.Random(name)
    full = [on_full_disk(place.root, choice.randrange(needed)) for _ in range(int(number))]
    read_only = [on_read_only_disk(place.root, choice.uniform(0, calm.seconds)) for _ in range(int(number))]
    failed = [attempt_by(case, place, calm, partial(_meet, run, errno.ENOSPC), "a full disk") for run in full]
    turned = [attempt_by(case, place, calm, partial(_meet, run, errno.EROFS), "a read-only disk") for run in read_only]
    found = tuple(f"{one.fault}: {line}: {one.messages}" for one in (*failed, *turned) for line in one.problems)
    row = DiskRow(name, sum(one.status != 0 for one in failed), sum(one.status != 0 for one in turned), found)
    print(msgspec.json.encode(row).decode())


def _meet(run_there: Callable[[Command], Ended], error: int, command: Command) -> Met:
    return Met(run_there(command), Hit(0, "", str(command.cwd)), Expected((error,), str(command.cwd)))


if __name__ == "__main__":
    main(*sys.argv[1:])
