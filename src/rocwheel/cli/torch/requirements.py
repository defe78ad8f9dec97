"""``rocwheel torch requirements``: the packages that a wheel of PyTorch requires."""

from __future__ import annotations

from typing import Annotated

import typer

from rocwheel.cli.output.documents import print_text
from rocwheel.cli.output.logs import setup_logging
from rocwheel.cli.parsing.completion import complete_targets
from rocwheel.cli.parsing.shared_options import JsonOption, QuietOption, VerboseOption
from rocwheel.cli.torch.group import torch_app
from rocwheel.cli.torch.options import Lock, LockOption, SdkVersionOption
from rocwheel.frameworks.torch import (
    requirements_variable,
)
from rocwheel.targets.spelling.target_set import parse_target_set

__all__ = ["requirements"]


@torch_app.command()
def requirements(
    sdk_version: SdkVersionOption,
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TARGETS",
            autocompletion=complete_targets,
            help="Require code for these GPU targets; by default those of the machine.",
        ),
    ] = None,
    lock: LockOption = Lock.EXACT,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Print the setting of PYTORCH_EXTRA_INSTALL_REQUIREMENTS: the packages that the wheel requires.

    Example: eval "export $(rocwheel torch requirements --sdk-version 7.14.0 gfx942)"
    """
    setup_logging(quiet=quiet, verbose=verbose)
    chosen = parse_target_set(targets, source="TARGETS") if targets else None
    print_text("torch.requirements", requirements_variable(sdk_version, lock.value, chosen), json=json)
