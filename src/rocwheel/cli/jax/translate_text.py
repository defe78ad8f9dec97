"""What ``rocwheel jax translate`` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rocwheel.frameworks.jax.translate import spell_call
from rocwheel.frameworks.jax.words import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rocwheel.frameworks.jax.build_py import Note
    from rocwheel.frameworks.jax.translate import Addition, TranslatedCall, TranslatedCalls, Translation

__all__ = ["call_document", "tell_calls", "tell_translation"]

_TITLES = {
    "kept": "What says the same",
    "assumed": "Assumed, since the command line leaves it open",
    "dropped": "Dropped",
    "wrong": "Silently wrong before",
}


def tell_translation(made: Translation, commands: str) -> str:
    """Return what a command line means today."""
    sections = [
        "# rocm.toml, for `rocwheel jax bazelrc --output rocm.bazelrc`:",
        made.settings_text,
        "# The commands:" if made.commands else "# No commands: the old command line only configured.",
        commands if made.commands else "",
    ]
    return "\n".join([*sections, *_notes([made])])


def _notes(translations: Iterable[Translation]) -> Iterator[str]:
    """Yield the notes of all translations, each once."""
    for field, title in _TITLES.items():
        notes: list[Note] = [note for made in translations for note in getattr(made, field)]
        if notes:
            yield f"# {title}:\n" + "".join(f"#   {note.option}: {note.text}\n" for note in dict.fromkeys(notes))


def tell_calls(file: str, found: TranslatedCalls) -> str:
    """Return the old calls of a file, each beside its new commands."""
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
        lines.append(f"# rocm.toml: as for {seen[settings]}")
    else:
        lines += ["# rocm.toml:", settings.rstrip("\n")]
        seen[settings] = place
    commands = spell_call(call, item.translation.commands)
    lines += ["# becomes:", *commands] if commands else ["# becomes: no command, since it only configured"]
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
    """Return a call as it stands in the JSON document."""
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
