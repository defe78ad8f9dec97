"""Files of earlier builds in a folder of distributions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.core.scratch import remove_abandoned
from rocwheel.packages.plan import PlanWarning

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["find_leftovers", "remove_unfinished"]

_SUFFIXES = (".whl", ".tar.gz")


def remove_unfinished(dist_dir: Path) -> tuple[Path, ...]:
    """Remove the hidden files that killed builds have left below ``dist_dir``, and return their paths.

    Files that another build is writing meanwhile stay.
    """
    folders = [dist_dir, *(path for path in dist_dir.glob("*") if path.is_dir())]
    return tuple(path for folder in folders for path in remove_abandoned(folder))


def find_leftovers(dist_dir: Path, built: Iterable[str]) -> tuple[PlanWarning, ...]:
    """Return a warning about the distributions below ``dist_dir`` that are not among the paths just built, if any.

    An index over the folder would list them, and an installer could prefer them.
    """
    found = (path for suffix in _SUFFIXES for folder in ("", "*/") for path in dist_dir.glob(f"{folder}*{suffix}"))
    present = {str(path): path for path in found}
    others = sorted(set(present) - set(built))
    names = [present[path].relative_to(dist_dir).as_posix() for path in others]
    names = [name for name in names if not name.rpartition("/")[2].startswith(".")]
    if not names:
        return ()
    text = f"holds distributions that this build did not make: {', '.join(names)}"
    remedy = "An index would list them. Remove them if they are from earlier builds."
    return (PlanWarning("earlier-build", str(dist_dir), text, remedy, tuple(names)),)
