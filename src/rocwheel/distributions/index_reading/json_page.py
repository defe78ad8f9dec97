"""Pages of a package index in JSON (:pep:`691`, :pep:`700`, :pep:`714`)."""

from __future__ import annotations

from typing import Any

import msgspec

from rocwheel.core.decoding import decode_json
from rocwheel.core.messages import quoted, shortened
from rocwheel.distributions.formats.yanked import yanked_reason
from rocwheel.distributions.index_reading.listing import RawFile, RawPage, UnreadablePageError

__all__ = ["check_version", "read_json_page"]

_MAJOR = "1"


class _Meta(msgspec.Struct, rename="kebab"):
    api_version: str = "1.0"


class _File(msgspec.Struct, rename="kebab"):
    filename: str
    url: str
    hashes: dict[str, str] = {}
    size: int | None = None
    requires_python: str | None = None
    core_metadata: bool | dict[str, str] | None = None
    dist_info_metadata: bool | dict[str, str] | None = None
    yanked: bool | str | None = None
    upload_time: str | None = None


class _Project(msgspec.Struct):
    name: str


class _Page(msgspec.Struct):
    meta: _Meta = msgspec.field(default_factory=_Meta)
    files: tuple[_File, ...] = ()
    projects: tuple[_Project, ...] = ()


def read_json_page(data: bytes) -> RawPage:
    """Return what a page lists; raise `UnreadablePageError` for other text, and for a version of the format to come."""
    try:
        page = decode_json(data, _Page)
    except msgspec.DecodeError as e:
        msg = f"is not a page of a package index ({shortened(str(e))})"
        raise UnreadablePageError(msg) from e
    check_version(page.meta.api_version)
    return RawPage(tuple(map(_raw_file, page.files)), tuple(project.name for project in page.projects))


def check_version(version: str) -> None:
    """Raise `UnreadablePageError` for a major version that is not known (:pep:`629`)."""
    if version.partition(".")[0] != _MAJOR:
        msg = f"has version {quoted(version)} of the format of indexes, of which this program reads version {_MAJOR}"
        raise UnreadablePageError(msg)


def _raw_file(found: _File) -> RawFile:
    promised = found.core_metadata if found.core_metadata is not None else found.dist_info_metadata
    return RawFile(
        url=found.url,
        filename=found.filename,
        hashes=found.hashes,
        size=found.size,
        requires_python=found.requires_python,
        metadata_hashes=_metadata_hashes(promised),
        yanked=yanked_reason(found.yanked),
        upload_time=found.upload_time,
    )


def _metadata_hashes(promised: Any) -> dict[str, str] | None:
    if isinstance(promised, dict):
        return promised
    return {} if promised else None
