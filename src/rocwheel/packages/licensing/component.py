"""The components of an SDK: what is built, and licensed, by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from rocwheel.artifacts.catalog import Entry

__all__ = ["Component", "component_of", "is_overlay"]

_BUILD_FOLDERS = ("stage", "build")
"""How the paths of stage folders end: with the folder that a project was installed into, in that it was built in."""


_OVERLAY = "aux-overlay"


class Component(msgspec.Struct, frozen=True, order=True):
    """A project of an artifact."""

    artifact: str
    """The artifact's name, such as ``blas``."""
    project: str
    """Its folder in the sources of the SDK, such as ``math-libs/BLAS/rocBLAS``; empty where that is not known."""


def component_of(entry: Entry) -> Component:
    """Return the component that a file belongs to, by the stage folder that it stands in."""
    parts = entry.stage.split("/")
    for folder in _BUILD_FOLDERS:
        if parts[-1] == folder:
            parts.pop()
        if not parts:
            return Component(entry.artifact.name, "")
    return Component(entry.artifact.name, "/".join(parts))


def is_overlay(entry: Entry) -> bool:
    """Return whether the build of the SDK itself added a file: facts about the build and links, of no project."""
    return component_of(entry).project.rpartition("/")[2] == _OVERLAY
