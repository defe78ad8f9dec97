"""Examples in pages of the documentation, taken out of the Markdown and run as a reader would type them.

A page is one session: its blocks run in order, in one shell and one clean folder. A block ``console`` has commands
behind ``$ `` (and ``> `` where one goes on), and below them what they print; ``...`` stands for anything. A block
``sh`` has commands alone, one on each line, which may print anything. A block with a ``title`` is a file that the
reader writes. ``<!-- not run: REASON -->`` before a block leaves it out.
"""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

__all__ = ["Example", "WrittenFile", "blocks", "matches", "run_page", "steps"]

_BLOCK = re.compile(
    r"^(?:<!-- not run: (?P<reason>[^\n]+) -->\n+)?"
    r"(?P<indent> *)```(?P<language>\w+)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<text>.*?)^(?P=indent)```$",
    re.DOTALL | re.MULTILINE,
)
_SIZE = re.compile(r"(\d+\.\d) [kMG]B")
_ESCAPED_SIZE = re.compile(r"\d+\\\.\d(\\ [kMG]B)")
_PROGRESS = re.compile(r"^.* (\.\.\.|\d+ ?%)$")
_END = "\x1eend "
_FOREIGN = ("PIP_", "LD_", "ROCM", "HIP", "PYTHON", "VIRTUAL_ENV")


@dataclass(frozen=True)
class Example:
    """A command and what the page says it prints."""

    command: str
    output: str


@dataclass(frozen=True)
class WrittenFile:
    """A file whose content the page shows."""

    name: str
    text: str


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its title, its text, and why it is not run."""

    language: str
    title: str
    text: str
    reason: str


def blocks(page: str) -> Iterator[Block]:
    """Yield the fenced blocks of a page in order."""
    for found in _BLOCK.finditer(page):
        yield Block(found["language"], found["title"] or "", found["text"], found["reason"] or "")


def steps(page: str) -> list[Example | WrittenFile]:
    """Return what a reader does on a page, in order."""
    return [step for block in blocks(page) if not block.reason for step in _steps_of(block)]


def _steps_of(block: Block) -> Iterator[Example | WrittenFile]:
    if block.title:
        yield WrittenFile(block.title, block.text)
    elif block.language == "console":
        for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            lines = part.splitlines()
            ends = next((i for i, line in enumerate(lines[1:], 1) if not line.startswith("> ")), len(lines))
            command = "\n".join([lines[0], *(line[2:] for line in lines[1:ends])])
            yield Example(command, "\n".join(lines[ends:]))
    elif block.language == "sh":
        for line in block.text.replace("\\\n", " ").splitlines():
            yield Example(line, "...")


def matches(expected: str, printed: str) -> bool:
    """Return whether a page's text fits what was printed; empty lines, trailing blanks and progress don't count.

    Sizes may be 5 % off: those of packages change with every line of the SDK's own files.
    """
    text = "\n".join(_lines(expected))
    pattern = _ESCAPED_SIZE.sub(r"(\\d+\\.\\d)\1", re.escape(text)).replace(re.escape("..."), ".*")
    shown = "\n".join(_lines("\n".join(line for line in printed.splitlines() if not _PROGRESS.match(line))))
    found = re.fullmatch(pattern, shown, re.DOTALL)
    return found is not None and all(
        abs(float(size) - float(written)) <= float(written) / 20
        for size, written in zip(found.groups(), _SIZE.findall(text), strict=True)
    )


def _lines(text: str) -> list[str]:
    """Return what counts: columns of tables are as wide as the paths in them, and rules as wide as the table."""
    stripped = (" ".join(line.replace("─", "").split()) for line in text.splitlines())
    return [line for line in stripped if line]


def run_page(page: str, folder: Path, environment: Mapping[str, str]) -> list[tuple[Example, str, int]]:
    """Run a page's examples in ``folder``; return each with what it printed and its exit status."""
    done = steps(page)
    script = folder.parent / f"{folder.name}.sh"
    script.write_text("".join(_script(step) for step in done))
    finished = subprocess.run(
        ["bash", script],
        cwd=folder,
        env=_clean(environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        check=False,
    )
    parts = re.split(rf"\n?{_END}(\d+)\n", finished.stdout)
    examples = [step for step in done if isinstance(step, Example)]
    assert len(parts) == 2 * len(examples) + 1, finished.stdout
    return [(example, parts[2 * i], int(parts[2 * i + 1])) for i, example in enumerate(examples)]


def _script(step: Example | WrittenFile) -> str:
    if isinstance(step, WrittenFile):
        return f"cat > '{step.name}' <<'END_OF_FILE'\n{step.text}END_OF_FILE\n"
    return f"{step.command}\nstatus=$?; printf '\\n{_END}%s\\n' $status; (exit $status)\n"


def _clean(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without what would help the packages to find something, or pip."""
    kept = {name: value for name, value in environment.items() if not name.startswith(_FOREIGN)}
    quiet = {
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_CACHE_DIR": "1",
        "PYTHONUNBUFFERED": "1",
        "COLUMNS": "100",
    }
    return kept | quiet | {"LC_ALL": "C.UTF-8"}
