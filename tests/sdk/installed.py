"""Environments in which sets of packages are installed by real pip and uv."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from tests.support.command_line import as_user
from tests.support.environments import pip_for

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["BIN", "FROM_INDEX", "Installed", "MakeEnvironment", "MakeInstalled", "MakeSet", "read_only", "run"]

BIN = Path(sys.executable).parent

FROM_INDEX = "--index-url URL  # URL is the index that you installed from"
"""What the doctor's commands of pip end with, since installers note no index."""


class Installed(msgspec.Struct, frozen=True):
    """A virtual environment and the folder of distributions it is installed from."""

    path: Path
    dist: Path
    tool: str
    cache: Path | None
    """Cache of pip, None for none."""

    @property
    def python(self) -> Path:
        """The interpreter."""
        return self.path / "bin/python"

    @property
    def site(self) -> Path:
        """Its site-packages."""
        return next((self.path / "lib").glob("python3*/site-packages"))

    @property
    def root(self) -> Path:
        """The development tree."""
        return self.site / "_rocm_sdk_devel"

    def installer(self, *arguments: str, check: bool = True, **environ: str) -> subprocess.CompletedProcess[str]:
        """Run pip or uv on this environment."""
        if self.tool == "uv":
            command = [str(BIN / "uv"), "pip", *arguments, "--python", str(self.python)]
        else:
            command = [*pip_for(self.python), *arguments]
        cache = {"PIP_CACHE_DIR": str(self.cache)} if self.cache else {"PIP_NO_CACHE_DIR": "1"}
        isolation = {**cache, "UV_NO_CACHE": "1", "PIP_CONFIG_FILE": os.devnull}
        return run(command, check=check, environ={**isolation, **environ})

    def install(self, *requirements: str, check: bool = True, **environ: str) -> subprocess.CompletedProcess[str]:
        """Install from the folder of distributions alone."""
        options = ["--no-index", "--find-links", str(self.dist)]
        return self.installer("install", *options, *requirements, check=check, **environ)

    def uninstall(self, *names: str) -> None:
        """Uninstall distributions."""
        self.installer("uninstall", *([] if self.tool == "uv" else ["-y"]), *names)

    def run(self, *command: str, check: bool = True, **environ: str) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment."""
        return run([str(self.path / "bin" / command[0]), *command[1:]], check=check, environ=environ)

    def evaluate(self, code: str, **environ: str) -> str:
        """Return what a piece of Python prints."""
        return run([str(self.python), "-c", code], environ=environ).stdout.strip()

    def dists(self) -> list[str]:
        """Return the names of what is installed."""
        return sorted(path.name.partition("-")[0] for path in self.site.glob("*.dist-info"))

    def files(self) -> list[str]:
        """Everything in site-packages but what a new environment has."""
        names = (path.relative_to(self.site).as_posix() for path in self.site.rglob("*"))
        return sorted(name for name in names if not name.startswith(("_virtualenv", "__pycache__")))


def run(
    command: Sequence[str], *, check: bool = True, environ: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("ROCM_", "HSA_", "PIP_", "UV_", "PYTHON"))}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120, env={**clean, **(environ or {})}
    )
    if check and done.returncode:
        pytest.fail(f"{' '.join(command)}: status {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done


MakeSet = Callable[..., Path]
MakeEnvironment = Callable[..., Installed]
MakeInstalled = Callable[[str], Installed]


@contextmanager
def read_only(environment: Installed) -> Iterator[list[str]]:
    """Make an environment read-only; give what to put before a command so that it also is for root."""
    paths = [environment.site, *environment.site.rglob("*")]
    modes = [(path, path.stat().st_mode) for path in paths if not path.is_symlink()]
    for path, mode in modes:
        path.chmod(mode & ~0o222)
    try:
        yield as_user()
    finally:
        for path, mode in modes:
            path.chmod(mode)
