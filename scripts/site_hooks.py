"""What mkdocs adds to the pages: the options of all commands as a page, the tables of rules, and the version."""

from __future__ import annotations

import html
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click
from mkdocs.structure.files import File, Files

import rocwheel
from rocwheel.cli import load_commands
from rocwheel.cli.app import app
from rocwheel.cli.parameters import advanced_records

sys.path.insert(0, str(Path(__file__).parents[1]))  # for the modules beside this one
from scripts.json_tables import table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mkdocs.config.defaults import MkDocsConfig

PAGE = "options.md"
_ADVANCED = (
    "Generated build files, scripts, and rare cases use these commands and options. `--help` doesn't list them. "
    "`rocwheel COMMAND --help --verbose` prints the advanced options of a command."
)
_SHORT_CODE = re.compile(r"<code>([^<\n]{1,30})</code>")
_JSON = re.compile(r"^<!-- json: (.+) -->$", re.MULTILINE)
_RULES_TABLE = '<div class="rules" markdown>\n\n{}\n\n</div>'
_RULES = re.compile(r"^<!-- rules: (.+) -->$", re.MULTILINE)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Give the theme the version of rocwheel."""
    config.extra["version_text"] = rocwheel.__version__
    config.copyright = f'<a href="{config.repo_url}">rocwheel</a> {rocwheel.__version__}'
    return config


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the page on options, which no file has."""
    files.append(File.generated(config, PAGE, content=options_page()))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Put tables of rules and of JSON documents into a page."""
    return with_rules(_JSON.sub(lambda found: table(found[1]), markdown))


def on_page_content(html: str, **_: object) -> str:
    """Mark short code in sentences, so that no line ends after the hyphens of an option."""
    return _SHORT_CODE.sub(r'<code class="short">\1</code>', html)


def with_rules(markdown: str) -> str:
    """Return a page with a table for each line such as ``<!-- rules: audit.rules.tags diff.breaking -->``.

    The table has the rules in these modules' ``RULES``.
    """
    return _RULES.sub(lambda found: _RULES_TABLE.format("\n".join(_rule_rows(found[1].split()))), markdown)


def _rule_rows(modules: list[str]) -> Iterator[str]:
    rules = [rule for name in modules for rule in import_module(f"rocwheel.{name}").RULES]
    has_remedies = all(hasattr(rule, "remedy") for rule in rules)
    yield "| rule | severity | requirement |" + " remedy |" * has_remedies
    yield "|---|---|---|" + "---|" * has_remedies
    for rule in rules:
        remedy = f" {_markdown(rule.remedy)} |" if has_remedies else ""
        place = f'<a id="{rule.name}"></a>`{rule.name}`'
        yield f"| {place} | {rule.severity.value} | {_markdown(rule.demand)} |{remedy}"


def options_page() -> str:
    """Return the arguments and options of every command, as a page in Markdown."""
    load_commands()
    parts = [
        "---\nsearch:\n  boost: 1.5\n---",
        "# Options of all commands",
        (
            f"This page lists the arguments and options of each command in rocwheel {rocwheel.__version__}. "
            "`rocwheel COMMAND --help` prints the same texts."
        ),
        "\n".join(_summaries()),
    ]
    for words, command in commands(app, ("rocwheel",)):
        context = click.Context(command, info_name=" ".join(words))
        usage = " ".join([*words, *command.collect_usage_pieces(context)])
        parts += [f"## {' '.join(words)}", _markdown(_summary(command)), f"```text\n{usage}\n```"]
        parts += _table(command, context)
    parts += ["## Advanced options", _ADVANCED]
    for words, command in commands(app, ("rocwheel",), hidden=True):
        context = click.Context(command, info_name=" ".join(words))
        if command.hidden:
            usage = " ".join([*words, *command.collect_usage_pieces(context)])
            parts += [f"### {' '.join(words)}", _markdown(_summary(command)), f"```text\n{usage}\n```"]
            parts += _table(command, context)
        if rows := advanced_records(command, context):
            title = [] if command.hidden else [f"### Advanced options of {' '.join(words)}"]
            parts += [*title, _rows(rows)]
    return "\n\n".join(parts) + "\n"


def _summaries() -> Iterator[str]:
    yield "| command | task |"
    yield "|---|---|"
    for words, command in commands(app, ("rocwheel",)):
        yield f"| [`{' '.join(words[1:])}`](#{'-'.join(words)}) | {_markdown(_summary(command))} |"


def commands(
    group: click.Group, words: tuple[str, ...], *, hidden: bool = False
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield the commands below a group, each with the words that call it; those that are not hidden, or all."""
    for name, command in group.commands.items():
        if command.hidden and not hidden:
            continue
        if isinstance(command, click.Group):
            yield from commands(command, (*words, name), hidden=hidden)
        else:
            yield (*words, *name.split()), command


def _summary(command: click.Command) -> str:
    return " ".join((command.help or "").partition("\n\n")[0].split())


def _table(command: click.Command, context: click.Context) -> list[str]:
    records = [parameter.get_help_record(context) for parameter in command.get_params(context)]
    rows = [record for record in records if record]
    return [_rows(rows)] if rows else []


def _rows(records: Iterable[tuple[str, str]]) -> str:
    rows = [f"| {_code(names)} | {_markdown(text)} |" for names, text in records]
    return "\n".join(["| option | meaning |", "|---|---|", *rows])


def _code(text: str) -> str:
    # In a table, Python-Markdown shows a backslash before a bar in backticks.
    return f"<code>{html.escape(text, quote=False).replace('|', '&#124;')}</code>"


def _markdown(text: str) -> str:
    """Return a plain text as Markdown that shows it; options are code."""
    escaped = re.sub(r"([\\*_|\[\]])", r"\\\1", html.escape(text, quote=False))
    return re.sub(r"(?<![\w-])--[a-z][a-z-]*", lambda found: f"`{found[0]}`", escaped)
