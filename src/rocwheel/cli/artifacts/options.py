"""The arguments and options that the commands about artifacts share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rocwheel.cli.parsing.shared_options import shared

__all__ = ["DestDirOption", "DirectoryArgument", "NewDirOption", "TableOption"]

DirectoryArgument = Annotated[
    Path, typer.Argument(metavar="DIR", help="Folder of artifacts: folders, .tar.xz or .tar.zst archives.")
]
DestDirOption = Annotated[Path, shared("--dest-dir")]
NewDirOption = Annotated[Path, shared("--dest-dir", "Write the artifacts to this folder, which must be new or empty.")]
TableOption = Annotated[
    Path | None, typer.Option("--table", metavar="FILE", help="Use this import table (TOML) instead of rocwheel's own.")
]
