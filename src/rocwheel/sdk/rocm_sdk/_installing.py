"""Creates the commands that install packages of the set from their original source, or that make their files readable.

If the source isn't specified, pip uses its default index, where anyone may have registered the names.
"""

from __future__ import annotations

from . import _build_info

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

UNKNOWN_INDEX = "--index-url URL  # URL is the index that you installed from"


def installation_hint(*logical: str) -> str:
    """Return the command that installs packages.

    The command may end with a comment, so it must be at the end of a message.
    """
    return with_source(_command(logical))


def reinstallation_hint(*logical: str) -> str:
    """Return the command that reinstalls packages with damaged files."""
    return with_source(f"{_command(logical)} --force-reinstall")


def overwriting_hint(*logical: str) -> str:
    """Return the command that overwrites installed packages that pip can't uninstall."""
    return with_source(f"{_command(logical)} --ignore-installed")


def with_source(command: str) -> str:
    """Return a pip command with the source of the packages, if the installer recorded the source."""
    try:
        from ._distributions import name_origin  # noqa: PLC0415 (slow to import, and needed only if something is wrong)
    except ImportError:  # the installation lacks files, which the command restores
        return f"{command} {UNKNOWN_INDEX}"
    return f"{command} {name_origin() or UNKNOWN_INDEX}"


def _command(logical: tuple[str, ...]) -> str:
    extras = ",".join(sorted(set(logical) - {"meta", "core"}))
    name = _build_info.PACKAGES["meta"]["dist"]
    suffix = f"[{extras}]" if extras else ""
    return f'pip install "{name}{suffix}=={_build_info.VERSION}"'


def opening_hint(*folders: Path) -> str:
    """Return the command that makes folders accessible to all users, and the folders' owner, who can run the command.

    Reinstalling doesn't help. If uv can't list a folder, it fails halfway through, and pip leaves the folder behind
    under another name. After that, both tools remove a folder only if its owner may write to it.
    """
    from shlex import quote  # noqa: PLC0415 (needed only if something is wrong)

    owned, words = ", ".join(map(str, folders)), " ".join(quote(str(folder)) for folder in folders)
    return f"As the owner of {owned}: chmod -R u+rwX,go+rX {words}"
