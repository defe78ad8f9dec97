"""``rocwheel device extract``: code objects as files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rocwheel.cli.device.group import device_app
from rocwheel.cli.device.options import GIB, CodesArgument, ForceOption, LimitOption
from rocwheel.cli.output.documents import print_json
from rocwheel.cli.output.logs import setup_logging
from rocwheel.cli.output.progress import make_progress
from rocwheel.cli.output.text import print_line
from rocwheel.cli.parsing.completion import complete_targets
from rocwheel.cli.parsing.shared_options import JsonOption, QuietOption, VerboseOption, shared
from rocwheel.cli.targets.options import read_targets
from rocwheel.core.progress import step
from rocwheel.device.extract import MatchRule, extract_code

__all__ = ["extract"]

_TargetOption = Annotated[
    list[str] | None,
    shared(
        "--target",
        "Extract the code for these targets, in any spelling; by default for all.",
        autocompletion=complete_targets,
    ),
]
_RuleOption = Annotated[MatchRule, typer.Option(help="Choose the code for a target by this rule.")]
_AllowMissingOption = Annotated[bool, typer.Option("--allow-missing", help="Skip bundles without such code.")]
_DestDirOption = Annotated[Path, shared("--dest-dir", "Write the files to this folder; it is created if needed.")]


@device_app.command()
def extract(
    paths: CodesArgument,
    target: _TargetOption = None,
    *,
    rule: _RuleOption = MatchRule.EXACT,
    allow_missing: _AllowMissingOption = False,
    limit: LimitOption = 4,
    force: ForceOption = False,
    dest_dir: _DestDirOption = Path(),
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Write the code objects for targets, one file for each bundle.

    The images of an object file, and a code object by itself, count as a bundle. Of a wheel or a folder, the files are
    written to folders as there; files without code for any of the targets are passed over. Libraries that were split
    get their code from the archives beside them, or in whatever else is given, such as device wheels.

    Example: rocwheel device extract librocsparse.so --target gfx90a:xnack- --dest-dir code
    """
    setup_logging(quiet=quiet, verbose=verbose)
    targets = read_targets(target).ids if target else ()
    with step(make_progress(quiet=quiet or as_json), "extracting"):
        extracted = extract_code(
            paths,
            dest_dir,
            targets,
            rule=rule,
            allow_missing=allow_missing,
            limit=limit * GIB,
            accept_wrong_hash=force,
        )
    if as_json:
        print_json("device-extract", 1, {"files": extracted})
    elif not quiet:
        for code in extracted:
            print_line(code.path)
