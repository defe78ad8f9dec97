"""The options that the commands about JAX share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["CheckOption", "ForceOption", "SettingsOption"]

SettingsOption = Annotated[
    Path,
    typer.Option(
        "--settings", "-s", metavar="FILE", help="Read the build's settings (TOML) from FILE.", show_default=True
    ),
]
CheckOption = Annotated[bool, typer.Option("--check", help="Write nothing; fail if anything would change.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Overwrite files that were edited by hand.")]
