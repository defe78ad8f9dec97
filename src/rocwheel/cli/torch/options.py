"""The options that the commands about PyTorch share."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

__all__ = ["Lock", "LockOption", "SdkVersionOption"]

SdkVersionOption = Annotated[
    str, typer.Option("--sdk-version", metavar="VERSION", help="Set the version of the SDK's packages.")
]


class Lock(str, Enum):
    """How closely the version is locked."""

    EXACT = "exact"
    MINOR = "minor"


LockOption = Annotated[
    Lock, typer.Option("--lock", help="Accept only this version, or any with its major and minor version.")
]
