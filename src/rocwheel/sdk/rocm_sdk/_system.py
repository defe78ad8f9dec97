"""All that GPU detection reads of a machine, in one place, so that tests can show it another one."""

from __future__ import annotations

import os
import sys
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["System"]


class System:
    """The file system below ``root``, the environment variables and the platform of a machine."""

    def __init__(
        self,
        root: Path = Path("/"),
        environ: Mapping[str, str] | None = None,
        platform: str = sys.platform,
    ) -> None:
        self._root = root
        self._environ = os.environ if environ is None else environ
        self.platform = platform

    def variable(self, name: str) -> str:
        """Return an environment variable without surrounding blanks, empty when it isn't set."""
        return self._environ.get(name, "").strip()

    def read_text(self, path: str) -> str | None:
        """Return the text of a file, None when it can't be read."""
        try:
            return self._locate(path).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None

    def list_names(self, folder: str) -> list[str]:
        """Return the names in a folder, none when it can't be listed."""
        try:
            return sorted(entry.name for entry in self._locate(folder).iterdir())
        except OSError:
            return []

    def may_use(self, path: str) -> bool:
        """Tell whether a device file may be read and written."""
        return os.access(self._locate(path), os.R_OK | os.W_OK)

    def _locate(self, path: str) -> Path:
        return self._root / path.lstrip("/")
