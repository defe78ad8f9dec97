"""``rocwheel jax translate`` and ``migrate``: translate old build commands, and move rocm-jax to Bazel's commands."""

from __future__ import annotations

import logging
import sys
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click
import msgspec

from rocwheel.cli.jax import jax_app, refuse_version
from rocwheel.cli.options import Output, shared
from rocwheel.cli.output import print_json, print_line
from rocwheel.cli.parameters import argument, option
from rocwheel.core.messages import printable
from rocwheel.frameworks.jax.build_py import Note
from rocwheel.frameworks.jax.commands import spell_commands
from rocwheel.frameworks.jax.migrate import LAST_PHASE, apply_changes, plan_migration
from rocwheel.frameworks.jax.translate import translate
from rocwheel.frameworks.jax.words import makes_spellings, mark_variables, without_make

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rocwheel.frameworks.jax.translate import Translation


_TITLES = {
    "kept": "Replacements",
    "assumed": "Assumptions about omitted values",
    "dropped": "Dropped",
    "wrong": "Previously silent errors",
}


def tell_translation(made: Translation, commands: str) -> str:
    """Return text about the current equivalent of a command line."""
    sections = [
        "# rocm.toml, for `rocwheel jax bazelrc --output rocm.bazelrc`:",
        made.settings_text,
        "# The commands:" if made.commands else "# No commands: the old command line only configured the build.",
        commands if made.commands else "",
    ]
    return "\n".join([*sections, *_notes([made])])


def _notes(translations: Iterable[Translation]) -> Iterator[str]:
    """Yield the distinct notes of all translations."""
    for field, title in _TITLES.items():
        notes: list[Note] = [note for made in translations for note in getattr(made, field)]
        if notes:
            yield f"# {title}:\n" + "".join(f"#   {note.option}: {note.text}\n" for note in dict.fromkeys(notes))


_VERSION = "VERSION"


class TreeChoice(str, Enum):
    """The repository that builds the wheels."""

    ROCM_JAX = "rocm-jax"
    JAX = "jax"


@jax_app.command("translate", hidden=True, context_settings={"ignore_unknown_options": True})
def translate_command(
    words: Annotated[list[str], argument(metavar="COMMAND", help="The command line. Write -- before it.")],
    version: Annotated[str, shared("--version", "Set the version of the wheels.")] = _VERSION,
    sdk: Annotated[
        str, shared("--with", metavar="DIR", help="Check the wheels against the SDK packages in this folder.")
    ] = "",
    tree: Annotated[
        TreeChoice, option("--tree", help="Print commands for rocm-jax, or for JAX's own tree.")
    ] = TreeChoice.ROCM_JAX,
    *,
    out: Output,
) -> None:
    """Translate a command line for rocm-jax's build/build.py.

    The command prints settings, new commands, and bugs in build.py that affect the command line. It leaves variables
    unchanged.

    Example: rocwheel jax translate -- python build/build.py build --wheels=jax-rocm-pjrt --rocm_path=/opt/rocm
    """
    if tree is TreeChoice.JAX and version != _VERSION:
        refuse_version()
    marked = [mark_variables(without_make(word)) for word in words]
    made = translate(marked, version=version, sdk=sdk, tree=tree.value)
    if notes_of_make := _notes_of_make(words):
        made = msgspec.structs.replace(made, assumed=(*made.assumed, *notes_of_make))
    commands = spell_commands(made.commands, "shell")
    if out.json:
        notes = {"kept": made.kept, "assumed": made.assumed, "dropped": made.dropped, "wrong": made.wrong}
        print_json("jax.translate", 1, {"settings": made.settings_text, "commands": commands, **notes})
    else:
        click.echo(tell_translation(made, commands), nl=False)


def _notes_of_make(words: list[str]) -> tuple[Note, ...]:
    """Return a note for each word in make's syntax, and print it as a warning."""
    notes = []
    for spelled in dict.fromkeys(found for word in words for found in makes_spellings(word)):
        note = Note(spelled, f"is make syntax; the shell command uses {without_make(spelled)}. Set that variable")
        logging.getLogger(__name__).warning("%s %s", note.option, note.text)
        notes.append(note)
    return tuple(notes)


@jax_app.command(hidden=True)
def migrate(
    checkout: Annotated[Path, argument(metavar="CHECKOUT", help="A Git checkout of rocm-jax.")],
    phase: Annotated[
        int,
        option(
            "--phase",
            metavar="N",
            min=1,
            max=LAST_PHASE,
            help="Stop after this phase: 1 (prepare), 2 (switch), 3 (deprecate), or 4 (remove).",
        ),
    ] = LAST_PHASE,
    apply: Annotated[bool, option("--apply", help="Change the files instead of printing a patch.")] = False,
    *,
    out: Output,
) -> None:
    """Print a patch that moves rocm-jax to Bazel's own commands.

    The patch removes build.py and patchelf, in four phases. It applies to the last commit before rocm-jax was
    deprecated. The command skips changes that the files already have. It stops if another file still needs build.py or
    patchelf.

    Example: rocwheel jax migrate rocm-jax > migrate.patch
    """
    made = plan_migration(checkout, phase=phase)  # type: ignore[arg-type]  # the option has this range
    if apply:
        apply_changes(made.root, made.changes)
    if out.json:
        edits = [{"path": edit.path, "phase": edit.phase, "reason": edit.why} for edit in made.edits]
        print_json("jax.migrate", 2, {"applied": apply, "edits": edits, "patch": made.patch})
    elif apply:
        for edit in made.edits:
            print_line(f"phase {edit.phase}: {edit.path}: {edit.why}")
    elif sys.stdout.isatty():
        click.echo(printable(made.patch), nl=False)
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(made.patch.encode(errors="surrogateescape"))
    if not (made.changes or out.quiet):
        print_line(f"{made.root}: nothing to change", err=True)
