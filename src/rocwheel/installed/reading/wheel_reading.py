"""How the members of wheels are read: by whom, how deep, and whether they stay unpacked for a later step."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import msgspec

from rocwheel.core.reading import FileRange
from rocwheel.core.workers import Readers
from rocwheel.wheels.content import Digest
from rocwheel.wheels.zip_reader import ZipMember, digest_member, open_unpacked

__all__ = ["WheelReading"]


class WheelReading(msgspec.Struct, frozen=True, kw_only=True):
    """How the members of wheels are read; by default all of them, by threads of this process."""

    readers: Readers | None = None
    """Who reads them instead, such as the workers of a cluster."""
    unpack: Callable[[ZipMember], AbstractContextManager[tuple[FileRange, Digest]]] = open_unpacked
    digest: Callable[[ZipMember], Digest] = digest_member
    """These two may keep what they find, as those of `UnpackedMembers` do. ``readers`` don't use them."""
    headers_only: bool = False
    """Whether device code is not decompressed. ``readers`` always read all of it."""
