"""Marked comments that ask."""

from __future__ import annotations

from rocwheel.frameworks.jax_checkout.editing.questions import Question, ask, questions_in, without_question

TEXT = "which of the two is meant here? " + "The reason is long enough for a second line, and so it is wrapped. " * 2


def test_a_question_is_found_as_it_was_asked() -> None:
    question = " ".join(TEXT.split())
    text = f"a\n{ask(TEXT, '    ')}b\n# other\n{ask('x?')}"
    assert list(questions_in("BUILD", text)) == [Question("BUILD", 2, question), Question("BUILD", 6, "x?")]
    assert without_question(text, question) == f"a\nb\n# other\n{ask('x?')}"


def test_a_question_begins_with_the_mark() -> None:
    assert ask("x?", "\t") == "\t# rocwheel asks: x?\n"
