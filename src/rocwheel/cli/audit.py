"""``rocwheel audit``: what is wrong with finished packages."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import click
import msgspec
from packaging.utils import canonicalize_name
from rich import box
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from rocwheel.audit.audit import AuditReport, audit, check_patterns
from rocwheel.audit.finding import Severity
from rocwheel.audit.report_files import ReportFiles, read_baseline
from rocwheel.audit.rules import ALL_RULES
from rocwheel.audit.settings import AuditSettings, find_settings
from rocwheel.build.cluster.readers import reading, shared_paths
from rocwheel.cli.app import app
from rocwheel.cli.options import JsonOption, QuietOption, SchedulerOption, VerboseOption, complete_rules, shared, takes
from rocwheel.cli.output import message_printer, print_json, report_warning, results, setup_logging
from rocwheel.cli.parameters import argument, option
from rocwheel.cli.progress import make_progress
from rocwheel.cli.tables import print_table
from rocwheel.core.errors import InputError, RocwheelError
from rocwheel.core.messages import count, in_one_line
from rocwheel.core.python import module_command
from rocwheel.core.scratch import scratch_folder
from rocwheel.core.workers import raise_all
from rocwheel.environment.read_tree import UNREADABLE, WheelReading, read_environments, real_paths
from rocwheel.environment.run_path_entries import CpuLevel
from rocwheel.wheels.file_names import is_wheel_file_name, name_and_version, split_wheel_file_name, wheel_platforms
from rocwheel.wheels.metadata import CoreMetadataError, parse_core_metadata
from rocwheel.wheels.requirements import applies, is_refusing, readable_requirements
from rocwheel.wheels.zip_directory import find_metadata, read_directory
from rocwheel.wheels.zip_reader import read_member

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rocwheel.audit.audit import AuditReport
    from rocwheel.audit.finding import Rule
    from rocwheel.core.errors import RocwheelError
    from rocwheel.core.progress import Progress
    from rocwheel.core.workers import Readers
    from rocwheel.environment.tree import Environments


_OPTION = "--with-requirements"
_PYTHON = re.compile(r"cp3(\d+)")
_MOST_LINES = 5


class IndexOptions(msgspec.Struct, frozen=True):
    """Where packages are looked for, as pip's options of these names; its variables and settings count as well."""

    index_url: str = ""
    find_links: tuple[str, ...] = ()

    @property
    def arguments(self) -> list[str]:
        """The options as pip and uv take them."""
        index = [f"--index-url={self.index_url}"] if self.index_url else []
        return [*index, *(f"--find-links={place}" for place in self.find_links)]


@contextmanager
def fetched_requirements(
    audited: Sequence[Path], context: Sequence[Path], options: IndexOptions
) -> Iterator[tuple[Path, ...]]:
    """Yield the folder where what the audited wheels require is installed, gone with the block; none for nothing.

    Raises `InputError` where neither pip nor uv is there, and for what they can't find or reconcile.
    """
    wheels = [path for path in real_paths(audited).values() if _is_wheel(path)]
    wanted = requirements_to_fetch(wheels, [*wheels, *filter(_is_wheel, real_paths(context).values())])
    if not wanted:
        yield ()
        return
    with scratch_folder(Path(tempfile.gettempdir(), "requirements")) as folder:
        site = folder / "site-packages"
        tool = _tool(site, _python_of(wheels), for_windows=_are_for_windows(wheels))
        _install([*tool, *options.arguments, *wanted])
        yield (site,) if site.is_dir() else ()


def requirements_to_fetch(wheels: Iterable[Path], given: Iterable[Path]) -> list[str]:
    """Return what wheels require of other packages than the ``given`` wheels, without markers, each once.

    Requirements of extras and those that name a URL are left out: extras are not asked for, and what a URL leads to may
    have to be built. A wheel that can't be read requires nothing: who reads all of it names it.
    """
    known = {canonicalize_name(name_and_version(path.name)[0]) for path in given}
    found: dict[str, None] = {}
    for wheel in wheels:
        for requirement in readable_requirements(_requires(wheel)):
            is_left_out = requirement.url or is_refusing(requirement) or canonicalize_name(requirement.name) in known
            if not is_left_out and applies(requirement, ("",), wheel.name):
                requirement.marker = None
                found[str(requirement)] = None
    return list(found)


def _is_wheel(path: Path) -> bool:
    return path.suffix == ".whl" and is_wheel_file_name(path.name) and path.is_file()


def _requires(wheel: Path) -> list[str]:
    with suppress(RocwheelError, CoreMetadataError):
        members = {member.name: member for member in read_directory(wheel)}
        fields, _ = parse_core_metadata(read_member(members[find_metadata(wheel, members)]))
        return fields.get("requires_dist", [])
    return []


def _python_of(wheels: Iterable[Path]) -> str:
    """Return the one Python that wheels are for, such as ``3.12``; that which runs this where any will do."""
    tags = {tag for wheel in wheels for tag in split_wheel_file_name(wheel.name).python.split(".")}
    minors = {match[1] for tag in tags if (match := _PYTHON.fullmatch(tag))}
    abi3 = any(split_wheel_file_name(wheel.name).abi == "abi3" for wheel in wheels)
    running = f"{sys.version_info.major}.{sys.version_info.minor}"
    return f"3.{minors.pop()}" if len(minors) == 1 and not abi3 else running


def _are_for_windows(wheels: Iterable[Path]) -> bool:
    """Return whether wheels are for Windows, apart from those for any platform."""
    systems = {tag.system for wheel in wheels for tag in wheel_platforms(wheel.name)}
    return "windows" in systems and systems <= {"windows", "any"}


def _tool(site: Path, python: str, *, for_windows: bool) -> list[str]:
    """Return the command that installs wheels into a folder, without the requirements: pip's, else uv's.

    For Windows uv comes first: pip evaluates the markers of what is required for the system that it runs on.
    """
    shared = ["--quiet", "--target", str(site), "--only-binary=:all:", "--python-version", python]
    uv = shutil.which("uv")
    if importlib.util.find_spec("pip") is not None and not (for_windows and uv):
        pip = [
            *module_command(sys.executable, "pip"),
            "install",
            "--no-input",
            "--no-compile",
            "--disable-pip-version-check",
        ]
        return [*pip, *shared, *(["--platform=win_amd64"] if for_windows else [])]
    if uv is not None:
        return [uv, "pip", "install", *shared, *(["--python-platform=x86_64-pc-windows-msvc"] if for_windows else [])]
    found = "needs pip or uv, and neither is installed"
    raise InputError(_OPTION, found, remedy="Install one of them, or give the packages with --with.")


def _install(command: Sequence[str]) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")] or lines
        found = f"the required packages can't be fetched ({' '.join(errors[-_MOST_LINES:])})"
        raise InputError(_OPTION, found, remedy="Check the index and --index-url, or give the packages with --with.")


PathsArgument = Annotated[
    list[Path] | None,
    argument(metavar="PATH", help="Wheels, folders of them, environments, artifacts. Needed except with --rules."),
]
WithOption = Annotated[
    list[Path] | None,
    shared("--with", "Treat these packages as installed, too, but don't audit them."),
]
WithRequirementsOption = Annotated[
    bool, option("--with-requirements", help="Fetch what the wheels require, by pip or uv, as if given --with.")
]
IndexUrlOption = Annotated[
    str, option(metavar="URL", help="Fetch from this index.", show_default="that of pip's settings")
]
FindLinksOption = Annotated[list[str] | None, option(metavar="PLACE", help="Fetch from this folder or page, too.")]
SelectOption = Annotated[
    list[str] | None,
    option("--select", metavar="PATTERN", shell_complete=complete_rules, help="Check only these rules (patterns)."),
]
IgnoreOption = Annotated[
    list[str] | None,
    option("--ignore", metavar="PATTERN", shell_complete=complete_rules, help="Leave out these rules (patterns)."),
]
ConfigOption = Annotated[
    Path | None,
    shared("--config"),
]
BaselineOption = Annotated[
    Path | None,
    option("--baseline", metavar="FILE", help="Don't report the known findings that this file lists."),
]
UpdateBaselineOption = Annotated[bool, option(show_default=False, help="Write every finding to the baseline.")]
ExpectRunpathOption = Annotated[
    str | None, option("--expect-runpath", metavar="RUNPATH", help="Require this run path of every library.")
]
ExpectTagOption = Annotated[
    Literal["rpath", "runpath"] | None, option(help="Require every run path to be of this kind.")
]
CpuLevelOption = Annotated[
    CpuLevel | None,
    option(help="Search the glibc-hwcaps folders that this processor has; by default those of the oldest."),
]
ClosedOption = Annotated[
    bool | None,
    option(help="Assume no package and no SDK beyond the given ones; by default only for an installed environment."),
]
SarifOption = Annotated[
    Path | None, option("--sarif", metavar="FILE", help="Also write the findings to this file, as SARIF 2.1.0.")
]
RulesOption = Annotated[bool, option("--rules", help="List the rules, of --select and --ignore, and exit.")]


def read_index_options(
    with_requirements: WithRequirementsOption = False,
    index_url: IndexUrlOption = "",
    find_links: FindLinksOption = None,
) -> IndexOptions | None:
    """Return where to fetch what wheels require; None where that is not asked for."""
    if not with_requirements and (index_url or find_links):
        message = "--index-url and --find-links need --with-requirements."
        raise click.BadParameter(message)
    return IndexOptions(index_url, tuple(find_links or ())) if with_requirements else None


class Configured(NamedTuple):
    """The settings, the file that they are in, if any, and the baseline."""

    settings: AuditSettings
    settings_file: Path | None
    known_file: Path | None
    updated: Path | None
    """The baseline, if it is to be written."""
    lists_rules: bool = False
    """Whether only the rules that the settings check are to be listed."""


def configure(
    select: SelectOption = None,
    ignore: IgnoreOption = None,
    config: ConfigOption = None,
    baseline: BaselineOption = None,
    update_baseline: UpdateBaselineOption = False,
    expect_runpath: ExpectRunpathOption = None,
    expect_tag: ExpectTagOption = None,
    cpu_level: CpuLevelOption = None,
    closed: ClosedOption = None,
    rules: RulesOption = False,
) -> Configured:
    """Return the settings, of which those on the command line come first; only these where the rules are asked for."""
    if rules:
        return _only_rules(AuditSettings(select=tuple(select or ()), ignore=tuple(ignore or ())))
    given: dict[str, object] = {"expect_runpath": expect_runpath, "expect_tag": expect_tag, "closed": closed}
    given |= {"cpu_level": cpu_level, "select": tuple(select or ()) or None, "ignore": tuple(ignore or ()) or None}
    found, file = find_settings(config)
    settings = msgspec.structs.replace(found, **{name: value for name, value in given.items() if value is not None})
    check_patterns(settings)
    folder = file.parent if file else Path()
    known_file = baseline or (folder / settings.baseline if settings.baseline else None)
    return Configured(settings, file, known_file, _to_update(known_file) if update_baseline else None)


def _only_rules(settings: AuditSettings) -> Configured:
    check_patterns(settings)
    return Configured(settings, None, None, None, lists_rules=True)


def _to_update(known_file: Path | None) -> Path:
    if known_file is None:
        message = "--update-baseline needs '--baseline FILE', or 'baseline' in the settings."
        raise click.BadParameter(message)
    return known_file


_MOST = 20
_COLORS = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}


def print_report(report: AuditReport, *, quiet: bool, verbose: bool) -> None:
    """Print a table of the broken rules, findings with their remedies and, unless ``quiet``, the conclusion.

    Unless ``verbose``, at most twenty findings of one rule and severity are printed.
    """
    if report.findings:
        print_table(_summary(report))
    counts = Counter((finding.rule, finding.severity) for finding in report.findings)
    printed: Counter[tuple[str, Severity]] = Counter()
    for finding in report.findings:
        kind = (finding.rule, finding.severity)
        printed[kind] += 1
        if printed[kind] > _MOST and not verbose:
            if printed[kind] == counts[kind]:
                results.print(f"and {counts[kind] - _MOST} more of {finding.rule}, which -v and --json list")
            continue
        color = _COLORS[finding.severity]
        place, found, remedy = (escape(in_one_line(text)) for text in (finding.file, finding.found, finding.remedy))
        results.print(f"[{color}]{finding.severity.value}[/] [bold]{finding.rule}[/] {place}")
        results.print(f"    {found}")
        results.print(f"    -> {remedy}")
    if not quiet:
        results.print(_conclusion(report))


def print_rules(rules: Iterable[Rule]) -> None:
    """Print a table of rules."""
    table = Table("rule", "severity", "demand", box=box.SIMPLE_HEAD)
    for rule in rules:
        table.add_row(rule.name, Text(rule.severity.value, _COLORS[rule.severity]), Text(rule.demand))
    print_table(table)


def _summary(report: AuditReport) -> Table:
    counts = Counter((finding.rule, finding.severity) for finding in report.findings)
    table = Table("severity", "rule", "findings", "demand", box=box.SIMPLE_HEAD)
    demands = {rule.name: rule.demand for rule in ALL_RULES}
    for (rule, severity), number in counts.items():
        table.add_row(Text(severity.value, _COLORS[severity]), rule, str(number), Text(demands[rule]))
    return table


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
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Check finished packages: libraries that don't load, run paths, tags, symbols, device code, metadata.

    All packages are taken to be installed together. Nothing of this machine helps them: neither LD_LIBRARY_PATH nor
    /opt/rocm nor its own libraries. Exit status 1 when there are errors; 2 when a package can't be read, after all
    others.

    Example: rocwheel audit dist/
    """
    setup_logging(quiet=quiet, verbose=verbose)
    if configured.lists_rules:
        _print_rules(configured.settings, json=json)
        return
    if not paths:
        place, found = "rocwheel audit", "the argument PATH is missing"
        raise InputError(place, found, remedy="See rocwheel audit --help.")
    files = ReportFiles(configured.updated, sarif, configured.settings_file, configured.known_file)
    with reading(scheduler, message_printer(quiet=quiet)) as readers:
        source, progress = index, make_progress(quiet=quiet)
        audited, context = (tuple(shared_paths(scheduler, given or ())) for given in (paths, with_packages))
        given_packages = _Packages(audited, context, source, progress, [], readers)
        report = _audit(given_packages, configured.settings, configured.known_file, files)
    _print(report, json=json, quiet=quiet, verbose=verbose)
    if configured.updated:
        message_printer(quiet=quiet)(f"wrote {count(len(report.findings), 'known finding')} to {configured.updated}")
    raise_all(UNREADABLE, given_packages.unread)
    if report.errors and not configured.updated:
        sys.exit(1)


class _Packages(NamedTuple):
    audited: tuple[Path, ...]
    context: tuple[Path, ...]
    source: IndexOptions | None
    progress: Progress
    unread: list[RocwheelError]
    readers: Readers | None


def _audit(packages: _Packages, settings: AuditSettings, known_file: Path | None, files: ReportFiles) -> AuditReport:
    """Audit, and write the files of the report. A baseline that is to be updated is not read first."""
    files.check(real_paths((*packages.audited, *packages.context)))
    known = read_baseline(known_file) if known_file and not files.baseline else frozenset()
    environments = _read(packages)
    if files.baseline:  # what is not read would no longer be known
        raise_all(UNREADABLE, packages.unread)
    report = audit(environments, settings, known)
    for pattern in report.idle_patterns:
        report_warning(f"the setting {pattern} matches no file")
    files.write(report)
    return report


def _read(packages: _Packages) -> Environments:
    audited, context = packages.audited, packages.context
    read = partial(
        read_environments,
        progress=packages.progress,
        unread=packages.unread,
        how=WheelReading(readers=packages.readers),
    )
    if packages.source is None:
        return read(audited, context)
    with fetched_requirements(audited, context, packages.source) as fetched:
        return read(audited, (*context, *fetched))


def _print_rules(settings: AuditSettings, *, json: bool) -> None:
    rules = [rule for rule in ALL_RULES if settings.is_checked(rule.name)]
    if json:
        fields = ("name", "severity", "demand", "remedy")
        print_json("audit-rules", 1, {"rules": [{name: getattr(rule, name) for name in fields} for rule in rules]})
    else:
        print_rules(rules)


def _print(report: AuditReport, *, json: bool, quiet: bool, verbose: bool) -> None:
    if json:
        print_json("audit", 1, {**msgspec.to_builtins(report), "errors": report.errors})
    else:
        print_report(report, quiet=quiet, verbose=verbose)
