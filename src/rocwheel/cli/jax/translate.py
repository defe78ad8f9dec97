"""``rocwheel jax translate``: old build commands in new words."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from rocwheel.cli.jax.group import jax_app
from rocwheel.cli.jax.translate_text import call_document, tell_calls, tell_translation
from rocwheel.cli.output.documents import print_json
from rocwheel.cli.output.logs import setup_logging
from rocwheel.cli.output.printable import in_one_line
from rocwheel.cli.parsing.shared_options import JsonOption, QuietOption, VerboseOption, shared
from rocwheel.frameworks.jax.build_py import Note
from rocwheel.frameworks.jax.commands import spell_commands
from rocwheel.frameworks.jax.translate import read_calls_of_file, translate, translate_calls
from rocwheel.frameworks.jax.words import makes_spellings, mark_variables, without_make

__all__ = ["translate_command"]


@jax_app.command("translate", context_settings={"ignore_unknown_options": True})
def translate_command(
    words: Annotated[
        list[str] | None, typer.Argument(metavar="COMMAND", help="Translate this command line, given behind --.")
    ] = None,
    file: Annotated[
        list[Path] | None,
        typer.Option(
            "--file",
            metavar="FILE",
            help="Translate the calls in this Makefile, shell script, workflow or Python file; may be repeated.",
        ),
    ] = None,
    version: Annotated[str, shared("--version", "Set the wheels' version.")] = "VERSION",
    sdk: Annotated[
        str, shared("--with", metavar="DIR", help="Verify the wheels with the SDK's packages in this folder.")
    ] = "",
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Translate a command line of rocm-jax's build/build.py: print settings, commands, and what was silently wrong.

    With --file, the calls in files are shown beside their new commands. Variables are carried over as they stand. Exit
    with 1 when a call, or what it has under a condition, can't be translated.

    Example: rocwheel jax translate -- python build/build.py build --wheels=jax-rocm-pjrt --rocm_path=/opt/rocm
    """
    setup_logging(quiet=quiet, verbose=verbose)
    if bool(words) == bool(file):
        message = "give either a command line behind --, or --file"
        raise typer.BadParameter(message)
    if file:
        _translate_files(file, version, sdk, json=json)
    else:
        _translate_words(words or [], version, sdk, json=json)


def _translate_words(words: list[str], version: str, sdk: str, *, json: bool) -> None:
    marked = [mark_variables(without_make(word)) for word in words]
    made = translate(marked, version=version, sdk=sdk)
    if notes_of_make := _notes_of_make(words):
        made = msgspec.structs.replace(made, assumed=(*made.assumed, *notes_of_make))
    commands = spell_commands(made.commands, "shell")
    if json:
        notes = {"kept": made.kept, "assumed": made.assumed, "dropped": made.dropped, "wrong": made.wrong}
        print_json("jax.translate", 1, {"settings": made.settings_text, "commands": commands, **notes})
    else:
        typer.echo(tell_translation(made, commands), nl=False)


def _notes_of_make(words: list[str]) -> tuple[Note, ...]:
    """Return a note for each spelling of make's, and print it as a warning."""
    notes = []
    for spelled in dict.fromkeys(found for word in words for found in makes_spellings(word)):
        note = Note(
            spelled,
            f"is make's spelling; a shell gets {without_make(spelled)}. Set that variable, or translate the Makefile "
            "by --file Makefile",
        )
        logging.getLogger(__name__).warning("%s %s", note.option, note.text)
        notes.append(note)
    return tuple(notes)


def _translate_files(files: list[Path], version: str, sdk: str, *, json: bool) -> None:
    made = [(path, translate_calls(read_calls_of_file(path), version=version, sdk=sdk)) for path in files]
    if json:
        documents = [
            {
                "file": str(path),
                "calls": [call_document(call) for call in found.calls],
                "undecided": list(found.undecided),
            }
            for path, found in made
        ]
        print_json("jax.translate_files", 1, {"files": documents})
    else:
        typer.echo("\n".join(tell_calls(in_one_line(str(path)), found) for path, found in made), nl=False)
    raise typer.Exit(0 if all(found.complete for _, found in made) else 1)
