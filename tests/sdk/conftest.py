"""Fixtures that build sets of packages and make environments for them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from tests.sdk.installed import BIN, Installed, run
from tests.sdk.sets import PROGRAM, RUN_PATH, SDK, Builder, Options, render_literals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import ModuleType


@pytest.fixture(scope="session")
def binaries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two libraries, the second needing the first in a package beside it, and a program."""
    if not shutil.which("gcc"):
        pytest.skip("needs gcc (Debian package build-essential)")
    folder = tmp_path_factory.mktemp("binaries")
    sources = {"hip.c": "int hip(void) { return 6; }", "sparse.c": "int hip(void); int sparse(void) { return hip(); }"}
    sources["program.c"] = PROGRAM
    for name, text in sources.items():
        (folder / name).write_text(text)
    for command in (
        "-shared -fPIC -o libamdhip64.so.6 -Wl,-soname,libamdhip64.so.6 hip.c",
        f"-shared -fPIC -o libhipsparse.so.1 -Wl,-soname,libhipsparse.so.1 {RUN_PATH} sparse.c libamdhip64.so.6",
        "-shared -fPIC -o libmissing.so.1 -Wl,-soname,libmissing.so.1 sparse.c",
        "-o program program.c",
    ):
        subprocess.run(["gcc", *command.split()], cwd=folder, check=True)
    return folder


@pytest.fixture(scope="session")
def make_set(binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return a function that returns the folder of distributions of a set; each is built once."""
    built: dict[Options, Path] = {}

    def make(**options: Any) -> Path:
        wanted = Options(**options)
        if wanted not in built:
            built[wanted] = tmp_path_factory.mktemp("dist")
            Builder(wanted, binaries, built[wanted]).build()
        return built[wanted]

    return make


@pytest.fixture(scope="session")
def make_environment(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Installed]:
    """Return a function that makes an environment which installs from a folder of distributions."""

    def make(dist: Path, tool: str = "uv", cache: Path | None = None, python: str = sys.executable) -> Installed:
        path = tmp_path_factory.mktemp("an environment")
        run([str(BIN / "uv"), "venv", "-q", "--python", python, str(path)])
        return Installed(path, dist, tool, cache)

    return make


@pytest.fixture(scope="session")
def built_set(make_set: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the usual set with the wheel that installers build of its sdist, for each environment."""
    folder = tmp_path_factory.mktemp("built")
    for wheel in make_set().glob("*.whl"):
        shutil.copy(wheel, folder)
    (sdist,) = make_set().glob("rocm-*.tar.gz")
    build = [str(BIN / "uv"), "build", "-q", "--wheel", str(sdist), "-o", str(folder), "--python", sys.executable]
    run(build, environ={"UV_NO_CACHE": "1", "UV_NO_CONFIG": "1"})
    return folder


@pytest.fixture(scope="session")
def make_installed(
    make_set: Callable[..., Path], built_set: Path, make_environment: Callable[..., Installed]
) -> Callable[[str], Installed]:
    """Return a function that makes an environment with packages of the usual set, whose files are its own."""

    def make(requirement: str) -> Installed:
        environment = make_environment(make_set())
        msgspec.structs.replace(environment, dist=built_set).install(requirement, "--link-mode=copy")
        return environment

    return make


@pytest.fixture
def load_sdk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Callable[[str], ModuleType]]]:
    """Return a function that imports modules of ``rocm_sdk`` as a set with these options has it."""

    def forget() -> None:
        for name in [name for name in sys.modules if name.partition(".")[0] == "rocm_sdk"]:
            monkeypatch.delitem(sys.modules, name)

    def load(**options: Any) -> Callable[[str], ModuleType]:
        forget()
        shutil.copytree(SDK / "rocm_sdk", tmp_path / "site/rocm_sdk", ignore=shutil.ignore_patterns("*.pyi"))
        info = Builder(Options(**options), tmp_path, tmp_path).build_info()
        (tmp_path / "site/rocm_sdk/_build_info.py").write_bytes(render_literals(info))
        monkeypatch.syspath_prepend(tmp_path / "site")
        return import_module

    yield load
    forget()
