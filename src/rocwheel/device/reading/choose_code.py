"""The choice of code in files for GPU targets, by the rule of exact names or by that of a runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.binary.code_objects import DeviceCodeError
from rocwheel.core.workers import raise_all
from rocwheel.device.reading.extraction import MatchRule
from rocwheel.device.reading.kpack.extract import choose_stored
from rocwheel.targets.compatibility import Runtime, choose

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocwheel.binary.bundles.device_code import CodeSource
    from rocwheel.binary.bundles.plain import BundleEntry
    from rocwheel.binary.bundles.sequence import Bundle
    from rocwheel.binary.code_objects import TargetId
    from rocwheel.device.reading.kpack.code import KpackCode, StoredCode

__all__ = ["CodeChoice"]


class CodeChoice:
    """Which entries are taken for ``targets``, and what was passed over so far."""

    def __init__(self, targets: Sequence[TargetId], rule: MatchRule, *, allow_missing: bool) -> None:
        self.targets, self.rule, self.allow_missing = targets, rule, allow_missing
        self.has_code = False
        self.passed_over: list[DeviceCodeError] = []

    def choose(self, name: str, sources: Sequence[CodeSource]) -> dict[int, list[BundleEntry]]:
        """Return the entries of each bundle of a file; raise `DeviceCodeError` when some bundles alone have none."""
        chosen: dict[int, list[BundleEntry]] = {}
        problems = []
        for number, bundle in enumerate(source.bundle for source in sources):
            self.has_code = True
            found = {target: _choose_entry(bundle, target, self.rule) for target in self.targets}
            entries = found.values() if self.targets else [entry for entry in bundle.plain.device_entries if entry.size]
            each_once = {entry.offset: entry for entry in entries if entry}
            if each_once:
                chosen[number] = list(each_once.values())
            problems += [_missing(bundle, target, self.rule) for target, entry in found.items() if entry is None]
        self._settle(name, problems, is_any_chosen=bool(chosen))
        return chosen

    def choose_stored(self, name: str, kpack: KpackCode) -> dict[int, tuple[StoredCode, ...]]:
        """Return the code of each unit of an archive or a split library, as `choose` does for bundles."""
        self.has_code = self.has_code or any(unit.codes for unit in kpack.units)
        chosen, problems = choose_stored(name, kpack.units, self.targets, self.rule)
        self._settle(name, problems, is_any_chosen=bool(chosen))
        return chosen

    def _settle(self, name: str, problems: Sequence[DeviceCodeError], *, is_any_chosen: bool) -> None:
        if not is_any_chosen:
            self.passed_over += problems
        elif not self.allow_missing:
            raise_all(name, problems)


def _choose_entry(bundle: Bundle, wanted: TargetId, rule: MatchRule) -> BundleEntry | None:
    """Return the entry of ``bundle`` for ``wanted`` by ``rule``; none when nothing fits."""
    entries = [entry for entry in bundle.plain.device_entries if entry.size]
    if rule is MatchRule.EXACT:
        return next((entry for entry in entries if entry.target == wanted), None)
    targets = [entry.target for entry in entries if entry.target is not None]
    choice = choose(targets, wanted, Runtime(rule.value))
    return entries[choice.index] if choice else None


def _missing(bundle: Bundle, target: TargetId, rule: MatchRule) -> DeviceCodeError:
    is_variant = any(other.processor == target.processor for other in bundle.targets)
    return DeviceCodeError(
        bundle.place,
        f"has no code for {target} by the rule '{rule.value}'",
        expected=f"one of its targets {', '.join(map(str, bundle.targets))}" if bundle.targets else "",
        remedy="Name a variant, or choose another rule." if rule is MatchRule.EXACT and is_variant else "",
    )
