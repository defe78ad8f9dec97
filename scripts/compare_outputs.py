"""Compare what two versions of rocwheel print and write: text, JSON, files member by member, help, and options.

Usage: python scripts/compare_outputs.py OLD NEW [--debian FOLDER] [--wheels FOLDER] [--work FOLDER] [--verbose]

OLD and NEW are virtual environments with rocwheel. Both run the commands of compare_outputs.toml twice, with ``--json``
and without, each time in a folder of their own, with the checkout's sample SDKs and fixtures. The folder that --debian
names holds ``.deb`` files. The folder that --wheels names holds wheels of frameworks.

Verdicts:
    identical    nothing differs
    wording      only texts for people differ
    SDK source   only Python files that ship inside of packages differ, and RECORD, hashes and sizes with them
    new          NEW has it alone
    different    anything else; the exit status is 1 then
"""

from __future__ import annotations

import argparse
import difflib
import glob
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZipFile

import msgspec

ROOT = Path(__file__).resolve().parent.parent
WORDING = {"error", "found", "notes", "problems", "reason", "remedy", "unmended", "warnings", "what"}
WORDING |= {"message", "shortDescription", "fullDescription", "help"}  # of SARIF
WORDING |= {"fingerprint"}  # made of the text; a baseline says by its schema which texts it has
SDK_SOURCE = re.compile(r"(^|/)((rocm_sdk|rocm_profiler|selector|src)[^!]*|setup)\.py$")
TEMPORARY = re.compile(r'"/proc/\d+/fd/\d+"')
DURATION = re.compile(r"\b\d+(\.\d+)? s\b")
PROGRESS = re.compile(r"^\w+ (\.\.\.|\d+ ?%)\n", re.MULTILINE)
FILE_TIMES = re.compile(r"\$\.files\..*\[1\]\[[134]\]")
"""Where an index's notes have the inode and the times of a file."""
FOLLOWS = re.compile(
    r"\$\.(wheels\[\d+\]\.members\[\d+\]\.text|sdists\[\d+\]\.files\.\S+\.py"
    r"|distributions\[\d+\]\.size|files\[\d+\]\.(hashes\.sha256|size))"
)
HASH = re.compile(rb"sha256=[0-9a-f]{64}")


class Side(NamedTuple):
    """A version of rocwheel, and the folder that its commands run in."""

    bin: Path
    folder: Path

    def run(self, arguments: list[str], *, json: bool) -> tuple[int, str]:
        """Run a command and return its status and output, without the places of this side.

        The output is the JSON document, or what a person reads: standard output and the messages.
        """
        end = arguments.index("--") if "--" in arguments else len(arguments)
        options = ["--json", "--quiet"] if json else []
        command = [str(self.bin / "rocwheel"), *arguments[:end], *options, *arguments[end:]]
        cache = str(self.folder / "cache")
        environ = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000", "COLUMNS": "100", "XDG_CACHE_HOME": cache}
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=self.folder, env=environ)
        return done.returncode, self._neutral(done.stdout if json else done.stdout + done.stderr)

    def options(self) -> dict[str, list[str]]:
        """Return the option names of each command."""
        command = [str(self.bin / "python"), str(ROOT / "scripts/list_options.py")]
        found: dict[str, list[str]] = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
        return found

    def expand(self, command: str, places: dict[str, str]) -> list[str]:
        """Return the words of a command with its places, and its patterns replaced by the files they fit."""
        words = [word.format_map(places) if "{" in word else word for word in shlex.split(command)]
        return [found for word in words for found in self._matches(word)]

    def _matches(self, word: str) -> list[str]:
        paths = sorted(glob.glob(word, root_dir=self.folder)) if "*" in word and "/" in word else []  # noqa: PTH207
        return paths or [word]

    def _neutral(self, text: str) -> str:
        text = text.replace(str(self.folder), "WORK").replace(str(self.bin.parent), "VENV")
        return PROGRESS.sub("", DURATION.sub("SECONDS", TEMPORARY.sub('"TEMPORARY"', text)))


class Row(NamedTuple):
    """A compared thing, the verdict, and what tells more."""

    what: str
    verdict: str
    detail: str = ""


def main() -> int:
    """Compare, print the table, and return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--debian", type=Path)
    parser.add_argument("--wheels", type=Path)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--verbose", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = (given.work or Path(folder)).resolve()
        given_files = {"debian": given.debian, "wheels": given.wheels}
        folders = {section: folder.resolve() for section, folder in given_files.items() if folder}
        rows = compare(given.old.absolute() / "bin", given.new.absolute() / "bin", folders, work)
    return show(rows, verbose=given.verbose)


def compare(old: Path, new: Path, folders: dict[str, Path], work: Path) -> list[Row]:
    """Return the rows of all comparisons; ``folders`` are by the section of compare_outputs.toml that needs them."""
    commands = msgspec.toml.decode(Path(__file__).with_suffix(".toml").read_bytes())
    places = {
        "sample": ROOT / "src/rocwheel/sample",
        "fixtures": ROOT / "tests/fixtures",
        "examples": ROOT / "examples",
        **folders,
    }
    words = {name: str(path) for name, path in places.items()}
    chosen = [*commands["sample"], *(command for section in folders for command in commands[section])]
    rows = []
    for kind in ("json", "text"):
        before, after = Side(old, work / f"old-{kind}"), Side(new, work / f"new-{kind}")
        before.folder.mkdir(parents=True)
        after.folder.mkdir(parents=True)
        rows += [_compare_command(before, after, command, words, kind) for command in chosen]
        rows += _compare_files(before.folder, after.folder)
    options = before.options()
    others = after.options()
    shared = [shlex.join([*name.split()[1:], "--help"]) for name in options if name in others]
    rows += [_compare_command(before, after, command, words, "text") for command in shared]
    return [*rows, *_compare_options(options, others)]


def show(rows: list[Row], *, verbose: bool) -> int:
    """Print what is not identical, and how many there are of each verdict."""
    for row in rows:
        if verbose or row.verdict != "identical":
            print(f"{row.verdict:10}  {row.what}" + (f"\n            {row.detail}" if row.detail else ""))
    counts = Counter((row.what.partition(":")[0], row.verdict) for row in rows)
    print("\n" + "\n".join(f"{kind:8} {verdict:10} {count:5}" for (kind, verdict), count in sorted(counts.items())))
    return 1 if any(row.verdict == "different" for row in rows) else 0


def _compare_command(old: Side, new: Side, command: str, places: dict[str, str], kind: str) -> Row:
    as_json = kind == "json"
    (status, before), (other, after) = (side.run(side.expand(command, places), json=as_json) for side in (old, new))
    print(f"ran {command}", file=sys.stderr)
    what = f"{kind}: {command}"
    if status != other:
        return Row(what, "different", f"exit status {status} became {other}")
    if not as_json:
        return compare_texts(what, before, after)
    paths = differences(_document(before), _document(after))
    return Row(what, verdict_of(paths), _shortened(paths))


def compare_texts(what: str, old: str, new: str) -> Row:
    """Compare what people read, line by line; the row names the first lines that differ."""
    if old == new:
        return Row(what, "identical")
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=0)
    changed = [line for line in lines if not line.startswith(("---", "+++", "@@"))]
    return Row(what, "wording", "\n            ".join(changed[:4]))


def _shortened(names: list[str]) -> str:
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")


def verdict_of(paths: list[str]) -> str:
    """Return the verdict on two documents that differ at ``paths``."""
    others = [path for path in paths if not _is_wording(path)]
    if others:
        return "SDK source" if all(map(FOLLOWS.fullmatch, others)) else "different"
    return "wording" if paths else "identical"


def _document(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _is_wording(path: str) -> bool:
    # A list of texts that has become longer or shorter differs itself, not in one of its texts.
    return not WORDING.isdisjoint(re.split(r"[.\[\]]+", path)) and not path.endswith("[]")


def differences(old: Any, new: Any, path: str = "$") -> list[str]:
    """Return the places in two documents where values differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        keys = [*old, *(key for key in new if key not in old)]
        return [place for key in keys for place in differences(old.get(key), new.get(key), f"{path}.{key}")]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = enumerate(zip(old, new, strict=True))
        return [place for i, (a, b) in pairs for place in differences(a, b, f"{path}[{i}]")]
    lists = isinstance(old, list) or isinstance(new, list)
    return [] if old == new else [f"{path}[]" if lists else path]


def _compare_files(old: Path, new: Path) -> list[Row]:
    """Compare the files that the commands have written."""
    names = sorted({str(path.relative_to(side)) for side in (old, new) for path in side.rglob("*") if path.is_file()})
    return [compare_file(name, old / name, new / name) for name in names]


def compare_file(name: str, old: Path, new: Path) -> Row:
    """Compare a file that both sides have written, archives member by member."""
    what = f"file: {name}"
    if not (old.exists() and new.exists()):
        return Row(what, "different", f"only in {'old' if old.exists() else 'new'}")
    if old.read_bytes() == new.read_bytes():
        return Row(what, "identical")
    if name.endswith((".json", ".sarif")):
        changed = differences(_document(old.read_text()), _document(new.read_text()))
        paths = [path for path in changed if not FILE_TIMES.fullmatch(path)]
        return Row(what, verdict_of(paths), _shortened(paths))
    if name.endswith(".html") and HASH.sub(b"", old.read_bytes()) == HASH.sub(b"", new.read_bytes()):
        return Row(what, "SDK source", "hashes")
    before, after = _members(old), _members(new)
    changed = [member for member in sorted({*before, *after}) if before.get(member) != after.get(member)]
    if not changed:
        return Row(what, "different", "the same members, packed in another way")
    others = [member for member in changed if not (SDK_SOURCE.search(member) or member.endswith("/RECORD"))]
    verdict = "different" if others else "SDK source"
    return Row(what, verdict, _shortened(others or changed))


def _members(path: Path) -> dict[str, bytes]:
    """Return the members of an archive, or the file as its only member; a tar inside of a wheel is opened as well."""
    data = path.read_bytes()
    if path.name.endswith((".whl", ".zip")):
        with ZipFile(path) as archive:
            found = {name: archive.read(name) for name in archive.namelist()}
        tars = [name for name in found if re.search(r"\.tar(\.xz|\.gz)?$", name)]
        return found | {f"{name}!{part}": text for name in tars for part, text in _tar(found.pop(name)).items()}
    return _tar(data) if re.search(r"\.tar(\.xz|\.gz)$", path.name) else {path.name: data}


def _tar(data: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        return {member.name: _content(archive, member) for member in archive if not member.isdir()}


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    """Return a file's bytes and mode, or the text of a symlink, which may lead out of the archive."""
    file = None if member.issym() else archive.extractfile(member)
    return f"{member.mode:o} ".encode() + (file.read() if file else member.linkname.encode())


def _compare_options(old: dict[str, list[str]], new: dict[str, list[str]]) -> list[Row]:
    return [compare_names(name, old.get(name), new.get(name)) for name in sorted({*old, *new})]


def compare_names(command: str, old: list[str] | None, new: list[str] | None) -> Row:
    """Compare the option names of a command; none of a side that lacks the command."""
    if old is None or new is None:
        return Row(f"options: {command}", "new" if old is None else "different", "" if old is None else "is gone")
    gone, added = sorted({*old} - {*new}), sorted({*new} - {*old})
    verdict = "different" if gone else "new" if added else "identical"
    detail = " ".join([*(f"-{name}" for name in gone), *(f"+{name}" for name in added)])
    return Row(f"options: {command}", verdict, detail)


if __name__ == "__main__":
    sys.exit(main())
