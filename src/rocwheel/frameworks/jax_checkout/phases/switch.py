"""Phase 2: run paths are set where libraries are linked, and rocwheel assembles the wheels."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rocwheel.frameworks.jax_checkout.editing.questions import ask, without_question
from rocwheel.frameworks.jax_checkout.editing.splices import above, added_to_attribute, spliced
from rocwheel.frameworks.jax_checkout.editing.starlark import StarlarkFile
from rocwheel.frameworks.jax_checkout.phases.callers import replace_callers
from rocwheel.frameworks.jax_checkout.phases.jax_patch import jax_patch, run_path_splices
from rocwheel.frameworks.jax_checkout.phases.settings_draft import plugin_modules
from rocwheel.frameworks.jax_checkout.reading.structure import (
    BUILD_NAMES,
    LINKING_RULES,
    WORKSPACE,
    is_linked,
    jax_rules,
    strip_level,
)

if TYPE_CHECKING:
    import ast

    from rocwheel.frameworks.jax_checkout.phases.plan import Plan

__all__ = ["PATCH_NAME", "switch"]

PATCH_NAME = "Set-run-paths-for-wheels.patch"
"""How the name of the patch for ``@jax`` ends; a number stands before it, as before the others."""

_RULES = f"{WORKSPACE}/rocm_wheel"
_PATCHES = f"{WORKSPACE}/third_party/jax"
_NUMBER = re.compile(r"(\d+)-")
_NO_SOURCE = (
    "where is the source of @jax? Its extension modules need their run paths by one more patch here: run `rocwheel jax "
    "migrate --jax DIR` with a clone of JAX that has this commit, or with the folder external/jax below what "
    "`bazel info output_base` prints."
)


def switch(plan: Plan) -> None:
    """Add the rules, and link every library of the wheels with the run path of its place there."""
    draft = plan.draft
    for name, text in plan.rules.items():
        if not draft.has(f"{_RULES}/{name}"):
            draft.put(f"{_RULES}/{name}", text, "rules that link with the run path of a place in a wheel")
    _declare(plan)
    rocm = plan.settings.rocm_version
    _set_run_paths(plan, f"{WORKSPACE}/pjrt", f"jax_plugins/xla_rocm{rocm}")
    _set_run_paths(plan, f"{WORKSPACE}/jaxlib_ext", f"jax_rocm{rocm}_plugin")
    _patch_jax(plan, f"jax_rocm{rocm}_plugin")
    replace_callers(plan)


def _declare(plan: Plan) -> None:
    path = plan.structure.workspace
    text = plan.draft.text(path)
    if not any(True for _ in StarlarkFile(path, text).calls("rocm_wheel_repository")):
        text = text.rstrip("\n") + "\n\n" + plan.declaration
        plan.draft.put(path, text, "the repository that hands ROCM_WHEEL_RPATH to the rules")


def _set_run_paths(plan: Plan, folder: str, place: str) -> None:
    """Set the run paths of all libraries that are linked below a folder."""
    for path in list(plan.draft.checkout.below(folder)):
        if path.rpartition("/")[2] in BUILD_NAMES:
            file = StarlarkFile(path, plan.draft.text(path))
            calls = [call for call in file.calls(*LINKING_RULES) if is_linked(call)]
            text = spliced(file, run_path_splices(file, calls, place))
            plan.draft.put(path, text, f"linked with the run path of {place}, in place of patchelf")


def _patch_jax(plan: Plan, place: str) -> None:
    path, draft = plan.structure.jax, plan.draft
    text = draft.text(path)
    rule = next(jax_rules(StarlarkFile(path, text)))
    if PATCH_NAME in text:
        return
    if not plan.jax_build:
        if _NO_SOURCE not in " ".join(text.replace("#", " ").split()):
            _ask_for_source(plan, StarlarkFile(path, text), rule)
        return
    file = StarlarkFile(path, without_question(text, _NO_SOURCE))
    rule = next(jax_rules(file))
    name = f"{_next_number(plan):04}-{PATCH_NAME}"
    level = strip_level(file, rule)
    patch = jax_patch(plan.jax_build, plugin_modules(), place, plan.structure.workspace_name, level=level)
    draft.put(f"{_PATCHES}/{name}", patch, "the extension modules are linked with their run path, in place of patchelf")
    label = f'"//third_party/jax:{name}"'
    draft.put(
        path, spliced(file, added_to_attribute(file, rule, "patches", label, element=True)), "one more patch for @jax"
    )


def _ask_for_source(plan: Plan, file: StarlarkFile, rule: ast.Call) -> None:
    """Ask above the rule for ``@jax`` where its source is."""
    text = spliced(file, [above(file, rule, ask(_NO_SOURCE))])
    plan.draft.put(file.path, text, "only @jax's source decides this patch")


def _next_number(plan: Plan) -> int:
    names = [path.rpartition("/")[2] for path in plan.draft.checkout.below(_PATCHES)]
    return 1 + max((int(match[1]) for name in names if (match := _NUMBER.match(name))), default=0)
