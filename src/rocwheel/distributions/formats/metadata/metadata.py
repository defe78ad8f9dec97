"""Core metadata (version 2.4, :pep:`639`) and the small files of ``.dist-info``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from packaging.metadata import Metadata, RawMetadata, RFC822Message

import rocwheel
from rocwheel.distributions.formats.platforms.tags import expand_tags

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "CoreMetadata",
    "metadata_files",
    "render_entry_point_groups",
    "render_metadata",
    "render_wheel_file",
]


class CoreMetadata(msgspec.Struct, frozen=True):
    """The fields of METADATA and PKG-INFO that rocwheel writes.

    ``requires`` holds requirement strings with their markers, ``extras`` the names that those markers use,
    ``dynamic`` the fields that an sdist leaves to its build, such as ``requires-dist``.
    """

    name: str
    version: str
    summary: str = ""
    requires_python: str = ">=3.9"
    license_expression: str | None = None
    license_files: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()
    dynamic: tuple[str, ...] = ()
    project_urls: dict[str, str] = {}
    keywords: tuple[str, ...] = ()
    description: str = ""
    license: str = ""
    """What older tools wrote of the license; not beside an expression."""


def metadata_files(
    metadata: CoreMetadata,
    tag: str,
    *,
    is_purelib: bool,
    entry_points: Mapping[str, Mapping[str, str]],
    others: Mapping[str, bytes] | None = None,
) -> dict[str, bytes]:
    """Return the files of a wheel's ``.dist-info`` by their names in it, in the order in which they are written.

    ``tag`` is the whole compatibility tag of the file name; WHEEL lists each of the tags that it stands for.

    These are METADATA, WHEEL, the ``others``, and ``entry_points.txt`` when there are any entry points; RECORD is not
    among them. Raises as `render_metadata` does.
    """
    generator = f"rocwheel {rocwheel.__version__}"
    files = {
        "METADATA": render_metadata(metadata),
        "WHEEL": render_wheel_file(generator, expand_tags(*tag.split("-")), is_purelib=is_purelib),
        **(others or {}),
    }
    if entry_points:
        files["entry_points.txt"] = render_entry_point_groups(entry_points)
    return files


def render_metadata(metadata: CoreMetadata) -> bytes:
    """Return the text of METADATA or PKG-INFO, checked field by field by ``packaging``.

    Raises ``packaging.metadata.InvalidMetadata`` (in a group) on a field that breaks the standard.
    """
    message = RFC822Message()
    for name, value in Metadata.from_raw(_raw_metadata(metadata)).as_rfc822().items():
        # uv reads the values of Dynamic case by case, too.
        message[_header_case(name)] = _header_case(value) if name == "dynamic" else value
    message.set_payload(metadata.description)
    return bytes(message)


def _raw_metadata(metadata: CoreMetadata) -> RawMetadata:
    """Return the fields as ``packaging`` has them, without those that are empty."""
    raw: RawMetadata = {"metadata_version": "2.4", "name": metadata.name, "version": metadata.version}
    if metadata.summary:
        raw["summary"] = metadata.summary
    if metadata.keywords:
        raw["keywords"] = list(metadata.keywords)
    if metadata.requires_python:
        raw["requires_python"] = metadata.requires_python
    if metadata.license and not metadata.license_expression:
        raw["license"] = metadata.license
    if metadata.license_expression:
        raw["license_expression"] = metadata.license_expression
    raw["license_files"] = list(metadata.license_files)
    raw["requires_dist"] = list(metadata.requires)
    raw["provides_extra"] = list(metadata.extras)
    raw["dynamic"] = list(metadata.dynamic)
    raw["project_urls"] = dict(metadata.project_urls)
    if metadata.description:
        raw["description"] = metadata.description
        raw["description_content_type"] = "text/markdown"
    return raw


def _header_case(name: str) -> str:
    """Spell a header as the specification does; ``packaging`` writes all of them in lower case."""
    return name.title().replace("-Url", "-URL")


def render_wheel_file(generator: str, tags: tuple[str, ...], *, is_purelib: bool) -> bytes:
    """Return the text of the WHEEL file (wheel format 1.0)."""
    purelib = "true" if is_purelib else "false"
    lines = ["Wheel-Version: 1.0", f"Generator: {generator}", f"Root-Is-Purelib: {purelib}"]
    lines += [f"Tag: {tag}" for tag in tags]
    return "\n".join([*lines, ""]).encode()


def render_entry_point_groups(groups: Mapping[str, Mapping[str, str]]) -> bytes:
    """Return the text of ``entry_points.txt``: groups and their names sorted, with a blank line between groups."""
    sections = (
        "\n".join([f"[{group}]", *(f"{name} = {target}" for name, target in sorted(names.items())), ""])
        for group, names in sorted(groups.items())
    )
    return "\n".join(sections).encode()
