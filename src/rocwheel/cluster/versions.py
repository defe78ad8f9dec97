"""Whether workers make the same bytes as this process: versions, and what their codecs make of a sample."""

from __future__ import annotations

import platform
import sys
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

import rocwheel
from rocwheel import __version__
from rocwheel.core.compression import codec_samples, codec_tools, library_version
from rocwheel.core.errors import WorkError
from rocwheel.core.python import source_hash
from rocwheel.core.workers import raise_all

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = ["VersionError", "WorkerFacts", "are_all_here", "check_workers", "require_like", "worker_facts"]

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_REMEDY = "Give all workers the same environment as this machine."


class WorkerFacts(msgspec.Struct, frozen=True):
    """The facts of a process that decide which bytes it makes, and the machine that it runs on."""

    versions: dict[str, str]
    """By the name of the library, with a hash of the code of rocwheel: two checkouts may have the same version."""
    samples: dict[str, str]
    """By the name of a codec, the hash of what it makes of a sample: some choose their ways by the processor."""
    machine: str
    """Tells machines apart while they run."""


class VersionError(WorkError):
    """A worker that would not make the same bytes."""


@lru_cache(maxsize=1)
def worker_facts() -> WorkerFacts:
    """Return the facts of this process."""
    versions = {"rocwheel": __version__, "Python": ".".join(platform.python_version_tuple()[:2])}
    versions["code of rocwheel"] = source_hash(Path(rocwheel.__file__).parent).hex()[:16]
    versions |= codec_tools() | {"msgspec": library_version("msgspec")}
    return WorkerFacts(versions, codec_samples(), _machine())


def _machine() -> str:
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return platform.node()


def check_workers(answers: Mapping[str, Any]) -> None:
    """Compare what workers answered to `worker_facts` with this process.

    Raises `VersionError` for a worker that differs, `ProblemsError` for several.
    """
    here = worker_facts()
    problems = [problem for worker, answer in sorted(answers.items()) for problem in _problems(worker, answer, here)]
    raise_all("workers", problems)


def _problems(worker: str, answer: object, here: WorkerFacts, when: str = "") -> Iterator[VersionError]:
    if not isinstance(answer, WorkerFacts):
        lacks = isinstance(answer, ModuleNotFoundError)
        found = f"lacks the module {answer.name}" if isinstance(answer, ModuleNotFoundError) else f"answers {answer!r}"
        expected = f"rocwheel {__version__} for Python {sys.version_info[0]}.{sys.version_info[1]}"
        yield VersionError(worker, found, expected=expected, remedy=_REMEDY if lacks else "")
        return
    if others := [*_differences(answer.versions, here.versions)]:
        found = ", ".join(f"{name} {there}" for name, there, _ in others)
        expected = ", ".join(f"{name} {version}" for name, _, version in others)
        yield VersionError(worker, f"{when}has {found}", expected=expected, remedy=_REMEDY)
    elif codecs := [name for name, _, _ in _differences(answer.samples, here.samples)]:
        found = f"{when}compresses a sample into other bytes than the machine that builds: {', '.join(codecs)}"
        yield VersionError(worker, found, remedy=_REMEDY)


def _differences(there: Mapping[str, str], here: Mapping[str, str]) -> Iterable[tuple[str, str, str]]:
    return ((name, there.get(name, "none"), here[name]) for name in here if there.get(name) != here[name])


def require_like(facts: WorkerFacts) -> None:
    """Raise `VersionError` where this process would make other bytes, as a worker may that joins during the work."""
    if problems := [
        *_problems(f"a worker on {platform.node()}", worker_facts(), facts, "joined during the work, and ")
    ]:
        raise problems[0]


def are_all_here(answers: Mapping[str, WorkerFacts]) -> bool:
    """Return whether all workers run on this machine, where they can't be faster than its own threads."""
    return all(answer.machine == worker_facts().machine for answer in answers.values())
