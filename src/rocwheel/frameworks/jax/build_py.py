"""Parses and interprets command lines of rocm-jax's ``build/build.py`` with the same rules as its argparse parser."""

from __future__ import annotations

import argparse
import functools
import re
import shlex
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn

import msgspec

from rocwheel.core.decoding import read_table
from rocwheel.core.errors import InputError
from rocwheel.environment.run_path_entries import lost_origin
from rocwheel.frameworks.jax.commands import require_values
from rocwheel.frameworks.jax.settings import BazelSettings
from rocwheel.frameworks.jax.words import Reference, bare, has_references, only_reference, pieces, reference, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rocwheel.frameworks.jax.words import Lookup


_TOOL = "build.py"
_TOOL_PATH = f"build/{_TOOL}"
_SUBCOMMANDS = ("build", "requirements_update")
_FILE = "build_py.toml"
_COMMAND = "command line"
_EXPECTED = f"a command line of {_TOOL_PATH}"
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_HELD = re.compile("\3([0-9]+)\3")
_MAKES = ("make", "gmake")
_INTERPRETER = re.compile(r"(?:.*/)?python(3\.[0-9]{1,2})", re.DOTALL)


class OldOption(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An option or variable of the old tool.

    ``now`` is its replacement. ``dropped`` is the reason that it has no replacement. ``wrong`` describes a bug in the
    old tool.
    """

    kind: Literal["value", "optional", "flag", "append"] = "value"
    """``optional``: the value may be omitted, which means ``true``."""
    now: str = ""
    dropped: str = ""
    wrong: str = ""
    pattern: str = ""
    """A regular expression for the values that can be translated. An empty string accepts any value."""
    expected: str = ""
    """A description of the accepted values, for messages."""
    carried: tuple[str, ...] = ()
    """Prefixes of equivalent Bazel options, for a value that only the shell or make knows."""
    decides: bool = False
    """Whether a translation requires a known value."""


class OldCommand(msgspec.Struct, frozen=True):
    """A parsed command line. Omitted options are absent."""

    subcommand: str
    options: dict[str, str | bool | list[str]]
    variables: dict[str, str]
    interpreter: str = ""
    """The Python version that ran the old tool, such as ``3.12``. Empty if the program's name has no version."""
    parted: tuple[str, ...] = ()
    """Values that the old tool's shell split into several words, or whose quotes it removed."""
    carried: dict[str, str] = {}
    """Options and variables whose values a shell, make, a workflow, or Python fills in.

    No other field contains them.
    """

    def text(self, name: str, default: str = "") -> str:
        """Return the value of an option."""
        value = self.options.get(name, default)
        return value if isinstance(value, str) else default

    def texts(self, name: str) -> list[str]:
        """Return the values of a repeatable option."""
        value = self.options.get(name, [])
        return value if isinstance(value, list) else []

    def value(self, name: str, default: str = "") -> str:
        """Return the value of an option or variable, including a value that is filled in later."""
        return self.carried.get(name) or self.text(name) or self.variables.get(name, default)

    def has(self, name: str) -> bool:
        """Return whether the command line has an option."""
        return name in self.options


class _Data(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    wheel_cpus: frozenset[str]
    """The values of ``--target_cpu`` for which the old tool had a wheel tag."""
    options: dict[str, OldOption]
    variables: dict[str, OldOption]


@functools.cache
def _data() -> _Data:
    return read_table(__package__, _FILE, _Data)


def old_options() -> dict[str, OldOption]:
    """Return the options of the old tool, keyed by name without dashes."""
    return _data().options


def old_variables() -> dict[str, OldOption]:
    """Return the environment variables that the old wheel scripts read."""
    return _data().variables


class OldTables(NamedTuple):
    """The replacements of the old tool's options and variables in a repository, keyed by name."""

    options: Mapping[str, OldOption]
    variables: Mapping[str, OldOption]


def old_tables() -> OldTables:
    """Return the replacements for rocm-jax."""
    return OldTables(old_options(), old_variables())


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        remedy = "Pass the complete old command line after --."
        raise InputError(_COMMAND, message, expected=_EXPECTED, remedy=remedy)


def parse_build_py(words: Sequence[str]) -> OldCommand:
    """Parse ``[NAME=VALUE ...] [python] build/build.py build|requirements_update OPTIONS``.

    Options may be abbreviated, as in the old tool. Raises `InputError` for any other command line.
    """
    rest = list(words)
    start = next((index for index, word in enumerate(rest) if word.endswith(_TOOL)), -1)
    if start < 0:
        _check_caller(rest)
    assignments = (_ASSIGNMENT.fullmatch(word) for word in rest[: max(start, 0)])
    variables = {match[1]: match[2] for match in assignments if match}
    given = vars(_parser().parse_args(rest[start + 1 :]))
    subcommand = given.pop("subcommand")
    options = {name: value for name, value in given.items() if value is not None}
    require_values(options)
    carried = _take_carried(options, old_options(), "--") | _take_carried(variables, old_variables(), "")
    _check_patterns(options)
    texts = [text for value in options.values() if isinstance(value, list) for text in value]
    parted = tuple(shown(text) for text in texts if not only_reference(text) and _shell_words(text) != [text])
    for name, value in options.items():
        if isinstance(value, list):
            options[name] = [word for text in value for word in _shell_words(text)]
    programs = [match[1] for word in rest[: max(start, 0)] if (match := _INTERPRETER.fullmatch(word))]
    return OldCommand(subcommand, options, variables, programs[0] if programs else "", parted, carried)


def _check_caller(words: Sequence[str]) -> None:
    """Raise `InputError` if the command runs another file, which in turn calls the old tool."""
    program = next((word for word in words if not _ASSIGNMENT.fullmatch(word)), "")
    script = next((word for word in words if word.endswith((".sh", ".bash", ".mk"))), "")
    if program.rpartition("/")[2] in _MAKES:
        script = script or "Makefile"
    if script:
        found = f"{shown(program)!r} runs {shown(script)!r} instead of {_TOOL_PATH}"
        raise InputError(_COMMAND, found, expected=_EXPECTED, remedy="Pass the command line in that file.")


def _take_carried(values: dict[str, Any], known: Mapping[str, OldOption], dashes: str) -> dict[str, str]:
    """Remove the values that contain references, and return them.

    Raises `InputError` if a translation requires a known value.
    """
    found = {name: value for name, value in values.items() if isinstance(value, str) and has_references(value)}
    for name, value in found.items():
        if name in known and known[name].decides:
            option, remedy = f"{dashes}{name}", "Replace the variable with its value."
            text = f"is {shown(value)}, whose value isn't known before the command runs"
            raise InputError(
                option, text, expected="a literal value, because the new commands depend on it", remedy=remedy
            )
        del values[name]
    return found


def _check_patterns(options: Mapping[str, Any]) -> None:
    """Raise `InputError` for a value that the old tool didn't accept."""
    for name, old_option in old_options().items():
        value = options.get(name)
        if old_option.pattern and value is not None and not re.fullmatch(old_option.pattern, value):
            option = f"--{name}"
            raise InputError(option, f"is {value!r}", expected=old_option.expected)


def _shell_words(text: str) -> list[str]:
    """Split a value into words in the same way as the old tool's shell. Variables aren't expanded."""
    if only_reference(text):
        return [bare(text)]
    parts = list(pieces(text))
    held = "".join(part if isinstance(part, str) else f"\3{index}\3" for index, part in enumerate(parts))
    try:
        words = shlex.split(held)
    except ValueError as e:
        raise InputError(
            _COMMAND, f"has {shown(text)!r}, which isn't valid shell syntax ({e})", remedy="Add the missing quote."
        ) from e
    return [_restored(word, parts) for word in words]


def _restored(word: str, parts: Sequence[str | Reference | Lookup]) -> str:
    def spelled(match: re.Match[str]) -> str:
        part = parts[int(match[1])]
        return reference(part.text, part.language, part.quoting) if isinstance(part, Reference) else match[0]

    restored = _HELD.sub(spelled, word)
    return bare(restored) if only_reference(restored) else restored


def _parser() -> argparse.ArgumentParser:
    # Options may come before or after the subcommand, wherever the old tool accepted them.
    parser = _Parser(prog=_TOOL, add_help=False, argument_default=None)
    parser.add_argument("subcommand", choices=_SUBCOMMANDS)
    for name, old_option in old_options().items():
        if old_option.kind == "flag":
            parser.add_argument(f"--{name}", action="store_const", const=True)
        elif old_option.kind == "optional":
            parser.add_argument(f"--{name}", nargs="?", const="true")
        else:
            parser.add_argument(f"--{name}", action="append" if old_option.kind == "append" else "store")
    return parser


WHEEL_KINDS = {"jax-rocm-plugin": "plugin", "jax-rocm-pjrt": "pjrt"}
"""The wheels that the workspace builds, and their names in ``rocwheel jax wheel``."""

STAMPED = {"xla": "ROCm/xla", "jax": "jax"}
"""The repositories whose commits are recorded in the wheels, keyed by the name in the workspace.

Values are the recorded names.
"""

DEFAULT_CLANG = "/usr/lib/llvm-18/bin/clang"
"""The default compiler."""

_TARGETS = "gfx908,gfx90a,gfx9-4-generic,gfx10-3-generic,gfx11-generic,gfx12-generic"
_GCC = "/usr/bin/gcc"
_PYTHON = "3.12"
_CLANG_CONFIG_FROM = 16
_OVERRIDE_OPTION = "--override_repository"


def python_version(old: OldCommand) -> str:
    """Return the Python version of the build.

    The default is the version in the name of the program that ran the old tool.
    """
    return old.text("python_version") or old.interpreter or _PYTHON


def gpu_targets(old: OldCommand) -> list[str]:
    """Return the GPU targets. The default is the list of the old tool's last version."""
    return (old.text("rocm_amdgpu_targets") or _TARGETS).split(",")


def cpu_features(old: OldCommand) -> str:
    """Return the CPU features in the notation that the settings use. ``release`` meant AVX, which only x86-64 has."""
    features = old.text("target_cpu_features", "release")
    is_x86 = old.text("target_cpu", "x86_64").endswith("x86_64")
    return features if is_x86 or features != "release" else "default"


def uses_clang(old: OldCommand) -> bool:
    """Return whether the C++ compiler is Clang."""
    return old.text("use_clang", "true").lower() == "true"


def compiler(old: OldCommand) -> str:
    """Return the path of the C++ compiler."""
    return (old.text("clang_path") or DEFAULT_CLANG) if uses_clang(old) else (old.text("gcc_path") or _GCC)


def compiler_major(old: OldCommand) -> int | None:
    """Return the compiler's major version, or `None` if the path doesn't contain the version."""
    return BazelSettings(1, compiler(old), (), ()).compiler_major


def overridden_repositories(old: OldCommand) -> dict[str, str]:
    """Return the repositories that ``--bazel_options`` overrides, and their folders.

    If a name is overridden more than once, the last override takes precedence.
    """
    words = old.texts("bazel_options")
    pairs = zip_longest(words, words[1:], fillvalue="")
    joined = (f"{word}={following}" if word == _OVERRIDE_OPTION else word for word, following in pairs)
    values = (word.partition("=")[2] for word in joined if word.startswith(f"{_OVERRIDE_OPTION}="))
    paths = {name: path for name, _, path in (value.partition("=") for value in values)}
    return {name: path for name, path in paths.items() if path}


def bazel_configs(old: OldCommand) -> list[str]:
    """Return the configs from the workspace's ``.bazelrc`` that the old tool selected."""
    configs = ["rocm_base", *(["rocm", *clang_configs(compiler_major(old))] if uses_clang(old) else [])]
    if old.has("disable_nccl"):
        configs.append("nonccl")
    if not old.has("disable_mkl_dnn"):
        configs.append("mkl_aarch64_threadpool" if old.text("target_cpu") == "aarch64" else "mkl_open_source_only")
    return configs


def clang_configs(major: int | None) -> list[str]:
    """Return the extra config for this version of Clang, or an empty list for an older or unknown version."""
    return ["clang"] if (major or 0) >= _CLANG_CONFIG_FROM else []


def carried_options(old: OldCommand, tables: OldTables) -> list[str]:
    """Return Bazel options whose values aren't known until the commands run. Settings can't contain such values."""
    known = {**tables.options, **tables.variables}
    return [option + value for name, value in old.carried.items() if name in known for option in known[name].carried]


def wheel_names(old: OldCommand) -> list[str]:
    """Return the names of the wheels. On the command line, the prefix ``jax-`` is optional."""
    words = [word for word in old.text("wheels").split(",") if word]
    return [word if "jax" in word or not re.search("plugin|pjrt", word) else f"jax-{word}" for word in words]


_PARTS = re.compile(r"[=:,]")
"""Characters before and after an entry in an option."""

_UNKNOWN_VERSION = {
    "clang": "the path doesn't contain the version, which the old tool got from the compiler: set compiler-version in "
    "rocm.toml (for versions before 19, the fragment then has --define=xnn_enable_avxvnniint8=false), and for "
    "version 16 or later, add clang to configs",
    "gcc": "the path doesn't contain the version, which the old tool got from the compiler: set compiler-version in "
    "rocm.toml (for versions before 13, the fragment then has --define=xnn_enable_avxvnniint8=false)",
}


class Note(msgspec.Struct, frozen=True):
    """An option or variable, and a note about it for users."""

    option: str
    text: str


def kept(old: OldCommand, tables: OldTables) -> Iterator[Note]:
    """Yield the current replacements of options and variables."""
    yield from (Note(name, old_option.now) for name, old_option in given_rows(old, tables) if old_option.now)
    for name, old_option in carried_rows(old, tables):
        given = shown(old.carried[name.removeprefix("--")])
        if old_option.carried:
            options = " ".join(option + given for option in old_option.carried)
            yield Note(name, f"kept unchanged, after the settings, so that it overrides them: {options}")
        elif not old_option.dropped and name != "--use_clang":
            yield Note(f"{name}={given}", "kept unchanged in the commands")


def assumed(old: OldCommand) -> Iterator[Note]:
    """Yield assumptions about values that the command line omits.

    The old tool had its own defaults or detected the values.
    """
    if not (old.value("python_version") or old.interpreter):
        yield Note(
            "--python_version",
            f"was the version of the Python that ran build.py; rocwheel assumes {python_version(old)}",
        )
    if old.subcommand != "build":
        return
    if given := old.carried.get("use_clang"):
        yield Note(f"--use_clang={shown(given)}", "isn't known before the command runs; rocwheel assumes true")
    name = "clang" if uses_clang(old) else "gcc"
    if not old.value(f"{name}_path"):
        yield Note(f"--{name}_path", f"was the first {name} on PATH; rocwheel assumes {compiler(old)}")
    if compiler_major(old) is None or f"{name}_path" in old.carried:
        yield Note(shown(old.value(f"{name}_path", compiler(old))), _UNKNOWN_VERSION[name])
    if not old.value("rocm_amdgpu_targets"):
        yield Note(
            "--rocm_amdgpu_targets", "had different defaults in different versions; rocwheel assumes the last default"
        )


def dropped(old: OldCommand) -> Iterator[Note]:
    """Yield options and variables that no longer have an effect, with the reasons."""
    tables = old_tables()
    rows = (*given_rows(old, tables), *carried_rows(old, tables))
    yield from (Note(name, old_option.dropped) for name, old_option in rows if old_option.dropped)
    for name in wheel_names(old):
        if name not in WHEEL_KINDS:
            yield Note(f"--wheels={name}", "this workspace builds only the wheels for ROCm")
    yield from unread_variables(old, tables)
    if old.subcommand == "build":
        yield Note("patchelf", "the run path is set when linking (ROCM_WHEEL_RPATH), and the finished wheel is audited")


def wrong(old: OldCommand) -> Iterator[Note]:
    """Yield the bugs in the old tool that affect this command line."""
    rows = (*given_rows(old, old_tables()), *carried_rows(old, old_tables()))
    yield from (Note(name, old_option.wrong) for name, old_option in rows if old_option.wrong)
    yield Note(
        ".jax_configure.bazelrc",
        "flags were applied twice, from the command line and from this file, and all later builds read the file: "
        "delete it",
    )
    for option in old.parted:
        yield Note(
            option,
            "went through a second shell, which split it at spaces and removed its quotes; the translation does "
            "the same",
        )
    yield from _wrong_bazel_options(old)
    cpu = old.text("target_cpu")
    if cpu and cpu not in _data().wheel_cpus:
        yield Note(
            f"--target_cpu={cpu}", "failed with a KeyError, because the table of wheel tags didn't have this CPU"
        )
    elif cpu_features(old) != old.text("target_cpu_features", "release"):
        text = f"-mavx was added for the build machine's CPU instead of --target_cpu: {cpu} has no AVX"
        yield Note("--target_cpu_features=release", text)
    if old.subcommand == "requirements_update":
        text = "has failed with an AttributeError since --rbe was added, because it reads an option that only build has"
        yield Note("requirements_update", text)
    elif "jax-rocm-pjrt" in wheel_names(old):
        text = "its version.py was never stamped, so the package used the date of the import as its version"
        yield Note("jax-rocm*-pjrt", text)


def unread_variables(old: OldCommand, tables: OldTables) -> Iterator[Note]:
    """Yield the variables that the old tool didn't read."""
    unread = "the old tool didn't read this variable; if rules read it, set it with --repo_env or --action_env"
    known = tables.options.keys() | tables.variables.keys()
    yield from (Note(name, unread) for name in (*old.variables, *old.carried) if name not in known)


def given_rows(old: OldCommand, tables: OldTables) -> Iterator[tuple[str, OldOption]]:
    """Yield the options and variables of a command line, with their rows in the tables."""
    yield from ((f"--{name}", old_option) for name, old_option in tables.options.items() if old.has(name))
    yield from ((name, old_option) for name, old_option in tables.variables.items() if name in old.variables)


def carried_rows(old: OldCommand, tables: OldTables) -> Iterator[tuple[str, OldOption]]:
    """Yield the options and variables whose values aren't known until the commands run, with their rows."""
    yield from ((f"--{name}", old_option) for name, old_option in tables.options.items() if name in old.carried)
    yield from ((name, old_option) for name, old_option in tables.variables.items() if name in old.carried)


def _wrong_bazel_options(old: OldCommand) -> Iterator[Note]:
    for option in (*old.texts("bazel_options"), *old.texts("bazel_startup_options")):
        yield from _wrong_text(option)
        if "rpath" in option and "ROCM_WHEEL_RPATH" not in option:
            text = "patchelf later replaced every run path, so no wheel ever had this run path"
            yield Note(shown(option), text)
    for name in overridden_repositories(old):
        if name in STAMPED:
            text = (
                f"built a {name} other than the pinned commit, but recorded the pinned commit in commit_info.py; "
                "commit_info.py now records the commit that was built"
            )
            yield Note(f"--override_repository={name}", text)


def _wrong_text(option: str) -> Iterator[Note]:
    if only_reference(option):
        text = "is split at spaces, as before; if it overrides xla or jax, add their commits with --commit"
        yield Note(f"--bazel_options={shown(option)}", text)
        return
    option = "".join(part for part in pieces(option) if isinstance(part, str))
    if lost := next(filter(lost_origin, _PARTS.split(option)), ""):
        text = f"contains {lost}, so a shell or make has already expanded $ORIGIN; put the option in single quotes"
        yield Note(option, text)
    elif "$" in option:
        name = option[option.index("$") :].partition("/")[0]
        yield Note(option, f"went through a second shell, which expanded {name}; now nothing expands it")
