"""Every module that decodes what others wrote is reached by a harness, or is in a table with the reason why none is.

A module decodes where it calls one of `_DECODERS`, or `decode` with an error handler or a type, or makes a pattern of
bytes. It is reached where one of its functions is called while the harnesses run their seeds and kept inputs.
"""

from __future__ import annotations

import ast
import sys
from typing import TYPE_CHECKING, Any

from fuzz.attempt import attempt
from fuzz.corpora import read_corpus
from fuzz.harness import all_harnesses
from tests.support.places import ROOT

if TYPE_CHECKING:
    from pathlib import Path
    from types import CodeType, FrameType

_SRC = ROOT / "src/rocwheel"
_DECODERS = frozenset(
    {
        *("loads", "decode_json", "decode_toml", "message_from_bytes", "literal_eval"),
        *("from_bytes", "unpack", "unpack_from", "iter_unpack", "reader", "is_zipfile", "ZipFile"),
    }
)
_OWN = "decodes what rocwheel itself has written or computed"
_WRITES = "writes and reads nothing"
_LINES = "takes single fields of the lines of a file, by partition"
_PATTERN = "foreign, without a harness: one pattern or a few bytes at a fixed place"
_CHECKOUT = "a checkout of JAX, whose build its user runs"
_USER = "a file that the user of the command names or writes"
_PASSED = "hands decoded text to a parser that has a harness"
_UNREACHED = {
    "artifacts/digests.py": _OWN,
    "artifacts/importing/report.py": _PATTERN,
    "artifacts/importing/tree.py": "foreign, without a harness: texts in which paths are replaced",
    "audit/rules/conflicts.py": "names of symbols that the ELF reader, which has a harness, has found",
    "audit/settings.py": _USER,
    "cli/targets/options.py": _PASSED,
    "cluster/scheduler_file.py": _USER,
    "device/merging/moved_bytes.py": "foreign, without a harness: compares bytes of sections as numbers",
    "device/merging/moved_words.py": "foreign, without a harness: compares words of sections as numbers",
    "device/splitting/wheels/finished_wheel.py": _LINES,
    "device/splitting/wheels/split_unpacked.py": _LINES,
    "diffing/binary_facts.py": "names of symbols that the ELF reader, which has a harness, has found",
    "diffing/values.py": "unpacks a member by the reader of ZIP, which has a harness",
    "distributions/binaries.py": "asks zipfile alone whether a file is an archive",
    "distributions/build_manifest/place.py": _OWN,
    "distributions/index/entries/entry.py": _PASSED,
    "distributions/index/placing/previous.py": "pages of an index of one's own, in a shape that msgspec checks",
    "distributions/mirroring/needs.py": _PASSED,
    "distributions/packing/member_cache.py": _OWN,
    "distributions/packing/open_deflate.py": _OWN,
    "distributions/sbom/render.py": _OWN,
    "frameworks/jax/generated_file.py": _OWN,
    "frameworks/jax_checkout/checkout.py": _CHECKOUT,
    "frameworks/jax_checkout/editing/splices.py": _CHECKOUT,
    "frameworks/jax_checkout/editing/starlark.py": _CHECKOUT,
    "frameworks/jax_checkout/phases/plan.py": _CHECKOUT,
    "frameworks/jax_checkout/reading/git.py": _CHECKOUT,
    "frameworks/jax_checkout/reading/jax_source.py": _CHECKOUT,
    "installed/reading/read_wheels.py": "decodes the target of a symlink, which is used as it is",
    "packages/building/standing.py": _OWN,
    "packages/layout/tree_platform.py": _PATTERN,
    "sdk/rocm_sdk/_doctor/checks/scripts.py": _PATTERN,
    "sdk/rocm_sdk/tests/_support.py": _PATTERN,
    "sdk/selector/_wheel.py": _WRITES,
    "stores/objects/large_uploads.py": _OWN,
    "verifying/own_folders.py": "notes that rocm_sdk has written, in a shape that msgspec checks",
}
"""By the module, why no harness reaches it."""


def _decodes(path: Path) -> bool:
    return any(isinstance(node, ast.Call) and _is_decoder(node) for node in ast.walk(ast.parse(path.read_bytes())))


def _is_decoder(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name == "decode":
        handlers = [*call.args[1:], *(word.value for word in call.keywords if word.arg in {"errors", "type"})]
        # What can't be encoded becomes an escape in what is printed alone.
        return any(not isinstance(one, ast.Constant) or one.value != "backslashreplace" for one in handlers)
    has_bytes = any(isinstance(one, ast.Constant) and isinstance(one.value, bytes) for one in call.args)
    return name in _DECODERS or (name == "compile" and has_bytes)


def _called_files() -> set[str]:
    """Return the files of functions, without bodies of modules and classes, that run while all harnesses do."""
    called: set[CodeType] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            called.add(frame.f_code)

    inputs = [(harness, data) for harness in all_harnesses() for data in (*harness.seeds(), *read_corpus(harness.name))]
    before = sys.getprofile()
    try:
        for harness, data in inputs:
            sys.setprofile(note)  # each time, since Python drops it after an error within, as of recursion
            attempt(harness, data)
    finally:
        sys.setprofile(before)
    return {code.co_filename for code in called if code.co_flags & 2}  # CO_NEWLOCALS: of a function


def test_every_module_that_decodes_what_others_wrote_is_reached_by_a_harness() -> None:
    called = _called_files()
    decoding = [path for path in sorted(_SRC.rglob("*.py")) if _decodes(path)]
    unreached = [str(path.relative_to(_SRC)) for path in decoding if str(path) not in called]
    assert unreached == sorted(_UNREACHED)
