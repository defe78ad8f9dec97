"""``rocwheel audit``: finds problems in finished packages."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import click
import msgspec
from rich import box
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from rocwheel.audit.audit import AuditReport, audit, check_patterns
from rocwheel.audit.finding import Severity
from rocwheel.audit.groups import Group, group_findings
from rocwheel.audit.report_files import ReportFiles, read_baseline
from rocwheel.audit.rules import ALL_RULES
from rocwheel.audit.settings import AuditSettings, find_settings
from rocwheel.build.cluster.readers import reading, shared_paths
from rocwheel.cli.app import app
from rocwheel.cli.options import (
    Output,
    SchedulerOption,
    complete_rules,
    shared,
    takes,
)
from rocwheel.cli.output import (
    first_lines,
    message_printer,
    print_json,
    printing_errors,
    report_first,
    report_warning,
    results,
)
from rocwheel.cli.parameters import argument, option
from rocwheel.cli.progress import make_progress
from rocwheel.cli.tables import print_table
from rocwheel.core.errors import InputError, RocwheelError
from rocwheel.core.messages import count, first_of, in_one_line
from rocwheel.core.workers import raise_all
from rocwheel.environment.fetch_requirements import IndexOptions, fetched_requirements
from rocwheel.environment.read_tree import UNREADABLE, WheelReading, read_environments, real_paths
from rocwheel.environment.run_path_entries import CpuLevel

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rocwheel.audit.audit import AuditReport
    from rocwheel.audit.finding import Rule
    from rocwheel.core.errors import RocwheelError


PathsArgument = Annotated[
    list[Path] | None,
    argument(metavar="PATH", help="Wheels, folders of wheels, environments, or artifacts. Not needed with --rules."),
]
WithOption = Annotated[
    list[Path] | None,
    shared("--with", "Assume that these packages are installed, but don't audit them."),
]
WithRequirementsOption = Annotated[
    bool,
    option(
        "--with-requirements",
        help="Fetch the wheels' requirements with pip or uv, and treat them like --with packages.",
    ),
]
IndexUrlOption = Annotated[
    str, option(metavar="URL", help="Fetch packages from this index.", show_default="from pip's settings")
]
FindLinksOption = Annotated[
    list[str] | None, option(metavar="PLACE", help="Fetch additional packages from this folder or page.")
]
SelectOption = Annotated[
    list[str] | None,
    option(
        "--select",
        metavar="PATTERN",
        shell_complete=complete_rules,
        help="Check only rules with these names. Patterns are accepted; --rules lists the names.",
    ),
]
IgnoreOption = Annotated[
    list[str] | None,
    option(
        "--ignore",
        metavar="PATTERN",
        shell_complete=complete_rules,
        help="Ignore rules with these names. Patterns are accepted; --rules lists the names.",
    ),
]
ConfigOption = Annotated[
    Path | None,
    shared("--config"),
]
BaselineOption = Annotated[
    Path | None,
    option("--baseline", metavar="FILE", help="Ignore the known findings in this file."),
]
UpdateBaselineOption = Annotated[bool, option(show_default=False, help="Write every finding to the baseline.")]
_EXPECT = "--expect"
_TAGS = ("rpath", "runpath")
ExpectOption = Annotated[
    list[str] | None,
    option(
        _EXPECT,
        metavar="NAME=VALUE",
        help="Require this run path or tag in every library: runpath=RUNPATH, tag=rpath, or tag=runpath.",
    ),
]
CpuLevelOption = Annotated[
    CpuLevel | None,
    option(
        advanced=True,
        help="Search the glibc-hwcaps folders for this processor level. Without this option, use the lowest level.",
    ),
]
ClosedOption = Annotated[
    bool | None,
    option(help="Assume that no other packages are installed. This is the default for environments."),
]
SarifOption = Annotated[
    Path | None, option("--sarif", metavar="FILE", help="Write the findings to this file in SARIF 2.1.0 format.")
]
RulesOption = Annotated[bool, option("--rules", help="List the selected rules and exit.")]


def read_index_options(
    with_requirements: WithRequirementsOption = False,
    index_url: IndexUrlOption = "",
    find_links: FindLinksOption = None,
) -> IndexOptions | None:
    """Return the indexes for fetching requirements, or `None` if requirements aren't fetched."""
    if not with_requirements and (index_url or find_links):
        message = "--index-url and --find-links require --with-requirements."
        raise click.BadParameter(message)
    return IndexOptions(index_url, tuple(find_links or ())) if with_requirements else None


class Configured(NamedTuple):
    """The settings, their file if there is one, and the baseline."""

    settings: AuditSettings
    settings_file: Path | None
    known_file: Path | None
    updated: Path | None
    """The path of the baseline to write, or `None`."""
    lists_rules: bool = False
    """Whether to only list the rules that the settings check."""


def configure(
    select: SelectOption = None,
    ignore: IgnoreOption = None,
    config: ConfigOption = None,
    baseline: BaselineOption = None,
    update_baseline: UpdateBaselineOption = False,
    expect: ExpectOption = None,
    cpu_level: CpuLevelOption = None,
    closed: ClosedOption = None,
    rules: RulesOption = False,
) -> Configured:
    """Return the settings. Options on the command line take precedence.

    To list the rules, use only `select` and `ignore`.
    """
    if rules:
        return _only_rules(AuditSettings(select=tuple(select or ()), ignore=tuple(ignore or ())))
    given: dict[str, object] = {**_expected(expect or ()), "closed": closed}
    given |= {"cpu_level": cpu_level, "select": tuple(select or ()) or None, "ignore": tuple(ignore or ()) or None}
    found, file = find_settings(config)
    settings = msgspec.structs.replace(found, **{name: value for name, value in given.items() if value is not None})
    check_patterns(settings)
    folder = file.parent if file else Path()
    known_file = baseline or (folder / settings.baseline if settings.baseline else None)
    return Configured(settings, file, known_file, _to_update(known_file) if update_baseline else None)


def _expected(texts: Sequence[str]) -> dict[str, str]:
    """Return the settings for ``NAME=VALUE`` words. Raises `InputError` for any other word."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or name not in {"runpath", "tag"} or (name == "tag" and value not in _TAGS):
            raise InputError(_EXPECT, f"is {text!r}", expected="runpath=RUNPATH, tag=rpath, or tag=runpath")
        found["expect_runpath" if name == "runpath" else "expect_tag"] = value
    return found


def _only_rules(settings: AuditSettings) -> Configured:
    check_patterns(settings)
    return Configured(settings, None, None, None, lists_rules=True)


def _to_update(known_file: Path | None) -> Path:
    if known_file is None:
        message = "--update-baseline requires '--baseline FILE', or 'baseline' in the settings."
        raise click.BadParameter(message)
    return known_file


_COLORS = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}


def print_report(report: AuditReport, *, quiet: bool, verbose: bool) -> None:
    """Print the findings in groups with their remedies, and the conclusion. With ``quiet``, print only errors.

    With ``verbose``, every file in a group has its own line. Otherwise, a group has at most ten lines.
    """
    for group in group_findings(report.findings):
        if group.severity is Severity.ERROR:
            with printing_errors():
                _print_group(group, verbose=verbose)
        else:
            _print_group(group, verbose=verbose)
    if not quiet:
        results.print(_conclusion(report))


def _print_group(group: Group, *, verbose: bool) -> None:
    number = sum(len(line.findings) for line in group.lines)
    findings = f" ({number:,} findings)" if number > 1 else ""
    results.print(f"[{_COLORS[group.severity]}]{group.severity.value}[/] [bold]{group.rule}[/]{findings}")
    lines, more = first_lines(group.lines, verbose=verbose)
    for line in lines:
        results.print(f"    {_plain(line.text)}")
        for finding in line.findings if verbose and len(line.findings) > 1 else ():
            results.print(f"        {_plain(f'{finding.file} {finding.found}')}")
            if finding.remedy != group.remedy:
                results.print(f"        -> {_plain(finding.remedy)}")
    if more:
        results.print(f"    {more}")
    results.print(f"    -> {_plain(group.remedy)}")


def _plain(text: str) -> str:
    return escape(in_one_line(text))


def print_rules(rules: Iterable[Rule]) -> None:
    """Print a table of rules."""
    table = Table("rule", "severity", "requirement", box=box.SIMPLE_HEAD)
    for rule in rules:
        table.add_row(rule.name, Text(rule.severity.value, _COLORS[rule.severity]), Text(rule.demand))
    print_table(table)


def _conclusion(report: AuditReport) -> str:
    counts = Counter(finding.severity for finding in report.findings)
    parts = [count(counts[severity], severity.value) for severity in Severity]
    parts += [f"{report.known} known"] if report.known else []
    what = f"{count(report.files, 'file')}, {report.libraries} of them programs and libraries"
    return f"{what}; {count(len(report.rules), 'rule')}: {', '.join(parts)}"


@app.command("audit")
@takes(index=read_index_options, configured=configure)
def audit_(
    paths: PathsArgument = None,
    with_packages: WithOption = None,
    *,
    index: IndexOptions | None,
    configured: Configured,
    sarif: SarifOption = None,
    scheduler: SchedulerOption = None,
    out: Output,
) -> None:
    """Check finished packages for problems.

    The audit checks run paths, tags, symbols, device code, metadata, and whether libraries load. It assumes that all
    packages are installed together. It ignores LD_LIBRARY_PATH, /opt/rocm, and the libraries on this machine.

    The exit status is 1 if there are errors. It is 2 if a package can't be read; the other packages are still checked.

    Example: rocwheel audit dist/
    """
    if configured.lists_rules:
        _print_rules(configured.settings, json=out.json)
        return
    if not paths:
        place, found = "rocwheel audit", "the argument PATH is missing"
        raise InputError(place, found, remedy="See rocwheel audit --help.")
    files = ReportFiles(configured.updated, sarif, configured.settings_file, configured.known_file)
    unread: list[RocwheelError] = []
    audited, context = (tuple(shared_paths(scheduler, given or ())) for given in (paths, with_packages))
    with reading(scheduler, message_printer(quiet=out.quiet)) as readers:
        files.check(real_paths((*audited, *context)))
        known = read_baseline(configured.known_file) if configured.known_file and not files.baseline else frozenset()
        fetching = fetched_requirements(audited, context, index) if index else nullcontext(())
        how, progress = WheelReading(readers=readers), make_progress(quiet=out.quiet)
        with fetching as fetched:
            environments = read_environments(audited, (*context, *fetched), progress=progress, unread=unread, how=how)
        if files.baseline:  # findings in unread files would be lost
            raise_all(UNREADABLE, unread)
        report = audit(environments, configured.settings, known)
    for pattern in report.idle_patterns:
        report_warning(f"the setting {pattern} matches no file")
    files.write(report)
    status = report_first(UNREADABLE, unread)
    if unjudged := environments.everything.unread:
        message_printer(quiet=out.quiet)(
            f"couldn't check what other packages need from these unreadable packages: {first_of(sorted(unjudged))}"
        )
    if out.json:
        print_json("audit", 1, {**msgspec.to_builtins(report), "errors": report.errors})
    else:
        print_report(report, quiet=out.quiet, verbose=out.verbose)
    if configured.updated:
        message_printer(quiet=out.quiet)(
            f"wrote {count(len(report.findings), 'known finding')} to {configured.updated}"
        )
    if status:
        raise click.exceptions.Exit(status)
    if report.errors and not configured.updated:
        raise click.exceptions.Exit(1)


def _print_rules(settings: AuditSettings, *, json: bool) -> None:
    rules = [rule for rule in ALL_RULES if settings.is_checked(rule.name)]
    if json:
        fields = ("name", "severity", "demand", "remedy")
        print_json("audit-rules", 1, {"rules": [{name: getattr(rule, name) for name in fields} for rule in rules]})
    else:
        print_rules(rules)
