"""What ``rocwheel index --variants`` does: variant wheels, made in folders of packages and named to the user."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from rocwheel.build.variant_wheels import (
    AddedVariants,
    NoGpuPackagesError,
    PlannedVariants,
    find_clashes,
    plan_added,
    write_added,
)
from rocwheel.cli.output import messages, report_warning
from rocwheel.core.messages import count
from rocwheel.core.workers import attempt_all, raise_all
from rocwheel.wheels.variants import drafts

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from rocwheel.core.errors import RocwheelError


def make_variants(groups: Collection[Sequence[Path]], *, quiet: bool) -> None:
    """Make the variant wheels in those of the folders that hold packages for GPUs, and say which unless ``quiet``.

    Each of the ``groups`` has the folders of one index. All wheels are planned before the first is written. Raises
    `InputError` where none of the folders holds any packages for GPUs, where two wheels of an index would have one
    name, and as `add_variants` does; `ProblemsError` for all.
    """
    planned = _plan_all(dict.fromkeys(chain.from_iterable(groups)))
    clashes = {str(problem): problem for group in groups for problem in find_clashes(planned, group)}
    raise_all("--variants", list(clashes.values()))
    for one in planned:
        added = write_added(one)
        if not quiet:
            _report_added(one.dist_dir, added)


def _plan_all(dist_dirs: Collection[Path]) -> list[PlannedVariants]:
    problems: list[RocwheelError] = []
    planned = attempt_all(plan_added, dist_dirs, problems)
    others = [problem for problem in problems if not isinstance(problem, NoGpuPackagesError)]
    raise_all("--variants", others if planned or others else problems)
    return planned


def _report_added(dist_dir: Path, added: AddedVariants) -> None:
    if added.written:
        what = count(len(added.written), "wheel that selects", "wheels that select")
        text = f"wrote {what} packages for a GPU in {dist_dir}"
        messages.print(f"{text} ({drafts()})", markup=False)
    for name in added.stale:
        report_warning(f"{dist_dir / name}: selects a package that is not there. Remove it.")
