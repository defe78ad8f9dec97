"""Machines with GPUs that exist only as files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rocwheel.sdk.rocm_sdk._system import System

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["NODES", "FakeMachine", "copied_machine", "make_machine"]

NODES = "/sys/class/kfd/kfd/topology/nodes"


class FakeMachine(System):
    """A machine of files below a folder; ``refused`` maps paths to what the kernel answers for them."""

    def __init__(self, root: Path, environ: dict[str, str], refused: dict[str, str]) -> None:
        super().__init__(root, environ, "linux")
        self.refused = refused
        self.session_groups: set[int] = set()
        self.member_groups: set[int] = set()
        self.owners: dict[str, int] = {}

    def read_text(self, path: str) -> str | None:  # noqa: D102 (as in `System`)
        return None if path in self.refused else super().read_text(path)

    def refusal(self, path: str) -> str:  # noqa: D102
        return self.refused.get(path) or super().refusal(path)

    def listing_refusal(self, folder: str) -> str:  # noqa: D102
        return self.refused.get(folder) or super().listing_refusal(folder)

    def device_refusal(self, path: str) -> str:  # noqa: D102
        return self.refused.get(path) or super().device_refusal(path)

    def owner_group(self, path: str) -> tuple[str, int]:  # noqa: D102
        number = self.owners.get(path, 109)
        return {0: "root", 109: "render"}.get(number, str(number)), number

    def has_group(self, number: int) -> bool:  # noqa: D102
        return number in self.session_groups

    def is_member(self, number: int) -> bool:  # noqa: D102
        return number in self.member_groups

    def user(self) -> str:  # noqa: D102
        return "ada"


@pytest.fixture
def make_machine(tmp_path: Path) -> Callable[..., FakeMachine]:
    """Return a function that makes a machine of KFD nodes (texts of their properties), other files, and variables."""

    def make(
        *nodes: str,
        environ: dict[str, str] | None = None,
        files: dict[str, str] | None = None,
        refused: dict[str, str] | None = None,
    ) -> FakeMachine:
        topology = {f"{NODES}/{number}/properties": text for number, text in enumerate(nodes)}
        for name, text in {**topology, **(files or {})}.items():
            path = tmp_path / name.lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return FakeMachine(tmp_path, environ or {}, refused or {})

    return make


def copied_machine(root: Path, *nodes: str) -> Path:
    """Write the properties of each node of a machine below ``root``, as copied from one, and return ``root``."""
    for number, text in enumerate(nodes):
        properties = root / f"{NODES.lstrip('/')}/{number}/properties"
        properties.parent.mkdir(parents=True)
        properties.write_text(text)
    return root
