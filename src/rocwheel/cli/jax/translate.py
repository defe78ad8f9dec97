"""``rocwheel jax translate``: an old build command in new words."""

from __future__ import annotations

from typing import Annotated

import typer

from rocwheel.cli.jax.group import jax_app
from rocwheel.cli.output.documents import print_json
from rocwheel.cli.output.logs import setup_logging
from rocwheel.cli.parsing.shared_options import JsonOption, QuietOption, VerboseOption, shared
from rocwheel.frameworks.jax.commands import spell_commands
from rocwheel.frameworks.jax_migration.notes import Note
from rocwheel.frameworks.jax_migration.translate import Translation, translate

__all__ = ["translate_command"]


@jax_app.command("translate", context_settings={"ignore_unknown_options": True})
def translate_command(
    words: Annotated[
        list[str], typer.Argument(metavar="COMMAND", help="Translate this command line, given behind --.")
    ],
    version: Annotated[str, shared("--version", "Set the wheels' version.")] = "VERSION",
    sdk: Annotated[
        str, shared("--with", metavar="DIR", help="Verify the wheels with the SDK's packages in this folder.")
    ] = "",
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Translate a command line of rocm-jax's build/build.py: print settings, commands, and what was silently wrong.

    Example: rocwheel jax translate -- python build/build.py build --wheels=jax-rocm-pjrt --rocm_path=/opt/rocm
    """
    setup_logging(quiet=quiet, verbose=verbose)
    made = translate(words, version=version, sdk=sdk)
    commands = spell_commands(made.commands, "shell")
    if json:
        notes = {"kept": made.kept, "assumed": made.assumed, "dropped": made.dropped, "wrong": made.wrong}
        print_json("jax.translate", 1, {"settings": made.settings_text, "commands": commands, **notes})
    else:
        typer.echo(_told(made, commands), nl=False)


def _told(made: Translation, commands: str) -> str:
    sections = [
        "# rocm.toml, for `rocwheel jax bazelrc --output rocm.bazelrc`:",
        made.settings_text,
        "# The commands:" if made.commands else "# No commands: the old command line only configured.",
        commands if made.commands else "",
    ]
    notes = {
        "What says the same": made.kept,
        "Assumed, since the command line leaves it open": made.assumed,
        "Dropped": made.dropped,
        "Silently wrong before": made.wrong,
    }
    return "\n".join([*sections, *(_noted(title, rows) for title, rows in notes.items() if rows)])


def _noted(title: str, notes: tuple[Note, ...]) -> str:
    return f"# {title}:\n" + "".join(f"#   {note.option}: {note.text}\n" for note in notes)
