"""``rocwheel device prune``: device code without that for other GPUs."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from rocwheel.binary.bundles.storage import Storage
from rocwheel.cli.device.group import device_app
from rocwheel.cli.device.options import (
    ForceOption,
    OutputOption,
    PathArgument,
    Rewriting,
    read_rewriting,
    read_storage,
)
from rocwheel.cli.parsing.completion import complete_targets
from rocwheel.cli.parsing.shared_options import takes
from rocwheel.cli.targets.options import read_targets
from rocwheel.device.edit_bundles import Prune

__all__ = ["prune"]


KeepOption = Annotated[
    list[str],
    typer.Option(
        "--keep",
        "-k",
        metavar="TARGETS",
        autocompletion=complete_targets,
        help="Keep the code for these targets, in any spelling.",
    ),
]
CompressOption = Annotated[bool, typer.Option("--compress", help="Compress plain bundles, too.")]
AllowEmptyOption = Annotated[
    bool, typer.Option("--allow-empty", help="Let bundles without any code for the targets become empty.")
]


@device_app.command()
@takes(storage=read_storage, rewriting=read_rewriting)
def prune(
    path: PathArgument,
    output: OutputOption,
    keep: KeepOption,
    *,
    compressed: CompressOption = False,
    allow_empty: AllowEmptyOption = False,
    storage: Storage,
    force: ForceOption = False,
    rewriting: Rewriting,
) -> None:
    """Remove the code for all other targets from every bundle; of a folder or wheel also files for other targets.

    A target without features keeps all variants of its processor. A folder is copied, with all that is below;
    wheels in it that have device code are refused, as each is pruned by itself.

    Example: rocwheel device prune librocsparse.so --keep gfx90a,gfx1030 -o small/librocsparse.so
    """
    edit = Prune(tuple(read_targets(keep)), allow_empty)
    storage = msgspec.structs.replace(storage, compress=compressed, accept_wrong_hash=force)
    if path.is_dir():
        rewriting.rewrite_folder(path, output, edit, storage)
    else:
        rewriting.rewrite(path, output, edit, storage)
