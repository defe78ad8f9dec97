"""Every function that decodes what others wrote is called by a harness, or is in a table with the reason why none does.

A function decodes where it calls one of `_DECODERS`, or `decode` with an error handler or a type, or makes a pattern of
bytes or names one of its module. It has to be called while the harnesses run their seeds and kept inputs.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.support.places import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SRC = ROOT / "src/rocwheel"
_DECODERS = frozenset(
    {
        *("loads", "decode_json", "decode_toml", "message_from_bytes", "literal_eval"),
        *("from_bytes", "unpack", "unpack_from", "iter_unpack", "reader", "is_zipfile", "ZipFile"),
    }
)
_OWN = "decodes what rocwheel itself has just written or computed"
_ENTRY = "facts of a cache entry, of which parse_entry, which has a harness, checks each bit"
_WRITES = "writes and reads nothing"
_PATTERN = "foreign, without a harness: one pattern or a few bytes at a fixed place"
_CHECKOUT = "a checkout of JAX, whose build its user runs"
_PASSED = "hands decoded text to a parser that has a harness"
_SYMBOLS = "names of symbols that the ELF reader, which has a harness, has found"
_LINK = "decodes the target of a symlink, which is used as it is"
_TELLS = "asks alone whether a file has the form of what rocwheel writes there"
_UNREACHED = {
    "artifacts/digests.py": _ENTRY,
    "audit/rules/conflicts.py": _SYMBOLS,
    "cli/targets/options.py": _PASSED,
    "device/splitting/wheels/metadata.py": "looks for lines that end in CR; packaging judges the values",
    "diff/facts.py": _SYMBOLS,
    "diff/sides.py": "reads targets of links as they are, and members by the reader of ZIP, which has a harness",
    "distributions/binaries.py": "asks zipfile alone whether a file is an archive",
    "distributions/build_manifest/place.py": _TELLS,
    "distributions/build_manifest/provenance.py": _TELLS,
    "distributions/index/entries/entry.py": _PASSED,
    "distributions/mirroring/needs.py": _PASSED,
    "distributions/packing/member_cache.py": _ENTRY,
    "distributions/packing/open_deflate.py": _OWN,
    "distributions/sbom/render.py": _OWN,
    "frameworks/jax/generated_file.py": _TELLS,
    "frameworks/jax_checkout/checkout.py": _CHECKOUT,
    "frameworks/jax_checkout/editing/splices.py": _CHECKOUT,
    "frameworks/jax_checkout/editing/starlark.py": _CHECKOUT,
    "frameworks/jax_checkout/phases/plan.py": _CHECKOUT,
    "frameworks/jax_checkout/reading/git.py": _CHECKOUT,
    "frameworks/jax_checkout/reading/jax_source.py": _CHECKOUT,
    "installed/reading/read_wheels.py": _LINK,
    "packages/building/standing.py": _ENTRY,
    "sdk/rocm_sdk/_gpus/system.py": _PASSED,
    "sdk/rocm_sdk/tests/_support.py": _PATTERN,
    "sdk/selector/_wheel.py": _WRITES,
}
"""By the module, or by the module and the function, why no harness calls it."""


def _decoding_functions(path: Path) -> Iterator[tuple[str, int]]:
    """Yield the qualified name and the first line of each function of a module that decodes."""
    tree = ast.parse(path.read_bytes())
    made = [node for node in tree.body if isinstance(node, ast.Assign) and any(map(_is_decoder, ast.walk(node)))]
    patterns = {target.id for node in made for target in node.targets if isinstance(target, ast.Name)}
    for name, function in _functions(tree, ""):
        if any(_is_decoder(node) or getattr(node, "id", "") in patterns for node in _own_nodes(function)):
            yield name, min([function.lineno, *(one.lineno for one in function.decorator_list)])


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.FunctionDef]]:
    for child in ast.iter_child_nodes(node):
        inner = f"{prefix}{child.name}." if isinstance(child, ast.FunctionDef | ast.ClassDef) else prefix
        if isinstance(child, ast.FunctionDef):
            yield inner[:-1], child
        yield from _functions(child, inner)


def _own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what is in a function, without the functions in it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef):
            yield child
            yield from _own_nodes(child)


def _is_decoder(call: ast.AST) -> bool:
    if not isinstance(call, ast.Call):
        return False
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name == "decode":
        handlers = [*call.args[1:], *(word.value for word in call.keywords if word.arg in {"errors", "type"})]
        # What can't be encoded becomes an escape in what is printed alone.
        return any(not isinstance(one, ast.Constant) or one.value != "backslashreplace" for one in handlers)
    has_bytes = any(isinstance(one, ast.Constant) and isinstance(one.value, bytes) for one in call.args)
    return name in _DECODERS or (name == "compile" and has_bytes)


def _called_functions() -> set[tuple[str, int]]:
    """Return what `called_functions` prints in a process of its own: in this one, other tests have filled memos."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.called_functions"], cwd=ROOT, check=True, stdout=subprocess.PIPE
    )
    return {(path, line) for path, line in json.loads(done.stdout)}


def _unreached() -> list[str]:
    """Return the modules of which no function that decodes is called, and the single functions of others."""
    called, found = _called_functions(), []
    for path in sorted(_SRC.rglob("*.py")):
        module, functions = str(path.relative_to(_SRC)), list(_decoding_functions(path))
        missed = [name for name, line in functions if (str(path), line) not in called]
        found += [module] if missed and len(missed) == len(functions) else [f"{module}:{name}" for name in missed]
    return found


def test_every_function_that_decodes_what_others_wrote_is_reached_by_a_harness() -> None:
    assert sorted(_unreached()) == sorted(_UNREACHED)
