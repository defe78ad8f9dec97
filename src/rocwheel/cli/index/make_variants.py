"""What ``rocwheel index --variants`` does: variant wheels, made in folders of packages and named to the user."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.cli.index.variants_options import drafts
from rocwheel.cli.output.consoles import messages
from rocwheel.cli.output.errors import report_warning
from rocwheel.foundation.collecting import raise_all
from rocwheel.foundation.counting import count
from rocwheel.foundation.errors import ProblemsError, RocwheelError
from rocwheel.packages.building.add_variants import AddedVariants, NoGpuPackagesError, add_variants

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["make_variants"]


def make_variants(dist_dirs: Sequence[Path], *, quiet: bool) -> None:
    """Make the variant wheels in those of the folders that hold packages for GPUs, and say which unless ``quiet``.

    Raises `InputError` where none of the folders holds any, and as `add_variants` does; `ProblemsError` for all.
    """
    problems: list[RocwheelError] = []
    for dist_dir in dist_dirs:
        added = _try_adding(dist_dir, problems)
        if added and not quiet:
            _report_added(dist_dir, added)
    without = [problem for problem in problems if isinstance(problem, NoGpuPackagesError)]
    is_without = len(without) == len(dist_dirs)
    raise_all("--variants", [problem for problem in problems if is_without or problem not in without])


def _try_adding(dist_dir: Path, problems: list[RocwheelError]) -> AddedVariants | None:
    try:
        return add_variants(dist_dir)
    except RocwheelError as e:
        problems += e.problems if isinstance(e, ProblemsError) else [e]
        return None


def _report_added(dist_dir: Path, added: AddedVariants) -> None:
    if added.written:
        text = f"made {count(len(added.written), 'wheel')} that select packages for a GPU in {dist_dir}"
        messages.print(f"{text} ({drafts()})", markup=False)
    for name in added.stale:
        report_warning(f"{dist_dir / name}: selects a package that is not there. Remove it.")
