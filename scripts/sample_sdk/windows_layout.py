"""windows/layout.toml: what the sample SDK for Windows is made of."""

from __future__ import annotations

from pathlib import Path

import msgspec

from scripts.sample_sdk.layout import CmakePackage, Kernels

__all__ = ["Dll", "Program", "WindowsLayout", "read_windows_layout"]


class Dll(msgspec.Struct):
    """A DLL, with the import library that programs are linked with."""

    artifact: str
    stage: str
    name: str
    sources: list[str] = []
    """Below ``libraries/``, or from ``windows/`` on."""
    folder: str = "bin"
    needs: list[str] = []
    delayed: list[str] = []
    """Those of ``needs`` that are loaded when they are first called."""
    import_library: str | None = None
    """Its path in the artifact of the ``dev`` component; empty for a plugin, which nothing is linked with."""
    version: list[int] = []

    @property
    def file_name(self) -> str:
        """The name that import tables have."""
        return f"{self.name}.dll"

    @property
    def path(self) -> str:
        """Where it stands."""
        return f"{self.folder}/{self.file_name}"

    @property
    def import_path(self) -> str:
        """Where the import library stands; empty for none."""
        return f"lib/{self.name}.lib" if self.import_library is None else self.import_library


class Program(msgspec.Struct):
    """An executable, and the names of its copies in the same folder."""

    artifact: str
    stage: str
    path: str
    source: str
    needs: list[str] = []
    copies: list[str] = []


class WindowsLayout(msgspec.Struct):
    """windows/layout.toml."""

    rocm_version: str
    targets: list[str]
    fat_targets: list[str]
    shared_files: list[str]
    dll: list[Dll]
    program: list[Program]
    licenses: dict[str, dict[str, str]]
    cmake: list[CmakePackage]
    kernels: list[Kernels]


def read_windows_layout() -> WindowsLayout:
    """Read the layout that stands in the folder beside this file."""
    path = Path(__file__).with_name("windows") / "layout.toml"
    return msgspec.toml.decode(path.read_bytes(), type=WindowsLayout)
