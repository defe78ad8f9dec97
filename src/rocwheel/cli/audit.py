"""``rocwheel audit``: what is wrong with finished packages."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
import typer
from rich import box
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from rocwheel.audit.audit import AuditReport, audit
from rocwheel.audit.baseline import read_baseline, write_baseline
from rocwheel.audit.finding import Severity
from rocwheel.audit.rules import ALL_RULES
from rocwheel.audit.sarif import to_sarif
from rocwheel.audit.settings import Configuration, find_configuration
from rocwheel.cli._app import app
from rocwheel.cli.output import (
    JsonOption,
    QuietOption,
    VerboseOption,
    print_json,
    print_table,
    report_warning,
    results,
    setup_logging,
)
from rocwheel.foundation.errors import InputError
from rocwheel.foundation.files import atomic_file
from rocwheel.installed.read_tree import read_environments, real_paths
from rocwheel.linking.hwcaps import CpuLevel

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["audit_"]

_REPORT_HEAD = 1 << 10
_REPORT_MARKS = (b'"schema": "rocwheel.audit-baseline/', b'"name": "rocwheel"')
_COLORS = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}


@app.command("audit")
def audit_(
    paths: Annotated[
        list[Path] | None, typer.Argument(metavar="PATH...", help="Wheels, folders of them, environments, artifacts.")
    ] = None,
    beside: Annotated[
        list[Path] | None, typer.Option("--with", help="Packages installed beside these, not audited themselves.")
    ] = None,
    select: Annotated[list[str] | None, typer.Option(help="Check only these rules (patterns).")] = None,
    ignore: Annotated[list[str] | None, typer.Option(help="Leave out these rules (patterns).")] = None,
    config: Annotated[
        Path | None, typer.Option(help="Settings: a pyproject.toml or a recipe; by default ./pyproject.toml.")
    ] = None,
    baseline: Annotated[Path | None, typer.Option(help="File of known findings, which are not reported.")] = None,
    update_baseline: Annotated[bool, typer.Option(help="Write every finding to the baseline.")] = False,
    expect_runpath: Annotated[str | None, typer.Option(help="The run path every library has to have.")] = None,
    expect_tag: Annotated[Literal["rpath", "runpath"] | None, typer.Option(help="The kind of run path.")] = None,
    cpu_level: Annotated[
        CpuLevel | None, typer.Option(help="The processor: which glibc-hwcaps folders count; by default the oldest.")
    ] = None,
    closed: Annotated[
        bool | None,
        typer.Option(help="The given packages are all there is; by default so for the SDK of an environment."),
    ] = None,
    sarif: Annotated[Path | None, typer.Option(help="Write the findings as SARIF 2.1.0, too.")] = None,
    rules: Annotated[bool, typer.Option("--rules", help="List the rules and end.")] = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Check finished packages: libraries that don't load, run paths, tags, symbols, device code, metadata.

    All packages are taken to be installed together. Nothing of this machine helps them: neither LD_LIBRARY_PATH nor
    /opt/rocm nor its own libraries. Exit status 1 when there are errors.

    Example: rocwheel audit dist/
    """
    setup_logging(quiet=quiet, verbose=verbose)
    if rules:
        print_table(_rules_table())
        return
    if not paths:
        message = "Missing argument 'PATH...'."
        raise typer.BadParameter(message)
    given: dict[str, object] = {"expect_runpath": expect_runpath, "expect_tag": expect_tag, "closed": closed}
    given |= {"cpu_level": cpu_level, "select": tuple(select or ()) or None, "ignore": tuple(ignore or ()) or None}
    configuration, base = _configure(config, {name: value for name, value in given.items() if value is not None})
    known_file = baseline or (base / configuration.baseline if configuration.baseline else None)
    if update_baseline and known_file is None:
        message = "--update-baseline needs '--baseline FILE', or 'baseline' in the settings."
        raise typer.BadParameter(message)
    new_baseline = known_file if update_baseline else None
    _check_targets((sarif, new_baseline), real_paths((*paths, *(beside or ()))))
    known = read_baseline(known_file) if known_file and not new_baseline else frozenset()
    report = audit(read_environments(paths, beside or ()), configuration, known)
    for pattern in report.idle_patterns:
        report_warning(f"the setting {pattern} matches no file")
    _write_files(report, new_baseline, sarif)
    _show(report, json=json, quiet=quiet)
    if report.errors and not update_baseline:
        sys.exit(1)


def _write_files(report: AuditReport, baseline: Path | None, sarif: Path | None) -> None:
    if baseline:
        write_baseline(baseline, report.findings)
    if sarif:
        with atomic_file(sarif) as file:
            file.write(msgspec.json.format(msgspec.json.encode(to_sarif(report))))


def _check_targets(targets: Iterable[Path | None], places: Iterable[str]) -> None:
    """Refuse to write over what is audited: the wheels and folders at the real paths ``places``, and files in these.

    And into a folder that is not there, which may be misspelled.
    """
    read = set(map(Path, places))
    for target in targets:
        if target is not None and not _is_folder(target.parent):
            raise InputError(target, f"would be written to {target.parent}", expected="a folder that exists")
        if target is None or not _is_of_others(target):
            continue
        real = target.resolve()
        if not read.isdisjoint((real, *real.parents)):
            raise InputError(target, "is itself audited", expected="another file to write to")


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False


def _is_of_others(path: Path) -> bool:
    """Tell whether something is there that doesn't begin as this command's baselines and SARIF files do."""
    try:
        if not path.is_file():
            return path.exists()
        with path.open("rb") as file:
            head = file.read(_REPORT_HEAD)
    except OSError:
        return True
    return not (head.startswith(b"{") and any(mark in head for mark in _REPORT_MARKS))


def _configure(config: Path | None, given: dict[str, object]) -> tuple[Configuration, Path]:
    configuration, folder = find_configuration(config)
    return msgspec.structs.replace(configuration, **given), folder


def _show(report: AuditReport, *, json: bool, quiet: bool) -> None:
    if json:
        print_json("audit", 1, {**msgspec.to_builtins(report), "errors": report.errors})
        return
    if report.findings:
        print_table(_summary(report))
    for finding in report.findings:
        color = _COLORS[finding.severity]
        results.print(f"[{color}]{finding.severity.value}[/] [bold]{finding.rule}[/] {escape(finding.file)}")
        results.print(f"    {escape(finding.found)}\n    -> {escape(finding.remedy)}")
    if not quiet:
        results.print(_conclusion(report))


def _summary(report: AuditReport) -> Table:
    counts = Counter((finding.rule, finding.severity) for finding in report.findings)
    table = Table("severity", "rule", "findings", "demand", box=box.SIMPLE_HEAD)
    demands = {rule.name: rule.demand for rule in ALL_RULES}
    for (rule, severity), count in counts.items():
        table.add_row(Text(severity.value, _COLORS[severity]), rule, str(count), Text(demands[rule]))
    return table


def _conclusion(report: AuditReport) -> str:
    counts = Counter(finding.severity for finding in report.findings)
    parts = [f"{counts[severity]} {severity.value}s" for severity in Severity]
    parts += [f"{report.known} known"] if report.known else []
    what = f"{report.files} files, {report.libraries} of them programs and libraries"
    return f"{what}; {len(report.rules)} rules: {', '.join(parts)}"


def _rules_table() -> Table:
    table = Table("rule", "severity", "demand", box=box.SIMPLE_HEAD)
    for rule in ALL_RULES:
        table.add_row(rule.name, Text(rule.severity.value, _COLORS[rule.severity]), Text(rule.demand))
    return table
