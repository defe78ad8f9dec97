"""Reads the data that a comparison needs about files, once for each file and on demand."""

from __future__ import annotations

import re
import threading
from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import msgspec

from rocwheel.binary.bounded_bytes import viewing
from rocwheel.binary.bundles.device_code import device_targets
from rocwheel.binary.elf.dynamic import read_dynamic_file
from rocwheel.binary.elf.facts import Elf, read_elf
from rocwheel.binary.elf.header import ElfBytes, read_header, read_segments
from rocwheel.binary.elf.symbols import Linkage, SymbolReader, SymbolReference, read_linkage
from rocwheel.binary.kind import has_facts, is_cut_elf, is_elf, is_kpack
from rocwheel.binary.kpack.archive import read_archive
from rocwheel.binary.kpack.markers import read_split_library
from rocwheel.binary.pe.facts import Pe, read_pe
from rocwheel.binary.pe.header import is_pe64
from rocwheel.core.errors import InputError, WorkError
from rocwheel.device.device_facts import read_device_facts
from rocwheel.targets.kernel_files import kernel_targets

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.core.errors import RocwheelError
    from rocwheel.core.reading import Data
    from rocwheel.diff.changes import FileChange
    from rocwheel.diff.sides import Item, Package


class ArchivedCode(msgspec.Struct, frozen=True):
    """The packages and names of code in archives, keyed by GPU target and by the name that a split library uses."""

    holders: Mapping[tuple[str, str], frozenset[str]] = {}
    """The packages on the new side with code for a name and target."""
    archives: Mapping[tuple[str, str], frozenset[tuple[str, str]]] = {}
    """The names and targets of the code in archives on the old side, keyed by package and path."""
    libraries: Mapping[tuple[str, str], frozenset[str]] = {}
    """The archive names of split libraries on the new side, keyed by package and path."""

    def packages_with(self, package: str, file: FileChange, target: str) -> frozenset[str]:
        """Return the packages whose archives have all code for a target that a file lost."""
        archived = self.archives.get((package, file.old_path), frozenset())
        names = {name for name, of in archived if of == target} | self.libraries.get((package, file.new_path), set())
        held = [self.holders.get((name, target), frozenset()) for name in names]
        return frozenset().union(*held) if all(held) else frozenset()


def find_archived_code(pairs: Iterable[tuple[Package | None, Package | None]], facts: FactsOfItems) -> ArchivedCode:
    """Return the archived code of the files that were read."""
    holders: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    archives: dict[tuple[str, str], frozenset[tuple[str, str]]] = {}
    libraries: dict[tuple[str, str], frozenset[str]] = {}
    for old, new in pairs:
        name = next((side.name for side in (old, new) if side), "")
        for item in old.items if old else ():
            if archived := facts.known(item).archived:
                archives[name, item.path] = archived
        for item in new.items if new else ():
            found = facts.known(item)
            if found.kernel_names:
                libraries[name, item.path] = found.kernel_names
            for key in found.archived:
                holders[key].add(name)
    return ArchivedCode({key: frozenset(names) for key, names in holders.items()}, archives, libraries)


_OF_ONE_BUILD = re.compile(
    rb"(_init|_fini|_edata|_end|__bss_start(__)?|__hip_(cuid|gpubin_handle|fatbin|fatbin_wrapper)_[0-9a-f]+)(@.*)?"
)
"""Symbols that linkers and compilers generate for each build, to which no code binds by name."""
_PRIVATE_VERSION = re.compile(rb"@.*_PRIVATE(_|$)")


class BinaryFacts(msgspec.Struct, frozen=True):
    """The data about a file. All fields are empty for a file that isn't a binary."""

    elf: Elf | None = None
    pe: Pe | None = None
    """The data about a Windows DLL or program."""
    linkage: Linkage = Linkage()
    weak: frozenset[bytes] = frozenset()
    """The names of the weak or unique symbols."""
    targets: frozenset[str] = frozenset()
    kernel_names: frozenset[str] = frozenset()
    """The names of a split library in kpack archives."""
    archived: frozenset[tuple[str, str]] = frozenset()
    """The names and GPU targets of the code in a kpack archive."""
    problem: str = ""
    """The reason that the file couldn't be read."""

    @property
    def soname(self) -> str:
        """The SONAME of a shared library. Empty for other files."""
        return (self.elf.soname or "") if self.elf and self.elf.is_shared_library else ""

    @property
    def is_library(self) -> bool:
        """Whether the file is a shared library for the host."""
        is_dll = self.pe is not None and self.pe.is_dll
        return is_dll or (self.elf is not None and self.elf.is_shared_library)

    @property
    def functions(self) -> frozenset[str]:
        """The functions that a DLL exports by name."""
        return frozenset(self.pe.exports.names) if self.pe and self.pe.exports else frozenset()


NOTHING = BinaryFacts()


def read_facts(item: Item) -> BinaryFacts:
    """Return the data about a file. Damage is recorded in its ``problem``. Raises `WorkError` for a system failure."""
    if item.link is not None or item.content is None:
        return NOTHING
    try:
        head = item.head()
        if not (has_facts(head) or is_cut_elf(head) or is_kpack(head)):
            return NOTHING
        with item.view() as data:
            return _read(data, item.source)
    except WorkError:
        raise
    except InputError as e:
        return BinaryFacts(problem=e.fault)


def _read(data: Data, name: str) -> BinaryFacts:
    facts = BinaryFacts()
    if is_elf(data):
        elf = read_elf(data, name=name)
        facts = BinaryFacts(elf)
        if elf.is_host_code:
            linkage, weak = _read_symbols(data, name)
            facts = BinaryFacts(elf, linkage=linkage, weak=weak, kernel_names=_kernel_names(data, name))
    elif is_pe64(data):
        facts = BinaryFacts(pe=read_pe(data, name=name), kernel_names=_kernel_names(data, name))
    return msgspec.structs.replace(facts, targets=_targets(data, name), archived=_archived(data, name))


def _read_symbols(data: Data, name: str) -> tuple[Linkage, frozenset[bytes]]:
    with viewing(data) as view:
        source = ElfBytes(view, name)
        file = read_dynamic_file(source, read_segments(source, read_header(source)))
        return (read_linkage(file), SymbolReader(file).weak_names()) if file else (Linkage(), frozenset())


def lost_symbols(old: BinaryFacts, new: BinaryFacts) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the strong and weak symbols in ``old`` that references can no longer find in ``new`` under glibc's rules.

    For DLLs, these are the functions that are no longer exported. Symbols with private versions and symbols that are
    generated for each build are omitted.
    """
    strong = sorted(old.functions - new.functions) if new.pe else []
    weak: list[str] = []
    for symbol in sorted(old.linkage.definitions - new.linkage.definitions):
        if _OF_ONE_BUILD.fullmatch(symbol) or _PRIVATE_VERSION.search(symbol):
            continue
        name, _, version = symbol.replace(b"@@", b"@").partition(b"@")
        reference = SymbolReference(name.decode(errors="replace"), version.decode(errors="replace"))
        if not new.linkage.defines(reference):
            (weak if name in old.weak else strong).append(symbol.decode(errors="replace"))
    return tuple(strong), tuple(weak)


def _kernel_names(data: Data, name: str) -> frozenset[str]:
    try:
        split = read_split_library(data, name=name)
    except WorkError:
        raise
    except InputError:  # the audit reports this problem
        return frozenset()
    return frozenset(unit.marker.kernel_name for unit in split.units) if split else frozenset()


def _archived(data: Data, name: str) -> frozenset[tuple[str, str]]:
    if not is_kpack(data):
        return frozenset()
    return frozenset((entry.binary, entry.target) for entry in read_archive(data, name=name).entries)


def _targets(data: Data, name: str) -> frozenset[str]:
    if is_kpack(data):
        facts = read_device_facts(data, name=name)
        archives = facts.kpack.archives if facts and facts.kpack else ()
        return frozenset(target for archive in archives for target in archive.targets)
    return frozenset(map(str, device_targets(data, name=name)))


class FactsOfItems:
    """Reads and caches data about files. Several threads may use an instance at the same time."""

    NONE: ClassVar[tuple[BinaryFacts, BinaryFacts]] = (NOTHING, NOTHING)
    """The data for a pair of files that aren't examined."""

    def __init__(self, unread: list[RocwheelError]) -> None:
        self._facts: dict[int, BinaryFacts] = {}
        self._items: list[Item] = []
        self._unread = unread
        self._noted = {str(problem) for problem in unread}
        self._lock = threading.Lock()

    def of(self, item: Item | None) -> BinaryFacts:
        """Return the data about a file, or empty data if there is no file."""
        return NOTHING if item is None else self.read(item)

    def known(self, item: Item) -> BinaryFacts:
        """Return the data about a file if the file was read, or empty data otherwise."""
        return self._facts.get(id(item), NOTHING)

    def read(self, item: Item) -> BinaryFacts:
        """Return the data about a file. Read the file if necessary. Damage is recorded as a problem."""
        known = self._facts.get(id(item))
        if known is not None:
            return known
        facts = read_facts(item)
        with self._lock:
            self._items.append(item)  # keeps the item alive, because Python could reuse its identity
            self._facts[id(item)] = facts
        if facts.problem:
            self.add_problem(InputError(item.source, facts.problem, remedy="Build or fetch it again."))
        return facts

    def soname(self, item: Item) -> str:
        """Return the SONAME of a shared library, or an empty string for other files."""
        return self.read(item).soname

    def targets(self, items: Iterable[Item]) -> set[str]:
        """Return the GPU targets of the code in files, and the GPU targets in the names of kernel files."""
        found: set[str] = set()
        for item in items:
            found |= self.read(item).targets | kernel_targets(item.path)
        return found

    def add_problem(self, problem: RocwheelError) -> None:
        """Record an error unless it was already recorded."""
        with self._lock:
            if str(problem) not in self._noted:
                self._noted.add(str(problem))
                self._unread.append(problem)
