"""Find phrases in prose that docs/style.md tells writers to avoid, and sentences that are too long.

Usage: python scripts/check_style.py [--all] [FILE ...]

Without FILE, the check reads README.md, CONTRIBUTING.md, the pages in docs, and the strings and docstrings in src. It
skips the files that check_style.toml lists as unfinished; ``--all`` reads them, too. The exit status is 1 if there are
findings.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
MOST_WORDS = 25
PHRASES = {
    r"\bof what\b|\bof whom\b": "name the thing",
    r"\bwhat is (already )?there\b": "name the thing",
    r"\bwhom\b": "name the people",
    r"\bwhoever\b": "write 'anyone who'",
    r"\bsuch as by\b": "write 'for example, with'",
    r"(?<!leave )(?<!leaves )(?<!left )(?<!let )\balone\b": "write 'only' before the word",
    r"(?-i:, (?:and )?none for\b|: none\b|\bis none\b)": "write 'empty', 'nothing', or 'no X'",
    r"\bsays? of\b": "write 'about'",
    r"\bspells? it for\b": "say which form is printed",
    r"(?:^|[.;:] )Of (?:a|an|the|several|each|these|those|its|it|them)\b": "put the subject first",
    r"\bin the place of\b": "write 'instead of'",
    r"\banew\b": "write 'again'",
    r"\b(?:lies?|lay|stands?) (?:in(?! for)|beside|below|behind|above)\b": "write 'is in'",
    r"\b(?:has|have) to be\b": "write 'must be'",
    r"(?:^|[,;] )else\b": "write 'otherwise'",
    r"\b(?:made|built) of\b": "write 'from'",
}
_PATTERNS = [(re.compile(pattern, re.IGNORECASE), advice) for pattern, advice in PHRASES.items()]
_NOT_PROSE = re.compile(
    r"^ *(```|~~~).*?^ *\1 *$|<!--.*?-->|\A---\n.*?\n---\n|^:::.*\n(?: +options:.*\n)?", re.DOTALL | re.MULTILINE
)
_MARKUP = [
    (re.compile(r"`[^`]+`"), "CODE"),
    (re.compile(r"!?\[([^]]*)\]\([^)]*\)"), r"\1"),
    (re.compile(r"https?://\S+"), "URL"),
    (re.compile(r"<[^>]+>|\{[^}]*\}|[*_]{2}|(?<!\w)\*(?=\w)|(?<=\w)\*(?!\w)"), ""),
]
_BLOCK_START = re.compile(r"^\s*(?:[*-] |\d+\. |\||#|!!!|\?\?\?|$)")
_TITLE = re.compile(r"#|!!!|\?\?\?")
_SENTENCE_END = re.compile(r"(?<=[.!?])[)\"']*\s+(?=[A-Z(\"']|rocwheel\b|pip\b|uv\b)")


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The lists of check_style.toml."""

    unfinished: list[str]
    allowed: dict[str, list[str]] = {}


class Finding(NamedTuple):
    """A phrase or a sentence to change."""

    line: int
    text: str
    advice: str


def main() -> int:
    """Print the findings, and return the exit status."""
    parser = argparse.ArgumentParser(description="Find phrases that docs/style.md tells writers to avoid.")
    parser.add_argument("--all", action="store_true", help="Read the unfinished files, too.")
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    given = parser.parse_args()
    settings = msgspec.toml.decode(Path(__file__).with_suffix(".toml").read_bytes(), type=Settings)
    count = 0
    for path in given.files or default_files(settings, with_unfinished=given.all):
        resolved = path.resolve()
        name = str(resolved.relative_to(ROOT)) if resolved.is_relative_to(ROOT) else str(path)
        for line, text, advice in find(path, settings.allowed.get(name, [])):
            print(f"{name}:{line}: {text!r}: {advice}")
            count += 1
    return 1 if count else 0


def default_files(settings: Settings, *, with_unfinished: bool) -> Iterator[Path]:
    """Yield the files that the check is for; the sample SDK is data."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    modules = sorted((ROOT / "src/rocwheel").rglob("*.py"))
    for path in [*pages, *modules]:
        name = path.relative_to(ROOT)
        if name.is_relative_to("src/rocwheel/sample"):
            continue
        if with_unfinished or not any(name.match(pattern) for pattern in settings.unfinished):
            yield path


def find(path: Path, allowed: list[str] | None = None) -> list[Finding]:
    """Return the findings in a page or a module, without those that contain an allowed text."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        found = [finding for line, string in _strings(text) for finding in _phrases(line, string)]
    else:
        blocks = list(_blocks(text))
        found = [finding for line, block in blocks for finding in _phrases(line, block)]
        found += [finding for line, block in blocks for finding in _long_sentences(line, block)]
    return sorted(finding for finding in found if not any(text in finding.text for text in allowed or []))


def _strings(source: str) -> Iterator[tuple[int, str]]:
    """Yield the strings of a module that have at least two words, with their lines."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, _plain(" ".join(node.value.split()))


def _blocks(page: str) -> Iterator[tuple[int, str]]:
    """Yield the paragraphs, list items and table cells of a page as plain text, with their lines."""
    prose = _NOT_PROSE.sub(lambda found: "\n" * found[0].count("\n"), page)
    start, lines = 1, list[str]()
    for number, line in enumerate([*prose.splitlines(), ""], 1):
        if _BLOCK_START.match(line) or (lines and _TITLE.match(lines[0])):
            yield from _cells(start, " ".join(lines))
            lines = []
        if not lines:
            start = number
        if line.strip():
            lines.append(line.strip())


def _cells(line: int, block: str) -> Iterator[tuple[int, str]]:
    parts = re.split(r"(?<!\\)\|", _plain(block)) if block.startswith("|") else [_plain(block)]
    for part in parts:
        text = re.sub(r"^(?:[*-]|\d+\.|#+|!!!|\?\?\?)\s*", "", part.strip())
        if re.search(r"\w", text):
            yield line, text


def _plain(text: str) -> str:
    for pattern, replacement in _MARKUP:
        text = pattern.sub(replacement, text)
    return text


def _phrases(line: int, text: str) -> Iterator[Finding]:
    for pattern, advice in _PATTERNS:
        for found in pattern.finditer(text):
            around = text[max(0, found.start() - 20) : found.end() + 20].strip()
            yield Finding(line, around, advice)


def _long_sentences(line: int, text: str) -> Iterator[Finding]:
    for sentence in _SENTENCE_END.split(text):
        words = re.findall(r"\w[\w'.-]*", sentence)
        if len(words) > MOST_WORDS:
            yield Finding(line, sentence[:80], f"has {len(words)} words; write at most {MOST_WORDS}")


if __name__ == "__main__":
    sys.exit(main())
