"""The arguments and options of ``rocwheel audit``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from rocwheel.cli.audit.fetch_requirements import IndexOptions
from rocwheel.cli.parsing.completion import complete_rules
from rocwheel.cli.parsing.shared_options import shared
from rocwheel.linking.hwcaps import CpuLevel

__all__ = [
    "BaselineOption",
    "ClosedOption",
    "ConfigOption",
    "CpuLevelOption",
    "ExpectRunpathOption",
    "ExpectTagOption",
    "IgnoreOption",
    "PathsArgument",
    "RulesOption",
    "SarifOption",
    "SelectOption",
    "UpdateBaselineOption",
    "WithOption",
    "read_index_options",
]

PathsArgument = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="PATH", help="Wheels, folders of them, environments, artifacts. Needed except with --rules."
    ),
]
WithOption = Annotated[
    list[Path] | None,
    shared("--with", "Treat these packages as installed, too, but don't audit them."),
]
WithRequirementsOption = Annotated[
    bool, typer.Option("--with-requirements", help="Fetch what the wheels require, by pip or uv, as if given --with.")
]
IndexUrlOption = Annotated[
    str, typer.Option(metavar="URL", help="Fetch from this index.", show_default="that of pip's settings")
]
FindLinksOption = Annotated[
    list[str] | None, typer.Option(metavar="PLACE", help="Fetch from this folder or page, too.")
]
SelectOption = Annotated[
    list[str] | None,
    typer.Option(
        "--select", metavar="PATTERN", autocompletion=complete_rules, help="Check only these rules (patterns)."
    ),
]
IgnoreOption = Annotated[
    list[str] | None,
    typer.Option(
        "--ignore", metavar="PATTERN", autocompletion=complete_rules, help="Leave out these rules (patterns)."
    ),
]
ConfigOption = Annotated[
    Path | None,
    shared("--config"),
]
BaselineOption = Annotated[
    Path | None,
    typer.Option("--baseline", metavar="FILE", help="Don't report the known findings that this file lists."),
]
UpdateBaselineOption = Annotated[bool, typer.Option(show_default=False, help="Write every finding to the baseline.")]
ExpectRunpathOption = Annotated[
    str | None, typer.Option("--expect-runpath", metavar="RUNPATH", help="Require this run path of every library.")
]
ExpectTagOption = Annotated[
    Literal["rpath", "runpath"] | None, typer.Option(help="Require every run path to be of this kind.")
]
CpuLevelOption = Annotated[
    CpuLevel | None,
    typer.Option(help="Search the glibc-hwcaps folders that this processor has; by default those of the oldest."),
]
ClosedOption = Annotated[
    bool | None,
    typer.Option(
        help="Assume no package and no SDK beyond the given ones; by default only for an installed environment."
    ),
]
SarifOption = Annotated[
    Path | None, typer.Option("--sarif", metavar="FILE", help="Also write the findings to this file, as SARIF 2.1.0.")
]
RulesOption = Annotated[bool, typer.Option("--rules", help="List the rules, of --select and --ignore, and exit.")]


def read_index_options(
    with_requirements: WithRequirementsOption = False,
    index_url: IndexUrlOption = "",
    find_links: FindLinksOption = None,
) -> IndexOptions | None:
    """Return where to fetch what wheels require; None where that is not asked for."""
    if not with_requirements and (index_url or find_links):
        message = "--index-url and --find-links need --with-requirements."
        raise typer.BadParameter(message)
    return IndexOptions(index_url, tuple(find_links or ())) if with_requirements else None
