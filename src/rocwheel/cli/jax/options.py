"""The options that the commands about JAX share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rocwheel.cli.parsing.shared_options import shared

__all__ = ["CheckOption", "ForceOption", "SettingsOption"]

SettingsOption = Annotated[
    Path,
    typer.Option(
        "--settings", "-s", metavar="FILE", help="Read the build's settings (TOML) from FILE.", show_default=True
    ),
]
CheckOption = Annotated[bool, shared("--check")]
ForceOption = Annotated[bool, shared("--force", "Overwrite files that were edited by hand.")]
