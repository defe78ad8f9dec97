"""What TheRock's own promotion script (``build_tools/packaging/promote_packages.py``) does, done to our packages.

The script replaces the old version by the new one as text, in files that it opens by name and that have to be there;
it renames ``.dist-info`` and has ``wheel pack`` write RECORD again. It knows no other files.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
from typing import TYPE_CHECKING

import pytest

from rocwheel.build.job import BuildJob, PlanJob
from rocwheel.build.planning.options import PlanOptions
from rocwheel.demo import SAMPLE_SDK
from tests.support.environments import make_venv, pip_for
from tests.support.sdists import unpack_tar
from tests.support.wheels import members, write_wheel

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

OLD, NEW = "7.0.0rc1", "7.0.0"


def replace_lines(text: bytes, *beginnings: str) -> bytes:
    """Replace the version in lines that begin so, in all if none are given."""
    lines = text.decode().splitlines(keepends=True)
    return "".join(line.replace(OLD, NEW) if line.startswith(beginnings or "") else line for line in lines).encode()


def promote_wheel(path: Path, folder: Path) -> None:
    name = path.name.partition("-")[0]
    old_info, new_info = f"{name}-{OLD}.dist-info", f"{name}-{NEW}.dist-info"
    contents = members(path)
    del contents[f"{old_info}/RECORD"]
    metadata = contents[f"{old_info}/METADATA"]
    contents[f"{old_info}/METADATA"] = replace_lines(metadata, "Version:", "Summary:", "Requires-Dist")
    if "device_gfx" not in name:
        edited = [f"{name}/_dist_info.py"]
        if name == "rocm_sdk_core":
            edited.append("_rocm_sdk_core/share/therock/therock_manifest.json")
        contents |= {member: replace_lines(contents[member]) for member in edited}
    renamed = {member.replace(f"{old_info}/", f"{new_info}/"): data for member, data in contents.items()}
    modes = {member: 0o100755 for member in renamed if "/bin/" in member}
    write_wheel(folder / path.name.replace(OLD, NEW), new_info, renamed, modes)


def promote_sdist(path: Path, folder: Path) -> None:
    unpacked = folder / "unpacked"
    with tarfile.open(path) as tar:
        unpack_tar(tar, unpacked)
    stem = unpacked / f"rocm-{OLD}"
    for name in (
        "src/rocm.egg-info/requires.txt",
        "src/rocm.egg-info/PKG-INFO",
        "src/rocm_sdk/_dist_info.py",
        "PKG-INFO",
    ):
        (stem / name).write_bytes(replace_lines((stem / name).read_bytes()))
    with tarfile.open(folder / f"rocm-{NEW}.tar.gz", "w:gz") as tar:
        tar.add(stem, f"rocm-{NEW}")


@pytest.fixture(scope="module")
def promoted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("promoted")
    BuildJob(PlanJob(SAMPLE_SDK, options=PlanOptions(version=OLD)), folder / "rc").run()
    for path in sorted((folder / "rc/dist").iterdir()):
        (promote_wheel if path.suffix == ".whl" else promote_sdist)(path, folder)
    return folder


def test_every_promoted_package_states_the_new_version_and_works_installed(promoted: Path, tmp_path: Path) -> None:
    python = make_venv(tmp_path / "venv")
    install = [*pip_for(python), "install", "-q", "--no-index", "--find-links", str(promoted), "--no-cache-dir"]
    subprocess.run([*install, f"rocm[libraries,devel,profiler,device-gfx906]=={NEW}"], check=True)
    subprocess.run([*pip_for(python), "check"], check=True)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([tmp_path / "venv/bin/rocm-sdk", *words], check=False, capture_output=True, text=True)

    assert run("version").stdout == f"{NEW}\n"
    made = run("init")
    assert (made.returncode, "warning" in made.stderr) == (0, False), made.stderr
    tested = run("test")
    assert (tested.returncode, ", 0 failed," in tested.stdout) == (0, True), tested.stdout
    facts = "import rocm_sdk._dist_info as d; print(d.__version__, d.build_per_target_extras()['device-gfx906'])"
    done = subprocess.run([python, "-c", facts], check=True, capture_output=True, text=True)
    assert done.stdout == f"{NEW} ['rocm-sdk-device-gfx906=={NEW}']\n"
    for module in ("rocm_sdk_core", "rocm_sdk_libraries", "rocm_sdk_devel", "rocm_profiler"):
        said = f"import {module}._dist_info as d; print(d.__version__)"
        assert subprocess.run([python, "-c", said], check=True, capture_output=True, text=True).stdout == f"{NEW}\n"


def test_the_refusal_of_a_gpu_without_packages_has_the_new_version(promoted: Path) -> None:
    install = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-index", "--find-links", str(promoted)]
    done = subprocess.run([*install, "rocm[device-gfx942]"], check=False, capture_output=True, text=True)
    assert done.returncode != 0
    assert f"{NEW}+gfx942.is.not.in.this.release" in done.stdout + done.stderr
