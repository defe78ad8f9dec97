"""``rocwheel device compress``: device code made smaller."""

from __future__ import annotations

from typing import Annotated

import typer

from rocwheel.binary.bundles.compressed import HIGHEST_LEVEL
from rocwheel.binary.bundles.storage import DEFAULT_LEVEL, Storage
from rocwheel.cli.device.group import device_app
from rocwheel.cli.device.options import (
    GIB,
    ForceOption,
    LimitOption,
    OutputOption,
    Rewriting,
    RocmOption,
    SourceArgument,
    read_rewriting,
)
from rocwheel.cli.parsing.shared_options import takes

__all__ = ["compress"]


def _read_storage(
    rocm: RocmOption = "",
    header_version: Annotated[
        int | None,
        typer.Option(
            "--header-version",
            metavar="N",
            help="Write this header version, 2 or 3.",
            show_default="what most ROCm releases read",
        ),
    ] = None,
    level: Annotated[
        int | None,
        typer.Option(
            "--level",
            metavar="N",
            min=1,
            max=HIGHEST_LEVEL,
            help="Compress with this zstd level.",
            show_default=str(DEFAULT_LEVEL),
        ),
    ] = None,
    limit: LimitOption = 4,
    force: ForceOption = False,
) -> Storage:
    return Storage(
        compress=True,
        version=header_version,
        rocm=rocm,
        level=level or DEFAULT_LEVEL,
        archive_level=level,
        recompress=level is not None,
        limit=limit * GIB,
        check=True,
        accept_wrong_hash=force,
    )


@device_app.command()
@takes(storage=_read_storage, rewriting=read_rewriting)
def compress(path: SourceArgument, output: OutputOption, *, storage: Storage, rewriting: Rewriting) -> None:
    """Turn every plain bundle into a compressed one where it is; no address and no relocation changes.

    Freed space becomes a hole in the file and next to nothing in a wheel; --trim takes it out. Compressed bundles of
    version 2 are read by ROCm 6.2 and later, those of version 3 (from 4 GiB on) by ROCm 7.1 and later.

    In kpack archives each code object is compressed. What is compressed already stays, unless a level is given by which
    it becomes smaller.
    A folder is copied, with all that is below; wheels in it stay as they are.

    Example: rocwheel device compress librocsparse.so -o small/librocsparse.so --rocm 6.4
    """
    if path.is_dir():
        rewriting.rewrite_folder(path, output, None, storage)
    else:
        rewriting.rewrite(path, output, None, storage)
