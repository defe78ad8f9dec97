"""The file name of the wheel that an unpacked one was, by the folder ``.dist-info`` and WHEEL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.core.errors import InputError
from rocwheel.core.messages import quoted
from rocwheel.core.names import is_file_name
from rocwheel.wheels.metadata import wheel_headers
from rocwheel.wheels.names import is_distribution_name, without_label

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["unpacked_name"]


def unpacked_name(info: Path, wheel: bytes) -> str:
    """Return a file name by the name of ``.dist-info``, the build number and all tags of WHEEL.

    Raises `InputError` for a build number or tags that no wheel has, and for a name that would lead elsewhere.
    """
    headers = wheel_headers(wheel)
    tags = [tag for tag in (value.split("-") for key, value in headers if key == "tag") if len(tag) == 3]
    build = "".join(f"-{value}" for key, value in headers if key == "build")
    compressed = "-".join(".".join(dict.fromkeys(column)) for column in zip(*tags, strict=True)) or "py3-none-any"
    name = f"{info.name.removesuffix('.dist-info')}{build}-{compressed}.whl"
    if not is_file_name(name) or not _is_of_wheel(f"x-1{build}-{compressed}.whl"):
        found = f"makes the file name {quoted(name)}"
        raise InputError(info / "WHEEL", found, expected="a build number and tags that a wheel's name can have")
    return name


def _is_of_wheel(name: str) -> bool:
    """Return whether a name is that of a plain wheel; a dash in a build number may make it look like a variant."""
    return is_distribution_name(name) and without_label(name) == name
