"""``rocwheel device retarget``: device code offered to more GPUs."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from rocwheel.binary.bundles.storage import Storage
from rocwheel.cli.device.group import device_app
from rocwheel.cli.device.options import (
    OutputOption,
    Rewriting,
    SourceArgument,
    read_rewriting,
    read_storage,
)
from rocwheel.cli.output.consoles import messages
from rocwheel.cli.output.errors import report_warning
from rocwheel.cli.parsing.shared_options import shared, takes
from rocwheel.device.editing.retarget import Retarget, find_gaps
from rocwheel.targets.machine import native_targets
from rocwheel.targets.retarget_pairs import parse_pairs

__all__ = ["retarget"]


@device_app.command()
@takes(storage=read_storage, rewriting=read_rewriting)
def retarget(
    pair: Annotated[
        str,
        typer.Argument(
            metavar="FROM=TO[,TO...]", help="Targets in any spelling; TO may be 'extended': all that are known."
        ),
    ],
    file: SourceArgument,
    output: OutputOption,
    *,
    force: Annotated[
        bool,
        shared("--force", "Accept pairs that no rule allows and, with a warning, bundles whose hash is wrong."),
    ] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Where a bundle has code for both, make sure that it is the same.")
    ] = False,
    compressed: Annotated[
        bool, typer.Option("--compress", help="Compress plain bundles, too; this makes room.")
    ] = False,
    storage: Storage,
    rewriting: Rewriting,
) -> None:
    """Offer code for one target to GPUs that run the same instructions, so that an unmodified runtime loads it.

    A file without code for FROM is refused; bundles without it are counted in a warning, since a runtime that comes
    across one without code for its GPU may give up.

    Example: rocwheel device retarget gfx1030=gfx1031,gfx1032 librocsparse.so --compress -o more/librocsparse.so
    """
    edit = Retarget(parse_pairs(pair, force=force, native=native_targets), verify)
    gaps = find_gaps(file, edit.pairs)
    storage = msgspec.structs.replace(storage, compress=compressed, accept_wrong_hash=force)
    changed = rewriting.rewrite(file, output, edit, storage)
    for gap in () if rewriting.quiet else gaps:
        report_warning(gap)
    if not changed and not rewriting.quiet:
        messages.print(f"note: nothing to do for {pair} in {file}", markup=False)
