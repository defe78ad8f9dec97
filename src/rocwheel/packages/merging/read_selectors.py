"""The selectors that become one: read from sdists, from plans, and from folders of builds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.core.errors import InputError, read_error
from rocwheel.core.workers import convert_all, raise_all
from rocwheel.packages.merging.read_plan import read_plan
from rocwheel.packages.merging.selectors import Selector, find_problem
from rocwheel.packages.promoting.candidates import Candidate, read_candidate
from rocwheel.packages.promoting.version_change import BUILD_INFO

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["read_selectors"]

_SDIST = ".tar.gz"
_AS_SDIST = "Build it with --selector sdist: a wheel can't choose for a machine."


def read_selectors(paths: Sequence[Path]) -> tuple[Selector, ...]:
    """Read sdists, plans and folders: each selector once, in an order that depends on what they hold alone.

    A folder is that of a build, or its ``dist``: the selectors directly in it count, and those of families in the
    folders in it. Raises `InputError`, or `ProblemsError` with all, for what can't be read or is no selector.
    """
    found = {one.digest: one for part in convert_all("selectors", _read, paths) for one in part}
    raise_all("selectors", [problem for one in found.values() if (problem := find_problem(one))])
    return tuple(sorted(found.values(), key=lambda one: (one.platforms, sorted(one.info["FAMILIES"]), one.digest)))


def _read(path: Path) -> list[Selector]:
    if path.is_dir():
        return _read_folder(path)
    if path.suffix == ".json":
        return read_plan(path)
    if not path.name.endswith(_SDIST):
        remedy = _AS_SDIST if path.suffix == ".whl" else ""
        expected = "the rocm-VERSION.tar.gz of a build, its folder, or a plan (.json)"
        raise InputError(path, "is no sdist", expected=expected, remedy=remedy)
    selector = _selector(read_candidate(path, path.parent))
    if selector is None:
        raise InputError(path, "is not a selector", expected="the sdist of rocm, which says what is for which GPU")
    return [selector]


def _selector(candidate: Candidate) -> Selector | None:
    places = [name for name in candidate.files if name.rpartition("/")[2] == BUILD_INFO]
    if not candidate.info or len(places) != 1:
        return None
    return Selector(candidate.path, candidate.name, candidate.version, candidate.files, places[0], candidate.info)


def _read_folder(folder: Path) -> list[Selector]:
    """Return the selectors of a build; other sdists beside them are passed over."""
    dist = folder / "dist" if (folder / "dist").is_dir() else folder
    try:
        inner = [path for path in sorted(dist.iterdir()) if path.is_dir() and not path.name.startswith(".")]
        sdists = [path for part in (dist, *inner) for path in sorted(part.iterdir()) if path.name.endswith(_SDIST)]
    except OSError as e:
        raise read_error(dist, e, expected="the folder of a build") from e
    candidates = [read_candidate(path, path.parent) for path in sdists if not path.name.startswith(".")]
    found = [selector for candidate in candidates if (selector := _selector(candidate))]
    if not found:
        remedy = f"Name the dist folder of a build. {_AS_SDIST}" if any(dist.glob("*.whl")) else ""
        raise InputError(dist, "has no selector that is an sdist", expected="rocm-VERSION.tar.gz", remedy=remedy)
    return found
