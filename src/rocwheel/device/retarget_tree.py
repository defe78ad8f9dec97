"""Offers all code in a tree to more GPUs, wherever the libraries can look up the code."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.bundles.device_code import device_targets, iter_code_sources
from rocwheel.binary.bundles.storage import Storage
from rocwheel.binary.code_objects import (
    CodePlace,
    DeviceCodeError,
    NotTrimmableError,
    is_code_object,
    parse_target_id,
)
from rocwheel.binary.kind import is_bundle, is_kpack
from rocwheel.binary.kpack.archive import KernelKey, KpackError, read_archive, read_kernel
from rocwheel.binary.kpack.write import ArchiveSettings, KpackWriter, compress_kernel
from rocwheel.binary.pe.rewrite import SignedFileError
from rocwheel.core.errors import InputError
from rocwheel.core.messages import count
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.reading import FileRange, join_data
from rocwheel.core.workers import map_collecting
from rocwheel.core.writing import atomic_file, new_folder, safe_mode
from rocwheel.device.edit_bundles import UnlinkedCodeError
from rocwheel.device.edit_file import FileRewrite, RewriteOrder, RewriteReport, holds_places, require_sound_image
from rocwheel.device.edit_tree import copy_file, list_tree, require_regular
from rocwheel.device.retarget import (
    KernelNames,
    NotRelabeledError,
    RelabeledFile,
    Retarget,
    RetargetedTree,
    bundles_without,
    not_relabeled,
    relabel_code_object,
    renamed,
    shared_file,
    unknown_file,
    write_kernel_file,
)
from rocwheel.targets.kernel_files import (
    classify_path,
    fixed_reason,
    processors_of_name,
    shared_row,
    targets_in_path,
    without_targets,
)
from rocwheel.targets.retarget_pairs import TargetPair
from rocwheel.targets.target_set import text_sort_key
from rocwheel.wheels.binaries import is_wheel

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rocwheel.binary.kpack.archive import KpackEntry
    from rocwheel.binary.kpack.write import ArchiveSink
    from rocwheel.core.reading import Data
    from rocwheel.targets.kernel_files import KernelFile


def retarget_archive(data: Data, file: ArchiveSink, pair: TargetPair, *, name: str) -> None:
    """Write the archive ``data`` for the GPUs of ``pair.agent``, with one code object in memory at a time.

    The archive is written only if it is complete, because a runtime rejects every GPU if one GPU's archive lacks a
    unit. Raises `NotRelabeledError` if some code can't be offered, and `DeviceCodeError` for damaged archives. Also
    raises the same errors as `retarget_code_object`.
    """
    archive = read_archive(data, name=name)
    family = archive.family.replace(pair.code.processor, pair.agent.processor)
    writer = KpackWriter(file, ArchiveSettings(archive.group, family, archive.scheme), name=name)
    found: dict[int, list[KpackEntry]] = defaultdict(list)
    for entry in sorted(archive.entries, key=lambda entry: entry.ordinal):
        if parse_target_id(entry.target, source=archive.name).processor == pair.code.processor:
            found[entry.ordinal].append(entry)
    for entries in found.values():
        first = entries[0]
        place = CodePlace(name, first.offset)
        whole = read_kernel(data, archive, first)
        code = memoryview(join_data(relabel_code_object(whole, pair, place, name=name, listed=first.target)))
        writer.add(_keys(entries, pair, name), compress_kernel(code, archive.scheme), len(code))
    writer.finish()


def _keys(entries: list[KpackEntry], pair: TargetPair, name: str) -> list[KernelKey]:
    keys: dict[KernelKey, None] = {}
    for entry in entries:
        agent = pair.agent_of(parse_target_id(entry.target, source=name))
        if entry.index is None:
            found = f"the key {entry.key!r}, which isn't a ROCm key"
            raise NotRelabeledError(name, found, expected="keys of library units")
        if agent is not None:
            keys[KernelKey(entry.binary, entry.index, str(agent))] = None
    if not keys:
        raise not_relabeled(name, entries[0].target, pair)
    return list(keys)


class RetargetOrder(msgspec.Struct, frozen=True, kw_only=True):
    """The GPUs to offer code to, and settings for storing edited bundles."""

    pairs: tuple[TargetPair, ...]
    storage: Storage = Storage()
    verify: bool = False
    """Whether bundles with code for both targets must have the same code for both targets."""
    trim: bool = False
    """Whether to remove freed space from the libraries whose code is offered, if possible."""
    jobs: int = 1
    progress: Progress = SILENT


def retarget_files(
    files: Mapping[str, FileRange], order: RetargetOrder, folder: Path, *, taken: Iterable[str] = ()
) -> RetargetedTree:
    """Offer the code in ``files``, keyed by path below one root, to more GPUs, and write new files below ``folder``.

    Entries are added to the bundles in libraries. Archives and files of Tensile libraries, which are looked up by name,
    are copied. A copy contains all of its original's code; otherwise, it isn't created. Also, no copies are created at
    the paths in ``taken``. Code that can't be offered is listed with the reason, and similar files are listed together.
    Raises a single `InputError` for all damaged files, and `WorkError` if writing fails.
    """
    run = _Run(files, order, folder, frozenset((*files, *taken)))
    map_collecting("files", run.file, sorted(files))
    run.kernel_folders()
    return run.result()


class _Run:
    """The work on one tree."""

    def __init__(
        self, files: Mapping[str, FileRange], order: RetargetOrder, folder: Path, taken: frozenset[str]
    ) -> None:
        self._files, self._order, self._folder, self._taken = files, order, folder, taken
        self._edited: dict[str, FileRange] = {}
        self._added: list[RelabeledFile] = []
        self._refused: list[InputError] = []
        self._warnings: list[str] = []
        self._lacking: dict[str, list[str]] = defaultdict(list)
        self._kernels: dict[tuple[str, KernelFile], list[str]] = defaultdict(list)

    def result(self) -> RetargetedTree:
        lacking = {agent: tuple(paths) for agent, paths in self._lacking.items()}
        return RetargetedTree(self._edited, tuple(self._added), tuple(self._refused), lacking, tuple(self._warnings))

    def _refuse(self, error: InputError, agents: Iterable[str]) -> None:
        """Record why code isn't offered to ``agents``, which are empty if the GPUs have their own code."""
        self._refused.append(error)
        for agent in agents:
            self._lacking[agent].append(str(error.source))

    def file(self, path: str) -> None:
        """Process a file, or save it for `kernel_folders`."""
        kernels = classify_path(path)
        if kernels and kernels.rule != "kpack":
            if self._pairs_of(kernels.target):
                self._kernels[_library_folder(path, kernels), kernels].append(path)
            return
        with self._files[path].view() as data:
            shared = shared_row(path)
            if is_kpack(data):
                self._archive(path, data, kernels)
            elif processors_of_name(path):
                self._refuse_for(unknown_file(path, self._order.pairs))
            elif shared is None or is_bundle(data):
                self._library(path, data)
            else:
                self._refuse_for(shared_file(path, data, shared, self._order.pairs))

    def _refuse_for(self, refusals: Iterable[tuple[str, InputError]]) -> None:
        for agent, error in refusals:
            self._refuse(error, [agent])

    def _pairs_of(self, processor: str) -> list[TargetPair]:
        return [pair for pair in self._order.pairs if pair.code.processor == processor]

    def _library(self, path: str, data: Data) -> None:
        require_sound_image(data, name=path)
        targets = device_targets(data, name=path)
        pairs = tuple(pair for pair in self._order.pairs if any(pair.agent_of(target) for target in targets))
        if not pairs:
            return
        agents = [pair.agent.processor for pair in pairs]
        if is_code_object(data):
            self._refuse(InputError(path, f"is a standalone code object for {pairs[0].code}"), agents)
            return
        try:
            self._relabel(path, data, pairs)
        except (DeviceCodeError, SignedFileError, UnlinkedCodeError) as e:
            self._refuse(_refusal(path, e), agents)
            return
        bundles = [source.bundle.targets for source in iter_code_sources(data, name=path)]
        for pair in pairs:
            if found := bundles_without(bundles, pair):
                self._refuse(InputError(path, found), [pair.agent.processor])

    def _relabel(self, path: str, data: Data, pairs: tuple[TargetPair, ...]) -> None:
        """Write a library with more entries in its bundles, if it needs more."""
        order = RewriteOrder(
            edit=Retarget(pairs, self._order.verify),
            storage=self._order.storage,
            trim=self._order.trim and holds_places(data),
            jobs=self._order.jobs,
            progress=self._order.progress,
        )
        made = self._folder / "edited" / path
        try:
            report = _rewrite(data, path, order, made)
        except NotTrimmableError as e:
            self._warnings.append(f"not trimmed: {e}")
            report = _rewrite(data, path, msgspec.structs.replace(order, trim=False), made)
        if report.changed or report.trimmed:
            self._edited[path] = FileRange.whole(made)

    def _archive(self, path: str, data: Data, kernels: KernelFile | None) -> None:
        processors = read_archive(data, name=path).processors
        for pair in self._order.pairs:
            if pair.code.processor not in processors:
                continue
            processor, agent = pair.code.processor, pair.agent.processor
            new = posixpath.join(posixpath.dirname(path), _renamed_archive(path, processor, agent))
            if kernels is None or kernels.target != processor or new == path:
                found = f"is an archive with code for {processor}, but isn't named for it"
                self._refuse(InputError(path, found), [agent])
            elif new in self._taken:
                self._refuse(InputError(path, f"{agent} has its own code, {new}"), ())
            else:
                self._add(path, new, pair, data)

    def kernel_folders(self) -> None:
        """Copy each library's kernel files for the new targets, unless these targets already have kernel files."""
        for (folder, kernels), paths in sorted(self._kernels.items(), key=lambda item: (item[0][0], item[1][0])):
            for pair in self._pairs_of(kernels.target):
                taken, fixed = {_new_path(path, pair) for path in paths} & self._taken, fixed_reason(kernels)
                own = f"the target has its own files, such as {min(taken)}" if taken else ""
                if own or fixed:
                    subject = paths[0] if len(paths) == 1 else f"{folder}: {count(len(paths), 'file')}"
                    refusal = InputError(subject, f"not offered to {pair.agent}: {own or fixed}")
                    self._refuse(refusal, () if own else [pair.agent.processor])
                else:
                    self._copy_kernels(paths, pair)

    def _copy_kernels(self, paths: list[str], pair: TargetPair) -> None:
        """Copy all files, or none if any of them can't be copied, because the table would refer to missing files."""
        added, refused = len(self._added), len(self._refused)
        names = [posixpath.basename(path) for path in paths]
        stems = {name.removesuffix(".zlib").rpartition(".")[0] for name in names}
        known = KernelNames(pair, tuple(sorted({*names, *stems})))
        for path in paths:
            with self._files[path].view() as data:
                self._add(path, _new_path(path, pair), pair, data, known)
        if len(self._refused) > refused:
            del self._added[added:]

    def _add(self, path: str, new: str, pair: TargetPair, data: Data, names: KernelNames | None = None) -> None:
        made = self._folder / "added" / new
        try:
            with atomic_file(made) as file:
                if names is None:
                    retarget_archive(data, file, pair, name=path)
                else:
                    write_kernel_file(data, file.file, names, name=path)
        except KpackError:
            raise  # a damaged archive isn't skipped
        except (DeviceCodeError, NotRelabeledError) as e:
            self._refuse(_refusal(path, e), [pair.agent.processor])
        else:
            content = FileRange.whole(made)
            self._added.append(RelabeledFile(new, path, pair.code.processor, pair.agent.processor, content))


def _renamed_archive(path: str, processor: str, agent: str) -> str:
    """Return the name of an archive for ``agent``; the target is at the end of the name."""
    name = posixpath.basename(path)
    end = f"_{processor}.kpack"
    return f"{name.removesuffix(end)}_{agent}.kpack" if name.endswith(end) else name


def _new_path(path: str, pair: TargetPair) -> str:
    return renamed(path, pair.code.processor, pair.agent.processor)


def _library_folder(path: str, kernels: KernelFile) -> str:
    """Return the folder of all files of a library, above any folder that is named for the target."""
    folder = posixpath.dirname(path)
    parts = folder.split("/")
    named = [number for number, part in enumerate(parts) if kernels.target in part]
    return "/".join(parts[: named[0]]) if named else folder


def _rewrite(data: Data, path: str, order: RewriteOrder, made: Path) -> RewriteReport:
    rewrite = FileRewrite(data, path, order)
    with atomic_file(made) as file:
        return rewrite.write(file.file, made.parent)


def _refusal(path: str, error: InputError) -> InputError:
    return InputError(path, error.found, expected=error.expected, remedy=error.remedy)


class NewFile(msgspec.Struct, frozen=True):
    """A file for a target that had no such file: its path, its original's path, and the target."""

    path: str
    origin: str
    target: str


class TreeRetargeting(msgspec.Struct, frozen=True):
    """The results for a folder: edited and new files, why other code isn't offered, and the number of unchanged files.

    ``warnings`` lists the libraries that couldn't be trimmed, with the reasons.
    """

    edited: tuple[str, ...]
    added: tuple[NewFile, ...]
    refused: tuple[str, ...]
    copied: int
    warnings: tuple[str, ...] = ()


def copy_tree(source: Path, output: Path, order: RetargetOrder) -> TreeRetargeting:
    """Copy the folder ``source`` to ``output``, with its code offered to more GPUs (see `retarget_files`).

    Wheels in the folder don't change. ``output`` must be new or empty, and not in ``source``. The output appears only
    when it is complete. Raises `InputError` for unreadable paths, the same errors as `retarget_files`, and `WorkError`
    if writing fails.
    """
    with new_folder(output, source) as made:
        paths = list_tree(source)
        files = {}
        for path in paths:
            place = path.relative_to(source)
            _copy(path, made / place)
            if not path.is_symlink() and path.is_file() and not is_wheel(path):
                files[place.as_posix()] = FileRange.whole(path)
        taken = {path.relative_to(source).as_posix() for path in paths}
        result = retarget_files(files, order, made.parent / "retargeted", taken=taken)
        _move(result, source, made)
        wheels = [path for path in paths if path.is_file() and is_wheel(path)]
        return _report(result, [path.relative_to(source).as_posix() for path in wheels], len(files))


def _copy(path: Path, made: Path) -> None:
    if path.is_symlink():
        made.symlink_to(path.readlink())
    elif path.is_dir():
        made.mkdir(parents=True, exist_ok=True)
    else:
        require_regular(path)
        copy_file(path, made)


def _move(result: RetargetedTree, source: Path, made: Path) -> None:
    moves = [(path, path, content) for path, content in result.edited.items()]
    moves += [(file.path, file.origin, file.content) for file in result.added]
    for path, origin, content in moves:
        new = made / path
        new.parent.mkdir(parents=True, exist_ok=True)
        Path(content.path).replace(new)
        new.chmod(safe_mode((source / origin).stat().st_mode))


def _report(result: RetargetedTree, wheels: Sequence[str], files: int) -> TreeRetargeting:
    refused = [*map(str, result.refused), *(f"{path}: is a wheel; retarget it separately" for path in wheels)]
    added = tuple(NewFile(file.path, file.origin, file.agent) for file in result.added)
    copied = files - len(result.edited) + len(wheels)
    return TreeRetargeting(tuple(result.edited), added, tuple(refused), copied, result.warnings)


def copy_archive(source: Path, output: Path, pairs: Sequence[TargetPair]) -> None:
    """Write the kpack archive ``source`` for another GPU to ``output``, which gets its name when it is complete.

    Raises `InputError` unless there is exactly one pair and the archive has code for it. Also raises it for an
    ``output`` that is named for other GPUs. Raises the same errors as `retarget_archive`.
    """
    if len(pairs) != 1:
        agents = ", ".join(str(pair.agent) for pair in pairs)
        remedy = "Specify one target, or the folder that contains the archive."
        raise InputError(
            source,
            f"can't be retargeted to {agents} at the same time",
            expected="one archive for each target",
            remedy=remedy,
        )
    [pair] = pairs
    # Runtimes open an archive for the GPU in its name, and look up that GPU in the archive.
    named = [target.processor for target in targets_in_path(output.name)]
    if named and pair.agent.processor not in named:
        found = f"is named for {', '.join(named)}, so runtimes wouldn't find the code for {pair.agent.processor}"
        remedy = f"Name the archive {without_targets(output.name).replace('*', pair.agent.processor)}."
        raise InputError(output, found, expected=f"a name with {pair.agent.processor}", remedy=remedy)
    with FileRange.whole(source).view() as data:
        targets = read_archive(data, name=str(source)).targets
        if not any(pair.agent_of(parse_target_id(target, source=str(source))) for target in targets):
            found = f"no code for {pair.code} to offer to other GPUs"
            offered = ", ".join(sorted(targets, key=text_sort_key))
            raise InputError(source, found, expected=f"one of its targets {offered}")
        with atomic_file(output) as file:
            retarget_archive(data, file, pair, name=str(source))
