"""Where distributions and the pages of their index are on a store."""

from __future__ import annotations

import posixpath

import msgspec

from rocwheel.foundation.errors import InputError

__all__ = ["Layout"]


class Layout(msgspec.Struct, frozen=True):
    """Folders of a store, relative to its URL; the same as `rocwheel index packages/dist` makes below ``packages``."""

    index: str = "simple"
    """The index; empty for the store itself."""
    files: str = "dist"
    """The distributions, with the core metadata of each beside it."""

    def __post_init__(self) -> None:
        for option, folder in (("--output", self.index), ("--files", self.files)):
            if folder.startswith("/") or posixpath.normpath(f"/{folder}") != f"/{folder}":
                expected = "a folder below the store, such as simple or rocm/simple"
                raise InputError(option, f"is {folder!r}", expected=expected)

    def file(self, name: str) -> str:
        """Return the name of a distribution on the store."""
        return posixpath.join(self.files, name)

    def page(self, project: str, form: str) -> str:
        """Return the name of a page; an empty project is that of all projects."""
        return posixpath.join(self.index, project, f"index.{form}")

    def beside(self, project: str, name: str) -> str:
        """Return the name of a file beside the pages of a project."""
        return posixpath.join(self.index, project, name)

    @property
    def base(self) -> str:
        """What leads from a project's page to the distributions."""
        return f"{posixpath.relpath(f'/{self.files}', f'/{self.index}/project')}/"
