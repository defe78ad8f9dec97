"""``rocwheel torch runpath``: the run path to the SDK's packages."""

from __future__ import annotations

from typing import Annotated

import typer

from rocwheel.cli.output.documents import print_text
from rocwheel.cli.output.logs import setup_logging
from rocwheel.cli.parsing.completion import complete_tools
from rocwheel.cli.parsing.shared_options import JsonOption, QuietOption, VerboseOption, shared
from rocwheel.cli.torch.group import torch_app
from rocwheel.frameworks.torch import (
    run_path_entries,
    search_folders,
    torch_folder,
)
from rocwheel.linking.link_flags import TOOLS, cmake_arguments, ldflags_setting, spell_run_path

__all__ = ["runpath"]


@torch_app.command()
def runpath(
    folder: Annotated[
        str | None,
        typer.Option(
            "--folder",
            metavar="DIR",
            help="Print it for libraries in this folder, relative to site-packages.",
            show_default=torch_folder(),
        ),
    ] = None,
    family: Annotated[
        str, typer.Option("--family", metavar="FAMILY", help="Search the libraries package of this target family.")
    ] = "",
    spell: Annotated[
        str,
        shared("--spell", autocompletion=complete_tools, text=f"Print it for another tool: one of {', '.join(TOOLS)}."),
    ] = "",
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Print LDFLAGS for PyTorch, or CMake arguments for an extension: the run path to the SDK's packages when linking.

    PyTorch's CMake files overwrite a run path given as an argument, so PyTorch needs LDFLAGS. With --folder, print
    CMake arguments for an extension.

    Example: eval "export $(rocwheel torch runpath)" && python -m build --wheel
    """
    setup_logging(quiet=quiet, verbose=verbose)
    entries = run_path_entries(search_folders(family), folder)
    spelled = ldflags_setting if folder is None else cmake_arguments
    text = f"{spell_run_path(entries, spell)}\n" if spell else spelled(entries)
    print_text("torch.runpath", text, json=json)
