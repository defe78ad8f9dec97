"""layout.toml: what the sample SDK is made of."""

from __future__ import annotations

from pathlib import Path

import msgspec

__all__ = ["CmakePackage", "Kernels", "Layout", "Library", "Program", "Single", "read_layout"]


class Library(msgspec.Struct):
    """A shared library, with its links from other names."""

    artifact: str
    stage: str
    name: str
    version: str
    soname: str | None = None
    source: str = ""
    folder: str = "lib"
    needs: list[str] = []
    runpath: str = "$ORIGIN"
    rpath: bool = False
    linker: str = "lld"
    symbol_version: str = ""

    @property
    def path(self) -> str:
        """Where the file itself stands."""
        return f"{self.folder}/lib{self.name}.so" + (f".{self.version}" if self.version else "")

    @property
    def short_name(self) -> str:
        """The SONAME; empty when it has none."""
        return f"lib{self.name}.so.{self.version.partition('.')[0]}" if self.soname is None else self.soname


class Program(msgspec.Struct):
    """An executable."""

    artifact: str
    stage: str
    path: str
    source: str = ""
    needs: list[str] = []
    runpath: str = "$ORIGIN/../lib"
    static: bool = False


class CmakePackage(msgspec.Struct):
    """A CMake package that imports one library."""

    artifact: str
    stage: str
    package: str
    library: str
    target: str
    aliases: list[str] = []
    dependencies: list[str] = []


class Kernels(msgspec.Struct):
    """Device code in files of its own, for each target."""

    artifact: str
    stage: str
    source: str
    code_object: str = ""
    bundle: str = ""
    lazy_index: str = ""
    kpack: str = ""
    kpack_member: str = ""


class Single(msgspec.Struct):
    """A file that is built in a way of its own."""

    artifact: str
    stage: str
    path: str = ""
    source: str = ""
    library: str = ""


class Layout(msgspec.Struct):
    """layout.toml."""

    rocm_version: str
    targets: list[str]
    fat_targets: list[str]
    library: list[Library]
    program: list[Program]
    links: dict[str, dict[str, str]]
    licenses: dict[str, dict[str, str]]
    """The folders of license texts, by project, and by the artifact that has the text."""
    cmake: list[CmakePackage]
    kernels: list[Kernels]
    static_library: list[Single]
    debug: list[Single]


def read_layout() -> Layout:
    """Read the layout that stands beside this file."""
    return msgspec.toml.decode(Path(__file__).with_name("layout.toml").read_bytes(), type=Layout)
