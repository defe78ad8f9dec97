"""A checkout of rocm-jax's kind, made of the files in tests/fixtures/rocm_jax: with repositories for @jax and @xla."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import msgspec

from tests.support.places import FIXTURES, ROOT

__all__ = ["RocmJaxCheckout", "commit_all", "make_rocm_jax_checkout"]

SOURCE = FIXTURES / "rocm_jax"
EXAMPLE = ROOT / "examples/bazel"
_AUTHOR = ("-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "commit.gpgsign=false")
_PLACEHOLDERS = "jax_rocm_plugin/third_party/{name}/workspace.bzl"


class RocmJaxCheckout(msgspec.Struct, frozen=True):
    """A clean checkout, and the repositories that its workspace fetches."""

    folder: Path
    jax: Path
    xla: Path

    @property
    def workspace(self) -> Path:
        """The Bazel workspace."""
        return self.folder / "jax_rocm_plugin"


def git(folder: Path, *arguments: str) -> str:
    """Run git in a folder and return what it prints."""
    command = ["git", "-C", str(folder), *_AUTHOR, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def commit_all(folder: Path) -> str:
    """Commit everything in a folder, which becomes a repository if it is none, and return the commit."""
    if not (folder / ".git").exists():
        git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message=Commit")
    return git(folder, "rev-parse", "HEAD")


def make_rocm_jax_checkout(folder: Path) -> RocmJaxCheckout:
    """Make the checkout and both repositories below ``folder``, each with one commit."""
    made = RocmJaxCheckout(folder / "rocm-jax", folder / "jax", folder / "xla")
    shutil.copytree(SOURCE / "checkout", made.folder)
    (made.folder / "gitignore").rename(made.folder / ".gitignore")
    third_party = made.workspace / "third_party"
    for name in ("rules_cc", "rules_java"):
        shutil.copytree(EXAMPLE / "third_party" / name, third_party / name)
    shutil.copy(EXAMPLE / "python/python_repository.bzl", third_party / "py")
    for name, source in {"jax": made.jax, "xla": made.xla}.items():
        shutil.copytree(SOURCE / name, source)
        values = {f"@{name.upper()}_COMMIT@": commit_all(source), f"@{name.upper()}_REMOTE@": source.as_uri()}
        path = made.folder / _PLACEHOLDERS.format(name=name)
        text = path.read_text()
        for placeholder, value in values.items():
            text = text.replace(placeholder, value)
        path.write_text(text)
    commit_all(made.folder)
    return made
