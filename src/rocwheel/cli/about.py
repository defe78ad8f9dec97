"""``rocwheel about``, ``version`` and ``help``: what this installation is, and what its commands do."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import click

import rocwheel
from rocwheel.cli.app import app, run_words
from rocwheel.cli.options import Output, complete_commands
from rocwheel.cli.output import print_json, print_text
from rocwheel.cli.parameters import argument
from rocwheel.core.messages import count

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rocwheel.environment.about import About


@app.command()
def about(
    *,
    out: Output,
) -> None:
    """Print what a bug report needs: versions, platform, codecs, and what was found of ROCm and its GPUs.

    Example: rocwheel about
    """
    from rocwheel.environment.about import read_about  # `version` needs none of it

    found = read_about(os.environ)
    if out.json:
        print_json("about", 1, found)
    else:
        print_text("\n".join(text_lines(found)))


def text_lines(found: About) -> Iterator[str]:
    """Yield the facts as lines for people, each with its label."""
    yield f"rocwheel     {found.rocwheel} in {found.folder}"
    yield f"Python       {found.python}, {found.executable}"
    yield f"platform     {found.system}; {found.libc}; {count(found.cpus, 'core')}"
    yield f"codecs       {_named(found.codecs)}"
    yield f"packages     {_named(found.packages)}"
    for prefix in found.prefixes:
        state = (prefix.version or "a folder without .info/version") if prefix.exists else "not there"
        yield f"ROCm         {prefix.named_by}: {prefix.path}: {state}"
    yield f"ROCm wheels  {_named(found.rocm_packages) or 'none installed'}"
    yield f"GPUs         {', '.join(found.gpus) or 'none found'}"
    for problem in found.problems:
        yield f"             {problem}"
    for name, value in found.environment.items():
        yield f"variable     {name}={value}"


def _named(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())


@app.command()
def version(
    *,
    out: Output,
) -> None:
    """Print the version, as --version does.

    Example: rocwheel version
    """
    if out.json:
        print_json("version", 1, {"version": rocwheel.__version__})
    else:
        click.echo(f"rocwheel {rocwheel.__version__}")


@app.command("help")
def help_(
    words: Annotated[
        list[str] | None,
        argument(metavar="COMMAND", shell_complete=complete_commands, help="Describe this command."),
    ] = None,
) -> None:
    """Print the help of rocwheel or of a command.

    Example: rocwheel help targets list
    """
    run_words([*(words or ()), "--help"])
