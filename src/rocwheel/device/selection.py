"""Selects the code object from a bundle, or from a split library's archives, and explains the choice."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from rocwheel.binary.bundles.runtimes import (
    Archives,
    Generics,
    Lacking,
    find_runtime,
    first_reader,
    first_with_archives,
    other_readers,
    releases,
)
from rocwheel.binary.code_objects import TargetId, is_code_object
from rocwheel.binary.elf.facts import read_elf
from rocwheel.binary.kind import is_elf
from rocwheel.binary.pe.facts import read_pe
from rocwheel.binary.pe.header import is_pe64
from rocwheel.targets.catalog import load_catalog, why_unknown
from rocwheel.targets.compatibility import Fit, Runtime, choose, explain, fit
from rocwheel.targets.target_set import text_sort_key

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rocwheel.binary.bundles.runtimes import HipRelease, HipRuntime
    from rocwheel.binary.code_objects import LoadedHeader
    from rocwheel.core.reading import Data
    from rocwheel.device.kpack_code import LookupResult, UnitLookup


def needed_runtime(data: Data, *, name: str) -> HipRuntime | None:
    """Return the HIP runtime that the file ``name`` depends on, or `None` if there is no such runtime."""
    if is_pe64(data):
        return find_runtime(read_pe(data, name=name).wanted)
    return find_runtime(read_elf(data, name=name).needed) if is_elf(data) and not is_code_object(data) else None


class SelectedCode(msgspec.Struct, frozen=True):
    """Bundles in one file that provide the same code; ``code`` is ``None`` if no code runs."""

    code: TargetId | None
    fit: Fit
    reason: str
    bundles: int


class EntryCode(NamedTuple):
    """The code in a bundle entry: the target and kind from its ID, and the code object's header."""

    target: TargetId
    kind: str
    header: LoadedHeader | None
    """The header, or `None` for other kinds of code.

    Also `None` if the bundle's other code makes the header unnecessary.
    """

    def loads_with(self, release: HipRelease) -> bool:
        """Return whether the release loads code objects of this version and, if the code is generic, generic code."""
        is_known = self.header is None or self.header.version in release.code_objects
        return is_known and not (self.target.is_generic and release.generics is Generics.NONE)


class BundleCode(NamedTuple):
    """The bundle entries that have code, in order, and the header version of a compressed bundle.

    A standalone code object is represented as one entry that is found without a lookup. The content of an archive under
    one key has the same form.
    """

    entries: tuple[EntryCode, ...]
    compressed: int | None = None
    is_bundle: bool = True
    is_archived: bool = False

    def is_read_by(self, release: HipRelease) -> bool:
        """Return whether the release can read all of the bundle, for any GPU."""
        is_opened = self.compressed is None or self.compressed in release.compressed
        if self.is_archived and release.archives is Archives.NONE:
            return False
        return is_opened and all(entry.loads_with(release) for entry in self.entries)


def select_loaded(bundle: BundleCode, agent: TargetId, runtime: Runtime, release: HipRelease) -> SelectedCode:
    """Return the code that a HIP release loads from a bundle: the entry that it finds, if it loads that code object."""
    if bundle.compressed is not None and bundle.compressed not in release.compressed:
        since = first_reader(bundle.compressed)
        others = f", as does {other_readers(bundle.compressed)}" if other_readers(bundle.compressed) else ""
        who = (
            f"ROCm {since} and later read{others}"
            if since
            else "no ROCm release reads, because runtimes mistake its raw size for its total size"
        )
        return _nothing(f"a bundle with compression version {bundle.compressed}, which {who}")
    if bundle.is_archived and release.archives is Archives.NONE:
        return _nothing(_unread_archives())
    runtime = Runtime.STOCK if bundle.is_archived else runtime
    passed = [_why_passed(entry, agent, release, is_looked_up=bundle.is_bundle) for entry in bundle.entries]
    found = [entry for entry, why in zip(bundle.entries, passed, strict=True) if not why]
    is_plain = bundle.is_bundle and bundle.compressed is None
    if release.generics is Generics.FIRST and is_plain and runtime is Runtime.STOCK:
        found = _first_fitting(found, agent) or found
    choice = choose([entry.target for entry in found], agent, runtime)
    if choice is None:
        each = zip(bundle.entries, passed, strict=True)
        reasons = (f"{entry.target}: {why or explain(entry.target, agent, runtime)}" for entry, why in each)
        return _nothing("; ".join(reasons) or "no device code")
    refused = _why_refused(choice.code, found[choice.index].header, agent, runtime, release)
    return _nothing(refused) if refused else SelectedCode(choice.code, choice.fit, choice.reason, 1)


class OtherGpus(NamedTuple):
    """The other GPUs of a machine.

    Each GPU is a tuple of targets, one for each feature setting that the GPU may have.
    """

    earlier: tuple[tuple[TargetId, ...], ...] = ()
    """The GPUs before this one, in the order of the runtime."""
    later: tuple[tuple[TargetId, ...], ...] = ()

    @property
    def targets(self) -> list[TargetId]:
        """Every setting of every other GPU."""
        return [target for settings in (*self.earlier, *self.later) for target in settings]

    def known_to(self, rocm: str) -> OtherGpus:
        """Return the GPUs that a ROCm release knows. If ``rocm`` is empty, return all GPUs."""
        known = [
            tuple(settings for settings in gpus if not rocm or not why_unknown(settings[0].processor, rocm))
            for gpus in self
        ]
        return OtherGpus(*known)


def select_registered(
    bundle: BundleCode, agent: TargetId, runtime: Runtime, release: HipRelease, beside: OtherGpus
) -> SelectedCode:
    """Return the code that a GPU gets from a library's bundle, in a machine with the GPUs ``beside`` it.

    When a library registers a bundle, a runtime looks for the code for all GPUs together.
    """
    own = select_loaded(bundle, agent, runtime, release)
    others = beside.earlier if release.lacking is Lacking.LATER else (*beside.earlier, *beside.later)
    for settings in others:
        alike = [gpu for gpu in settings if None in (gpu.xnack, agent.xnack) or gpu.xnack == agent.xnack]
        if own.code and not any(select_loaded(bundle, gpu, runtime, release).code for gpu in alike or settings):
            which = "every" if release.lacking is Lacking.ALL else "every later"
            return _nothing(f"next to {settings[0]}: no code for it, so this runtime gives {which} GPU none")
    return own


def _first_fitting(entries: Sequence[EntryCode], agent: TargetId) -> list[EntryCode]:
    """Return a list with the first entry that is generic or for the GPU's processor, if any."""
    fits = [fit(entry.target, agent) for entry in entries]
    first = next((number for number, how in enumerate(fits) if how.rank >= Fit.GENERIC.rank), None)
    return [] if first is None else [entries[first]]


def _why_refused(
    code: TargetId, header: LoadedHeader | None, agent: TargetId, runtime: Runtime, release: HipRelease
) -> str:
    """Return why a release doesn't load the code object that it found for a target, or an empty string if it does."""
    if header is None:
        return ""
    if header.version not in release.code_objects:
        return f"{code}: {_unread_code_object(header.version)}"
    if header.target is not None and fit(header.target, agent, runtime) is Fit.NONE:
        reason = explain(header.target, agent, runtime)
        return f"{code}: the code object's flags are for {header.target}: {reason}"
    return ""


def _why_passed(entry: EntryCode, agent: TargetId, release: HipRelease, *, is_looked_up: bool) -> str:
    """Return why a release doesn't find an entry that matches the GPU.

    Returns an empty string if the release finds the entry, or if the entry doesn't match.
    """
    if fit(entry.target, agent, Runtime.EXTENDED) is Fit.NONE:
        return ""
    if entry.kind not in release.kinds:
        return f"an entry of kind {entry.kind}, which HIP ignores"
    if not entry.target.is_generic or entry.target.processor == agent.processor:
        return ""
    return _why_generic_passed(entry, agent, release) if is_looked_up or release.generics is Generics.NONE else ""


def _why_generic_passed(entry: EntryCode, agent: TargetId, release: HipRelease) -> str:
    """Return why a release doesn't find a generic entry that covers the GPU, or an empty string if it does."""
    if release.generics is Generics.NONE:
        since = next(row.since for row in releases() if row.generics is not Generics.NONE)
        return f"generic code, which ROCm {since} and later load"
    if agent.processor in release.without_generics:
        return f"generic code, which this runtime doesn't look for on {agent.processor}"
    if release.generics is not Generics.SAME_FEATURES:
        return ""
    lacking = sorted(_features(agent) - _features(entry.target))
    asked = f"HIP looks for {' and '.join(lacking)}, which the GPU has but the code doesn't"
    return f"generic code that covers the GPU, but {asked}" if lacking else ""


def _features(target: TargetId) -> set[str]:
    row = load_catalog().processors.get(target.processor)
    return set(row.features) if row else set(target.features)


def _unread_code_object(version: int) -> str:
    rows = [row for row in releases() if version in row.code_objects]
    if not rows:
        return f"a code object with version {version}, which no ROCm release loads"
    since, last = rows[0].since, rows[-1].last
    who = f"only ROCm {since} to {last} loads" if last else f"ROCm {since} and later load"
    return f"a code object with version {version}, which {who}"


def select_stored(
    lookup: UnitLookup,
    gpu: TargetId,
    release: HipRelease,
    headers: Mapping[tuple[str, int], LoadedHeader],
    beside: Sequence[TargetId] = (),
) -> SelectedCode:
    """Return the code that ``gpu`` gets from a split library's archives, in a machine with the GPUs ``beside`` it.

    If an archive lists one of these GPUs but lacks the unit, no GPU gets code for the unit. ``headers`` contains the
    headers of code objects, keyed by archive name and ordinal.
    """
    if release.archives is Archives.NONE:
        return _nothing(_unread_archives())
    found = lookup.find(gpu)
    if found.lacking:
        return _nothing(f"{_lack(lookup, found)}, so runtimes reject every GPU")
    for other in beside:
        theirs = lookup.find(other)
        if theirs.lacking:
            return _nothing(f"next to {other}: {_lack(lookup, theirs)}, so runtimes reject every GPU")
    if found.code is None:
        return _nothing(_why_nothing(lookup, gpu))
    reason = _why_stopped(lookup, gpu, beside) if release.archives is Archives.FIRST else ""
    header = headers.get(found.stored) if found.stored else None
    reason = reason or _why_refused(found.code, header, gpu, Runtime.STOCK, release)
    return _nothing(reason) if reason else SelectedCode(found.code, fit(found.code, gpu), explain(found.code, gpu), 1)


def _unread_archives() -> str:
    return f"in kpack archives, which ROCm {first_with_archives()} and later read"


def _why_stopped(lookup: UnitLookup, gpu: TargetId, beside: Sequence[TargetId]) -> str:
    """Return why runtimes don't load code that later runtimes find in archives, or an empty string if they load it."""
    others = sorted({str(other) for other in beside if other != gpu}, key=text_sort_key)
    if others:
        return f"next to {', '.join(others)}: runtimes use the code for one GPU for all GPUs in a machine"
    found = lookup.find(gpu, stops=True)
    return f"{_lack(lookup, found)}, and runtimes don't search any other archives" if found.lacking else ""


def _lack(lookup: UnitLookup, found: LookupResult) -> str:
    assert found.lacking is not None
    return f"{found.lacking.name} lists {found.target} but lacks {lookup.key}"


def _why_nothing(lookup: UnitLookup, gpu: TargetId) -> str:
    if not lookup.archives:
        return f"no archive at {', '.join(lookup.wrapper.marker.search_paths)}"
    lead = "the archives have no code for this GPU"
    elsewhere = "in an archive that is named for another GPU"
    reasons = (
        f"{target}: {explain(target, gpu) if fit(target, gpu) is Fit.NONE else elsewhere}" for target in lookup.targets
    )
    return f"{lead}: {'; '.join(reasons)}" if lookup.targets else lead


def _nothing(reason: str) -> SelectedCode:
    return SelectedCode(None, Fit.NONE, reason, 1)
