"""``rocwheel torch init``: the module that loads the SDK's libraries."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rocwheel.cli.output.documents import print_text
from rocwheel.cli.output.logs import setup_logging
from rocwheel.cli.parsing.shared_options import JsonOption, QuietOption, VerboseOption, shared
from rocwheel.cli.torch.group import torch_app
from rocwheel.cli.torch.options import Lock, LockOption, SdkVersionOption
from rocwheel.frameworks.torch import initializer, initializer_for
from rocwheel.installed.reading.read_tree import read_tree
from rocwheel.repair.options import Mismatch

__all__ = ["init"]


@torch_app.command()
def init(
    sdk_version: SdkVersionOption,
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PATH", help="Load what the files of these wheels or folders need."),
    ] = None,
    lock: LockOption = Lock.EXACT,
    mismatch: Annotated[Mismatch, shared("--mismatch")] = "fail",
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Print _rocm_init.py, which loads the SDK's libraries before the package's own.

    Example: rocwheel torch init --sdk-version 7.14.0 > torch/_rocm_init.py
    """
    setup_logging(quiet=quiet, verbose=verbose)
    if paths:
        text = initializer_for(read_tree(paths).loadable, sdk_version, lock.value, mismatch)
    else:
        text = initializer(sdk_version, lock.value, mismatch)
    print_text("torch.init", text, json=json)
