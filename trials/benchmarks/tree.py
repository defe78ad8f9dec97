"""The tree of artifacts that the build benchmark works on: Debian's ROCm and LLVM 15, over 2 GB of real binaries."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from trials.benchmarks.measure import CACHE

__all__ = ["make_tree"]

_ROOT = Path(__file__).parents[2]
_MORE_PACKAGES = ("llvm-15-dev", "libclang-15-dev")


def make_tree(folder: Path = CACHE / "bench" / "artifacts") -> Path:
    """Download Debian's packages and import them as artifacts, unless the folder is there already."""
    if folder.exists():
        return folder
    debs, more_debs = CACHE / "debs", CACHE / "bench-debs"
    subprocess.run(["sh", _ROOT / "examples/debian/download.sh", debs], check=True)  # noqa: S607 (this machine's)
    _download(more_debs)
    partial = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    packages = sorted(map(str, [*debs.glob("*.deb"), *more_debs.glob("*.deb")]))
    rocwheel = [sys.executable, "-m", "rocwheel"]
    subprocess.run([*rocwheel, "artifacts", "import", *packages, "--dest-dir", partial], check=True)
    partial.rename(folder)
    return folder


def _download(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    missing = [name for name in _MORE_PACKAGES if not list(folder.glob(f"{name}_*.deb"))]
    if missing:
        command = ["sh", str(_ROOT / "scripts/apt-get.sh"), "-o", "APT::Sandbox::User=root", "-q", "download", *missing]
        subprocess.run(command, cwd=folder, check=True)
