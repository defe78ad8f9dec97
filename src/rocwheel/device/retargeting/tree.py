"""Everything in a tree that carries code, offered to more GPUs as far as the libraries look it up."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.bundles.device_code import device_targets, iter_code_sources
from rocwheel.binary.bundles.storage import Storage
from rocwheel.binary.code_objects import DeviceCodeError, NotTrimmableError, is_code_object
from rocwheel.binary.kind import is_bundle, is_kpack
from rocwheel.binary.kpack.archive import KpackError, read_archive
from rocwheel.binary.pe.rewrite import SignedFileError
from rocwheel.core.errors import InputError
from rocwheel.core.messages import count
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.reading import FileRange
from rocwheel.core.workers import convert_all
from rocwheel.core.writing import atomic_file
from rocwheel.device.editing.file_rewrite import FileRewrite, is_binary
from rocwheel.device.editing.places import UnlinkedCodeError
from rocwheel.device.editing.retarget import Retarget, bundles_without
from rocwheel.device.editing.rewrite_order import RewriteOrder, RewriteReport
from rocwheel.device.reading.images import require_sound_image
from rocwheel.device.retargeting.archive import retarget_archive
from rocwheel.device.retargeting.fixed_files import shared_file, unknown_file
from rocwheel.device.retargeting.kernel_file import KernelNames, write_kernel_file
from rocwheel.device.retargeting.relabelled import AddedFile, NotRelabelledError, RetargetedTree, renamed
from rocwheel.targets.kernel_files.classify import classify_path, fixed_reason, processors_of_name, shared_row
from rocwheel.targets.retarget_pairs import TargetPair

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from rocwheel.core.reading import Data
    from rocwheel.targets.kernel_files.classify import KernelFile

__all__ = ["RetargetOrder", "retarget_files"]


class RetargetOrder(msgspec.Struct, frozen=True, kw_only=True):
    """To which GPUs code is offered, and how edited bundles are stored."""

    pairs: tuple[TargetPair, ...]
    storage: Storage = Storage()
    verify: bool = False
    """Whether bundles that have code for both targets must have the same."""
    trim: bool = False
    """Whether freed space is taken out of the libraries whose code is offered, as far as they can be trimmed."""
    jobs: int = 1
    progress: Progress = SILENT


def retarget_files(
    files: Mapping[str, FileRange], order: RetargetOrder, folder: Path, *, taken: Iterable[str] = ()
) -> RetargetedTree:
    """Offer the code in ``files``, by their paths from one root, to more GPUs; what is made lies below ``folder``.

    Libraries get further entries in their bundles; archives and the files of Tensile's libraries, which are found by
    their names, get copies. A copy has all code of its origin or is not made. ``taken`` are paths that can't be those
    of copies, besides those of ``files``. What can't be offered is listed with the reason, files of one kind together.
    Raises `InputError` for damaged files, for all together, and `WorkError` when writing fails.
    """
    run = _Run(files, order, folder, frozenset((*files, *taken)))
    convert_all("files", run.file, sorted(files))
    run.kernel_folders()
    return run.result()


class _Run:
    """The work on one tree."""

    def __init__(
        self, files: Mapping[str, FileRange], order: RetargetOrder, folder: Path, taken: frozenset[str]
    ) -> None:
        self._files, self._order, self._folder, self._taken = files, order, folder, taken
        self._edited: dict[str, FileRange] = {}
        self._added: list[AddedFile] = []
        self._refused: list[InputError] = []
        self._warnings: list[str] = []
        self._lacking: dict[str, list[str]] = defaultdict(list)
        self._kernels: dict[tuple[str, KernelFile], list[str]] = defaultdict(list)

    def result(self) -> RetargetedTree:
        """Return what was made so far."""
        lacking = {agent: tuple(paths) for agent, paths in self._lacking.items()}
        return RetargetedTree(self._edited, tuple(self._added), tuple(self._refused), lacking, tuple(self._warnings))

    def _refuse(self, error: InputError, agents: Iterable[str]) -> None:
        """Note why code is not offered to ``agents``; without any, they have code of their own."""
        self._refused.append(error)
        for agent in agents:
            self._lacking[agent].append(str(error.source))

    def file(self, path: str) -> None:
        """Do what a file is about, or keep it for `kernel_folders`."""
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
            self._refuse(InputError(path, f"is a code object for {pairs[0].code} by itself"), agents)
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
        """Write a library whose bundles have further entries, if it needs any."""
        order = RewriteOrder(
            edit=Retarget(pairs, self._order.verify),
            storage=self._order.storage,
            trim=self._order.trim and is_binary(data),
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
                found = f"is an archive with code for {processor}, which its name does not say"
                self._refuse(InputError(path, found), [agent])
            elif not self._is_taken(path, new, agent):
                self._add(path, new, pair, data)

    def _is_taken(self, path: str, new: str, agent: str) -> bool:
        if new in self._taken:
            self._refuse(InputError(path, f"{agent} has code of its own, {new}"), ())
        return new in self._taken

    def kernel_folders(self) -> None:
        """Copy the kernel files of each library for the new targets, unless they have some."""
        for (folder, kernels), paths in sorted(self._kernels.items(), key=lambda item: (item[0][0], item[1][0])):
            for pair in self._pairs_of(kernels.target):
                own, fixed = self._own_files(paths, pair), fixed_reason(kernels)
                if own or fixed:
                    subject = paths[0] if len(paths) == 1 else f"{folder}: {count(len(paths), 'file')}"
                    refusal = InputError(subject, f"not offered to {pair.agent}: {own or fixed}")
                    self._refuse(refusal, () if own else [pair.agent.processor])
                else:
                    self._copy_kernels(paths, pair)

    def _own_files(self, paths: list[str], pair: TargetPair) -> str:
        own = sorted({_new_path(path, pair) for path in paths} & self._taken)
        return f"there are files for it, such as {own[0]}" if own else ""

    def _copy_kernels(self, paths: list[str], pair: TargetPair) -> None:
        """Copy all files or, when one can't be, none: its table would name what is missing."""
        added, refused = len(self._added), len(self._refused)
        names = [posixpath.basename(path) for path in paths]
        known = KernelNames(pair, tuple(sorted({*names, *(_stem(name) for name in names)})))
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
            raise  # damage is no reason to leave an archive alone
        except (DeviceCodeError, NotRelabelledError) as e:
            self._refuse(_refusal(path, e), [pair.agent.processor])
        else:
            content = FileRange.whole(made)
            self._added.append(AddedFile(new, path, pair.code.processor, pair.agent.processor, content))


def _renamed_archive(path: str, processor: str, agent: str) -> str:
    """Return the name of an archive for ``agent``: its target stands at the end."""
    name = posixpath.basename(path)
    end = f"_{processor}.kpack"
    return f"{name.removesuffix(end)}_{agent}.kpack" if name.endswith(end) else name


def _new_path(path: str, pair: TargetPair) -> str:
    return renamed(path, pair.code.processor, pair.agent.processor)


def _library_folder(path: str, kernels: KernelFile) -> str:
    """Return the folder of all files of a library, above one that is named for the target."""
    folder = posixpath.dirname(path)
    parts = folder.split("/")
    named = [number for number, part in enumerate(parts) if kernels.target in part]
    return "/".join(parts[: named[0]]) if named else folder


def _stem(name: str) -> str:
    return name.removesuffix(".zlib").rpartition(".")[0]


def _rewrite(data: Data, path: str, order: RewriteOrder, made: Path) -> RewriteReport:
    rewrite = FileRewrite(data, path, order)
    with atomic_file(made) as file:
        return rewrite.write(file.file, made.parent)


def _refusal(path: str, error: InputError) -> InputError:
    return InputError(path, error.found, expected=error.expected, remedy=error.remedy)
