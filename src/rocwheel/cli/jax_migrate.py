"""``rocwheel jax translate`` and ``migrate``: translate old build commands, and move checkouts to Bazel's rules."""

from __future__ import annotations

import logging
import sys
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click
import msgspec

from rocwheel.cli.jax import jax_app, refuse_version
from rocwheel.cli.options import Output, shared
from rocwheel.cli.output import print_json, print_line
from rocwheel.cli.parameters import argument, option
from rocwheel.core.messages import in_one_line, printable
from rocwheel.frameworks.jax.build_py import Note
from rocwheel.frameworks.jax.commands import spell_commands
from rocwheel.frameworks.jax.migrate import LAST_PHASE, Migration, apply_changes, plan_migration
from rocwheel.frameworks.jax.translate import read_calls_of_file, spell_call, translate, translate_calls
from rocwheel.frameworks.jax.words import makes_spellings, mark_variables, shown, without_make

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rocwheel.frameworks.jax.settings import SourceTree
    from rocwheel.frameworks.jax.translate import Addition, TranslatedCall, TranslatedCalls, Translation


_TITLES = {
    "kept": "Replacements",
    "assumed": "Assumptions about omitted values",
    "dropped": "Dropped",
    "wrong": "Silent errors before",
}


def tell_translation(made: Translation, commands: str) -> str:
    """Print the current equivalent of a command line."""
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


def tell_calls(file: str, found: TranslatedCalls) -> str:
    """Print the old calls in a file, each with its new commands."""
    seen: dict[str, str] = {}
    sections = [_told(file, item, seen) for item in found.calls]
    sections += [
        f"# {_place(file, item.first_line, item.last_line)}: not translated: {item.reason}\n"
        for item in found.undecided
    ]
    if not sections:
        return f"# {file}: no calls of build/build.py\n"
    return "\n".join([*sections, *_notes([item.translation for item in found.calls])])


def _told(file: str, item: TranslatedCall, seen: dict[str, str]) -> str:
    call = item.call
    place = _place(file, call.first_line, call.last_line)
    settings = item.translation.settings_text
    lines = [f"# {place}:", f"#   {' '.join(map(shown, call.words))}"]
    if settings in seen:
        lines.append(f"# rocm.toml: the same as for {seen[settings]}")
    else:
        lines += ["# rocm.toml:", settings.rstrip("\n")]
        seen[settings] = place
    commands = spell_call(call, item.translation.commands)
    lines += ["# becomes:", *commands] if commands else ["# becomes: no command, because it only configured the build"]
    lines += [line for addition in item.additions for line in _told_addition(addition)]
    return "\n".join([*lines, ""])


def _told_addition(addition: Addition) -> Iterator[str]:
    given = addition.given
    yield f"# {given.condition} (line {given.line}): {' '.join(map(shown, given.words))}"
    if addition.reason:
        yield f"#   not translated: {addition.reason}"
        return
    yield from (f"#   adds {line}" for line in addition.new or ("nothing",))


def _place(file: str, first: int, last: int) -> str:
    return f"{file}:{first}" if first == last else f"{file}:{first}-{last}"


def call_document(item: TranslatedCall) -> dict[str, Any]:
    """Return a call for the JSON document."""
    call, made = item.call, item.translation
    return {
        "first_line": call.first_line,
        "last_line": call.last_line,
        "old": [shown(word) for word in call.words],
        "form": call.form,
        "settings": made.settings_text,
        "commands": spell_call(call, made.commands),
        "additions": [_addition_document(addition) for addition in item.additions],
        "kept": made.kept,
        "assumed": made.assumed,
        "dropped": made.dropped,
        "wrong": made.wrong,
    }


def _addition_document(addition: Addition) -> dict[str, Any]:
    given = addition.given
    return {
        "line": given.line,
        "condition": given.condition,
        "old": [shown(word) for word in given.words],
        "new": list(addition.new),
        "reason": addition.reason,
    }


_VERSION = "VERSION"


class TreeChoice(str, Enum):
    """The repository that builds the wheels."""

    ROCM_JAX = "rocm-jax"
    JAX = "jax"


@jax_app.command("translate", hidden=True, context_settings={"ignore_unknown_options": True})
def translate_command(
    words: Annotated[
        list[str] | None, argument(metavar="COMMAND", help="The command line. Write -- before it.")
    ] = None,
    file: Annotated[
        list[Path] | None,
        option(
            "--file",
            metavar="FILE",
            help="Translate the calls in this Makefile, shell script, workflow, or Python file.",
        ),
    ] = None,
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

    The command prints settings, new commands, and errors that build.py made silently. With --file, it prints the calls
    in a file next to their new commands. It keeps variables unchanged. The exit status is 1 if a call or one of its
    conditional parts can't be translated.

    Example: rocwheel jax translate -- python build/build.py build --wheels=jax-rocm-pjrt --rocm_path=/opt/rocm
    """
    if bool(words) == bool(file):
        message = "pass either a command line after --, or --file"
        raise click.BadParameter(message)
    if tree is TreeChoice.JAX and version != _VERSION:
        refuse_version()
    if file:
        _translate_files(file, version, sdk, tree.value, json=out.json)
    else:
        _translate_words(words or [], version, sdk, tree.value, json=out.json)


def _translate_words(words: list[str], version: str, sdk: str, tree: SourceTree, *, json: bool) -> None:
    marked = [mark_variables(without_make(word)) for word in words]
    made = translate(marked, version=version, sdk=sdk, tree=tree)
    if notes_of_make := _notes_of_make(words):
        made = msgspec.structs.replace(made, assumed=(*made.assumed, *notes_of_make))
    commands = spell_commands(made.commands, "shell")
    if json:
        notes = {"kept": made.kept, "assumed": made.assumed, "dropped": made.dropped, "wrong": made.wrong}
        print_json("jax.translate", 1, {"settings": made.settings_text, "commands": commands, **notes})
    else:
        click.echo(tell_translation(made, commands), nl=False)


def _notes_of_make(words: list[str]) -> tuple[Note, ...]:
    """Return a note for each word in make's syntax, and print it as a warning."""
    notes = []
    for spelled in dict.fromkeys(found for word in words for found in makes_spellings(word)):
        note = Note(
            spelled,
            f"is make's syntax; the shell command has {without_make(spelled)} instead. Set that variable, or "
            "translate the Makefile with --file Makefile",
        )
        logging.getLogger(__name__).warning("%s %s", note.option, note.text)
        notes.append(note)
    return tuple(notes)


def _translate_files(files: list[Path], version: str, sdk: str, tree: SourceTree, *, json: bool) -> None:
    made = [(path, translate_calls(read_calls_of_file(path), version=version, sdk=sdk, tree=tree)) for path in files]
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
        click.echo("\n".join(tell_calls(in_one_line(str(path)), found) for path, found in made), nl=False)
    raise click.exceptions.Exit(0 if all(found.complete for _, found in made) else 1)


_CheckoutArgument = Annotated[Path, argument(metavar="CHECKOUT", help="A clean Git checkout of rocm-jax.")]
_PhaseOption = Annotated[
    int,
    option(
        "--phase",
        metavar="N",
        min=1,
        max=LAST_PHASE,
        help="Stop after this phase: 1 (prepare), 2 (switch), 3 (deprecate), or 4 (remove).",
    ),
]
_JaxOption = Annotated[
    Path | None,
    option(
        "--jax",
        metavar="DIR",
        help="Read the source of @jax from this clone, or from external/jax under Bazel's output base.",
    ),
]
_ApplyOption = Annotated[bool, option("--apply", help="Change the files instead of printing a patch.")]


@jax_app.command(hidden=True)
def migrate(
    checkout: _CheckoutArgument,
    phase: _PhaseOption = LAST_PHASE,
    jax: _JaxOption = None,
    apply: _ApplyOption = False,
    *,
    out: Output,
) -> None:
    """Print a patch that moves rocm-jax to plain Bazel.

    The patch removes build.py and patchelf from a checkout and gives a reason for each hunk.

    Example: rocwheel jax migrate rocm-jax --jax ../jax > migrate.patch
    """
    made = plan_migration(checkout, phase=phase, jax=jax)  # type: ignore[arg-type]  # the option's range ensures this
    if apply:
        apply_changes(made.root, made.changes)
    if out.json:
        edits = [{"path": edit.path, "phase": edit.phase, "reason": edit.reason} for edit in made.edits]
        patch = made.patch.decode(errors="backslashreplace")
        print_json("jax.migrate", 1, {"applied": apply, "edits": edits, "questions": made.questions, "patch": patch})
    elif apply:
        for edit in made.edits:
            print_line(f"phase {edit.phase}: {edit.path}: {edit.reason}")
    else:
        _print_patch(made)
    if not out.quiet:
        _tell(made)


def _print_patch(made: Migration) -> None:
    if sys.stdout.isatty():
        click.echo(printable(made.patch.decode(errors="backslashreplace")), nl=False)
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(made.patch)


def _tell(made: Migration) -> None:
    """Print information on standard error that isn't in the patch."""
    if not made.changes:
        print_line(f"{made.root}: nothing to change", err=True)
    for question in made.questions:
        print_line(f"asks: {question.path}:{question.line}: {question.text}", err=True)
