"""Replaces the calls of build.py in a checkout's Makefiles, scripts, and workflows, if their meaning is clear."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from rocwheel.core.decoding import decode_toml
from rocwheel.core.errors import InputError
from rocwheel.frameworks.jax.build_py import TOOL, TOOL_PATH
from rocwheel.frameworks.jax.calls import folded_step
from rocwheel.frameworks.jax.checkout import WORKSPACE, Structure
from rocwheel.frameworks.jax.editing import Draft, Question, ask, questions_in
from rocwheel.frameworks.jax.settings import BazelSettings, check_settings
from rocwheel.frameworks.jax.translate import caller_kind, read_old_calls, spell_call, translate_calls
from rocwheel.frameworks.jax.words import has_references, lookup

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.frameworks.jax.checkout import Checkout, SourceFile
    from rocwheel.frameworks.jax.translate import CallerKind, TranslatedCall, TranslatedCalls


SETTINGS = f"{WORKSPACE}/rocm.toml"


class Plan(msgspec.Struct, frozen=True):
    """A migration in progress."""

    draft: Draft
    structure: Structure
    rules: dict[str, str]
    """The files of the package ``rocm_wheel``, keyed by name."""
    declaration: str
    """The lines that declare the package in ``WORKSPACE``."""
    jax_build: str = ""
    """The BUILD file of ``@jax//jaxlib/rocm`` after the workspace's patches. Empty if JAX's source isn't available."""

    @property
    def settings(self) -> BazelSettings:
        """The settings in ``rocm.toml``. Raises `InputError` or `ProblemsError` for invalid settings."""
        try:
            settings = decode_toml(self.draft.text(SETTINGS).encode(errors="surrogateescape"), BazelSettings)
        except msgspec.DecodeError as e:
            found, remedy = f"doesn't contain valid settings: {e}", "See docs/jax.md for the fields."
            raise InputError(SETTINGS, found, remedy=remedy) from e
        check_settings(settings, SETTINGS)
        return settings


BUILD_PY = f"{WORKSPACE}/{TOOL_PATH}"

_DOCUMENTS = (".md", ".rst", ".txt", ".patch")
_MIXED = "The file mixes CR LF and LF line endings: convert the file, and run this command again."
_UNDECIDED = "This file wasn't edited, so build.py stays."


def callers(checkout: Checkout) -> Iterator[tuple[str, SourceFile]]:
    """Yield the files that can call other files. Documents and files that rocwheel wrote are left out."""
    for path, file in sorted(checkout.files.items()):
        if not path.endswith(_DOCUMENTS) and not path.startswith(f"{WORKSPACE}/rocm_wheel/"):
            yield path, file


def users(checkout: Checkout, path: str) -> list[str]:
    """Return the files that mention a workspace file outside of comments, and the files that couldn't be read."""
    name = path.removeprefix(f"{WORKSPACE}/")
    found = [user for user, file in callers(checkout) if user != path and _line(file.text, name)]
    return [*found, *checkout.unread]


def untold_callers(checkout: Checkout) -> Iterator[Question]:
    """Yield a question for each file that still mentions build.py and doesn't already have such a question."""
    for path, reason in sorted(checkout.unread.items()):
        yield Question(
            path, 1, f"what should replace the use of build.py in this file? The file {reason} and wasn't read."
        )
    for path, file in callers(checkout):
        line = 0 if path == BUILD_PY else _line(file.text, TOOL_PATH)
        if line and not any(TOOL in question.text for question in questions_in(path, file.text)):
            reason = _MIXED if file.is_mixed else _UNDECIDED
            yield Question(path, line, f"what should replace this use of build.py? {reason}")


def _line(text: str, name: str) -> int:
    """Return the number of the first line with this name outside of a comment, or 0 if there is no such line."""
    lines = enumerate(text.splitlines(), 1)
    return next((number for number, line in lines if name in line and not line.lstrip().startswith("#")), 0)


VERSION_FILE = f"{WORKSPACE}/pjrt/python/version.py"
"""The file with the wheels' version."""

_VERSION = re.compile(r'^_version *= *"[^"]*"', re.MULTILINE)
_LOOKUP = ("sed", "-n", r's/^_version *= *"\([^"]*\)".*/\1/p', "pjrt/python/version.py")
_CALL = re.compile(r"[\t ]*[@+-]*(?:[A-Za-z_]\w*=\S*[\t ]+)*python[0-9.]*[\t ]+(?:\./)?build/build\.py\b[^;&|<>`]*")
"""A call without other text on its lines."""
_WORKFLOW_LINES = [
    *ask("is rocwheel installed on the machine that runs this?").splitlines(),
    "rocwheel jax bazelrc --check --settings rocm.toml --output rocm.bazelrc",
]
"""Lines before the first call in a workflow. They make the workflow fail if the fragment doesn't match the settings."""
_ASKED = "only a person can decide how to replace this call"
_REPLACED = "Bazel builds with its own settings, and rocwheel assembles the wheels"
_REFERENCE = re.compile(r"\$\{\{.*?\}\}|\$\{[^}]*\}|\$\([\w.-]+\)")
_TRIPLE_QUOTE = re.compile(r"([a-zA-Z]{0,2})(?:\"\"\"|''')")
_STEP = re.compile(r"(?P<indent>[\t ]*)(?P<dash>- )?run:[\t ]+(?P<command>[^|>].*)", re.DOTALL)
_FOLDER = re.compile(r"(?:^|[\s;&(])(?:cd|pushd|working-directory:)[\t ]+[\"']?([^\s\"';&)]+)|\bpopd\b", re.MULTILINE)

_Edit = tuple[int, int, list[str], str]
"""The first replaced line, the line after the last replaced line, the new lines, and the reason."""


def replace_callers(plan: Plan) -> None:
    """Replace each call of build.py whose meaning is clear from its file. Add questions above the other calls.

    A script with an unclosed quote stays unchanged, because its calls can't be located.
    """
    # The commands look up the version when they run.
    version = lookup(*_LOOKUP) if _VERSION.search(plan.draft.text(VERSION_FILE)) else "VERSION"
    for path, file in sorted(plan.draft.checkout.files.items()):
        if path == BUILD_PY or TOOL not in file.text or file.is_mixed:
            continue
        try:
            kind = caller_kind(file.text, path)
            found = translate_calls(read_old_calls(file.text, path), version=version, workspace=plan.settings)
        except InputError:
            continue
        if not any(item.is_broken for item in found.undecided):
            _edit(plan, path, kind, found)


def _edit(plan: Plan, path: str, kind: CallerKind, found: TranslatedCalls) -> None:
    """Replace the calls in a file from the last to the first, so that earlier line numbers stay valid."""
    lines = plan.draft.text(path).split("\n")
    asked = [question.text for question in questions_in(path, plan.draft.text(path))]
    edits: list[_Edit] = []
    for call in found.calls:
        place = _place(kind, lines, call.call.first_line, call.call.last_line)
        reasons = list(_reasons(plan.settings, path, kind, call, lines))
        if reasons:
            new = _question(call, place.line, "; ".join(reasons), asked)
            edits.append((place.first, place.first, new, _ASKED))
        else:
            is_first = kind == "workflow" and not any(old.call.first_line < call.call.first_line for old in found.calls)
            new = _new_lines(call, place.line, _WORKFLOW_LINES if is_first else [])
            edits.append((place.first, place.last, new, _REPLACED))
    edits += _questions_on_undecided(kind, lines, found, asked)
    for first, last, new, reason in sorted(edits, reverse=True):
        lines[first:last] = new
        plan.draft.put(path, "\n".join(lines), reason)


def _questions_on_undecided(
    kind: CallerKind, lines: list[str], found: TranslatedCalls, asked: list[str]
) -> Iterator[_Edit]:
    """Yield a question for each call that can't be translated."""
    for undecided in found.undecided:
        place = _place(kind, lines, undecided.first_line, undecided.last_line)
        if not any(TOOL in line for line in lines[place.first : undecided.last_line]):
            continue  # The call runs another file of the checkout. That file is also read.
        new = _asked(f"what should replace this call of build.py? {undecided.reason}.", place.line, asked)
        yield place.first, place.first, new, _ASKED


class _Place(NamedTuple):
    """The lines that an edit replaces."""

    first: int
    last: int
    line: str
    """The first line. If YAML joins the lines, a line with the whole call."""
    text: str
    is_joined: bool = False
    """Whether YAML joins these lines with other lines."""


def _place(kind: CallerKind, lines: list[str], first_line: int, last_line: int) -> _Place:
    first, text = first_line - 1, " ".join(line.rstrip("\\") for line in lines[first_line - 1 : last_line])
    step = folded_step(lines, first, last_line) if kind == "workflow" else None
    if step is None:
        return _Place(first, last_line, lines[first], text)
    if not step.is_whole:
        return _Place(step.head, last_line, lines[step.head], text, is_joined=True)
    line = f"{step.indent}run: {' '.join(text.split())}"
    return _Place(step.head, last_line, line, line)


def _reasons(
    settings: BazelSettings, path: str, kind: CallerKind, call: TranslatedCall, lines: list[str]
) -> Iterator[str]:
    """Yield reasons against replacing a call without a question."""
    first = call.call.first_line - 1
    place = _place(kind, lines, call.call.first_line, call.call.last_line)
    step = _STEP.fullmatch(place.text)
    if call.call.form == "python":
        yield "a list of arguments is a single command, and there are several new commands"
    elif not _CALL.fullmatch(_REFERENCE.sub("X", step["command"] if step else place.text).rstrip()):
        yield "its lines contain other text"
    if place.is_joined:
        yield "the step joins its lines with other lines"
    opened = _TRIPLE_QUOTE.findall("\n".join(lines[:first]))
    if call.call.template and "r" not in "".join(opened[-1:]).lower():
        yield "they contain backslashes, and the string around them isn't a raw string"
    if not _runs_in_workspace(path, kind, call, lines):
        yield f"they must run in the folder {WORKSPACE}, and this file doesn't say where this call runs"
    if call.additions:
        yield "the call has conditional arguments"
    yield from _differences(settings, call)


def _runs_in_workspace(path: str, kind: CallerKind, call: TranslatedCall, lines: list[str]) -> bool:
    """Return whether a call runs in the workspace.

    The location of a Makefile decides this, or the last change of the folder before the call. Text that is written to a
    Makefile runs in the workspace if the file mentions the workspace's Makefile.
    """
    if kind == "makefile":
        return path.rpartition("/")[0] == WORKSPACE
    if call.call.template:
        return any(f"{WORKSPACE}/Makefile" in line for line in lines)
    before = "\n".join(lines[: call.call.first_line - 1])
    folders = [match[1] or "" for match in _FOLDER.finditer(before)]
    return bool(folders) and folders[-1].rstrip("/").rpartition("/")[2] == WORKSPACE


def _differences(settings: BazelSettings, call: TranslatedCall) -> Iterator[str]:
    """Yield the differences between a call and the workspace's settings."""
    assumed = {note.option for note in call.translation.assumed}
    own = call.translation.settings
    words = [word for command in call.translation.commands for word in command.words]
    # If the new commands contain targets, these take precedence over the settings.
    carries_targets = any("TARGETS" in word and has_references(word) for word in words)
    if "--rocm_amdgpu_targets" not in assumed and own.targets != settings.targets and not carries_targets:
        yield f"the call builds for {','.join(own.targets)}, but rocm.toml has {','.join(settings.targets)}"
    if not {"--clang_path", "--gcc_path"} & assumed and own.compiler != settings.compiler:
        yield f"the call uses the compiler {own.compiler}, but rocm.toml has {settings.compiler}"
    if "--python_version" not in assumed and not set(own.python_versions) <= set(settings.python_versions):
        yield f"the call is for Python {own.python_versions[0]}, which rocm.toml doesn't list"
    if own.rocm_path not in ("", settings.rocm_path):
        yield f"the call uses the ROCm in {own.rocm_path}, but rocm.toml has {settings.rocm_path or 'no folder'}"
    if own.cpu_features != settings.cpu_features:
        yield f"the call uses the CPU features {own.cpu_features!r}, but rocm.toml has {settings.cpu_features!r}"


def _new_lines(call: TranslatedCall, first_line: str, before: list[str]) -> list[str]:
    """Return the new commands, one on each line, with the indentation of the old call.

    The lines in ``before`` come first.
    """
    commands = [*before, *spell_call(call.call, call.translation.commands)]
    step = _STEP.match(first_line)
    if step:
        dash = step["dash"] or ""
        inner = step["indent"] + " " * (len(dash) + 2)
        return [f"{step['indent']}{dash}run: |", *(inner + command for command in commands)]
    return [_indent(first_line) + command for command in commands]


def _question(call: TranslatedCall, first_line: str, reasons: str, asked: list[str]) -> list[str]:
    question = f"what should replace this call of build.py? It is equivalent to these commands, but {reasons}:"
    comment = _asked(question, first_line, asked)
    commands = spell_call(call.call, call.translation.commands)
    return [*comment, *(f"{_indent(comment[0])}#     {command}" for command in commands)] if comment else []


def _asked(question: str, first_line: str, asked: list[str]) -> list[str]:
    """Return the lines of a question, or an empty list if the file already has this question."""
    question = " ".join(question.split())
    if any(text.startswith(question) for text in asked):
        return []
    # In a Makefile, a comment after a tab would be part of the recipe.
    indent = _indent(first_line)
    return ask(question, "" if indent.startswith("\t") else indent).splitlines()


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
