"""Translates the calls of a file, each with its conditional arguments, and lists those that can't be translated."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.errors import InputError, ProblemsError
from rocwheel.frameworks.jax.spelling import spell_line
from rocwheel.frameworks.jax_migration.reading.old_call import OldCall, OptionalWords, UndecidedCall
from rocwheel.frameworks.jax_migration.translate import Translation, translate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocwheel.frameworks.jax.commands import Command
    from rocwheel.frameworks.jax.settings import BazelSettings
    from rocwheel.frameworks.jax_migration.reading.old_call import OldCalls

__all__ = ["Addition", "TranslatedCall", "TranslatedCalls", "spell_call", "translate_calls"]


class Addition(msgspec.Struct, frozen=True):
    """What an argument that a call has under a condition changes."""

    given: OptionalWords
    new: tuple[str, ...]
    """What the new commands, or lines of ``rocm.toml``, then have besides; empty if nothing says it any more."""
    reason: str = ""
    """Why it can't be translated."""


class TranslatedCall(msgspec.Struct, frozen=True):
    """An old call beside what it means today."""

    call: OldCall
    translation: Translation
    additions: tuple[Addition, ...]


class TranslatedCalls(msgspec.Struct, frozen=True):
    """The calls of a file, in the order of their lines."""

    calls: tuple[TranslatedCall, ...]
    undecided: tuple[UndecidedCall, ...]

    @property
    def complete(self) -> bool:
        """Whether all calls are translated, with all that they have under conditions."""
        return not self.undecided and not any(item.reason for call in self.calls for item in call.additions)


def translate_calls(
    found: OldCalls, *, version: str = "VERSION", sdk: str = "", workspace: BazelSettings | None = None
) -> TranslatedCalls:
    """Translate each call as `translate` does; a call that `translate` refuses is undecided, with the reason."""
    calls, undecided = [], list(found.undecided)
    for call in found.calls:
        try:
            translation = translate(call.words, version=version, sdk=sdk, workspace=workspace)
        except (InputError, ProblemsError) as e:
            undecided.append(UndecidedCall(call.first_line, call.last_line, " ".join(str(e).split())))
            continue
        additions = [_addition(call, translation, given, version, sdk) for given in call.optional]
        calls.append(TranslatedCall(call, translation, tuple(additions)))
    undecided.sort(key=lambda item: item.first_line)
    return TranslatedCalls(tuple(calls), tuple(undecided))


def spell_call(call: OldCall, commands: Sequence[Command]) -> list[str]:
    """Return commands as lines for the place where the call stands."""
    return [spell_line(command.words, call.form, template=call.template) for command in commands]


def _addition(call: OldCall, plain: Translation, given: OptionalWords, version: str, sdk: str) -> Addition:
    try:
        other = translate([*call.words, *given.words], version=version, sdk=sdk)
    except (InputError, ProblemsError) as e:
        return Addition(given, (), " ".join(str(e).split()))
    return Addition(given, tuple(_added(call, plain, other)))


def _added(call: OldCall, plain: Translation, other: Translation) -> list[str]:
    """Return the words and lines that only the other has, each once."""
    known = {word for command in plain.commands for word in command.words}
    words = [word for command in other.commands for word in command.words if word not in known]
    lines = set(plain.settings_text.splitlines())
    settings = [f"rocm.toml: {line}" for line in other.settings_text.splitlines() if line not in lines]
    spelled = (spell_line([word], call.form, template=call.template) for word in words)
    return list(dict.fromkeys([*spelled, *settings]))
