"""What users should know about an old command line of ``build/build.py``: what is kept, assumed, dropped."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from rocwheel.frameworks.jax.words import is_reference, pieces, shown
from rocwheel.frameworks.jax_migration.build_py import option_fates, variable_fates, wheel_cpus
from rocwheel.frameworks.jax_migration.values import (
    STAMPED,
    WHEEL_KINDS,
    compiler,
    compiler_major,
    cpu_features,
    overridden_repositories,
    python_version,
    uses_clang,
    wheel_names,
)
from rocwheel.linking.entries import lost_origin

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.frameworks.jax_migration.build_py import Fate, OldCommand

__all__ = ["Note", "assumed", "dropped", "kept", "wrong"]

_PARTS = re.compile(r"[=:,]")
"""What comes before and after an entry in an option."""

_UNKNOWN_VERSION = {
    "clang": "its version is not in the path, and the old tool asked the compiler: write compiler-version to rocm.toml "
    "(before 19, the fragment then has --define=xnn_enable_avxvnniint8=false), and from 16 on add clang to configs",
    "gcc": "its version is not in the path, and the old tool asked the compiler: write compiler-version to rocm.toml "
    "(before 13, the fragment then has --define=xnn_enable_avxvnniint8=false)",
}


class Note(msgspec.Struct, frozen=True):
    """An option or a variable, and what users should know about it."""

    option: str
    text: str


def kept(old: OldCommand) -> Iterator[Note]:
    """Yield what replaces options and variables today."""
    yield from (Note(name, fate.now) for name, fate in _given(old) if fate.now)
    for name, fate in _carried(old):
        given = shown(old.carried[name.removeprefix("--")])
        if fate.carried:
            options = " ".join(option + given for option in fate.carried)
            yield Note(name, f"as it stands, after the settings, which it overrides: {options}")
        elif not fate.dropped and name != "--use_clang":
            yield Note(f"{name}={given}", "as it stands, in the commands")


def assumed(old: OldCommand) -> Iterator[Note]:
    """Yield what the command line leaves open: the old tool took it from the machine or from its version."""
    if not (old.value("python_version") or old.interpreter):
        yield Note("--python_version", f"was that of the Python that ran build.py; {python_version(old)} is assumed")
    if old.subcommand != "build":
        return
    if given := old.carried.get("use_clang"):
        yield Note(f"--use_clang={shown(given)}", "is known only when the command runs; true is assumed")
    name = "clang" if uses_clang(old) else "gcc"
    if not old.value(f"{name}_path"):
        yield Note(f"--{name}_path", f"was the first {name} on PATH; {compiler(old)} is assumed")
    if compiler_major(old) is None or f"{name}_path" in old.carried:
        yield Note(shown(old.value(f"{name}_path", compiler(old))), _UNKNOWN_VERSION[name])
    if not old.value("rocm_amdgpu_targets"):
        yield Note("--rocm_amdgpu_targets", "its default differed between versions; the last is assumed")


def dropped(old: OldCommand) -> Iterator[Note]:
    """Yield what has no effect any more, and why."""
    yield from (Note(name, fate.dropped) for name, fate in (*_given(old), *_carried(old)) if fate.dropped)
    for name in wheel_names(old):
        if name not in WHEEL_KINDS:
            yield Note(f"--wheels={name}", "this workspace builds the wheels for ROCm alone")
    known = variable_fates()
    unread = "the old tool did not read this variable; set it with --repo_env or --action_env if rules do"
    yield from (Note(name, unread) for name in (*old.variables, *old.carried) if name not in known | option_fates())
    if old.subcommand == "build":
        yield Note("patchelf", "the run path is set when linking (ROCM_WHEEL_RPATH), and the finished wheel is audited")


def wrong(old: OldCommand) -> Iterator[Note]:
    """Yield what the old command line got wrong without saying so."""
    yield from (Note(name, fate.wrong) for name, fate in (*_given(old), *_carried(old)) if fate.wrong)
    yield Note(
        ".jax_configure.bazelrc",
        "flags were applied twice, on the command line and from this file, which all later builds read: delete it",
    )
    for option in old.parted:
        yield Note(
            option,
            "went through a second shell, which split it at blanks and removed its quotes; the same is done here",
        )
    yield from _wrong_bazel_options(old)
    yield from _wrong_cpu(old)
    if old.subcommand == "requirements_update":
        text = "ended with an AttributeError since --rbe was added: it read that option, which only build has"
        yield Note("requirements_update", text)
    elif "jax-rocm-pjrt" in wheel_names(old):
        text = "its version.py was never stamped: the wheel's version was the day on which it was imported"
        yield Note("jax-rocm*-pjrt", text)


def _given(old: OldCommand) -> Iterator[tuple[str, Fate]]:
    yield from ((f"--{name}", fate) for name, fate in option_fates().items() if old.has(name))
    yield from ((name, fate) for name, fate in variable_fates().items() if name in old.variables)


def _carried(old: OldCommand) -> Iterator[tuple[str, Fate]]:
    yield from ((f"--{name}", fate) for name, fate in option_fates().items() if name in old.carried)
    yield from ((name, fate) for name, fate in variable_fates().items() if name in old.carried)


def _wrong_bazel_options(old: OldCommand) -> Iterator[Note]:
    for option in (*old.texts("bazel_options"), *old.texts("bazel_startup_options")):
        yield from _wrong_text(option)
        if "rpath" in option and "ROCM_WHEEL_RPATH" not in option:
            text = "patchelf replaced every run path afterwards, so that this one never reached a wheel"
            yield Note(shown(option), text)
    for name in overridden_repositories(old):
        if name in STAMPED:
            text = f"built another {name}, yet commit_info.py recorded the pinned commit; now its own is stamped"
            yield Note(f"--override_repository={name}", text)


def _wrong_text(option: str) -> Iterator[Note]:
    if is_reference(option):
        text = "is split at blanks, as before; if it overrides xla or jax, give their commits by --commit"
        yield Note(f"--bazel_options={shown(option)}", text)
        return
    option = "".join(part for part in pieces(option) if isinstance(part, str))
    if lost := next(filter(lost_origin, _PARTS.split(option)), ""):
        text = f"holds {lost}, so a shell or make has expanded $ORIGIN already; write the option in single quotes"
        yield Note(option, text)
    elif "$" in option:
        name = option[option.index("$") :].partition("/")[0]
        yield Note(option, f"went through a second shell, which expanded {name}; here it arrives as it is written")


def _wrong_cpu(old: OldCommand) -> Iterator[Note]:
    cpu = old.text("target_cpu")
    if cpu and cpu not in wheel_cpus():
        yield Note(f"--target_cpu={cpu}", "ended with a KeyError: the table of wheel tags lacked it")
    elif cpu_features(old) != old.text("target_cpu_features", "release"):
        text = f"-mavx was added because of the build machine's CPU, not because of --target_cpu: {cpu} has no AVX"
        yield Note("--target_cpu_features=release", text)
