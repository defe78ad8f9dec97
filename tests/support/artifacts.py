"""Folders of artifacts with the files that a test needs, and builds of them by the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.command_line import rocwheel

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["artifact", "build_packages", "run_on_artifacts"]


def artifact(folder: Path, name: str, files: Mapping[str, bytes] | None = None) -> Path:
    """Make an artifact folder; return its stage folder, where more files may be put."""
    stage = folder / name / "stage"
    stage.mkdir(parents=True)
    (folder / name / "artifact_manifest.txt").write_text("stage\n")
    for path, data in (files or {}).items():
        (stage / path).parent.mkdir(parents=True, exist_ok=True)
        (stage / path).write_bytes(data)
    return stage


def run_on_artifacts(command: str, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run ``rocwheel COMMAND`` on the artifacts in ``folder/in``, with what each set of packages needs among them."""
    if not (folder / "in/base_lib_generic").exists():
        artifact(folder / "in", "base_lib_generic", {"share/base.txt": b"base"})
    return rocwheel(command, "--artifact-dir", str(folder / "in"), "--version", "7.0", *options)


def build_packages(folder: Path, *options: str) -> tuple[Path, str]:
    """Build the artifacts in ``folder/in``; return the folder of distributions, and what was told."""
    done = run_on_artifacts("build", folder, "--dest-dir", str(folder / "out"), *options)
    assert done.returncode == 0, done.stderr
    return folder / "out/dist", done.stderr
