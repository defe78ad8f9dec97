"""``rocwheel targets coherent`` and ``runs-on``: which GPUs wheels and binaries hold code for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rocwheel.binary.code_objects.target_id import TargetId
from rocwheel.cli.output import JsonOption, QuietOption, VerboseOption, print_json, setup_logging
from rocwheel.cli.targets import TargetCommand, print_target_set, read_targets, targets_app
from rocwheel.device.reading.runs_on import FileVerdict, is_named_for_others, judge_files
from rocwheel.foundation.collecting import convert_all, raise_all
from rocwheel.foundation.counting import count
from rocwheel.foundation.errors import InputError
from rocwheel.targets.catalog.catalog import is_specific
from rocwheel.targets.coherence.carriers import WheelFacts, carriers_of
from rocwheel.targets.coherence.check import Carrier, CoherenceReport, check_coherence
from rocwheel.targets.coherence.selector_facts import find_selectors, read_selector_facts
from rocwheel.targets.coherence.wheel_facts import read_wheel_facts
from rocwheel.targets.compatibility import Runtime, covers
from rocwheel.targets.machine import native_targets
from rocwheel.targets.spelling.target_set import TargetSet, parse_target_set

__all__: list[str] = []

_DIVIDED = "no target is served by every package with device code"


@targets_app.command()
def coherent(
    wheels: Annotated[
        list[Path], typer.Argument(exists=True, metavar="WHEEL...", help="Wheels and rocm's sdist, or folders of them.")
    ],
    require: Annotated[list[str] | None, typer.Option(help="Require that every package carries these targets.")] = None,
    *,
    reduce: Annotated[bool, typer.Option("--reduce", help="Print the largest set that all packages serve.")] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Check that packages which use one another carry code for the same GPUs; exit with 1 when they don't.

    With --reduce, exit with 1 when there is no such set, or when it doesn't serve what --require asks for.
    Example: rocwheel targets coherent dist/ --require gfx90a,gfx1100
    """
    setup_logging(quiet=quiet, verbose=verbose)
    required = parse_target_set(require or [], source="--require", native=native_targets, required=require is not None)
    carriers = carriers_of(convert_all("wheels", _read_facts, _find_wheels(wheels)))
    report = check_coherence(carriers, required)
    if reduce:
        print_target_set("targets", _words(report.common), as_json=as_json)
        raise typer.Exit(_report_shortage(report, required))
    if as_json:
        print_json("coherence", 1, _coherence_json(report))
    for line in [] if as_json else _coherence_lines(report, carriers, quiet=quiet):
        typer.echo(line)
    raise typer.Exit(0 if report.coherent else 1)


def _find_wheels(paths: list[Path]) -> list[Path]:
    empty = [path for path in paths if path.is_dir() and not _expand([path], "*.whl")]
    raise_all("wheels", [InputError(path, "holds no wheel", expected="a folder of files *.whl") for path in empty])
    return [*_expand(paths, "*.whl"), *find_selectors([path for path in paths if path.is_dir()])]


def _read_facts(path: Path) -> WheelFacts:
    return read_selector_facts(path) if path.name.endswith(".tar.gz") else read_wheel_facts(path)


def _report_shortage(report: CoherenceReport, required: TargetSet) -> int:
    """Print to standard error why the reduced set is not enough; return the exit status."""
    missing = [str(target) for target in required if not covers(report.common, target)]
    reason = f"the set does not serve {', '.join(missing)}, which --require asks for" if missing else ""
    if not report.common:
        reason = _DIVIDED if report.divided else "no package has device code"
    if reason:
        typer.echo(reason, err=True)
    return 1 if reason else 0


def _coherence_json(report: CoherenceReport) -> dict[str, Any]:
    gaps = [
        {"package": gap.package, "target": str(gap.target), "wanted_by": gap.wanted_by, "carried": _words(gap.carried)}
        for gap in report.gaps
    ]
    return {
        "coherent": report.coherent,
        "packages": report.packages,
        "common": _words(report.common),
        "gaps": gaps,
        "absent": report.absent,
    }


def _coherence_lines(report: CoherenceReport, carriers: list[Carrier], *, quiet: bool) -> list[str]:
    lines = [str(gap) for gap in report.gaps]
    if report.divided:
        lines.append(_DIVIDED)
    if quiet:
        return lines
    carried = [f"{carrier.name}: {', '.join(_words(carrier.targets)) or 'no device code'}" for carrier in carriers]
    absent = [f"needed, but not given, so not compared: {', '.join(report.absent)}"] if report.absent else []
    verdict = "coherent" if report.coherent else "not coherent"
    served = f"served by all: {', '.join(_words(report.common)) or 'nothing'}"
    return [
        *carried,
        *lines,
        *absent,
        f"{verdict}; {served if report.has_device_code else 'no package has device code'}",
    ]


@targets_app.command("runs-on", cls=TargetCommand)
def runs_on(
    gpu: Annotated[str, typer.Argument(metavar="GPU", help="A target, such as gfx90a:xnack-; or native.")],
    paths: Annotated[list[Path], typer.Argument(exists=True, metavar="PATH...", help="Binaries, or folders of them.")],
    *,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Print which code object of each binary a GPU would use, and why, by the rules of stock and extended runtimes.

    Where that depends on a feature that GPU leaves open, each setting is judged. In folders, kernel files that are
    named for other targets are skipped. Exits with 1 when a stock runtime finds nothing to run somewhere.
    Example: rocwheel targets runs-on gfx1031 lib/librocsparse.so.1
    """
    setup_logging(quiet=quiet, verbose=verbose)
    _refuse_wheels(paths)
    found = judge_files(_expand(paths, "*"), _read_gpus(gpu))
    judged = {verdict.path for verdict in found}
    without_code = [str(path) for path in paths if path.is_file() and str(path) not in judged]
    if not found:
        raise InputError(", ".join(map(str, paths)), "no device code", expected="a fat binary or a file of bundles")
    verdicts = [verdict for verdict in found if not is_named_for_others(_relative(verdict.path, paths), verdict.gpu)]
    for_others = sorted(judged - {verdict.path for verdict in verdicts})
    if not verdicts:
        raise InputError(", ".join(map(str, paths)), f"all device code is in files named for other GPUs than {gpu}")
    if as_json:
        rows = [_verdict_json(verdict) for verdict in verdicts]
        print_json("runs-on", 1, {"verdicts": rows, "without_code": without_code, "for_others": for_others})
    lines = [line for verdict in verdicts for line in _verdict_lines(verdict, quiet=quiet)]
    lines += [] if quiet else _omission_lines(without_code, len(for_others))
    for line in [] if as_json else lines:
        typer.echo(line)
    raise typer.Exit(0 if all(verdict.runs for verdict in verdicts if verdict.runtime is Runtime.STOCK) else 1)


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


def _refuse_wheels(paths: list[Path]) -> None:
    wheels = [path for path in paths if path.suffix == ".whl"]
    remedy = "Unpack it, and give the folder: python -m zipfile -e WHEEL FOLDER"
    raise_all("binaries", [InputError(p, "is a wheel, not a binary", remedy=remedy) for p in wheels])


def _relative(path: str, paths: list[Path]) -> str:
    """Return a file's path below the folder it was found in; empty for a named file, which is always judged."""
    if Path(path) in paths:
        return ""
    folder = next(folder for folder in paths if Path(path).is_relative_to(folder))
    return Path(path).relative_to(folder).as_posix()


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
        "uses": uses,
    }


def _verdict_lines(verdict: FileVerdict, *, quiet: bool) -> list[str]:
    lead = (
        f"{verdict.path}: {verdict.gpu} on {'a stock' if verdict.runtime is Runtime.STOCK else 'an extended'} runtime"
    )
    if verdict.kpacked:
        return [] if quiet else [f"{lead}: its code is in kpack files"]
    return [
        f"{lead}: {f'uses {use.code}' if use.code else 'finds nothing'} in "
        f"{count(use.bundles, 'bundle')} ({use.reason})"
        for use in verdict.uses
        if not (quiet and use.code)
    ]


def _expand(paths: list[Path], pattern: str) -> list[Path]:
    """Return the files themselves, and of folders those below that match."""
    found = [[path] if path.is_file() else sorted(path.rglob(pattern)) for path in paths]
    return [path for group in found for path in group if path.is_file()]


def _words(targets: tuple[Any, ...]) -> list[str]:
    return [str(target) for target in targets]
