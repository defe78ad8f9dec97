"""``rocwheel targets coherent``: whether packages carry code for the same GPUs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rocwheel.artifacts.from_deb import unfinished_packages
from rocwheel.cli.output.documents import print_json
from rocwheel.cli.output.logs import setup_logging
from rocwheel.cli.output.progress import make_progress
from rocwheel.cli.output.text import print_line
from rocwheel.cli.parsing.completion import complete_targets
from rocwheel.cli.parsing.given_places import regular_places
from rocwheel.cli.parsing.shared_options import JsonOption, QuietOption, VerboseOption
from rocwheel.cli.targets.group import targets_app
from rocwheel.cli.targets.options import expand_folders, read_targets
from rocwheel.cli.targets.text import print_target_set
from rocwheel.core.errors import InputError, RocwheelError
from rocwheel.core.progress import tracked
from rocwheel.core.workers import convert_good, raise_all
from rocwheel.installed.coherence.carriers import WheelFacts, carriers_of, find_code_gaps
from rocwheel.installed.coherence.check import Carrier, CoherenceReport, Gap, check_coherence
from rocwheel.installed.coherence.deb_carriers import deb_carriers
from rocwheel.installed.coherence.deb_facts import DebFacts, read_deb_facts
from rocwheel.installed.coherence.selector_facts import find_selectors, read_selector_facts
from rocwheel.installed.coherence.wheel_facts import read_wheel_facts
from rocwheel.installed.library_code import CodeGap, Reach
from rocwheel.targets.compatibility import covers
from rocwheel.targets.spelling.target_set import TargetSet

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["coherent"]

_PackagesArgument = Annotated[
    list[Path],
    typer.Argument(
        callback=regular_places, metavar="PACKAGE", help="Wheels, rocm's sdist and .deb files, or folders of them."
    ),
]
_RequireOption = Annotated[
    list[str] | None,
    typer.Option(
        "--require",
        metavar="TARGETS",
        autocompletion=complete_targets,
        help="Require that every package carries these targets.",
    ),
]
_ReduceOption = Annotated[bool, typer.Option("--reduce", help="Print the largest set that all packages serve.")]

_DIVIDED = "no target is served by every package with device code"


@targets_app.command()
def coherent(
    packages: _PackagesArgument,
    require: _RequireOption = None,
    *,
    reduce: _ReduceOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Check that packages which use one another carry code for the same GPUs; exit with 1 when they don't.

    With --reduce, exit with 1 when there is no such set, or when it doesn't serve what --require asks for. The exit
    status is 2 when a package can't be read, after the comparison of all others.

    Example: rocwheel targets coherent dist/ --require gfx90a,gfx1100
    """
    setup_logging(quiet=quiet, verbose=verbose)
    required = read_targets(require or [], source="--require", required=require is not None)
    unread: list[RocwheelError] = []
    progress, found = make_progress(quiet=quiet or as_json), _find_packages(packages)
    sizes = [path.stat().st_size if path.exists() else 0 for path in found]
    facts = convert_good("packages", _read_facts, tracked(progress, "reading", found, sizes), unread)
    carriers = _carriers(facts, unread)
    packed = [one for one in facts if one.places]
    misdeclared = [one.misdeclared for one in facts if isinstance(one, DebFacts) and one.misdeclared]
    unfinished = unfinished_packages([one for one in facts if isinstance(one, DebFacts)])
    report = check_coherence(carriers, required, find_code_gaps(packed, unfinished), misdeclared)
    if reduce:
        print_target_set("targets", _words(report.common), as_json=as_json)
        raise_all("packages", unread)
        raise typer.Exit(_report_shortage(report, required))
    if as_json:
        print_json("coherence", 1, _coherence_json(report))
    for line in [] if as_json else _coherence_lines(report, carriers, partly=bool(unread), quiet=quiet):
        print_line(line)
    raise_all("packages", unread)
    raise typer.Exit(0 if report.coherent else 1)


def _find_packages(paths: list[Path]) -> list[Path]:
    empty = [path for path in paths if path.is_dir() and not _expand(path)]
    expected = "a folder of files *.whl or *.deb"
    raise_all("packages", [InputError(path, "holds no wheel and no .deb", expected=expected) for path in empty])
    found = [package for path in paths for package in _expand(path)]
    return [*found, *find_selectors([path for path in paths if path.is_dir()])]


def _expand(path: Path) -> list[Path]:
    """Return the file itself, or the packages below the folder."""
    found = [package for pattern in ("*.whl", "*.deb") for package in expand_folders([path], pattern)]
    return list(dict.fromkeys(found))


def _read_facts(path: Path) -> WheelFacts | DebFacts:
    if path.suffix == ".deb":
        return read_deb_facts(path)
    if path.name.endswith(".tar.gz"):
        return read_selector_facts(path)
    if path.suffix != ".whl":
        raise InputError(path, "is not a package", expected="a wheel, rocm's sdist or a .deb file")
    return read_wheel_facts(path)


def _carriers(facts: Sequence[WheelFacts | DebFacts], unread: Sequence[RocwheelError]) -> list[Carrier]:
    """Return what is compared; raise what keeps it from being compared together with the packages not read."""
    try:
        wheels = carriers_of([one for one in facts if isinstance(one, WheelFacts)])
        return [*wheels, *deb_carriers([one for one in facts if isinstance(one, DebFacts)])]
    except RocwheelError as e:
        raise_all("packages", [*unread, e])
        raise


def _report_shortage(report: CoherenceReport, required: TargetSet) -> int:
    """Print to standard error why the reduced set is not enough; return the exit status."""
    missing = [str(target) for target in required if not covers(report.common, target)]
    reason = f"the set does not serve {', '.join(missing)}, which --require asks for" if missing else ""
    if not report.common:
        reason = _DIVIDED if report.divided else "no package has device code"
    if reason:
        print_line(reason, err=True)
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
        "unusable": [_unusable_json(gap) for gap in report.unusable],
        "leaves": [{"package": gap.package, "target": str(gap.target)} for gap in report.leaves],
        "misdeclared": [
            {"package": one.package, "declared": _words(one.declared), "carried": _words(one.carried)}
            for one in report.misdeclared
        ],
    }


def _leaf_line(gap: Gap) -> str:
    carried = ", ".join(_words(gap.carried))
    return f"{gap.package} lacks {gap.target}, which {gap.wanted_by} serves; it carries {carried}; no package needs it"


def _unusable_json(gap: CodeGap) -> dict[str, Any]:
    return {
        "package": gap.file.package,
        "file": gap.file.place,
        "targets": _words(gap.targets),
        "found": gap.found,
        "reach": gap.reach.value,
    }


def _coherence_lines(report: CoherenceReport, carriers: list[Carrier], *, partly: bool, quiet: bool) -> list[str]:
    lines = [str(finding) for finding in (*report.gaps, *report.misdeclared)]
    fails = [gap for gap in report.unusable if gap.reach is Reach.FAILS]
    lines += [f"{gap.file.package}: {gap.file.place} {gap.found}" for gap in fails]
    if report.divided:
        lines.append(_DIVIDED)
    if quiet:
        return lines
    carried = [f"{carrier.name}: {', '.join(_words(carrier.targets)) or 'no device code'}" for carrier in carriers]
    carried += [f"{gap.file.package}: {gap.file.place} {gap.found}" for gap in report.unusable if gap not in fails]
    carried += [_leaf_line(gap) for gap in report.leaves]
    absent = [f"needed, but not given, so not compared: {', '.join(report.absent)}"] if report.absent else []
    verdict = "coherent" if report.coherent else "not coherent"
    verdict += ", of what could be read" if partly else ""
    served = f"served by all: {', '.join(_words(report.common)) or 'nothing'}"
    return [
        *carried,
        *lines,
        *absent,
        f"{verdict}; {served if report.has_device_code else 'no package has device code'}",
    ]


def _words(targets: tuple[Any, ...]) -> list[str]:
    return [str(target) for target in targets]
