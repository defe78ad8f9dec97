"""Every ELF file of the machine still loads, resolves and runs after two changes of its run path."""

from __future__ import annotations

import mmap
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from elftools.elf.elffile import ELFFile

from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.binary.elf.facts import Elf, ElfKind, read_elf
from rocwheel.binary.elf.header import ElfError
from rocwheel.binary.kind import is_elf
from rocwheel.binary.runpath import plan_runpath
from rocwheel.core.reading import load
from tests.support.places import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

pytestmark = pytest.mark.slow

FOLDERS = ["/usr/lib", "/usr/bin", "/usr/sbin", "/usr/libexec", "/usr/local", "/usr/aarch64-linux-gnu", "/opt"]
RUN_FOLDERS = re.compile(r"/usr/bin|/usr/lib/llvm-\d+/bin")
LOADERS = {
    62: ["/lib64/ld-linux-x86-64.so.2"],
    183: ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", "/usr/aarch64-linux-gnu/lib/ld-linux-aarch64.so.1"],
}
TIMEOUT = 60
LOAD_LIBRARY = ROOT / "tests/support/programs/load_library.py"


def find_unshare() -> list[str]:
    """Return a command that gives another command mounts of its own; empty where that isn't allowed."""
    for command in ["unshare", "--mount"], ["unshare", "--map-root-user", "--mount"]:
        if (
            shutil.which("unshare")
            and subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0
        ):
            return command
    return []


UNSHARE = find_unshare()
needs_mounts = pytest.mark.skipif(
    not UNSHARE, reason="needs unshare --mount, to swap a changed file in for its original"
)


class Corpus(msgspec.Struct):
    """What a run over many files came to."""

    edited: int = 0
    refused: int = 0
    resolved: int = 0
    loaded: int = 0
    run: int = 0
    problems: list[str] = []


def find_elf_files(folders: Iterable[str]) -> Iterator[Path]:
    seen = set()
    for folder in folders:
        for parent, _, names in os.walk(folder):
            for name in names:
                path = Path(parent, name)
                status = path.lstat()
                identity = status.st_dev, status.st_ino
                if not stat.S_ISREG(status.st_mode) or identity in seen or status.st_size < 64:
                    continue
                seen.add(identity)
                with path.open("rb") as file:
                    if is_elf(file.read(4)):
                        yield path


def edit(source: Path, target: Path, value: str) -> None:
    with source.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        patch = plan_runpath(data, value, RunpathTag.RUNPATH, name=str(source))
        with memoryview(data) as view, target.open("wb") as out:
            for buffer in patch.apply(view):
                out.write(load(buffer))
                load(buffer).release()
    target.chmod(0o755)


def facts(path: Path) -> Elf:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return read_elf(data, name=str(path))


def output(command: list[str], path: Path, *, instead: Path | None = None) -> tuple[int, str]:
    """Run a command on a file and return its exit status and all it says, without addresses and process numbers.

    With ``instead``, the command finds that file where ``path`` says.
    """
    if instead:
        command = [*UNSHARE, "sh", "-ec", 'mount --bind "$0" "$1"; shift; exec "$@"', str(instead), str(path), *command]
    try:
        done = subprocess.run(
            [*command, str(path)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT,
            check=False,
            cwd="/",
            env={"PATH": "/usr/sbin:/usr/bin", "LC_ALL": "C"},
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        return -1, "timed out"
    text = (done.stdout + done.stderr).decode(errors="replace")
    return done.returncode, re.sub(r"\(0x[0-9a-f]+\)|\bpid[= ]\d+|==\d+==|0x[0-9a-f]{9,}", "", text)


def unordered(said: tuple[int, str]) -> tuple[int, list[str]]:
    """Return what a command says with its lines sorted: groff names the programs that it starts in any order."""
    status, text = said
    return status, sorted(text.splitlines())


class Checker:
    """Changes the run path of one file twice, and compares the result with it."""

    def __init__(self, original: Path, elf: Elf, folder: Path, corpus: Corpus) -> None:
        self.original = original
        self.elf = elf
        self.once = folder / "once"
        self.twice = folder / "twice"
        self.corpus = corpus

    def check(self) -> None:
        """Add what is wrong to the corpus' problems."""
        first = ":".join(filter(None, [self.elf.runpath or self.elf.rpath, "/nonexistent/rocwheel"]))
        second = f"{first}:/nonexistent/{'rocwheel' * 50}"
        edit(self.original, self.once, first)
        edit(self.once, self.twice, second)
        self.corpus.edited += 1
        self._check_facts(first, second)
        self._check_structure()
        self._check_readelf()
        self._check_elflint()
        self._check_loader()
        self._check_running()

    def _expect(self, what: str, found: object, expected: object) -> None:
        if found != expected:
            self.corpus.problems.append(f"{self.original}: {what}: {str(found)[:1500]}, not {str(expected)[:1500]}")

    def _expect_same(self, what: str, command: list[str]) -> tuple[int, str]:
        """Expect that the command says the same of the changed file, and return it."""
        old = output(command, self.original)
        new = output(command, self.original, instead=self.twice)
        if unordered(new) != unordered(old) and unordered(output(command, self.original)) == unordered(old):
            self._expect(what, new, old)
        return new

    def _check_facts(self, first: str, second: str) -> None:
        for path, value in (self.once, first), (self.twice, second):
            elf = facts(path)
            expected = msgspec.structs.replace(self.elf, rpath=None, runpath=value, segments=elf.segments)
            self._expect("facts", elf, expected)
        added = len(facts(self.twice).segments) - len(self.elf.segments)
        self._expect("no more than one segment added", added <= 1, True)

    def _check_structure(self) -> None:
        """Compare with pyelftools what may not have changed: sections, symbols' names, segments' order."""
        with self.original.open("rb") as old_file, self.twice.open("rb") as new_file:
            old, new = ELFFile(old_file), ELFFile(new_file)
            self._expect("sections", list(stable_sections(new)), list(stable_sections(old)))
            loads = [
                (segment["p_vaddr"], segment["p_offset"], segment["p_filesz"])
                for segment in new.iter_segments("PT_LOAD")
            ]
            self._expect("order of segments", loads, sorted(loads))
            start, size = new["e_phoff"], 56 * new.num_segments()
            for segment in new.iter_segments("PT_PHDR"):
                self._expect("PT_PHDR", (segment["p_offset"], segment["p_filesz"]), (start, size))
                covered = any(offset <= start and start + size <= offset + length for _, offset, length in loads)
                self._expect("PT_PHDR is covered", covered, True)

    def _check_readelf(self) -> None:
        tables = ["readelf", "-W", "--dyn-syms", "--version-info", "--notes"]
        headers = ["readelf", "-W", "--segments", "--dynamic", "--sections"]
        old, new = (without_places(output(tables, path)[1], path) for path in (self.original, self.twice))
        self._expect("readelf", new, old)
        before, after = (warnings(output(headers, path)[1]) for path in (self.original, self.twice))
        self._expect("readelf's warnings", after - before, set())

    def _check_elflint(self) -> None:
        if shutil.which("eu-elflint"):
            reports = (output(["eu-elflint", "--gnu-ld"], path)[1].splitlines() for path in (self.original, self.twice))
            before, after = ({re.sub(r"0x[0-9a-f]+|\d+", "N", line) for line in lines} for lines in reports)
            self._expect("eu-elflint", after - before - {"No errors"}, set())

    def _check_loader(self) -> None:
        loader = LOADERS.get(self.elf.machine)
        if loader and shutil.which(loader[0]) and Path(loader[-1]).exists():
            self._expect_same("--verify", [*loader, "--verify"])
            status, _ = self._expect_same("--list", [*loader, "--list"])
            self.corpus.resolved += status == 0

    def _check_running(self) -> None:
        if self.elf.machine != 62:
            return
        if self.elf.kind is ElfKind.SHARED_OBJECT:
            status, text = self._expect_same("dlopen", [sys.executable, "-SE", str(LOAD_LIBRARY)])
            self.corpus.loaded += status == 0
            self._expect("dl_iterate_phdr", "differ" in text, False)
        elif RUN_FOLDERS.fullmatch(str(self.original.parent)):
            status, _ = self._expect_same("--version", ["sh", "-c", '"$0" --version'])
            self.corpus.run += status == 0


def stable_sections(elf: ELFFile) -> Iterator[tuple[Any, ...]]:
    """Yield headers and bytes of the sections that a new run path leaves alone."""
    for section in elf.iter_sections():
        if section.name not in {".dynstr", ".dynamic"}:
            # Symbols that stand for the moved sections follow them.
            has_bytes = section["sh_size"] and section["sh_type"] not in {"SHT_NOBITS", "SHT_SYMTAB", "SHT_DYNSYM"}
            yield section.name, tuple(section.header.items()), hash(section.data()) if has_bytes else 0


def without_places(text: str, path: Path) -> str:
    """Take from readelf's tables what the place of a section changes."""
    text = re.sub(r" *(Addr|Offset): 0x[0-9a-f]+", "", text).replace(str(path), "FILE")
    return re.sub(r"^( *\d+: )[0-9a-f]{16}(.* (SECTION|_DYNAMIC)\b)", r"\1\2", text, flags=re.MULTILINE)


def warnings(text: str) -> set[str]:
    return set(re.findall(r"^readelf: .*", text, re.MULTILINE))


def check_file(path: Path, corpus: Corpus) -> None:
    try:
        elf = facts(path)
        if not elf.is_dynamic or elf.kind is ElfKind.CODE_OBJECT:
            corpus.refused += 1
            return
        with tempfile.TemporaryDirectory(prefix="rocwheel-corpus.") as folder:
            Checker(path, elf, Path(folder), corpus).check()
    except ElfError as e:
        corpus.refused += 1
        if not re.search("32-bit|dynamic loader itself|a static program", str(e)):
            corpus.problems.append(str(e))


def check_files(paths: Iterable[Path]) -> Corpus:
    corpus = Corpus()
    with ThreadPoolExecutor(os.cpu_count()) as executor:
        list(executor.map(lambda path: check_file(path, corpus), paths))
    sys.stdout.write(f"{msgspec.json.encode(corpus).decode()}\n")
    return corpus


@pytest.mark.deep
@needs_mounts
def test_a_sample_of_the_files_on_this_machine_survives_two_changes() -> None:
    paths = sorted(find_elf_files(["/usr/bin", "/usr/lib/x86_64-linux-gnu"]))
    small = [path for path in paths if path.stat().st_size < 1 << 20]
    corpus = check_files(small[:: max(len(small) // 60, 1)])
    assert corpus.problems == []
    assert corpus.edited >= 50


@needs_mounts
@pytest.mark.corpus
def test_every_elf_file_on_this_machine_survives_two_changes() -> None:
    corpus = check_files(find_elf_files(FOLDERS))
    assert corpus.problems == []
    assert corpus.edited > 1000
