"""The workers of a cluster. Workers must produce the same bytes as this process, and they return small answers."""

from __future__ import annotations

import platform
import sys
from collections import deque
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

import rocwheel
from rocwheel import __version__
from rocwheel.core.compression import codec_samples, codec_tools, library_version
from rocwheel.core.decoding import decode_json
from rocwheel.core.errors import InputError, RocwheelError, WorkError, limit_remedy, read_error
from rocwheel.core.hashing import source_hash
from rocwheel.core.messages import first_of
from rocwheel.core.reading import FileStamp
from rocwheel.core.workers import raise_all

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


class Job(msgspec.Struct, frozen=True):
    """A call of a module's function with picklable arguments.

    A job may run twice, even at the same time, if a worker is lost or appears to be lost.
    """

    name: str
    """The name of the job's input, for messages."""
    function: Callable[..., Any]
    arguments: tuple[object, ...]
    tag: Any = None
    """A value that identifies the job for the caller. This value is never sent to workers."""
    parts: tuple[Job, ...] = ()
    """Smaller jobs that together have the same effect; empty if the job can't be split."""


class Answer(msgspec.Struct, frozen=True):
    """The outcome of a job: its value, the error that it raised, or the loss of its workers."""

    job: Job
    value: Any = None
    error: BaseException | None = None
    has_lost_workers: bool = False
    """Whether workers died during the job as many times as the scheduler allows. Another job might be the cause."""


class Cluster(Protocol):
    """Workers on several machines. The cluster discards an answer after the caller collects it."""

    @property
    def address(self) -> str:
        """The location of the scheduler, for messages."""

    @property
    def capacity(self) -> int:
        """The number of jobs that keep all workers busy, including a few jobs in the queue."""

    @property
    def under_way(self) -> int:
        """The number of submitted jobs whose answers have not been collected."""

    def ask(self, function: Callable[..., Any], *arguments: object) -> dict[str, Any]:
        """Call a function on every worker. Return each worker's result or exception, keyed by worker.

        A worker that is lost in the meantime has no entry. Raises `WorkError` if there are no workers.
        """

    def submit(self, job: Job) -> None:
        """Submit a job to any worker."""

    def take(self) -> Answer:
        """Wait for the next finished job, and return its answer.

        Raises `WorkError` if the scheduler is unreachable or all workers are lost.
        """


class PoisonedJobError(WorkError):
    """A job killed every worker that started it."""


def do_jobs(cluster: Cluster, jobs: Iterable[Job], take: Callable[[Job, Any], Iterable[Job]]) -> None:
    """Run all jobs on the workers. ``take`` receives each job with its value, and returns jobs that can start now.

    Requests jobs as workers become free. Raises whatever a job raises, and `PoisonedJobError`. Workers die for many
    reasons, and a scheduler suspects all jobs that were running on a dead worker. So at the end, suspected jobs run
    again in their smallest parts, one at a time. That way, the reported job is really the cause.
    """
    suspects: deque[Job] = deque()
    for job in jobs:
        while cluster.under_way >= cluster.capacity:
            _settle(cluster, cluster.take(), take, suspects)
        cluster.submit(job)
    while cluster.under_way or suspects:
        if not cluster.under_way:
            cluster.submit(suspects.popleft())
            _settle(cluster, cluster.take(), take, None)
        else:
            _settle(cluster, cluster.take(), take, suspects)


def _settle(
    cluster: Cluster, answer: Answer, take: Callable[[Job, Any], Iterable[Job]], suspects: deque[Job] | None
) -> None:
    if answer.has_lost_workers and suspects is None:
        found = f"kills every worker of {cluster.address} that processes it"
        remedy = "Check the workers' logs, and give the workers more memory or exclude the file."
        raise PoisonedJobError(answer.job.name, found, remedy=remedy)
    if answer.has_lost_workers and suspects is not None:
        suspects += answer.job.parts or (answer.job,)
    elif isinstance(answer.error, RocwheelError):
        raise answer.error
    elif answer.error is not None:
        found = f"can't be processed by a worker ({type(answer.error).__name__}: {answer.error})"
        raise WorkError(answer.job.name, found, remedy=limit_remedy(answer.error) or "Check the worker's log.")
    else:
        for job in take(answer.job, answer.value):
            cluster.submit(job)


_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_REMEDY = "Give all workers the same environment as this machine."


class WorkerFacts(msgspec.Struct, frozen=True):
    """The properties of a process that determine its output bytes, and the machine that it runs on."""

    versions: dict[str, str]
    """The version of each library, and a hash of rocwheel's code, because two checkouts can have the same version."""
    samples: dict[str, str]
    """The hash of each codec's output for a sample. Some codecs choose their code path based on the processor."""
    machine: str
    """An identifier of the machine that doesn't change while the machine is running."""


class VersionError(WorkError):
    """A worker would not produce the same bytes."""


@lru_cache(maxsize=1)
def worker_facts() -> WorkerFacts:
    """Return the facts about this process."""
    versions = {"rocwheel": __version__, "Python": ".".join(platform.python_version_tuple()[:2])}
    versions["rocwheel source hash"] = source_hash(Path(rocwheel.__file__).parent).hex()[:16]
    versions |= codec_tools() | {"msgspec": library_version("msgspec")}
    try:
        machine = _BOOT_ID.read_text().strip()
    except OSError:
        machine = platform.node()
    return WorkerFacts(versions, codec_samples(), machine)


def check_workers(answers: Mapping[str, Any]) -> None:
    """Compare the workers' answers from `worker_facts` with the facts about this process.

    Raises `VersionError` for a worker that would not produce the same bytes, or `ProblemsError` for several such
    workers.
    """
    here = worker_facts()
    problems = [problem for worker, answer in sorted(answers.items()) for problem in _problems(worker, answer, here)]
    raise_all("workers", problems)


def _problems(worker: str, answer: object, here: WorkerFacts, when: str = "") -> Iterator[VersionError]:
    if not isinstance(answer, WorkerFacts):
        found, remedy = f"answers {answer!r}", ""
        if isinstance(answer, ModuleNotFoundError):
            found, remedy = f"lacks the module {answer.name}", _REMEDY
        expected = f"rocwheel {__version__} for Python {sys.version_info[0]}.{sys.version_info[1]}"
        yield VersionError(worker, found, expected=expected, remedy=remedy)
        return
    if others := [*_differences(answer.versions, here.versions)]:
        found = ", ".join(f"{name} {there}" for name, there, _ in others)
        expected = ", ".join(f"{name} {version}" for name, _, version in others)
        yield VersionError(worker, f"{when}has {found}", expected=expected, remedy=_REMEDY)
    elif codecs := [name for name, _, _ in _differences(answer.samples, here.samples)]:
        found = (
            f"{when}compresses a sample to different bytes than the machine that started the build: {', '.join(codecs)}"
        )
        yield VersionError(worker, found, remedy=_REMEDY)


def _differences(there: Mapping[str, str], here: Mapping[str, str]) -> Iterable[tuple[str, str, str]]:
    return ((name, there.get(name, "none"), here[name]) for name in here if there.get(name) != here[name])


def require_like(facts: WorkerFacts) -> None:
    """Raise `VersionError` if this process would produce different bytes. Workers may join after the initial check."""
    for problem in _problems(f"a worker on {platform.node()}", worker_facts(), facts, "joined later, and "):
        raise problem


def are_all_here(answers: Mapping[str, WorkerFacts]) -> bool:
    """Return whether all workers run on this machine, where a cluster can't be faster than local threads."""
    return all(answer.machine == worker_facts().machine for answer in answers.values())


class AccessError(WorkError):
    """A worker can't read a required file or can't write to a required folder."""


def check_access(
    cluster: Cluster,
    files: Mapping[str, FileStamp],
    *,
    remedy: str,
    find: Callable[[Sequence[tuple[str, FileStamp]]], list[str]] | None = None,
) -> None:
    """Make every worker check for unusable files with `find_unusable`, or with ``find``.

    Raises `AccessError` for a worker that failed or can't use all files, or `ProblemsError` for several workers.
    """
    shared = [(path, stamp.for_any_machine()) for path, stamp in sorted(files.items())]
    answers = cluster.ask(find or find_unusable, shared)
    problems = []
    for worker, unusable in sorted(answers.items()):
        if not isinstance(unusable, list):
            problems.append(AccessError(worker, f"failed to check the files ({unusable!r})", remedy=remedy))
        elif unusable:
            problems.append(AccessError(worker, f"can't use {first_of(unusable)}", remedy=remedy))
    raise_all(cluster.address, problems)


def find_unusable(files: Sequence[tuple[str, FileStamp]]) -> list[str]:
    """Return the files that this process can't read, with reasons. The stamps of ``files`` are valid on any machine."""
    return [f"{path} ({why})" for path, stamp in files if (why := _why_unusable(Path(path), stamp))]


def _why_unusable(path: Path, stamp: FileStamp) -> str:
    try:
        with path.open("rb"):
            there = FileStamp.at(path).for_any_machine()
    except OSError as e:
        return e.strerror or str(e)
    except RocwheelError as e:
        return str(e)
    return "" if there == stamp else "differs in size or modification time from the file on this machine"


EXPECTED = "the address of a Dask scheduler, such as tcp://HOST:8786, or its scheduler file"


class _SchedulerFile(msgspec.Struct):
    address: str


def read_address(scheduler: str) -> str:
    """Return the address in a scheduler file, or ``scheduler`` itself if it is an address.

    Raises `InputError` for a file that is missing, unreadable, or not a scheduler file. Dask's client would wait
    forever for a missing file, and would search any other file for an address.
    """
    if not scheduler:
        option, found = "--scheduler", "is empty"
        raise InputError(option, found, expected=EXPECTED)
    if "://" in scheduler:
        return scheduler
    try:
        data = Path(scheduler).read_bytes()
    except FileNotFoundError as e:
        if "/" in scheduler or scheduler.endswith(".json"):
            raise InputError(scheduler, "does not exist", expected=EXPECTED) from e
        return scheduler
    except OSError as e:
        raise read_error(scheduler, e) from e
    try:
        return decode_json(data, _SchedulerFile).address
    except msgspec.DecodeError as e:
        expected = "the file that 'dask scheduler --scheduler-file' writes"
        raise InputError(scheduler, f"is not a scheduler file ({e})", expected=expected) from e
