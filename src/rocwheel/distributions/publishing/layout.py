"""Where distributions and the pages of their index are on a store."""

from __future__ import annotations

import posixpath

import msgspec

from rocwheel.core.errors import InputError
from rocwheel.core.names import is_utf8

__all__ = ["Layout"]


class Layout(msgspec.Struct, frozen=True):
    """Folders of a store, relative to its URL; the same as `rocwheel index packages/dist` makes below ``packages``."""

    index: str = "simple"
    """The index; empty for the store itself."""
    files: str = "dist"
    """The distributions, with the core metadata of each beside it; those of a family in a folder of its name."""

    def __post_init__(self) -> None:
        for option, folder in (("--output", self.index), ("--files", self.files)):
            if posixpath.normpath(f"/{folder}") != f"/{folder}" or folder.startswith("/") or not is_utf8(folder):
                expected = "a folder below the store, such as simple or rocm/simple"
                raise InputError(option, f"is {folder!r}", expected=expected)

    def of_family(self, family: str) -> Layout:
        """Return the layout of a family's index, which lies below that of all; of no family, this one."""
        return Layout(posixpath.join(self.index, family).rstrip("/"), self.files)

    def file(self, name: str) -> str:
        """Return the name of a distribution on the store."""
        return posixpath.join(self.files, name)

    def page(self, project: str, form: str) -> str:
        """Return the name of a page; an empty project is that of all projects."""
        return posixpath.join(self.index, project, f"index.{form}")

    def beside(self, project: str, name: str) -> str:
        """Return the name of a file beside the pages of a project, or, of no project, beside the page of all."""
        return posixpath.join(self.index, project, name)

    def base(self, stored: str) -> str:
        """Return what leads from a project's page to the folder of a distribution that the store has by this name."""
        return f"{posixpath.relpath(posixpath.dirname(f'/{stored}'), f'/{self.index}/project')}/"
