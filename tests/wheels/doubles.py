"""Contents, sinks and executors that stand in for real ones."""

from __future__ import annotations

from concurrent.futures import Executor, Future
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rocwheel.wheels.content import Content, Digest

__all__ = ["LazyExecutor", "ListSink", "ZeroContent", "read_all"]


def read_all(content: Content) -> bytes:
    with content.open(0, content.size) as buffers:
        return b"".join(buffers)


class ZeroContent:
    """Any number of zeros, which take no memory."""

    def __init__(self, size: int) -> None:
        self.size = size

    @contextmanager
    def open(self, start: int, stop: int) -> Iterator[list[memoryview]]:
        """Yield the range."""
        zeros = memoryview(bytes(1 << 20))
        whole, rest = divmod(stop - start, len(zeros))
        yield [zeros] * whole + [zeros[:rest]]


class ListSink:
    """A sink that keeps what it receives."""

    def __init__(self) -> None:
        self.members: list[tuple[str, int, int, int, bytes, Digest]] = []
        self._head: tuple[str, int, int, int] = ("", 0, 0, 0)
        self._data = bytearray()

    def begin(self, name: str, mode: int, method: int, size: int) -> None:
        """Start a member."""
        self._head, self._data = (name, mode, method, size), bytearray()

    def write(self, data: bytes | bytearray | memoryview, sha256: bytes = b"") -> None:  # noqa: ARG002 (the sink's)
        """Append packed bytes."""
        self._data += data

    def end(self, digest: Digest) -> None:
        """Keep the member."""
        self.members.append((*self._head, bytes(self._data), digest))


class LazyExecutor(Executor):
    """Runs each task when its result is asked for, and notes what was submitted, run and cancelled, by name."""

    def __init__(self) -> None:
        self.submitted: list[str] = []
        self.run: list[str] = []
        self.cancelled: list[str] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Note the task."""
        self.submitted.append(fn.__name__)
        return _LazyFuture(self, partial(fn, *args, **kwargs), fn.__name__)


class _LazyFuture(Future[Any]):
    def __init__(self, executor: LazyExecutor, task: Callable[[], Any], name: str) -> None:
        super().__init__()
        self._executor, self._task, self._name = executor, task, name

    def result(self, timeout: float | None = None) -> Any:
        self._executor.run.append(self._name)
        try:
            self.set_result(self._task())
        except Exception as e:
            self.set_exception(e)
        return super().result(timeout)

    def cancel(self) -> bool:
        self._executor.cancelled.append(self._name)
        return super().cancel()
