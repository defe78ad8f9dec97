"""Windows in a test: ``rocm_sdk`` as on Windows, with calls of it that write down what they were asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import msgspec

from tests.support.pe_files import pe_file

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["CORE", "LIBRARIES", "Recorder", "WindowsSite", "library"]

CORE, LIBRARIES = "_rocm_sdk_core", "_rocm_sdk_libraries"


class Recorder:
    """The calls of Windows: everything loads but what is in ``broken``, and is written down."""

    def __init__(self, system: Path) -> None:
        self.asked: list[tuple[str, str]] = []
        self.broken: dict[str, OSError] = {}
        self.loaded: dict[str, str] = {}
        self.refusals = 0
        self._system = system

    def add_dll_directory(self, folder: str) -> object:
        """Add a folder."""
        self.asked.append(("add", folder))
        return object()

    def load(self, path: str) -> object:
        """Load a DLL, or raise what it is broken by."""
        self.asked.append(("load", path))
        if Path(path).name in self.broken:
            raise self.broken[Path(path).name]
        return path

    def loaded_path(self, name: str) -> str:
        """Return what was loaded before."""
        return self.loaded.get(name, "")

    def system_folder(self) -> str:
        """Return the folder of the system."""
        return str(self._system)

    def program_folder(self) -> str:
        """Return the folder of Python."""
        return str(self._system / "Python")

    def try_lock(self, descriptor: int, position: int) -> bool:  # noqa: ARG002
        """Lock a byte, once it was refused often enough."""
        self.refusals -= 1
        self.asked.append(("lock", "refused" if self.refusals >= 0 else f"byte {position}"))
        return self.refusals < 0

    def unlock(self, descriptor: int, position: int) -> None:  # noqa: ARG002
        """Give it back."""
        self.asked.append(("unlock", f"byte {position}"))

    def silence_faults(self) -> None:
        """Write down that no window is to be opened."""
        self.asked.append(("silence", ""))

    def pause(self, seconds: float) -> None:
        """Write down that somebody would have waited."""
        self.asked.append(("pause", f"{seconds:g}"))


class WindowsSite(msgspec.Struct, frozen=True):
    """A folder with packages for Windows, its ``rocm_sdk``, and the calls that this makes."""

    path: Path
    load: Callable[[str], ModuleType]
    calls: Any

    def write(self, path: str, data: bytes = b"") -> Path:
        """Write a file of a package."""
        place = self.path / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
        return place

    def write_dlls(self, **needs: Iterable[str]) -> None:
        """Write DLLs into the folders of core (``amd...``, ``hiprtc...``) and the libraries."""
        for stem, names in needs.items():
            package = CORE if stem.startswith(("amd", "hiprtc")) else LIBRARIES
            self.write(f"{package}/bin/{stem}.dll", pe_file(f"{stem}.dll", *names))
            self.write(f"{package}/__init__.py")

    def names(self, kind: str) -> list[str]:
        """Return what was asked of one kind, as paths below the folder."""
        return [Path(text).relative_to(self.path).as_posix() for what, text in self.calls.asked if what == kind]


def library(package: str, file: str, *needs: str, optional: bool = False) -> dict[str, Any]:
    """Return the row of a public library as packages for Windows have it."""
    return {"package": package, "directory": "bin", "pattern": file, "optional": optional, "needs": list(needs)}
