"""The facts as the page's script reads them: JSON of short arrays, since there may be 100,000 files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rocwheel.report.page.shown import shown_text

if TYPE_CHECKING:
    from rocwheel.report.values.files import FileFacts
    from rocwheel.report.values.report import Report

__all__ = ["data_text"]


def data_text(report: Report) -> str:
    """Return the JSON for the page; nothing in it can end the element that it stands in, whatever files are called."""
    text = json.dumps(_page_data(report), ensure_ascii=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _page_data(report: Report) -> dict[str, Any]:
    components = sorted({file.component for file in report.files})
    targets = sorted({part.target for file in report.files for part in file.parts} | {""})
    place_of_component = {name: place for place, name in enumerate(components)}
    place_of_target = {name: place for place, name in enumerate(targets)}
    return {
        "packed": report.totals.packed is not None,
        "packages": [
            [shown_text(one.label), one.kind.value, shown_text(one.version), one.rest or 0, shown_text(one.problem)]
            for one in report.packages
        ],
        "components": list(map(shown_text, components)),
        "targets": list(map(shown_text, targets)),
        # package, component, path, size, packed, and if there are any: parts, what there is to say
        "files": [_row(file, place_of_component, place_of_target) for file in report.files],
    }


def _row(file: FileFacts, components: dict[str, int], targets: dict[str, int]) -> list[Any]:
    parts = [[targets[part.target], part.size, part.packed or 0] for part in file.parts]
    row = [file.package, components[file.component], shown_text(file.path), file.size, file.packed or 0]
    note = _note(file)
    return [*row, parts or 0, note] if note else [*row, parts] if parts else row


def _note(file: FileFacts) -> str:
    if file.problem:
        return shown_text(f"unreadable: {file.problem}")
    if file.same_as:
        return shown_text(f"same file as {file.same_as}")
    return "" if file.link is None else shown_text(f"link to {file.link}")
