"""Command lines of rocm-jax's ``build/build.py``, read as its argparse reads them, and what they ask for."""

from __future__ import annotations

import argparse
import functools
import re
import shlex
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Literal, NoReturn

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


TOOL = "build.py"
"""The name of the old tool's file."""
TOOL_PATH = f"build/{TOOL}"
"""Where it stands in rocm-jax's workspace."""
SUBCOMMANDS = ("build", "requirements_update")
"""What it can be told to do."""

_FILE = "build_py.toml"
_COMMAND = "command line"
_EXPECTED = f"a command line that {TOOL_PATH} takes"
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_HELD = re.compile("\3([0-9]+)\3")
_MAKES = ("make", "gmake")
_INTERPRETER = re.compile(r"(?:.*/)?python(3\.[0-9]{1,2})", re.DOTALL)


class OldOption(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An option or variable: ``now`` replaces it, or it is ``dropped`` for a reason; ``wrong`` says what it did."""

    kind: Literal["value", "optional", "flag", "append"] = "value"
    """``optional``: a value that may be left out, which means ``true``."""
    now: str = ""
    dropped: str = ""
    wrong: str = ""
    pattern: str = ""
    """A regular expression for the values that can be translated; empty for any."""
    expected: str = ""
    """The same in words."""
    carried: tuple[str, ...] = ()
    """Options of Bazel, up to their value, that say the same when the value is known only to the shell or make."""
    decides: bool = False
    """Whether the value has to be known for a translation."""


class OldCommand(msgspec.Struct, frozen=True):
    """A parsed command line. Options that were not given are absent."""

    subcommand: str
    options: dict[str, str | bool | list[str]]
    variables: dict[str, str]
    interpreter: str = ""
    """The Python that ran the old tool, such as ``3.12``; empty if the program's name doesn't say it."""
    parted: tuple[str, ...] = ()
    """Values that the old tool's shell split into several words, or removed quotes from."""
    carried: dict[str, str] = {}
    """Options and variables whose values a shell, make, a workflow or Python fills in; they are in no other field."""

    def text(self, name: str, default: str = "") -> str:
        """Return the value of an option that takes one."""
        value = self.options.get(name, default)
        return value if isinstance(value, str) else default

    def texts(self, name: str) -> list[str]:
        """Return the values of an option that may be given several times."""
        value = self.options.get(name, [])
        return value if isinstance(value, list) else []

    def value(self, name: str, default: str = "") -> str:
        """Return the value of an option or variable, whoever fills it in."""
        return self.carried.get(name) or self.text(name) or self.variables.get(name, default)

    def has(self, name: str) -> bool:
        """Return whether an option was given."""
        return name in self.options


class _Data(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    wheel_cpus: frozenset[str]
    """The values of ``--target_cpu`` that the old tool had a wheel tag for."""
    options: dict[str, OldOption]
    variables: dict[str, OldOption]


@functools.cache
def _data() -> _Data:
    return read_table(__package__, _FILE, _Data)


def old_options() -> dict[str, OldOption]:
    """Return the options of the old tool, by their names without dashes."""
    return _data().options


def old_variables() -> dict[str, OldOption]:
    """Return the environment variables that the old wheel scripts read."""
    return _data().variables


def takes_value(word: str) -> bool:
    """Return whether a word is an option of the old tool whose value is the next word."""
    old_option = old_options().get(word.removeprefix("--")) if word.startswith("--") else None
    return old_option is not None and old_option.kind in {"value", "append"}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        remedy = "Give the whole old command line after --."
        raise InputError(_COMMAND, message, expected=_EXPECTED, remedy=remedy)


def parse_build_py(words: Sequence[str]) -> OldCommand:
    """Parse ``[NAME=VALUE ...] [python] build/build.py build|requirements_update OPTIONS``.

    Options may be abbreviated, as the old tool's argparse allowed. Raises `InputError` for any other command line.
    """
    rest = list(words)
    start = next((index for index, word in enumerate(rest) if word.endswith(TOOL)), -1)
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
    """Raise `InputError` for a command that runs a file which calls the old tool."""
    program = next((word for word in words if not _ASSIGNMENT.fullmatch(word)), "")
    script = next((word for word in words if word.endswith((".sh", ".bash", ".mk"))), "")
    if program.rpartition("/")[2] in _MAKES:
        script = script or "Makefile"
    if script:
        found = f"{shown(program)!r} runs {shown(script)!r}, not {TOOL_PATH}"
        remedy = f"Translate the calls in that file: --file {shown(script)}"
        raise InputError(_COMMAND, found, expected=_EXPECTED, remedy=remedy)


def _take_carried(values: dict[str, Any], known: Mapping[str, OldOption], dashes: str) -> dict[str, str]:
    """Remove the values with references and return them; raise `InputError` for one that has to be known."""
    found = {name: value for name, value in values.items() if isinstance(value, str) and has_references(value)}
    for name, value in found.items():
        if name in known and known[name].decides:
            option, remedy = f"{dashes}{name}", "Give the value that it has."
            text = f"is {shown(value)}, which is known only when the command runs"
            raise InputError(
                option, text, expected="the value itself, since it decides what the new ones are", remedy=remedy
            )
        del values[name]
    return found


def _check_patterns(options: Mapping[str, Any]) -> None:
    """Raise `InputError` for a value that the old tool did not take."""
    for name, old_option in old_options().items():
        value = options.get(name)
        if old_option.pattern and value is not None and not re.fullmatch(old_option.pattern, value):
            option = f"--{name}"
            raise InputError(option, f"is {value!r}", expected=old_option.expected)


def _shell_words(text: str) -> list[str]:
    """Return the words into which the old tool's shell split a value; variables stay as they are written."""
    if only_reference(text):
        return [bare(text)]
    parts = list(pieces(text))
    held = "".join(part if isinstance(part, str) else f"\3{index}\3" for index, part in enumerate(parts))
    try:
        words = shlex.split(held)
    except ValueError as e:
        raise InputError(
            _COMMAND, f"has {shown(text)!r}, which a shell can't read ({e})", remedy="Close the quotes."
        ) from e
    return [_restored(word, parts) for word in words]


def _restored(word: str, parts: Sequence[str | Reference | Lookup]) -> str:
    def spelled(match: re.Match[str]) -> str:
        part = parts[int(match[1])]
        return reference(part.text, part.language, part.quoting) if isinstance(part, Reference) else match[0]

    restored = _HELD.sub(spelled, word)
    return bare(restored) if only_reference(restored) else restored


def _parser() -> argparse.ArgumentParser:
    # Options may stand before or behind the subcommand, whichever the old tool wanted.
    parser = _Parser(prog=TOOL, add_help=False, argument_default=None)
    parser.add_argument("subcommand", choices=SUBCOMMANDS)
    for name, old_option in old_options().items():
        if old_option.kind == "flag":
            parser.add_argument(f"--{name}", action="store_const", const=True)
        elif old_option.kind == "optional":
            parser.add_argument(f"--{name}", nargs="?", const="true")
        else:
            parser.add_argument(f"--{name}", action="append" if old_option.kind == "append" else "store")
    return parser


WHEEL_KINDS = {"jax-rocm-plugin": "plugin", "jax-rocm-pjrt": "pjrt"}
"""The wheels that the workspace builds, with their names in ``rocwheel jax wheel``."""

STAMPED = {"xla": "ROCm/xla", "jax": "jax"}
"""The repositories of the workspace whose commits wheels record, with their names there."""

DEFAULT_CLANG = "/usr/lib/llvm-18/bin/clang"
"""The compiler where nothing names one."""

_TARGETS = "gfx908,gfx90a,gfx9-4-generic,gfx10-3-generic,gfx11-generic,gfx12-generic"
_GCC = "/usr/bin/gcc"
_PYTHON = "3.12"
_CLANG_CONFIG_FROM = 16
_OVERRIDE_OPTION = "--override_repository"


def python_version(old: OldCommand) -> str:
    """Return the Python that is built for; by default the one that ran the old tool, if the program's name says it."""
    return old.text("python_version") or old.interpreter or _PYTHON


def gpu_targets(old: OldCommand) -> list[str]:
    """Return the GPU targets; by default those of the last version of the old tool."""
    return (old.text("rocm_amdgpu_targets") or _TARGETS).split(",")


def cpu_features(old: OldCommand) -> str:
    """Return the CPU features as settings name them: ``release`` stood for AVX, which only x86-64 has."""
    features = old.text("target_cpu_features", "release")
    is_x86 = old.text("target_cpu", "x86_64").endswith("x86_64")
    return features if is_x86 or features != "release" else "default"


def uses_clang(old: OldCommand) -> bool:
    """Return whether the C++ compiler is a clang."""
    return old.text("use_clang", "true").lower() == "true"


def compiler(old: OldCommand) -> str:
    """Return the C++ compiler's path."""
    return (old.text("clang_path") or DEFAULT_CLANG) if uses_clang(old) else (old.text("gcc_path") or _GCC)


def compiler_major(old: OldCommand) -> int | None:
    """Return the compiler's major version, if its path says it."""
    return BazelSettings(1, compiler(old), (), ()).compiler_major


def overridden_repositories(old: OldCommand) -> dict[str, str]:
    """Return the repositories that ``--bazel_options`` replace by a folder; Bazel takes the last one of each name."""
    words = old.texts("bazel_options")
    pairs = zip_longest(words, words[1:], fillvalue="")
    joined = (f"{word}={following}" if word == _OVERRIDE_OPTION else word for word, following in pairs)
    values = (word.partition("=")[2] for word in joined if word.startswith(f"{_OVERRIDE_OPTION}="))
    paths = {name: path for name, _, path in (value.partition("=") for value in values)}
    return {name: path for name, path in paths.items() if path}


def bazel_configs(old: OldCommand) -> list[str]:
    """Return the configs of the workspace's own ``.bazelrc`` that the old tool chose."""
    configs = ["rocm_base", *(["rocm", *clang_configs(compiler_major(old))] if uses_clang(old) else [])]
    if old.has("disable_nccl"):
        configs.append("nonccl")
    if not old.has("disable_mkl_dnn"):
        configs.append("mkl_aarch64_threadpool" if old.text("target_cpu") == "aarch64" else "mkl_open_source_only")
    return configs


def clang_configs(major: int | None) -> list[str]:
    """Return the config that a clang of this version needs besides, none for an older or unknown one."""
    return ["clang"] if (major or 0) >= _CLANG_CONFIG_FROM else []


def carried_options(old: OldCommand) -> list[str]:
    """Return the options of Bazel that say what settings can't: values that are known only when the commands run."""
    known = old_options() | old_variables()
    return [option + value for name, value in old.carried.items() if name in known for option in known[name].carried]


def wheel_names(old: OldCommand) -> list[str]:
    """Return the names of the wheels; their ``jax-`` may be left out on the command line."""
    words = [word for word in old.text("wheels").split(",") if word]
    return [word if "jax" in word or not re.search("plugin|pjrt", word) else f"jax-{word}" for word in words]


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
    yield from (Note(name, old_option.now) for name, old_option in _given(old) if old_option.now)
    for name, old_option in _carried(old):
        given = shown(old.carried[name.removeprefix("--")])
        if old_option.carried:
            options = " ".join(option + given for option in old_option.carried)
            yield Note(name, f"as it stands, after the settings, which it overrides: {options}")
        elif not old_option.dropped and name != "--use_clang":
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
    yield from (
        Note(name, old_option.dropped) for name, old_option in (*_given(old), *_carried(old)) if old_option.dropped
    )
    for name in wheel_names(old):
        if name not in WHEEL_KINDS:
            yield Note(f"--wheels={name}", "this workspace builds the wheels for ROCm alone")
    known = old_variables()
    unread = "the old tool did not read this variable; set it with --repo_env or --action_env if rules do"
    yield from (Note(name, unread) for name in (*old.variables, *old.carried) if name not in known | old_options())
    if old.subcommand == "build":
        yield Note("patchelf", "the run path is set when linking (ROCM_WHEEL_RPATH), and the finished wheel is audited")


def wrong(old: OldCommand) -> Iterator[Note]:
    """Yield what the old command line got wrong without saying so."""
    yield from (Note(name, old_option.wrong) for name, old_option in (*_given(old), *_carried(old)) if old_option.wrong)
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
    cpu = old.text("target_cpu")
    if cpu and cpu not in _data().wheel_cpus:
        yield Note(f"--target_cpu={cpu}", "ended with a KeyError: the table of wheel tags lacked it")
    elif cpu_features(old) != old.text("target_cpu_features", "release"):
        text = f"-mavx was added because of the build machine's CPU, not because of --target_cpu: {cpu} has no AVX"
        yield Note("--target_cpu_features=release", text)
    if old.subcommand == "requirements_update":
        text = "ended with an AttributeError since --rbe was added: it read that option, which only build has"
        yield Note("requirements_update", text)
    elif "jax-rocm-pjrt" in wheel_names(old):
        text = "its version.py was never stamped: the wheel's version was the day on which it was imported"
        yield Note("jax-rocm*-pjrt", text)


def _given(old: OldCommand) -> Iterator[tuple[str, OldOption]]:
    yield from ((f"--{name}", old_option) for name, old_option in old_options().items() if old.has(name))
    yield from ((name, old_option) for name, old_option in old_variables().items() if name in old.variables)


def _carried(old: OldCommand) -> Iterator[tuple[str, OldOption]]:
    yield from ((f"--{name}", old_option) for name, old_option in old_options().items() if name in old.carried)
    yield from ((name, old_option) for name, old_option in old_variables().items() if name in old.carried)


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
    if only_reference(option):
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
