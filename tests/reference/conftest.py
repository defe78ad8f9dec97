"""Real packages: the sample SDK and small trees made by hand, built, installed by uv or pip, and used."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import pytest

from rocwheel.build.job import BuildJob, PlanJob
from rocwheel.demo import SAMPLE_SDK
from tests.sdk.installed import BIN, Installed, run

EVERYTHING = "rocm[libraries,devel,profiler,device-gfx906]"
MANIFEST = b'{"rocm_version": "7.0.0", "flags": {"KPACK_SPLIT_ARTIFACTS": true}}'

Tree = Mapping[str, bytes | Path | str]
MakeEnvironment = Callable[..., Installed]
Compile = Callable[..., Path]


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the sample SDK's packages, as the command makes them."""
    dest = tmp_path_factory.mktemp("sample")
    command = ["-m", "rocwheel", "build", "--quiet", "--artifact-dir", str(SAMPLE_SDK), "--dest-dir", str(dest)]
    run([sys.executable, *command])
    return dest / "dist"


@pytest.fixture
def make_environment(tmp_path: Path) -> MakeEnvironment:
    """Return a function that makes a virtual environment which installs from a folder of packages."""
    count = 0

    def make(dist: Path, tool: str = "uv", cache: Path | None = None) -> Installed:
        nonlocal count
        count += 1
        return new_environment(tmp_path / f"environment {count}", dist, tool, cache)

    return make


@pytest.fixture(scope="session")
def sdk(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Return an environment with everything in it, expanded; not to be changed."""
    environment = new_environment(tmp_path_factory.mktemp("installed") / "environment", dist)
    environment.install(EVERYTHING)
    environment.run("rocm-sdk", "init")
    return environment


@pytest.fixture(scope="session")
def core_only(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Return an environment with ``rocm`` and the core alone; not to be changed."""
    environment = new_environment(tmp_path_factory.mktemp("core") / "environment", dist)
    environment.install("rocm")
    return environment


@pytest.fixture
def compile_c(tmp_path: Path) -> Compile:
    """Compile a text in C with gcc; give the file made."""
    need("gcc", "build-essential")

    def compile_one(name: str, text: str, *options: str) -> Path:
        output = tmp_path / "compiled" / name
        output.parent.mkdir(exist_ok=True)
        source = output.with_name(f"{name}.c")
        source.write_text(text)
        subprocess.run(["gcc", str(source), "-o", str(output), *options], check=True)
        return output

    return compile_one


@pytest.fixture
def hip_library(compile_c: Compile) -> Path:
    """Return a small shared library that serves as HIP's runtime."""
    return compile_c("libamdhip64.so.7", "int hip(void) { return 7; }", *shared("libamdhip64.so.7"))


@pytest.fixture
def blas_library(compile_c: Compile, hip_library: Path) -> Path:
    """Return a small shared library that needs HIP's runtime and does not say where it is."""
    text = "int hip(void); int blas(void) { return hip(); }"
    return compile_c("librocblas.so.5", text, *shared("librocblas.so.5"), str(hip_library))


@pytest.fixture
def small_sdk(tmp_path: Path, hip_library: Path, blas_library: Path) -> Path:
    """Return the artifacts of the smallest SDK: a core with HIP's runtime, and one library."""
    write_sdk(tmp_path / "artifacts", hip_library, blas_library)
    return tmp_path / "artifacts"


def need(program: str, package: str) -> None:
    """Skip the test that runs when this machine lacks a program."""
    if not shutil.which(program):
        pytest.skip(f"needs {program} (Debian package {package})")


def shared(soname: str) -> list[str]:
    """Return the options that make a shared library with a SONAME."""
    return ["-shared", "-fPIC", f"-Wl,-soname,{soname}"]


def write_artifact(artifacts: Path, name: str, tree: Tree, stage: str = "stage") -> None:
    """Make an artifact folder: bytes are a file, a path is a file to copy, ``-> text`` is a symlink."""
    folder = artifacts / name
    for path, content in tree.items():
        place = folder / stage / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            place.write_bytes(content)
        elif isinstance(content, str):
            place.symlink_to(content.removeprefix("-> "))
        else:
            shutil.copy2(content, place)
    (folder / "artifact_manifest.txt").write_text(f"{stage}\n")


def write_sdk(artifacts: Path, hip: Path, blas: Path) -> None:
    """Make the smallest SDK that packages come from: a core with HIP's runtime, and one library."""
    write_artifact(artifacts, "base_lib_generic", {"share/therock/therock_manifest.json": MANIFEST})
    write_artifact(artifacts, "core-hip_lib_generic", {"lib/libamdhip64.so.7": hip})
    write_artifact(artifacts, "blas_lib_generic", {"lib/librocblas.so.5": blas})


def build(artifacts: Path, dest: Path, **options: object) -> Path:
    """Build the packages of artifacts and return their folder."""
    BuildJob(PlanJob(artifacts, **options), dest).run()  # type: ignore[arg-type]
    return dest / "dist"


def new_environment(path: Path, dist: Path, tool: str = "uv", cache: Path | None = None) -> Installed:
    """Make a virtual environment that installs from a folder of packages."""
    run([str(BIN / "uv"), "venv", "-q", "--python", sys.executable, str(path)], environ={"UV_NO_CONFIG": "1"})
    return Installed(path, dist, tool, cache)


def uninstall(environment: Installed, tool: str, *names: str) -> None:
    """Uninstall packages with pip or uv, whichever has installed them."""
    msgspec.structs.replace(environment, tool=tool).uninstall(*names)


def shown(text: str) -> str:
    """Return a message of an installer as one word, since each breaks lines where it likes."""
    return "".join(text.split()).lower().replace("_", ".")
