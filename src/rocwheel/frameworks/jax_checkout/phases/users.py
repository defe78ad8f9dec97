"""Which files still call an old tool, and which of them no question names yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.frameworks.jax_checkout.editing.questions import Question, questions_in
from rocwheel.frameworks.jax_checkout.phases.deprecate import BUILD_PY
from rocwheel.frameworks.jax_checkout.reading.structure import WORKSPACE
from rocwheel.frameworks.jax_migration.build_py import TOOL, TOOL_PATH

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.frameworks.jax_checkout.checkout import Checkout, SourceFile

__all__ = ["callers", "untold_callers", "users"]

_DOCUMENTS = (".md", ".rst", ".txt", ".patch")
_MIXED = "Its lines end in CR LF and in LF: convert it and run this again."
_UNDECIDED = "Nothing was edited here, and so build.py stays."


def callers(checkout: Checkout) -> Iterator[tuple[str, SourceFile]]:
    """Yield the files that can call others: no documents, and nothing that rocwheel wrote."""
    for path, file in sorted(checkout.files.items()):
        if not path.endswith(_DOCUMENTS) and not path.startswith(f"{WORKSPACE}/rocm_wheel/"):
            yield path, file


def users(checkout: Checkout, path: str) -> list[str]:
    """Return the files that name a file of the workspace outside of comments, or that could not be read."""
    name = path.removeprefix(f"{WORKSPACE}/")
    found = [user for user, file in callers(checkout) if user != path and _line(file.text, name)]
    return [*found, *checkout.unread]


def untold_callers(checkout: Checkout) -> Iterator[Question]:
    """Yield a question for each file that still names build.py, unless it asks about that itself."""
    for path, reason in sorted(checkout.unread.items()):
        yield Question(path, 1, f"what becomes of what this says of build.py? The file {reason} and was not read.")
    for path, file in callers(checkout):
        line = 0 if path == BUILD_PY else _line(file.text, TOOL_PATH)
        if line and not any(TOOL in question.text for question in questions_in(path, file.text)):
            reason = _MIXED if file.is_mixed else _UNDECIDED
            yield Question(path, line, f"what becomes of this use of build.py? {reason}")


def _line(text: str, name: str) -> int:
    """Return the number of the first line that has a name outside of a comment; 0 for none."""
    lines = enumerate(text.splitlines(), 1)
    return next((number for number, line in lines if name in line and not line.lstrip().startswith("#")), 0)
