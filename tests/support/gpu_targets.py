"""The tools of others that the tests ask, skipping where they are absent, and wheels and bundles to look at."""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING
from zipfile import ZipFile

import pytest

if TYPE_CHECKING:
    from pathlib import Path

from rocwheel.sdk.rocm_sdk._system import System

NODES = "/sys/class/kfd/kfd/topology/nodes"
Run = Callable[[Sequence[str]], "subprocess.CompletedProcess[str]"]
_KERNEL = "__attribute__((global)) void kernel() {}\n"


@pytest.fixture(scope="session")
def require_tool() -> Callable[[str, str], None]:
    """Return a function that skips the test where a tool, of a Debian package, is absent."""

    def require(tool: str, package: str) -> None:
        if shutil.which(tool) is None:
            pytest.skip(f"no {tool} (Debian package {package})")

    return require


@pytest.fixture(scope="session")
def run_clang() -> Run:
    """Return a function that compiles a kernel for the device alone, with the newest clang."""
    found = [path for version in range(40, 21, -1) if (path := shutil.which(f"clang-{version}"))]
    if not found:
        pytest.skip("no clang 22 or newer (Debian package clang-22)")

    def run(arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
        command = [found[0], "-x", "hip", "--cuda-device-only", "-nogpulib", "-nogpuinc", *arguments, "-"]
        return subprocess.run(command, input=_KERNEL, capture_output=True, text=True, check=False)

    return run


def bundle_of(*targets: str) -> bytes:
    """Return an offload bundle with an empty entry for the host and one of four bytes for each target."""
    ids = ["host-x86_64-unknown-linux-gnu", *(f"hipv4-amdgcn-amd-amdhsa--{target}" for target in targets)]
    header = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(ids))
    for number, text in enumerate(ids):
        header += struct.pack("<QQQ", 4096 * max(number, 1), 4 if number else 0, len(text)) + text.encode()
    body = bytearray(header.ljust(4096 * len(ids), b"\0"))
    return bytes(body[: 4096 * (len(ids) - 1) + 4])


@pytest.fixture
def make_bundle() -> Callable[..., bytes]:
    """Return a function that makes the bytes of an offload bundle for the given targets."""
    return bundle_of


@pytest.fixture
def make_wheel(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a wheel: its name, members by path, requirements, and declared targets."""

    def make(
        name: str, members: dict[str, bytes], requires: Sequence[str] = (), declaration: bytes | None = None
    ) -> Path:
        path = tmp_path / f"{name.replace('-', '_')}-1.0-py3-none-any.whl"
        info = f"{name.replace('-', '_')}-1.0.dist-info"
        lines = [f"Metadata-Version: 2.4\nName: {name}\nVersion: 1.0\n", *(f"Requires-Dist: {r}\n" for r in requires)]
        with ZipFile(path, "w") as archive:
            for member, data in members.items():
                archive.writestr(member, data)
            archive.writestr(f"{info}/METADATA", "".join(lines))
            if declaration is not None:
                archive.writestr(f"{info}/rocm_targets.json", declaration)
        return path

    return make


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
