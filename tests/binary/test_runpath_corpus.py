"""Every ELF file of the machine still loads, resolves and runs after two changes of its run path."""

from __future__ import annotations

import itertools
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

from rocwheel.binary.elf import Elf, ElfError, ElfKind, is_elf, read_elf
from rocwheel.binary.runpath import ElfPatch, RunpathTag, plan_runpath

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

FOLDERS = ["/usr/lib", "/usr/bin", "/usr/sbin", "/usr/libexec", "/usr/local", "/usr/aarch64-linux-gnu", "/opt"]
RUN_FOLDERS = re.compile(r"/usr/bin|/usr/lib/llvm-\d+/bin")
LOADERS = {
    62: ["/lib64/ld-linux-x86-64.so.2"],
    183: ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", "/usr/aarch64-linux-gnu/lib/ld-linux-aarch64.so.1"],
}
TIMEOUT = 60


class Corpus(msgspec.Struct):
    """What a run over many files came to."""

    edited: int = 0
    refused: int = 0
    loaded: int = 0
    run: int = 0
    linted: int = 0
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


def edit(source: Path, target: Path, value: str) -> ElfPatch:
    with source.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        patch = plan_runpath(data, value, RunpathTag.RUNPATH, name=str(source))
        with memoryview(data) as view, target.open("wb") as out:
            for buffer in patch.apply(view):
                out.write(buffer)
                buffer.release()
    target.chmod(0o755)
    return patch


def facts(path: Path) -> Elf:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return read_elf(data, name=str(path))


def output(command: Sequence[str | Path], path: Path, **environment: str) -> tuple[int, str]:
    """Run a command and return its exit status and all it says, with ``path`` and addresses taken out."""
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=TIMEOUT,
        check=False,
        cwd="/",
        env={"PATH": "/usr/sbin:/usr/bin", "LC_ALL": "C", **environment},
        start_new_session=True,
    )
    text = (done.stdout + done.stderr).decode(errors="replace")
    text = re.sub(r"\(0x[0-9a-f]+\)|\bpid[= ]\d+|0x[0-9a-f]{9,}", "", text)
    return done.returncode, text.replace(str(path), "FILE").replace(path.name, "FILE")


class Checker:
    """Changes the run path of one file twice, and compares the results with it."""

    def __init__(self, original: Path, folder: Path, corpus: Corpus) -> None:
        self.original = original
        self.folder = folder
        self.corpus = corpus
        self.elf = facts(original)
        self.once = folder / "once" / original.name
        self.twice = folder / "twice" / original.name

    def check(self) -> None:
        self.once.parent.mkdir()
        self.twice.parent.mkdir()
        old = (self.elf.runpath or self.elf.rpath or "").replace("$ORIGIN", str(self.original.parent))
        first = ":".join(filter(None, [old, "/nonexistent/rocwheel"]))
        second = f"{first}:/nonexistent/{'rocwheel' * 50}"
        edit(self.original, self.once, first)
        edit(self.once, self.twice, second)
        self.corpus.edited += 1
        self.check_facts(first, second)
        self.check_structure()
        self.check_readelf()
        self.check_elflint()
        if self.elf.machine in LOADERS:
            self.check_loader()
        if self.elf.machine == 62:
            self.check_running()

    def expect(self, what: str, found: object, expected: object) -> None:
        if found != expected:
            self.corpus.problems.append(f"{self.original}: {what}: {str(found)[:1500]}, not {str(expected)[:1500]}")

    def check_facts(self, first: str, second: str) -> None:
        for path, value in (self.once, first), (self.twice, second):
            elf = facts(path)
            expected = msgspec.structs.replace(self.elf, rpath=None, runpath=value, segments=elf.segments)
            self.expect("facts", elf, expected)
        counts = [len(facts(path).segments) for path in (self.original, self.once, self.twice)]
        self.expect("segments added", counts[2] - counts[0] <= 1, True)

    def check_structure(self) -> None:
        """Compare with pyelftools what may not have changed: sections, symbols' names, segments' order."""
        with self.original.open("rb") as old_file, self.twice.open("rb") as new_file:
            old, new = ELFFile(old_file), ELFFile(new_file)
            self.expect("sections", list(stable_sections(new)), list(stable_sections(old)))
            loads = [segment["p_vaddr"] for segment in new.iter_segments("PT_LOAD")]
            self.expect("order of segments", loads, sorted(loads))
            table = new["e_phoff"], new["e_phoff"] + 56 * new.num_segments()
            covering = [s for s in new.iter_segments("PT_LOAD") if covers(s, *table)]
            for segment in new.iter_segments("PT_PHDR"):
                self.expect("PT_PHDR", (segment["p_offset"], segment["p_filesz"]), (table[0], table[1] - table[0]))
                self.expect("PT_PHDR is covered", bool(covering), True)

    def check_readelf(self) -> None:
        views = ["--dyn-syms", "--version-info", "--notes"]
        results = [output(["readelf", "-W", *views, path], path) for path in (self.original, self.twice)]
        old, new = ((status, without_places(text)) for status, text in results)
        self.expect("readelf", new, old)
        checks = ["--segments", "--dynamic", "--sections"]
        warnings = [
            set(re.findall(r"^readelf: .*", output(["readelf", "-W", *checks, path], path)[1], re.MULTILINE))
            for path in (self.original, self.twice)
        ]
        self.expect("readelf's warnings", warnings[1] - warnings[0], set())

    def check_elflint(self) -> None:
        if not shutil.which("eu-elflint"):
            return
        reports = []
        for path in self.original, self.twice:
            _, text = output(["eu-elflint", "--gnu-ld", path], path)
            reports.append({re.sub(r"0x[0-9a-f]+|\d+", "N", line) for line in text.splitlines()})
        self.corpus.linted += 1
        self.expect("eu-elflint", reports[1] - reports[0] - {"No errors"}, set())

    def check_loader(self) -> None:
        loader = LOADERS[self.elf.machine]
        if not all(map(shutil.which, loader[::3])):
            return
        for option in "--verify", "--list":
            old, new = (output([*loader, option, path], path) for path in (self.original, self.twice))
            self.expect(option, new, old)

    def check_running(self) -> None:
        if self.elf.kind is ElfKind.SHARED_OBJECT:
            program = "import ctypes, sys; ctypes.CDLL(sys.argv[1], mode=2); print('loaded')"
            old, new = (output([sys.executable, "-SEc", program, path], path) for path in (self.original, self.twice))
            self.expect("dlopen", (new[0], last_line(new[1])), (old[0], last_line(old[1])))
            self.corpus.loaded += old[0] == 0
        elif RUN_FOLDERS.fullmatch(str(self.original.parent)):
            old, new = (output([path, "--version"], path) for path in (self.original, self.twice))
            if new != old and output([self.original, "--version"], self.original) == old:
                self.expect("--version", new, old)
            self.corpus.run += 1


def covers(segment: Any, start: int, stop: int) -> bool:
    return bool(segment["p_offset"] <= start and stop <= segment["p_offset"] + segment["p_filesz"])


def stable_sections(elf: ELFFile) -> Iterator[tuple[Any, ...]]:
    """Give headers and bytes of the sections that a new run path leaves alone."""
    for section in elf.iter_sections():
        if section.name in {".dynstr", ".dynamic"}:
            continue
        header = dict(section.header)
        if section.name == ".symtab":  # the value of _DYNAMIC follows the dynamic section
            yield section.name, tuple(header.items()), [s.name for s in itertools.islice(section.iter_symbols(), 10_000)]
        else:
            yield section.name, tuple(header.items()), hash(section.data()) if section["sh_size"] else 0


def without_places(text: str) -> str:
    """Take from readelf's tables what a moved section changes."""
    return re.sub(r" *(Addr|Offset): 0x[0-9a-f]+", "", text)


def last_line(text: str) -> str:
    return text.strip().rsplit("\n", 1)[-1]


def check_files(paths: Iterable[Path]) -> Corpus:
    corpus = Corpus()

    def check(path: Path) -> None:
        with tempfile.TemporaryDirectory(prefix="rocwheel-corpus.") as folder:
            try:
                if facts(path).is_dynamic and facts(path).kind is not ElfKind.CODE_OBJECT:
                    Checker(path, Path(folder), corpus).check()
                else:
                    corpus.refused += 1
            except ElfError as e:
                if "32-bit" in str(e):
                    corpus.refused += 1
                else:
                    corpus.problems.append(str(e))
            except subprocess.TimeoutExpired as e:
                corpus.problems.append(f"{path}: {e}")

    with ThreadPoolExecutor(os.cpu_count()) as executor:
        list(executor.map(check, paths))
    sys.stdout.write(f"{msgspec.json.encode(corpus).decode()}\n")
    return corpus


def test_a_sample_of_the_machines_files_survives_two_changes() -> None:
    paths = sorted(path for path in find_elf_files(["/usr/bin", "/usr/lib/x86_64-linux-gnu"]))
    small = [path for path in paths if path.stat().st_size < 1 << 20]
    corpus = check_files(small[:: max(len(small) // 60, 1)])
    assert corpus.problems == []
    assert corpus.edited >= 50


@pytest.mark.corpus
def test_every_file_of_the_machine_survives_two_changes() -> None:
    corpus = check_files(find_elf_files(FOLDERS))
    assert corpus.problems == []
    assert corpus.edited > 1000
