"""The arguments and options that the commands about artifacts share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["DestDirOption", "DirectoryArgument", "NewDirOption", "TableOption"]

DirectoryArgument = Annotated[Path, typer.Argument(help="Folder of artifacts: folders, .tar.xz or .tar.zst archives.")]
DestDirOption = Annotated[Path, typer.Option(help="Write to this folder; it is created if needed.")]
NewDirOption = Annotated[Path, typer.Option(help="Write the artifacts to this folder, which must be new or empty.")]
TableOption = Annotated[Path | None, typer.Option(help="Use this import table (TOML) instead of rocwheel's own.")]
