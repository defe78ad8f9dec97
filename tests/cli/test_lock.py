"""``rocwheel lock``: lock files that pip and uv install."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec
import pytest
from packaging.markers import Environment, default_environment
from packaging.pylock import Pylock
from packaging.tags import parse_tag

from rocwheel.core.hashing import hash_file
from rocwheel.index.write_index import write_index
from tests.support.command_line import rocwheel
from tests.support.fault_proxy import fault_proxy
from tests.support.loopback import served
from tests.support.sdists import write_sdist
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.command_line import Run


@pytest.mark.slow
@pytest.mark.parametrize(("name", "is_told"), [("rocm-sdk-core", True), ("rocm-sdk-device-gfx906", False)])
def test_targets_without_effect_are_reported(run: Run, tmp_path: Path, name: str, is_told: bool) -> None:
    make_wheel(tmp_path / "dist", name, {}, tag="py3-none-any", is_purelib=True)
    words = ("--targets", "gfx906", "--find-links", tmp_path / "dist", "-o", tmp_path / "pylock.toml")
    done = run("lock", name, *words)
    assert done.status == 0
    text = (
        f"warning: {tmp_path}/pylock.toml: has no packages for specific GPUs, so --targets has no effect. If the "
        "release has such packages, request an extra: rocm[device-gfx906].\n"
    )
    assert done.stderr == (text if is_told else "")


LINUX, WINDOWS = "py3-none-manylinux_2_17_x86_64", "py3-none-win_amd64"


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """Return the folder of an index whose packages require others on Linux than on Windows."""
    requires = ('rocm-linux==7.0.0 ; sys_platform == "linux"', 'rocm-windows==7.0.0 ; sys_platform == "win32"')
    make_wheel(tmp_path / "dist", "rocm-sdk", {}, version="7.0.0", tag="py3-none-any", requires=requires)
    make_wheel(tmp_path / "dist", "rocm-linux", {}, version="7.0.0", tag=LINUX)
    make_wheel(tmp_path / "dist", "rocm-windows", {}, version="7.0.0", tag=WINDOWS)
    write_index(tmp_path / "dist", tmp_path / "simple")
    return tmp_path


def lock(run: Run, there: Path, *words: str) -> Pylock:
    index = ("--index-url", (there / "simple").as_uri())
    assert run("lock", "rocm-sdk", *index, "-o", there / "pylock.toml", "-q", *words) == (0, "", "")
    return Pylock.from_dict(msgspec.toml.decode((there / "pylock.toml").read_bytes()))


@pytest.mark.slow
def test_a_universal_lock_file_has_markers(run: Run, there: Path) -> None:
    locked = lock(run, there, "--universal")
    assert [(package.name, str(package.marker or "")) for package in locked.packages] == [
        ("rocm-linux", 'sys_platform == "linux"'),
        ("rocm-sdk", ""),
        ("rocm-windows", 'sys_platform == "win32"'),
    ]
    first = (there / "pylock.toml").read_bytes()
    lock(run, there, "--universal")
    assert (there / "pylock.toml").read_bytes() == first
    assert chosen(locked, "linux", LINUX) == ["rocm-linux", "rocm-sdk"]
    assert chosen(locked, "win32", WINDOWS) == ["rocm-sdk", "rocm-windows"]


def chosen(locked: Pylock, system: str, tag: str) -> list[str]:
    """Return what an installer takes on another platform."""
    environment = cast("Environment", {**default_environment(), "sys_platform": system})
    tags = [*parse_tag(tag), *parse_tag("py3-none-any")]
    return [package.name for package, _ in locked.select(environment=environment, tags=tags)]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="locks for Linux")
def test_a_lock_file_is_for_the_current_platform_by_default(run: Run, there: Path) -> None:
    assert [package.name for package in lock(run, there).packages] == ["rocm-linux", "rocm-sdk"]


@pytest.mark.slow
@pytest.mark.parametrize("version", ["abc", "2.7", "3", "3.12.x"])
def test_an_invalid_python_version_is_reported_with_its_option(run: Run, there: Path, version: str) -> None:
    index = ("--index-url", (there / "simple").as_uri())
    done = run("lock", "rocm-sdk", *index, "-o", there / "pylock.toml", "--python-version", version)
    expected = "a Python 3 version such as 3.12"
    assert (done.status, done.stderr) == (2, f"error: --python-version: is {version!r}; expected {expected}\n")


@pytest.mark.slow
def test_a_missing_temporary_folder_is_reported_with_its_variable(there: Path) -> None:
    words = ("rocm-sdk", "--index-url", (there / "simple").as_uri(), "-o", there / "pylock.toml")
    done = rocwheel("lock", *words, environ={"TMPDIR": "/nowhere"})
    found = "error: TMPDIR: is /nowhere, a folder where files can't be created (No such file or directory)."
    told = f"{found} Correct or unset the variable.\n"
    assert (done.returncode, done.stderr) == (1, told)


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
        done = rocwheel("index", "mirror", f"{address}/simple", "--project", "rocm*", "--targets", "gfx90a", "-o", here)
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


@pytest.mark.slow
@pytest.mark.parametrize("command", [with_pip, with_uv, with_uv_sync], ids=["pip", "uv", "uv sync"])
def test_a_lock_file_can_be_installed_offline(
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


@pytest.mark.slow
@pytest.mark.parametrize("command", [with_pip, with_uv, with_uv_sync], ids=["pip", "uv", "uv sync"])
def test_a_lock_file_for_a_protected_index_has_no_secret_and_installs_with_netrc(
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


@pytest.mark.slow
@pytest.mark.parametrize("command", [with_pip, with_uv], ids=["pip", "uv"])
def test_files_that_differ_from_the_lock_file_are_not_installed(
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


@pytest.mark.slow
def test_a_mirror_works_as_an_offline_index(moved_mirror: Path, environment: Path, offline: dict[str, str]) -> None:
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
    words = ("--project", "rocm[libraries,device-gfx90a]", "--targets", "gfx90a", "--with-requirements")
    done = rocwheel("index", "mirror", url, *words, "--platform-tag", "linux_x86_64", "-o", tmp_path / "here")
    assert done.returncode == 0, done.stderr
    shutil.rmtree(tmp_path / "there")
    return tmp_path / "here"


@pytest.mark.slow
@pytest.mark.parametrize("installer", ["pip", "uv"])
def test_a_mirror_with_requirements_can_be_installed_offline_with_hashes(
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_device_all_locks_the_packages_of_every_gpu(sample_dist: Path, tmp_path: Path) -> None:
    shutil.copytree(sample_dist, tmp_path / "dist")
    write_index(tmp_path / "dist", tmp_path / "simple")
    words = ("lock", "rocm[device-all]", "--index-url", (tmp_path / "simple").as_uri(), "-o", tmp_path / "pylock.toml")
    done = rocwheel(*words)
    assert (done.returncode, done.stdout) == (0, f"{tmp_path}/pylock.toml: 6 packages\n"), done.stderr
    done = rocwheel(*words, "--targets", "gfx906")
    message = "error: --targets: lists only gfx906, but device-all requires other GPUs (gfx90a, gfx1030)."
    assert (done.returncode, message in done.stderr) == (2, True), done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("index", ["./mirrorr/simple", "file:///nonexistent/simple"])
@pytest.mark.parametrize("option", ["--index-url", "--extra-index-url"])
def test_a_missing_index_folder_is_reported(tmp_path: Path, option: str, index: str) -> None:
    """Uv would take the packages from elsewhere without a word."""
    done = rocwheel("lock", "rocm==9", option, index, "-o", tmp_path / "pylock.toml")
    assert (done.returncode, done.stderr) == (2, f"error: {index}: is not a folder\n")


@pytest.mark.slow
def test_unresolvable_requirements_are_reported_and_no_file_is_written(sample_dist: Path, tmp_path: Path) -> None:
    done = rocwheel("lock", "rocm==9", "no-such", "--find-links", sample_dist, "-o", tmp_path / "pylock.toml")
    assert done.returncode == 2
    assert done.stderr.startswith("error: rocm==9, no-such: can't be locked (")
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("option", ["--index-url", "--extra-index-url", "--find-links"])
def test_a_file_url_without_a_path_is_refused(tmp_path: Path, option: str) -> None:
    done = rocwheel("lock", "rocm", option, "file://", "--output", tmp_path / "pylock.toml")
    expected = (
        "error: file://: is empty after file://; expected file:///PATH, without ? and #. Check for an unset variable.\n"
    )
    assert (done.returncode, done.stderr) == (2, expected)


__all__ = ["environment", "offline"]

SETUP = """\
import os
from setuptools import setup

target = os.environ.get("ROCM_SDK_TARGET_FAMILY", "gfx1201")
setup(name="rocm", version="7.0.0", install_requires=["rocm-sdk-core==7.0.0"], py_modules=[],
      extras_require={"device": [f"rocm-sdk-device-{target}==7.0.0"]})
"""
PYPROJECT = '[build-system]\nrequires = ["setuptools>=61"]\nbuild-backend = "setuptools.build_meta"\n'
INFO = "Metadata-Version: 2.1\nName: rocm\nVersion: 7.0.0\nProvides-Extra: device\n"
REQUIRES_TXT = "rocm-sdk-core==7.0.0\n\n[device]\nrocm-sdk-device-gfx1100==7.0.0\n"


@pytest.fixture(scope="module")
def sdist_mirror(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a mirror of a selector that setuptools builds, of what it requires, and of setuptools."""
    there, here = tmp_path_factory.mktemp("there"), tmp_path_factory.mktemp("here")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "setuptools<81"]
    fetched = subprocess.run([*command, "-d", str(there / "dist")], capture_output=True, text=True, check=False)
    if fetched.returncode:
        pytest.skip(f"needs setuptools of a registry: {fetched.stderr.splitlines()[-1]}")
    for name in ("rocm-sdk-core", "rocm-sdk-device-gfx1100", "rocm-sdk-device-gfx942"):
        make_wheel(there / "dist", name, {}, version="7.0.0", tag="py3-none-any", is_purelib=True)
    texts = {
        "PKG-INFO": INFO,
        "setup.py": SETUP,
        "pyproject.toml": PYPROJECT,
        "rocm.egg-info/requires.txt": REQUIRES_TXT,
    }
    write_sdist(there / "dist", "rocm-7.0.0", {name: text.encode() for name, text in texts.items()})
    write_index(there / "dist", there / "simple")
    words = ("--project", "rocm[device]", "--targets", "gfx1100", "--with-requirements", "-d", here)
    done = rocwheel("index", "mirror", (there / "simple").as_uri(), *words)
    assert done.returncode == 0, done.stderr
    return here


def lock_sdist(sdist_mirror: Path, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    command = ("lock", "rocm[device]", "--targets", "gfx1100", "--index-url", (sdist_mirror / "simple").as_uri())
    return rocwheel(*command, "-o", sdist_mirror / "pylock.toml", *words, environ=environ)


@pytest.mark.slow
def test_a_mirror_includes_the_build_requirements_of_the_selector(sdist_mirror: Path) -> None:
    names = sorted(path.name.partition("-")[0] for path in (sdist_mirror / "dist").glob("*[lz]"))
    assert names == ["rocm", "rocm_sdk_core", "rocm_sdk_device_gfx1100", "setuptools"]


@pytest.mark.slow
def test_build_requirements_are_reported_and_the_lock_file_is_reproducible(sdist_mirror: Path) -> None:
    done = lock_sdist(sdist_mirror)
    assert done.returncode == 0, done.stderr
    assert (
        "warning: rocm: is an sdist whose build requires setuptools>=61, but a lock file can't contain" in done.stderr
    )
    first = (sdist_mirror / "pylock.toml").read_bytes()
    second = lock_sdist(sdist_mirror, "--json", PYTHONHASHSEED="1")
    assert json.loads(second.stdout)["build_requires"] == {"rocm": ["setuptools>=61"]}
    assert (sdist_mirror / "pylock.toml").read_bytes() == first
    locked = Pylock.from_dict(msgspec.toml.decode(first))
    assert [package.name for package in locked.packages] == ["rocm", "rocm-sdk-core", "rocm-sdk-device-gfx1100"]


@pytest.mark.slow
@pytest.mark.parametrize("installer", ["pip", "uv"])
def test_the_lock_file_can_be_installed_offline_from_the_mirror(
    sdist_mirror: Path, environment: Path, offline: dict[str, str], installer: str
) -> None:
    assert lock_sdist(sdist_mirror).returncode == 0
    python = environment / "bin/python"
    if installer == "pip":
        command = [
            str(install_pip_26(environment)),
            "-m",
            "pip",
            "install",
            "--find-links",
            str(sdist_mirror / "dist"),
        ]
    else:
        command = [
            find_uv(),
            "pip",
            "install",
            "--python",
            str(python),
            "--no-index",
            "--find-links",
            str(sdist_mirror / "dist"),
        ]
    command += ["-r", str(sdist_mirror / "pylock.toml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=offline, cwd=environment)
    assert done.returncode == 0, done.stderr
    listed = [find_uv(), "pip", "list", "--python", str(python), "--format", "json"]
    shown = json.loads(subprocess.run(listed, capture_output=True, text=True, check=True, env=offline).stdout)
    names = {package["name"] for package in shown} - {"pip"}
    assert names == {"rocm", "rocm-sdk-core", "rocm-sdk-device-gfx1100"}
