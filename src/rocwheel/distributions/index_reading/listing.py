"""What pages of a package index list, as they have it: nothing of it is checked."""

from __future__ import annotations

import msgspec

__all__ = ["RawFile", "RawPage", "UnreadablePageError"]


class UnreadablePageError(ValueError):
    """A page that is none of a package index, and why."""


class RawFile(msgspec.Struct, frozen=True):
    """A file as a page of a project lists it."""

    url: str
    """As the page has it, relative to the page's own; what follows a ``#`` is in `hashes`."""
    filename: str = ""
    """As the page has it; empty in HTML, where the address alone says it."""
    hashes: dict[str, str] = {}
    """Digests in hexadecimal by the name of the algorithm."""
    size: int | None = None
    requires_python: str | None = None
    metadata_hashes: dict[str, str] | None = None
    """Of the core metadata that stands beside it; empty where it does without a hash, none where it doesn't."""
    yanked: str | None = None
    """The reason, empty for none; none for what is not yanked."""
    upload_time: str | None = None


class RawPage(msgspec.Struct, frozen=True):
    """A page of an index: that of a project, or the one of all projects."""

    files: tuple[RawFile, ...] = ()
    projects: tuple[str, ...] = ()
    base: str = ""
    """What addresses are relative to, itself relative to the page; empty for the page."""
