"""The settings of an audit, from options and pyproject.toml: checked before any package is read."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import msgspec
import typer

from rocwheel.audit.audit import check_patterns
from rocwheel.audit.settings import AuditSettings, find_settings
from rocwheel.cli.audit.options import (
    BaselineOption,
    ClosedOption,
    ConfigOption,
    CpuLevelOption,
    ExpectRunpathOption,
    ExpectTagOption,
    IgnoreOption,
    RulesOption,
    SelectOption,
    UpdateBaselineOption,
)

__all__ = ["Configured", "configure"]


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
        raise typer.BadParameter(message)
    return known_file
