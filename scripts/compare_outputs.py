"""Compare what two versions of rocwheel make: JSON of all commands, written files member by member, options.

Usage: python scripts/compare_outputs.py OLD NEW [--debian FOLDER] [--work FOLDER] [--verbose]

OLD and NEW are virtual environments with rocwheel. Both run the commands of compare_outputs.toml, each side in a folder
of its own, with the checkout's sample SDK and fixtures. FOLDER of --debian holds ``.deb`` files.

Verdicts:
    identical    nothing differs
    wording      only texts for people differ
    SDK source   only Python files that ship inside of packages differ, and RECORD, hashes and sizes with them
    new          NEW has it alone
    different    anything else; the exit status is 1 then
"""

from __future__ import annotations

import argparse
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
FOLLOWS = re.compile(
    r"\$\.(wheels\[\d+\]\.members\[\d+\]\.text|sdists\[\d+\]\.files\.\S+\.py"
    r"|distributions\[\d+\]\.size|files\[\d+\]\.(hashes\.sha256|size))"
)
HASH = re.compile(rb"sha256=[0-9a-f]{64}")


class Side(NamedTuple):
    """A version of rocwheel, and the folder that its commands run in."""

    bin: Path
    folder: Path

    def run(self, arguments: list[str]) -> tuple[int, str]:
        """Run a command with ``--json`` and return its status and output, without the places of this side."""
        end = arguments.index("--") if "--" in arguments else len(arguments)
        command = [str(self.bin / "rocwheel"), *arguments[:end], "--json", "--quiet", *arguments[end:]]
        environ = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=self.folder, env=environ)
        return done.returncode, self._neutral(done.stdout)

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
        return TEMPORARY.sub('"TEMPORARY"', text)


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
    parser.add_argument("--work", type=Path)
    parser.add_argument("--verbose", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = (given.work or Path(folder)).resolve()
        sides = [Side(given.old.absolute() / "bin", work / "old"), Side(given.new.absolute() / "bin", work / "new")]
        for side in sides:
            side.folder.mkdir(parents=True)
        rows = compare(sides[0], sides[1], given.debian and given.debian.resolve())
    return show(rows, verbose=given.verbose)


def compare(old: Side, new: Side, debian: Path | None) -> list[Row]:
    """Return the rows of all comparisons."""
    commands = msgspec.toml.decode(Path(__file__).with_suffix(".toml").read_bytes())
    places = {
        "sample": ROOT / "src/rocwheel/sample",
        "fixtures": ROOT / "tests/fixtures",
        "examples": ROOT / "examples",
    }
    words = {name: str(path) for name, path in (places | ({"debs": debian} if debian else {})).items()}
    chosen = commands["sample"] + (commands["debian"] if debian else [])
    rows = [_compare_command(old, new, command, words) for command in chosen]
    return [*rows, *_compare_files(old.folder, new.folder), *_compare_options(old.options(), new.options())]


def show(rows: list[Row], *, verbose: bool) -> int:
    """Print what is not identical, and how many there are of each verdict."""
    for row in rows:
        if verbose or row.verdict != "identical":
            print(f"{row.verdict:10}  {row.what}" + (f"\n            {row.detail}" if row.detail else ""))
    counts = Counter((row.what.partition(":")[0], row.verdict) for row in rows)
    print("\n" + "\n".join(f"{kind:8} {verdict:10} {count:5}" for (kind, verdict), count in sorted(counts.items())))
    return 1 if any(row.verdict == "different" for row in rows) else 0


def _compare_command(old: Side, new: Side, command: str, places: dict[str, str]) -> Row:
    (status, before), (other, after) = (side.run(side.expand(command, places)) for side in (old, new))
    print(f"ran {command}", file=sys.stderr)
    if status != other:
        return Row(f"command: {command}", "different", f"exit status {status} became {other}")
    paths = differences(_document(before), _document(after))
    return Row(f"command: {command}", verdict_of(paths), _shortened(paths))


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
        paths = differences(_document(old.read_text()), _document(new.read_text()))
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
