"""``rocwheel selector``: the ``rocm`` distribution, which chooses packages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from rocwheel.build.merging.merge import merge_selectors
from rocwheel.cli.app import Group, app
from rocwheel.cli.options import JsonOption, QuietOption, VerboseOption, shared
from rocwheel.cli.output import print_json, setup_logging
from rocwheel.cli.parameters import argument, option
from rocwheel.cli.text import print_line
from rocwheel.targets.target_set import target_of_product

selector_app = Group("selector", help="The rocm distribution, which chooses packages for a machine.")
app.add_command(selector_app)


_DEFAULT = "--default-family"


@selector_app.command()
def merge(
    selectors: Annotated[
        list[Path],
        argument(
            metavar="BUILD",
            help="Of each the rocm-VERSION.tar.gz, what plan --json prints (.json), or its folder; or the URL of one.",
        ),
    ],
    dest_dir: Annotated[Path, shared("--dest-dir", "Write the one selector to this folder; it is created if needed.")],
    default_family: Annotated[
        str, option(_DEFAULT, metavar="TARGET", help="Give machines without a GPU the packages for this target.")
    ] = "",
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Make one rocm sdist of those of several builds or plans: for other GPUs, or for other platforms.

    What only some platforms have gets a marker such as sys_platform == 'linux', so that no platform's GPUs are lost.
    The same selectors give the same bytes, in any order, built or planned. They have to be of one version, with the
    same packages by the same names.

    Example: rocwheel selector merge linux/dist/rocm-7.0.0.tar.gz windows/dist/rocm-7.0.0.tar.gz --dest-dir dist
    """
    setup_logging(quiet=quiet, verbose=verbose)
    default = target_of_product(default_family, source=_DEFAULT) or default_family
    result = merge_selectors(selectors, dest_dir, default_family=default)
    if json:
        print_json("selector-merge", 1, result)
        return
    for name, platforms in result.families.items():
        print_line(f"{name}: {', '.join(platforms)}")
    if not quiet:
        print_line(f"made {result.path} of {len(result.merged)}")
