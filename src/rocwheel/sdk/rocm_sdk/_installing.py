"""The commands that install packages of the set, each with where pip finds them, or open their files.

Without that, pip asks its default index, where anybody may have registered their names.
"""

from __future__ import annotations

from . import _build_info

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

UNKNOWN_INDEX = "--index-url URL  # URL is the index that you installed from"


def installation_hint(*logical: str) -> str:
    """Return the command that installs packages. As those of all hints, its comment makes it the end of a message."""
    return with_source(_command(logical))


def reinstallation_hint(*logical: str) -> str:
    """Return the command that installs packages again, for those whose files are damaged."""
    return with_source(f"{_command(logical)} --force-reinstall")


def overwriting_hint(*logical: str) -> str:
    """Return the command that installs packages over what is there, for those that pip can't uninstall."""
    return with_source(f"{_command(logical)} --ignore-installed")


def with_source(command: str) -> str:
    """Return a command of pip that says where the packages came from, as far as their installer noted that."""
    try:
        from ._distributions import name_origin  # noqa: PLC0415 (slow to import, and needed where something is wrong)
    except ImportError:  # of an installation without some of its files, which the command is to mend
        return f"{command} {UNKNOWN_INDEX}"
    return f"{command} {name_origin() or UNKNOWN_INDEX}"


def _command(logical: tuple[str, ...]) -> str:
    extras = ",".join(sorted(set(logical) - {"meta", "core"}))
    name = _build_info.PACKAGES["meta"]["dist"]
    suffix = f"[{extras}]" if extras else ""
    return f'pip install "{name}{suffix}=={_build_info.VERSION}"'


def opening_hint(*folders: Path) -> str:
    """Return the command that opens folders to all users, and who may run it.

    Installing again is no remedy: uv fails halfway where it can't list a folder, and pip leaves it behind under another
    name. Both remove a folder later only where its owner may write to it.
    """
    from shlex import quote  # noqa: PLC0415 (needed where something is wrong)

    owned, words = ", ".join(map(str, folders)), " ".join(quote(str(folder)) for folder in folders)
    return f"As the owner of {owned}: chmod -R u+rwX,go+rX {words}"
