"""Implements a cluster with Dask. Only this module imports Dask.

Futures are released as soon as their jobs are done. Otherwise, if a worker is lost, Dask would repeat finished jobs
whose futures are still referenced.
"""

from __future__ import annotations

import asyncio
import logging
import platform
import uuid
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from dask import config
from distributed import Client, KilledWorker, Security
from distributed.comm.addressing import get_address_host_port
from distributed.comm.core import CommClosedError

from rocwheel.build.cluster.workers import EXPECTED, Answer, Job, read_address
from rocwheel.core.errors import InputError, WorkError
from rocwheel.core.workers import raise_all

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_TIMEOUT = 10
"""The time limit for the scheduler's first response, in seconds."""
_RECOVERY_TIMEOUT = 60
"""The time limit for lost workers to come back, in seconds. A nanny restarts them."""
_RETRIES = 2
"""The number of times that a failed job is retried."""
_JOBS_PER_THREAD = 3
_LAST_PORT = 65535
_CHATTY = ("distributed", "tornado", "asyncio")
_BEAT = 5

# Most of Dask has no annotations.
_open_client: Any = Client
_read_security: Any = Security


@contextmanager
def opened(scheduler: str) -> Iterator[DaskCluster]:
    """Yield the cluster of a scheduler. ``scheduler`` is the address, or the scheduler file that contains the address.

    Raises `InputError` if the cluster can't be reached, runs a different Python version, or has no workers.
    """
    address = read_address(scheduler)
    try:
        _, port = get_address_host_port(address)
    except (ValueError, TypeError, KeyError, ImportError) as error:
        raise InputError(scheduler, f"can't be reached ({_reason(error)})", expected=EXPECTED) from error
    if not 0 < port <= _LAST_PORT:
        found = f"can't be reached (port {port} is not valid)"
        raise InputError(scheduler, found, expected=f"a port from 1 to {_LAST_PORT}")
    if address.startswith("tls://") and not _has_certificates():
        found = "can't be reached (Dask has no certificates for TLS)"
        remedy = "Set distributed.comm.tls.client.cert, .key, and ca-file in Dask's configuration."
        raise InputError(scheduler, found, remedy=remedy)
    with _quiet():
        try:
            client = _open_client(address, timeout=_TIMEOUT, set_as_default=False, name="rocwheel")
        except (OSError, ValueError, TypeError, KeyError, ImportError) as e:
            raise InputError(scheduler, f"can't be reached ({_reason(e)})", expected=EXPECTED) from e
        cluster = DaskCluster(client)
        try:
            cluster.check_pythons()
            yield cluster
        finally:
            cluster.close()


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence Dask's log, such as the traceback for each lost connection. Errors tell users what they need to know."""
    logger_names = [None, *(name for name in logging.root.manager.loggerDict if _is_chatty(name))]
    handlers = {handler for name in logger_names for handler in logging.getLogger(name).handlers}
    for handler in handlers:
        handler.addFilter(_is_of_others)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(_is_of_others)


def _is_chatty(logger: str) -> bool:
    return logger.partition(".")[0] in _CHATTY


def _is_of_others(record: logging.LogRecord) -> bool:
    return not _is_chatty(record.name)


def _has_certificates() -> bool:
    if config.get("distributed.client.security-loader", None):
        return True
    try:
        return _read_security().get_connection_args("client")["ssl_context"] is not None
    except (OSError, ValueError, TypeError):
        return True  # the client reports any problem with the certificates


def _reason(error: BaseException) -> str:
    return " ".join((str(error) or type(error).__name__).split())


class DaskCluster:
    """Implements `rocwheel.build.cluster.workers.Cluster`."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._done: SimpleQueue[Any] = SimpleQueue()
        self._jobs: dict[Any, Job] = {}
        self.capacity = 1
        self.address = str(client.scheduler.address)

    @property
    def under_way(self) -> int:
        """The number of submitted jobs whose answers have not been collected."""
        return len(self._jobs)

    def check_pythons(self) -> None:
        """Raise `InputError` if a worker runs a different Python version, because Dask can't call functions on it.

        Reports one error for each such worker, or a single error if there are no workers.
        """
        if not self._count_threads():
            remedy = "Start workers, for example with 'dask worker ADDRESS'."
            raise InputError(self.address, "has no workers", remedy=remedy)
        here = platform.python_version_tuple()[:2]
        versions = self._client.get_versions()["workers"]
        pythons = {worker: facts["host"]["python"] for worker, facts in versions.items() if facts}
        problems = [
            InputError(worker, f"runs Python {there}", expected=f"Python {'.'.join(here)}")
            for worker, there in sorted(pythons.items())
            if tuple(there.split(".")[:2]) != here
        ]
        raise_all(self.address, problems)

    def ask(self, function: Callable[..., Any], *arguments: object) -> dict[str, Any]:
        """Call a function on every worker. Return each worker's result or exception, except for lost workers."""
        try:
            returned: dict[str, Any] = self._client.run(function, *arguments, on_error="return")
        except OSError as e:
            raise self._lost() from e
        # Workers that were lost in the meantime don't matter, because each job also compares versions.
        answers = {worker: answer for worker, answer in returned.items() if not isinstance(answer, CommClosedError)}
        if not answers:
            raise WorkError(self.address, "has no workers left")
        return answers

    def submit(self, job: Job) -> None:
        """Submit a job to any worker."""
        key = f"rocwheel-{uuid.uuid4().hex}"
        future = self._client.submit(job.function, *job.arguments, key=key, pure=False, retries=_RETRIES)
        self._jobs[future] = job
        future.add_done_callback(self._done.put)

    def take(self) -> Answer:
        """Wait for the next finished job, and return its answer."""
        while (answer := self._answer(future := self._next())) is None:
            future.add_done_callback(self._done.put)
        del self._jobs[future]
        future.release()
        return answer

    def _answer(self, future: Any) -> Answer | None:
        """Return the answer of a finished job, or `None` if the worker was lost and the job runs again."""
        job = self._jobs[future]
        try:
            if future.status == "finished":
                return Answer(job, future.result(timeout=_RECOVERY_TIMEOUT))
            error = future.exception(timeout=_RECOVERY_TIMEOUT) if future.status == "error" else None
        except (TimeoutError, asyncio.TimeoutError, CommClosedError):
            return None  # if the scheduler is lost, Dask cancels the job next
        except Exception as e:
            error = e
        if isinstance(error, KilledWorker):
            return Answer(job, error=error, has_lost_workers=True)
        if future.status == "cancelled":
            raise self._lost() from error
        return Answer(job, error=error) if error else None

    def _next(self) -> Any:
        waited = 0
        while waited < _RECOVERY_TIMEOUT:
            with suppress(Empty):
                return self._done.get(timeout=_BEAT)
            waited = 0 if self._count_threads() else waited + _BEAT
        raise WorkError(
            self.address, "has had no workers for a minute", remedy="Start workers, then run the command again."
        )

    def _count_threads(self) -> int:
        """Return the scheduler's number of worker threads, and update the number of jobs to keep in progress."""
        try:
            threads: int = sum(self._client.nthreads().values())
        except Exception as e:
            raise self._lost() from e
        self.capacity = max(threads, 1) * _JOBS_PER_THREAD
        return threads

    def _lost(self) -> WorkError:
        return WorkError(
            self.address,
            "has stopped or has lost the jobs",
            remedy="Check the scheduler's log, then run the command again.",
        )

    def close(self) -> None:
        """Cancel pending jobs, and leave the cluster."""
        try:
            if self._jobs and self._client.status == "running":
                self._client.cancel(list(self._jobs), force=True)
        finally:
            self._jobs.clear()
            self._client.close(timeout=_TIMEOUT)
