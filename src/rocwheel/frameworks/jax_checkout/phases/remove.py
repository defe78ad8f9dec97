"""Phase 4: what nothing uses any more is deleted."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from rocwheel.frameworks.jax_checkout.editing.questions import MARK, ask
from rocwheel.frameworks.jax_checkout.editing.splices import above, spliced, without_statement, without_string
from rocwheel.frameworks.jax_checkout.editing.starlark import StarlarkFile, called, loaded_names, string_attribute
from rocwheel.frameworks.jax_checkout.phases.configs import drop_overridden
from rocwheel.frameworks.jax_checkout.phases.deprecate import BUILD_PY
from rocwheel.frameworks.jax_checkout.phases.settings_draft import BUILDERS
from rocwheel.frameworks.jax_checkout.phases.users import callers, users
from rocwheel.frameworks.jax_checkout.reading.structure import BUILD_NAMES, WORKSPACE

if TYPE_CHECKING:
    from rocwheel.frameworks.jax_checkout.phases.plan import Plan

__all__ = ["remove"]

_TOOLS = ("jaxlib_ext/tools", "pjrt/tools")
_TEMPLATES = (
    "jax_plugins/rocm/plugin_pyproject.toml",
    "jax_plugins/rocm/plugin_setup.py",
    "pjrt/python/pyproject.toml",
    "pjrt/python/setup.py",
)
_SCRIPTS = ("build/rocm/tools/fixwheel.py", "build/tools/utils.py")
_OLD_TARGETS = ("build_gpu_kernels_wheel", "build_gpu_plugin_wheel", "build_utils")
_LICENSE = "LICENSE.txt"


def remove(plan: Plan) -> None:
    """Delete build.py, the builders with their targets, and the templates, each if nothing else uses it."""
    _delete(plan, BUILD_PY, "rocwheel jax translate knows its command lines")
    for path in _SCRIPTS:
        _delete(plan, f"{WORKSPACE}/{path}", "nothing is left for it to do")
    drop_overridden(plan)
    if _asked_about_users(plan):
        return
    for folder in _TOOLS:
        _remove_targets(plan, f"{WORKSPACE}/{folder}")
    for path in (*BUILDERS, *(f"{folder}/build_utils.py" for folder in _TOOLS)):
        plan.draft.delete(f"{WORKSPACE}/{path}", "rocwheel jax wheel assembles the wheels")
    for path in _TEMPLATES:
        _delete_exported(plan, f"{WORKSPACE}/{path}", "the descriptions of the wheels say this")


def _delete(plan: Plan, path: str, reason: str) -> None:
    """Delete a file that no other one calls; ask there otherwise."""
    if not plan.draft.has(path):
        return
    if not users(plan.draft.checkout, path):
        plan.draft.delete(path, reason)


def _asked_about_users(plan: Plan) -> bool:
    """Ask in every BUILD file that uses an old builder what becomes of its targets; return whether one does."""
    found = False
    for path, source in callers(plan.draft.checkout):
        text = source.text
        if path.rpartition("/")[2] not in BUILD_NAMES:
            continue
        file = StarlarkFile(path, text)
        labels = _builder_labels(path.rpartition("/")[0].removeprefix(WORKSPACE).strip("/"))
        others = [node for node in file.tree.body if _target(node) not in _OLD_TARGETS]
        using = [node for node in others if any(label in file.source(node) for label in labels)]
        found = found or bool(using)
        if using and MARK not in text:
            question = (
                "who builds these targets? They run the old wheel builders, which stay as long as they do; the rule "
                "rocm_wheel of //rocm_wheel makes wheels as build actions, too."
            )
            plan.draft.put(path, spliced(file, [above(file, using[0], ask(question))]), "these use the old builders")
    return found


def _builder_labels(package: str) -> list[str]:
    """Return how the old builders are named in a package."""
    labels = [f"{folder}:{target}" for folder in _TOOLS for target in _OLD_TARGETS]
    return [*labels, *(f'":{target}"' for target in _OLD_TARGETS if package in _TOOLS)]


def _remove_targets(plan: Plan, folder: str) -> None:
    """Take the old builder and its library out of a package, with the loads and lists that only they used."""
    path = _build_file(plan, folder)
    if not path:
        return
    file = StarlarkFile(path, plan.draft.text(path))
    gone = [node for node in file.tree.body if _target(node) in _OLD_TARGETS]
    if not gone:
        return
    left = [node for node in file.tree.body if node not in gone]
    used, no_longer = _used_names(left), _used_names(gone)
    unused = [node for node in left if (names := _defined_names(node)) & no_longer and not names & used]
    text = spliced(file, [without_statement(file, node) for node in (*gone, *unused)]).rstrip("\n") + "\n"
    if plan.draft.has(f"{folder}/{_LICENSE}") and _LICENSE not in text:
        text += f'\nexports_files(["{_LICENSE}"])\n'
    plan.draft.put(path, text, "rocwheel jax wheel takes the libraries themselves; Bazel builds those")


def _build_file(plan: Plan, folder: str) -> str:
    """Return the path of a package's file, empty if there is none."""
    return next((path for name in BUILD_NAMES if plan.draft.has(path := f"{folder}/{name}")), "")


def _used_names(nodes: list[ast.stmt]) -> set[str]:
    names = (name for node in nodes for name in ast.walk(node) if isinstance(name, ast.Name))
    return {name.id for name in names if isinstance(name.ctx, ast.Load)}


def _defined_names(node: ast.stmt) -> set[str]:
    """Return the names that a load or an assignment at the top defines."""
    targets = node.targets if isinstance(node, ast.Assign) else []
    return {*loaded_names(node), *(target.id for target in targets if isinstance(target, ast.Name))}


def _target(node: ast.stmt) -> str:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return string_attribute(node.value, "name")
    return ""


def _delete_exported(plan: Plan, path: str, reason: str) -> None:
    """Delete a file that other packages took by its label, if none does any more."""
    folder, _, name = path.rpartition("/")
    label = f"{folder.removeprefix(WORKSPACE + '/')}:{name}"
    if not plan.draft.has(path) or any(label in file.text for _, file in callers(plan.draft.checkout)):
        return
    plan.draft.delete(path, reason)
    if build := _build_file(plan, folder):
        _remove_export(plan, build, name)
        left = StarlarkFile(build, plan.draft.text(build)).tree.body
        is_bare = all(called(node) in ("load", "licenses", "package") for node in left)
        if is_bare and list(plan.draft.checkout.below(folder)) == [build]:
            plan.draft.delete(build, "the package is empty")


def _remove_export(plan: Plan, path: str, name: str) -> None:
    """Take a deleted file out of a package's exports, and the exports out if they are empty then."""
    file = StarlarkFile(path, plan.draft.text(path))
    for node in file.tree.body:
        if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and called(node) == "exports_files"):
            continue
        items = next((arg for arg in node.value.args if isinstance(arg, ast.List)), None)
        if items is None or not (splices := without_string(file, items, name)):
            continue
        text = spliced(file, [without_statement(file, node)] if len(items.elts) == 1 else splices)
        plan.draft.put(path, text.rstrip("\n") + "\n", f"{name} is gone")
