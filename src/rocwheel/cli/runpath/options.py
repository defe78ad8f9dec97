"""The argument that commands about run paths share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["FilesArgument"]

FilesArgument = Annotated[list[Path], typer.Argument(metavar="FILE", help="ELF files.")]
