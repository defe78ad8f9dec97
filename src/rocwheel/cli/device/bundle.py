"""``rocwheel device bundle``: code objects as one bundle."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from rocwheel.binary.bundles.storage import DEFAULT_LEVEL, Storage
from rocwheel.cli.device.group import device_app
from rocwheel.cli.device.options import LevelOption, RocmOption
from rocwheel.cli.device.text import made_line
from rocwheel.cli.output.documents import print_json
from rocwheel.cli.output.logs import setup_logging
from rocwheel.cli.output.progress import make_progress
from rocwheel.cli.output.text import print_line
from rocwheel.cli.parsing.given_places import regular_place, regular_places
from rocwheel.cli.parsing.shared_options import JsonOption, QuietOption, VerboseOption, shared
from rocwheel.core.progress import step
from rocwheel.device.make_bundle import make_bundle

__all__ = ["bundle"]


@device_app.command()
def bundle(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE", help="Code objects, one for each target.", callback=regular_places),
    ],
    output: Annotated[Path, shared("--output")],
    *,
    compressed: Annotated[bool, typer.Option("--compress", help="Compress the bundle.")] = False,
    rocm: RocmOption = "",
    header_version: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Write this header version, 2 or 3.", show_default="what most ROCm releases read"
        ),
    ] = None,
    level: LevelOption = DEFAULT_LEVEL,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Make a bundle of code objects, which HIP loads from a file; the code for each GPU is chosen when it is loaded.

    The targets are read from the code objects. Their names don't matter.

    Example: rocwheel device bundle saxpy.gfx906.co saxpy.gfx1030.co -o saxpy.hipfb --compress
    """
    setup_logging(quiet=quiet, verbose=verbose)
    for file in files:
        regular_place(file)
    storage = Storage(compress=compressed, version=header_version, rocm=rocm, level=level)
    with step(make_progress(quiet=quiet or as_json), "bundling"):
        made = make_bundle(files, output, storage)
    if as_json:
        print_json("device-bundle", 1, msgspec.to_builtins(made))
    elif not quiet:
        print_line(made_line(made))
