"""The file name of the wheel that an unpacked one was, by the folder ``.dist-info`` and WHEEL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.distributions.formats.wheel_headers import wheel_headers
from rocwheel.distributions.index.entries.file_name import is_distribution_name
from rocwheel.foundation.errors import InputError
from rocwheel.foundation.files.names import is_file_name
from rocwheel.foundation.messages.quoting import quoted

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["unpacked_name"]


def unpacked_name(info: Path, wheel: bytes) -> str:
    """Return a file name by the name of ``.dist-info``, the build number and all tags of WHEEL.

    Raises `InputError` for what is no name of a wheel, and for one that would be written elsewhere.
    """
    headers = wheel_headers(wheel)
    tags = [tag for tag in (value.split("-") for key, value in headers if key == "tag") if len(tag) == 3]
    build = "".join(f"-{value}" for key, value in headers if key == "build")
    compressed = "-".join(".".join(dict.fromkeys(column)) for column in zip(*tags, strict=True)) or "py3-none-any"
    name = f"{info.name.removesuffix('.dist-info')}{build}-{compressed}.whl"
    if not (is_file_name(name) and is_distribution_name(name)):
        found = f"makes the file name {quoted(name)}"
        raise InputError(info / "WHEEL", found, expected="a build number and tags that a wheel's name can have")
    return name
