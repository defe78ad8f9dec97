"""``rocwheel audit``: what is wrong with finished packages."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from rocwheel.audit.audit import AuditReport, audit
from rocwheel.audit.baseline import read_baseline
from rocwheel.audit.report_files import ReportFiles
from rocwheel.audit.rules import ALL_RULES
from rocwheel.audit.settings import AuditSettings
from rocwheel.build.cluster.readers import reading, shared_paths
from rocwheel.cli.audit.configure import Configured, configure
from rocwheel.cli.audit.fetch_requirements import IndexOptions, fetched_requirements
from rocwheel.cli.audit.options import PathsArgument, SarifOption, WithOption, read_index_options
from rocwheel.cli.audit.text import print_report, print_rules
from rocwheel.cli.output.consoles import teller
from rocwheel.cli.output.documents import print_json
from rocwheel.cli.output.errors import report_warning
from rocwheel.cli.output.logs import setup_logging
from rocwheel.cli.output.progress import make_progress
from rocwheel.cli.parsing.app import app
from rocwheel.cli.parsing.shared_options import JsonOption, QuietOption, SchedulerOption, VerboseOption, takes
from rocwheel.core.errors import InputError
from rocwheel.core.messages import count
from rocwheel.core.workers import raise_all
from rocwheel.installed.reading.read_tree import UNREADABLE, read_environments, real_paths
from rocwheel.installed.reading.wheel_reading import WheelReading

if TYPE_CHECKING:
    from rocwheel.core.errors import RocwheelError
    from rocwheel.core.progress import Progress
    from rocwheel.core.workers import Readers
    from rocwheel.installed.environments import Environments

__all__ = ["audit_"]


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
    with reading(scheduler, teller(quiet=quiet)) as readers:
        source, progress = index, make_progress(quiet=quiet)
        audited, context = (tuple(shared_paths(scheduler, given or ())) for given in (paths, with_packages))
        given_packages = _Packages(audited, context, source, progress, [], readers)
        report = _audit(given_packages, configured.settings, configured.known_file, files)
    _print(report, json=json, quiet=quiet, verbose=verbose)
    if configured.updated:
        teller(quiet=quiet)(f"wrote {count(len(report.findings), 'known finding')} to {configured.updated}")
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
