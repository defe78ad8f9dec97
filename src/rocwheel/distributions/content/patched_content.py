"""The bytes of a file with a patch, applied while they are read."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from rocwheel.foundation.files import FileRange
from rocwheel.foundation.patch import FilePatch

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["PatchedContent"]


class PatchedContent(msgspec.Struct, frozen=True):
    """A `rocwheel.distributions.content.content.Content`: a file with a patch applied on the fly."""

    source: FileRange
    patch: FilePatch

    @property
    def size(self) -> int:
        """Number of bytes."""
        return self.patch.size

    @contextmanager
    def open(self, start: int, stop: int) -> Iterator[list[memoryview]]:
        """Map the file and give the patched range."""
        with self.source.map(touched=stop - start) as data:
            yield self.patch.apply(data, start, stop)
