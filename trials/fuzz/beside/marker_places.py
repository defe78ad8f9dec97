"""Where wheels of a few names can be installed, written down by hand: their markers are judged there by `packaging`."""

from __future__ import annotations

from contextlib import suppress
from itertools import product
from typing import TYPE_CHECKING

from packaging.markers import UndefinedComparison, UndefinedEnvironmentName

from rocwheel.wheels.requirements import marker_holds
from trials.fuzz.beside.requirement import judge_marker, read_marker
from trials.fuzz.harness import require

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from packaging.markers import Marker
    from packaging.requirements import Requirement

__all__ = ["compare_markers"]

_LINUX = {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix"}
_WINDOWS = {"sys_platform": "win32", "platform_system": "Windows", "os_name": "nt", "platform_machine": "AMD64"}
_MACOS = {"sys_platform": "darwin", "platform_system": "Darwin", "os_name": "posix"}
_ON_LINUX = tuple({**_LINUX, "platform_machine": one} for one in ("x86_64", "aarch64", "ppc64le", "riscv64"))
_ON_MACOS = tuple({**_MACOS, "platform_machine": one} for one in ("arm64", "x86_64"))
_ALL = (*_ON_LINUX, _WINDOWS, _ON_MACOS[0])


def _with_python(minors: Iterable[int], machines: Iterable[Mapping[str, str]]) -> tuple[dict[str, str], ...]:
    python = {"implementation_name": "cpython", "platform_python_implementation": "CPython"}
    return tuple(
        {**machine, **python, "python_version": f"3.{minor}", **_of_release(f"3.{minor}.0")}
        for minor, machine in product(minors, machines)
    )


def _of_release(release: str) -> dict[str, str]:
    return {"python_full_version": release, "implementation_version": release}


_PLACES = {
    "x-1-cp312-cp312-manylinux_2_28_x86_64.whl": _with_python([12], _ON_LINUX[:1]),
    "x-1-cp312-cp312-musllinux_1_2_aarch64-gfx942.whl": _with_python([12], _ON_LINUX[1:2]),
    "x-1-cp311-abi3-win_amd64.whl": _with_python(range(11, 16), [_WINDOWS]),
    "x-1-py310-none-macosx_11_0_universal2.whl": _with_python(range(10, 16), _ON_MACOS),
    "x-1-py3-none-win_amd64.whl": _with_python(range(8, 16), [_WINDOWS]),
    "x-1-cp312-none-any.whl": _with_python([12], _ALL),
    "x-1.tar.gz": _with_python(range(8, 16), _ALL),
}
"""By the name of a file, the environments that its markers are judged for."""


def compare_markers(
    requirement: Requirement, text: str, applies: Callable[[Requirement, Collection[str], str], bool]
) -> None:
    """Require that a requirement applies with each file and extra where it does in one of the file's environments."""
    marker, tree = requirement.marker, read_marker(text)
    if marker is None:
        return
    for file, extra in product(_PLACES, ("", "x")):
        own = applies(requirement, (extra,), file)
        environments = [{**place, "extra": extra} for place in _PLACES[file]]
        with suppress(UndefinedComparison, UndefinedEnvironmentName, ValueError):
            theirs = _evaluate(marker, environments)
            require(own == theirs, f"{marker} of {file} with {extra!r}: {own}, packaging has {theirs}")
        answers = [judge_marker(tree, one) for one in environments] if tree else [None]
        if None not in answers:
            require(own == any(answers), f"{marker} of {file} with {extra!r}: {own}, by hand {any(answers)}")
    marker_holds.cache_clear()  # it keeps every marker, and a run has millions


def _evaluate(marker: Marker, environments: Iterable[dict[str, str]]) -> bool:
    return any(marker.evaluate(dict(one)) for one in environments)
