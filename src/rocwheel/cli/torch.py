"""``rocwheel torch``: prints settings for building PyTorch with the SDK's packages."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

from rocwheel.cli.app import Group, app
from rocwheel.cli.options import (
    Output,
    complete_targets,
    complete_tools,
    shared,
)
from rocwheel.cli.output import print_result
from rocwheel.cli.parameters import argument, option
from rocwheel.environment.link_flags import TOOLS, cmake_arguments, ldflags_setting, spell_run_path
from rocwheel.environment.read_tree import read_tree
from rocwheel.frameworks.torch import (
    initializer,
    initializer_for,
    requirements_variable,
    run_path_entries,
    search_folders,
    torch_folder,
)
from rocwheel.repair.options import Mismatch
from rocwheel.targets.target_set import parse_target_set

_SITE_PACKAGES = "site-packages/"
torch_app = Group("torch", help="Generate settings for a ROCm build of PyTorch.")
app.add_command(torch_app)


SdkVersionOption = Annotated[str, shared("--rocm", "Set the ROCm version, which is the version of the SDK packages.")]


class Pin(str, Enum):
    """How exactly the version is pinned."""

    EXACT = "exact"
    MINOR = "minor"


PinOption = Annotated[
    Pin, option("--pin", help="Accept only this version, or any version with the same major and minor numbers.")
]


@torch_app.command()
def init(
    rocm: SdkVersionOption,
    paths: Annotated[
        list[Path] | None,
        argument(metavar="PATH", help="Wheels or folders with the libraries to load."),
    ] = None,
    pin: PinOption = Pin.EXACT,
    mismatch: Annotated[Mismatch, shared("--mismatch")] = "fail",
    *,
    out: Output,
) -> None:
    """Print a _rocm_init.py file that loads the SDK's libraries.

    PyTorch imports this file before it loads its own libraries.

    Example: rocwheel torch init --rocm 7.14.0 > torch/_rocm_init.py
    """
    if paths:
        text = initializer_for(read_tree(paths).loadable, rocm, pin.value, mismatch)
    else:
        text = initializer(rocm, pin.value, mismatch)
    print_result("torch.init", text, json=out.json)


@torch_app.command()
def requirements(
    rocm: SdkVersionOption,
    targets: Annotated[
        list[str] | None,
        argument(
            metavar="TARGETS",
            shell_complete=complete_targets,
            help="GPU targets for the required packages. The default is the targets of this machine.",
        ),
    ] = None,
    pin: PinOption = Pin.EXACT,
    *,
    out: Output,
) -> None:
    """Print the packages that a PyTorch wheel requires.

    Set the variable PYTORCH_EXTRA_INSTALL_REQUIREMENTS to the output when you build PyTorch.

    Example: rocwheel torch requirements --rocm 7.14.0 gfx942
    """
    chosen = parse_target_set(targets, source="TARGETS") if targets else None
    print_result("torch.requirements", requirements_variable(rocm, pin.value, chosen), json=out.json)


@torch_app.command()
def runpath(
    at: Annotated[
        str | None,
        option(
            "--at",
            metavar="PLACE",
            help="Compute the run path for libraries in this folder: site-packages/PACKAGE.",
            show_default=f"{_SITE_PACKAGES}{torch_folder()}",
        ),
    ] = None,
    family: Annotated[
        str,
        option("--family", metavar="FAMILY", advanced=True, help="Use the libraries package for this target family."),
    ] = "",
    tool: Annotated[
        str,
        shared("--tool", shell_complete=complete_tools, text=f"Print the run path for this tool: {', '.join(TOOLS)}."),
    ] = "",
    *,
    out: Output,
) -> None:
    """Print linker flags with the run path to the SDK.

    For PyTorch, the command prints LDFLAGS because PyTorch's CMake files overwrite run paths from CMake arguments. With
    --at, the command prints CMake arguments for an extension.

    Example: eval "export $(rocwheel torch runpath)"
        python -m build --wheel
    """
    folder = None if at is None else at.removeprefix(_SITE_PACKAGES)
    entries = run_path_entries(search_folders(family), folder)
    spelled = ldflags_setting if folder is None else cmake_arguments
    text = f"{spell_run_path(entries, tool)}\n" if tool else spelled(entries)
    print_result("torch.runpath", text, json=out.json)
