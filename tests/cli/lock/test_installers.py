"""Mirrors and lock files from end to end: made from a server that goes, and installed from a folder that moved."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rocwheel.core.hashing import hash_file
from rocwheel.index.write_index import write_index
from tests.support.command_line import rocwheel
from tests.support.fault_proxy import fault_proxy
from tests.support.loopback import served
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.slow

INSTALLED = ["rocm==7.0.0", "rocm-sdk-core==7.0.0", "rocm-sdk-device-gfx90a==7.0.0", "rocm-sdk-libraries==7.0.0"]


def find_uv() -> str:
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if uv is None:
        pytest.skip("needs uv")
    return uv


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """Return a fresh virtual environment with nothing in it."""
    subprocess.run([find_uv(), "venv", "--quiet", str(tmp_path / "venv")], check=True)
    return tmp_path / "venv"


@pytest.fixture
def offline(tmp_path: Path) -> dict[str, str]:
    """Return an environment in which neither pip nor uv knows any index, and no GPU is named."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_", "ROCM_"))}
    pip = {
        "PIP_NO_INDEX": "1",
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_CACHE_DIR": "1",
    }
    return {**kept, **pip, "UV_OFFLINE": "1", "UV_NO_CONFIG": "1", "UV_CACHE_DIR": str(tmp_path / "uv-cache")}


@pytest.fixture
def moved_mirror(mirror: Path, tmp_path: Path) -> Path:
    """Return a mirror with its lock file, in another folder than that where it was made."""
    return Path(shutil.copytree(mirror, tmp_path / "moved away"))


@pytest.fixture(scope="module")
def mirror(sample_dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a mirror with a lock file, made from a server that is gone, where it can't be found by the old path."""
    tmp_path = tmp_path_factory.mktemp("mirror")
    shutil.copytree(sample_dist, tmp_path / "there/dist")
    write_index(tmp_path / "there/dist", tmp_path / "there/simple")
    here = tmp_path / "here"
    with served(tmp_path / "there") as address:
        done = rocwheel("index", "mirror", f"{address}/simple", "--project", "rocm*", "--targets", "gfx90a", "-d", here)
        assert done.returncode == 0, done.stderr
    shutil.rmtree(tmp_path / "there")
    done = rocwheel(
        "lock", "rocm[libraries,device]", "--targets", "gfx90a", "--index-url", (here / "simple").as_uri(),
        "-o", here / "pylock.toml", environ={"ROCM_SDK_TARGET_FAMILY": "gfx1030"},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, f"{here}/pylock.toml: 4 packages for gfx90a\n"), done.stderr
    return here.rename(tmp_path / "gone")


def install_pip_26(environment: Path) -> Path:
    python = environment / "bin/python"
    command = [find_uv(), "pip", "install", "--quiet", "--python", str(python), "pip>=26"]
    if subprocess.run(command, check=False, capture_output=True).returncode != 0:
        pytest.skip("needs pip 26 from the package index")
    return python


def with_pip(environment: Path, lock: Path) -> list[str]:
    return [str(environment / "bin/python"), "-m", "pip", "install", "-r", str(lock)]


def with_uv(environment: Path, lock: Path) -> list[str]:
    return [find_uv(), "pip", "install", "--python", str(environment / "bin/python"), "-r", str(lock)]


def with_uv_sync(environment: Path, lock: Path) -> list[str]:
    return [find_uv(), "pip", "sync", "--python", str(environment / "bin/python"), str(lock)]


@pytest.mark.parametrize("command", [with_pip, with_uv, with_uv_sync], ids=["pip", "uv", "uv sync"])
def test_a_lock_file_installs_without_a_network(
    moved_mirror: Path, environment: Path, offline: dict[str, str], command: Callable[[Path, Path], list[str]]
) -> None:
    if command is with_pip:
        install_pip_26(environment)
    words = command(environment, moved_mirror / "pylock.toml")
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=offline, cwd=environment)
    assert done.returncode == 0, done.stderr
    freeze = [find_uv(), "pip", "freeze", "--python", str(environment / "bin/python")]
    listed = subprocess.run(freeze, capture_output=True, text=True, check=True, env=offline).stdout.splitlines()
    names = [line.partition(" @ ")[0].partition("==")[0] for line in listed]
    assert [name for name in names if name != "pip"] == [line.partition("==")[0] for line in INSTALLED]
    shown = subprocess.run([str(environment / "bin/rocm-sdk"), "version"], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "7.0.0"


@pytest.mark.parametrize("command", [with_pip, with_uv, with_uv_sync], ids=["pip", "uv", "uv sync"])
def test_a_lock_of_an_index_behind_a_password_has_no_secret_and_installs_with_netrc(
    environment: Path, offline: dict[str, str], tmp_path: Path, command: Callable[[Path, Path], list[str]]
) -> None:
    make_wheel(tmp_path / "there/dist", "alpha", {"alpha.bin": b"alpha"}, tag="py3-none-any", is_purelib=True)
    write_index(tmp_path / "there/dist", tmp_path / "there/simple")
    if command is with_pip:
        install_pip_26(environment)
    lock, netrc = tmp_path / "pylock.toml", tmp_path / "netrc"
    online = {name: value for name, value in offline.items() if name not in {"PIP_NO_INDEX", "UV_OFFLINE"}}
    words = [*command(environment, lock), *([] if command is with_pip else ["--no-cache"])]
    with served(tmp_path / "there") as address, fault_proxy(address) as proxy:
        proxy.authorization = f"Basic {base64.b64encode(b'me:s3cret').decode()}"
        url = f"{proxy.address.replace('//', '//me:s3cret@')}/simple"
        done = rocwheel("lock", "alpha", "--index-url", url, "-o", lock)
        assert done.returncode == 0, done.stderr
        assert f"{proxy.address}/" in lock.read_text()
        assert [word for word in ("s3cret", "me:", "@") if word in lock.read_text() + done.stdout + done.stderr] == []
        netrc.write_text("")
        environ = {**online, "NETRC": str(netrc), "PIP_NO_INPUT": "1"}
        refused = subprocess.run(words, capture_output=True, text=True, check=False, env=environ, cwd=environment)
        assert refused.returncode != 0
        assert "401" in refused.stdout + refused.stderr
        netrc.write_text("machine 127.0.0.1 login me password s3cret\n")
        netrc.chmod(0o600)
        done = subprocess.run(words, capture_output=True, text=True, check=False, env=environ, cwd=environment)
    assert done.returncode == 0, done.stderr
    assert [path.read_bytes() for path in environment.rglob("alpha.bin")] == [b"alpha"]


@pytest.mark.parametrize("command", [with_pip, with_uv], ids=["pip", "uv"])
def test_other_bytes_than_those_locked_are_not_installed(
    moved_mirror: Path, environment: Path, offline: dict[str, str], command: Callable[[Path, Path], list[str]]
) -> None:
    if command is with_pip:
        install_pip_26(environment)
    (wheel,) = (moved_mirror / "dist").glob("rocm_sdk_libraries*.whl")
    wheel.write_bytes(wheel.read_bytes() + b"\0")
    words = command(environment, moved_mirror / "pylock.toml")
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=offline, cwd=environment)
    assert done.returncode != 0
    assert "hash" in done.stderr.lower()


def test_a_mirror_is_an_index_without_a_network(moved_mirror: Path, environment: Path, offline: dict[str, str]) -> None:
    url = (moved_mirror / "simple").as_uri()
    command = [find_uv(), "pip", "install", "--python", str(environment / "bin/python"), "--index-url", url]
    done = subprocess.run([*command, "rocm[device-gfx90a]"], capture_output=True, text=True, check=False, env=offline)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def followed(sample_dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a mirror of what the selector requires for a GPU, made by its name alone."""
    tmp_path = tmp_path_factory.mktemp("followed")
    shutil.copytree(sample_dist, tmp_path / "there/dist")
    write_index(tmp_path / "there/dist", tmp_path / "there/simple")
    url = (tmp_path / "there/simple").as_uri()
    words = ("--project", "rocm[libraries,device-gfx90a]", "--targets", "gfx90a", "--requirements")
    done = rocwheel("index", "mirror", url, *words, "--platform", "linux_x86_64", "-d", tmp_path / "here")
    assert done.returncode == 0, done.stderr
    shutil.rmtree(tmp_path / "there")
    return tmp_path / "here"


@pytest.mark.parametrize("installer", ["pip", "uv"])
def test_a_mirror_of_requirements_installs_alone_with_hashes(
    followed: Path, environment: Path, offline: dict[str, str], installer: str, tmp_path: Path
) -> None:
    files = sorted(path for path in (followed / "dist").iterdir() if path.suffix in {".whl", ".gz"})
    lines = [f"{path.name.split('-')[0]}==7.0.0 --hash=sha256:{hash_file(path)}" for path in files]
    wanted = [line.replace("rocm==", "rocm[libraries,device-gfx90a]==") for line in lines]
    assert len(wanted) == 4
    (tmp_path / "requirements.txt").write_text("\n".join(wanted))
    words = [
        "--require-hashes",
        "--index-url",
        (followed / "simple").as_uri(),
        "-r",
        str(tmp_path / "requirements.txt"),
    ]
    if installer == "pip":
        command = [str(install_pip_26(environment)), "-m", "pip", "install", *words]
        environ = {name: value for name, value in offline.items() if name != "PIP_NO_INDEX"}
    else:
        command = [find_uv(), "pip", "install", "--python", str(environment / "bin/python"), *words]
        environ = offline
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environ, cwd=environment)
    assert done.returncode == 0, done.stderr
    shown = subprocess.run([str(environment / "bin/rocm-sdk"), "version"], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "7.0.0"


def test_a_gpu_that_the_release_lacks_is_an_error_and_no_file_is_written(sample_dist: Path, tmp_path: Path) -> None:
    done = rocwheel(
        "lock",
        "rocm[device-gfx942]",
        "--find-links",
        sample_dist,
        "--targets",
        "gfx90a",
        "-o",
        tmp_path / "pylock.toml",
    )
    assert done.returncode == 2
    assert "gfx942" in done.stderr.partition("can't be locked")[2]
    assert list(tmp_path.iterdir()) == []


def test_the_packages_of_every_gpu_are_locked_without_naming_any(sample_dist: Path, tmp_path: Path) -> None:
    shutil.copytree(sample_dist, tmp_path / "dist")
    write_index(tmp_path / "dist", tmp_path / "simple")
    words = ("lock", "rocm[device-all]", "--index-url", (tmp_path / "simple").as_uri(), "-o", tmp_path / "pylock.toml")
    done = rocwheel(*words)
    assert (done.returncode, done.stdout) == (0, f"{tmp_path}/pylock.toml: 6 packages\n"), done.stderr
    done = rocwheel(*words, "--targets", "gfx906")
    message = "error: --targets: name gfx906 alone, and device-all asks for others (gfx1030, gfx90a)."
    assert (done.returncode, message in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize("index", ["./mirrorr/simple", "file:///nonexistent/simple"])
@pytest.mark.parametrize("option", ["--index-url", "--extra-index-url"])
def test_a_folder_of_an_index_that_is_not_there_is_named(tmp_path: Path, option: str, index: str) -> None:
    """Uv would take the packages from elsewhere without a word."""
    done = rocwheel("lock", "rocm==9", option, index, "-o", tmp_path / "pylock.toml")
    assert (done.returncode, done.stderr) == (2, f"error: {index}: is no folder\n")


def test_what_cannot_be_resolved_is_said_and_no_file_is_written(sample_dist: Path, tmp_path: Path) -> None:
    done = rocwheel("lock", "rocm==9", "no-such", "--find-links", sample_dist, "-o", tmp_path / "pylock.toml")
    assert done.returncode == 2
    assert done.stderr.startswith("error: rocm==9, no-such: can't be locked (")
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("option", ["--index-url", "--extra-index-url", "--find-links"])
def test_a_file_url_without_a_path_is_no_index(tmp_path: Path, option: str) -> None:
    done = rocwheel("lock", "rocm", option, "file://", "--output", tmp_path / "pylock.toml")
    expected = "error: file://: is empty behind file://; expected file:///PATH, without ? and #. Is a variable unset?\n"
    assert (done.returncode, done.stderr) == (2, expected)
