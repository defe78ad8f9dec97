"""``rocwheel targets runs-on``: the code that a GPU would use."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from rocwheel.binary.code_objects.target_id import TargetId
from rocwheel.cli.output.documents import print_json
from rocwheel.cli.output.logs import setup_logging
from rocwheel.cli.output.text import print_line
from rocwheel.cli.parsing.completion import complete_targets
from rocwheel.cli.parsing.given_places import existing_places
from rocwheel.cli.parsing.shared_options import JsonOption, QuietOption, VerboseOption
from rocwheel.cli.targets.group import targets_app
from rocwheel.cli.targets.options import TargetCommand, read_targets
from rocwheel.device.reading.runs_on import FileVerdict, judge_files, opened_verdicts
from rocwheel.foundation.collecting import raise_all
from rocwheel.foundation.counting import count, first_of
from rocwheel.foundation.errors import InputError
from rocwheel.targets.catalog.catalog import is_specific
from rocwheel.targets.compatibility import Runtime
from rocwheel.targets.kernel_files.names import targets_in_path
from rocwheel.targets.spelling.target_set import TargetSet

__all__ = ["runs_on"]


@targets_app.command("runs-on", cls=TargetCommand)
def runs_on(
    gpu: Annotated[
        str,
        typer.Argument(
            metavar="GPU", autocompletion=complete_targets, help="A target, such as gfx90a:xnack-; or native."
        ),
    ],
    paths: Annotated[
        list[Path],
        typer.Argument(callback=existing_places, metavar="PATH", help="Binaries, wheels, and folders of them."),
    ],
    *,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Print which code object of each binary a GPU would use, and why, by the rules of stock and extended runtimes.

    Where that depends on a feature that GPU leaves open, each setting is judged. In folders and wheels, kernel files
    that are named for other targets are skipped. Exits with 1 when a stock runtime finds nothing to run somewhere.

    Example: rocwheel targets runs-on gfx1031 lib/librocsparse.so.1
    """
    setup_logging(quiet=quiet, verbose=verbose)
    found = judge_files(paths, _read_gpus(gpu))
    judged = {verdict.path for verdict in found}
    with_code = {path.rpartition("!")[0] for path in judged} | judged
    without_code = [str(path) for path in paths if path.is_file() and str(path) not in with_code]
    if not found:
        raise InputError(", ".join(map(str, paths)), "no device code", expected="a fat binary or a file of bundles")
    verdicts = opened_verdicts(found)
    for_others = sorted(judged - {verdict.path for verdict in verdicts})
    without_files = _without_files(found, verdicts)
    if as_json:
        rows = [_verdict_json(verdict) for verdict in verdicts]
        print_json("runs-on", 1, {"verdicts": rows, "without_code": without_code, "for_others": for_others})
    lines = [line for verdict in verdicts for line in _verdict_lines(verdict, quiet=quiet)]
    lines += [
        f"{', '.join(map(str, paths))}: {_lead(gpu, runtime)}: finds nothing, all {count(len(judged), 'file')} "
        f"with device code {'is' if len(judged) == 1 else 'are'} named for other targets: {_named_for(found)}"
        for gpu, runtime in without_files
    ]
    lines += [] if quiet else _omission_lines(without_code, len(for_others))
    for line in [] if as_json else lines:
        print_line(line)
    fails_stock = any(runtime is Runtime.STOCK for _, runtime in without_files)
    is_run = all(verdict.runs for verdict in verdicts if verdict.runtime is Runtime.STOCK) and not fails_stock
    raise typer.Exit(0 if is_run else 1)


def _without_files(found: Sequence[FileVerdict], opened: list[FileVerdict]) -> list[tuple[TargetId, Runtime]]:
    """Return for which GPU and runtime no file is opened at all."""
    left = {(verdict.gpu, verdict.runtime) for verdict in opened}
    return [pair for pair in dict.fromkeys((verdict.gpu, verdict.runtime) for verdict in found) if pair not in left]


def _named_for(found: Sequence[FileVerdict]) -> str:
    names = [str(target) for verdict in found for target in targets_in_path(verdict.place)]
    return first_of(sorted(set(names)), 8)


def _omission_lines(without_code: list[str], for_others: int) -> list[str]:
    lines = [f"{path}: no device code" for path in without_code]
    skipped = f"skipped, as named for other targets: {count(for_others, 'file')}"
    return [*lines, skipped] if for_others else lines


def _read_gpus(text: str) -> TargetSet:
    gpus = read_targets([text], source="GPU")
    found = "is a target of code, not of a GPU"
    portable = [f"{name!r} {found}" for name in gpus.processors if not is_specific(TargetId(name))]
    raise_all("GPU", [InputError("GPU", text, expected="one such as gfx90a:xnack-, or native") for text in portable])
    return gpus


def _verdict_json(verdict: FileVerdict) -> dict[str, Any]:
    uses = [
        {"code": str(use.code) if use.code else None, "fit": use.fit.value, "why": use.reason, "bundles": use.bundles}
        for use in verdict.uses
    ]
    return {
        "gpu": str(verdict.gpu),
        "path": verdict.path,
        "runtime": verdict.runtime.value,
        "runs": verdict.runs,
        "kpacked": verdict.kpacked,
        "up_to": verdict.up_to,
        "uses": uses,
    }


def _lead(gpu: TargetId, runtime: Runtime) -> str:
    return f"{gpu} on {'a stock' if runtime is Runtime.STOCK else 'an extended'} runtime"


def _verdict_lines(verdict: FileVerdict, *, quiet: bool) -> list[str]:
    until = f" up to ROCm {verdict.up_to}" if verdict.up_to else ""
    lead = f"{verdict.path}: {_lead(verdict.gpu, verdict.runtime)}{until}"
    return [
        f"{lead}: {f'uses {use.code}' if use.code else 'finds nothing'} in "
        f"{count(use.bundles, 'bundle')} ({use.reason})"
        for use in verdict.uses
        if not (quiet and use.code)
    ]
