"""What earlier builds have left in a folder of distributions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.packages.plan import PlanWarning

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["find_leftovers"]

_PATTERNS = ("*.whl", "*.tar.gz", "*/*.whl", "*/*.tar.gz")


def find_leftovers(dist_dir: Path, built: Iterable[str]) -> tuple[PlanWarning, ...]:
    """Return a warning about the distributions below ``dist_dir`` that are not among the paths just built, if any.

    An index over the folder would list them, and an installer could prefer them.
    """
    present = {str(path): path for pattern in _PATTERNS for path in dist_dir.glob(pattern)}
    others = sorted(set(present) - set(built))
    names = [present[path].relative_to(dist_dir).as_posix() for path in others]
    names = [name for name in names if not name.rpartition("/")[2].startswith(".")]
    if not names:
        return ()
    found = f"holds distributions that this build has not made: {', '.join(names)}"
    remedy = "An index would list them: remove them if they are of earlier builds."
    return (PlanWarning("earlier-build", str(dist_dir), found, remedy, tuple(names)),)
