"""The resolution of requirements by uv: a lock file, as its text."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.cli.lock.gpus import TARGET_VARIABLE
from rocwheel.cli.lock.resolver_words import lacking_extras, why_not
from rocwheel.core.errors import InputError
from rocwheel.core.scratch import temporary_folder
from rocwheel.core.workers import raise_all
from rocwheel.index.source import raise_for_folders
from rocwheel.stores.urls import hide_users, is_url

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["ResolveOptions", "resolve"]


class ResolveOptions(msgspec.Struct, frozen=True):
    """Where packages are looked for and for which Python; uv's variables and settings count as well."""

    index_url: str | None = None
    extra_index_url: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    python_version: str | None = None
    pre: bool = False
    universal: bool = False
    """Whether for every platform, with markers, and not for this one alone."""

    @property
    def index_urls(self) -> tuple[str, ...]:
        """The addresses of the indexes, not their paths."""
        return tuple(url for url in (self.index_url or "", *self.extra_index_url) if is_url(url))

    @property
    def arguments(self) -> list[str]:
        """The options as uv takes them."""
        python = self.python_version or f"{sys.version_info.major}.{sys.version_info.minor}"
        index = [f"--index-url={self.index_url}"] if self.index_url else []
        if self.find_links and not self.index_url:
            index = ["--no-index"]
        return [
            f"--python-version={python}",
            *index,
            *(f"--extra-index-url={url}" for url in self.extra_index_url),
            *(f"--find-links={place}" for place in self.find_links),
            *(["--prerelease=allow"] if self.pre else []),
            *(["--universal"] if self.universal else []),
        ]


def resolve(requirements: Sequence[str], options: ResolveOptions, targets: Sequence[str]) -> str:
    """Return the text of a lock file for requirements; the selector takes ``targets`` for the GPUs of the machine.

    Raises `InputError` where uv is not installed, for what it can't resolve, and for extras that no package has;
    `WorkError` where ``TMPDIR`` names no folder that can be used.
    """
    # Without a cache: uv would take what the selector has decided for other GPUs from it. Without previews: a lock file
    # has no wheel variants, and uv refuses to write one with them, whichever plain wheels there are.
    compiled = ["--color=never", "pip", "compile", "--no-cache", "--no-preview", "--no-header", "--format=pylock.toml"]
    temporary_folder()  # where uv builds, too: what is wrong with it, uv tells without its variable
    environ = {name: value for name, value in os.environ.items() if name != TARGET_VARIABLE}
    if targets:
        environ[TARGET_VARIABLE] = ",".join(targets)
    command = [_find_uv(), *compiled, *options.arguments, "-"]
    lines = "".join(f"{requirement}\n" for requirement in requirements)
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=False, env=environ)
    asked = hide_users(", ".join(requirements))
    if done.returncode != 0:
        raise_for_folders(options.index_urls)
        why, remedy = why_not(done.stderr)
        raise InputError(asked, f"can't be locked ({why})", remedy=remedy)
    raise_all(asked, lacking_extras(done.stderr, requirements))
    return done.stdout


def _find_uv() -> str:
    """Return the path of uv: that beside this Python, else the first of the search path."""
    places = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    uv = shutil.which("uv", path=places)
    if uv is None:
        source, found = "rocwheel lock", "needs uv, which is not installed"
        raise InputError(source, found, remedy="Install it: pip install 'rocwheel[lock]'.")
    return uv
