"""What ``rocwheel audit`` prints for people."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rich import box
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from rocwheel.audit.finding import Severity
from rocwheel.audit.rules import ALL_RULES
from rocwheel.cli.output.consoles import results
from rocwheel.cli.output.printable import in_one_line
from rocwheel.cli.output.tables import print_table
from rocwheel.core.messages import count

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.audit.audit import AuditReport
    from rocwheel.audit.finding import Rule

__all__ = ["print_report", "print_rules"]

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
