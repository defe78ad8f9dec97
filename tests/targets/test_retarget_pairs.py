"""Tests of the rules about code that passes for another target's."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.bundles.sequence import iter_bundles
from rocwheel.binary.code_objects import CodePlace, machine_of, parse_target_id
from rocwheel.core.errors import InputError
from rocwheel.device.edit_bundles import bundle_parts
from rocwheel.device.retarget import same_code
from rocwheel.targets.catalog import find_relabeling, load_rules, loads_when_patched, relabeled_agents
from rocwheel.targets.retarget_pairs import TargetPair, extended_pairs, parse_pairs
from tests.support.places import HIP_FIXTURES as FIXTURES

if TYPE_CHECKING:
    from rocwheel.binary.bundles.plain import BundlePart
    from tests.support.tools import RunClang


def family(name: str) -> dict[str, BundlePart]:
    data = memoryview((FIXTURES / f"fam.{name}.hipfb").read_bytes())
    parts = bundle_parts(data, next(iter_bundles(data, name=name)))
    return {part.spelling.split("-", 5)[-1]: part for part in parts[1:]}


@pytest.mark.parametrize("name", ["gfx900", "gfx1010", "gfx1030", "gfx1100", "gfx1200"])
def test_the_compiler_generates_the_same_code_for_every_pair_of_a_rule(name: str) -> None:
    parts = family(name)
    pairs = [(p.code.processor, p.agent.processor) for code in parts for p in extended_pairs(parse_target_id(code))]
    assert len(pairs) >= 2
    for code, agent in pairs:
        assert same_code(parts[code], parts[agent], place=CodePlace(f"{code}={agent}"))


def _features(run_clang: RunClang, processor: str) -> set[str]:
    text = run_clang([f"--offload-arch={processor}", "-S", "-emit-llvm", "-o", "-"]).stdout
    (features,) = set(re.findall(r'"target-features"="([^"]*)"', text))
    return set(features.split(","))


@pytest.mark.slow
def test_every_feature_that_clang_uses_exists_on_every_agent_of_a_rule(run_clang: RunClang) -> None:
    processors = {name for rule in load_rules() if rule.relabels for name in rule.code + rule.agents}
    features = {name: _features(run_clang, name) for name in processors}
    missing = {(code, a): features[code] - features[a] for code in features for a in relabeled_agents(code)}
    assert len(missing) > 50
    assert {pair: lacking for pair, lacking in missing.items() if lacking} == {}


def test_rules_name_known_processors_and_give_reasons() -> None:
    for rule in load_rules():
        assert all(machine_of(processor) for processor in rule.code + rule.agents)
        assert rule.loads or rule.relabels
        assert rule.source
        assert rule.measured


def test_code_that_runtimes_load_but_compilers_generate_differently_is_not_relabeled() -> None:
    assert loads_when_patched("gfx900", "gfx906")
    assert find_relabeling("gfx900", "gfx906") is None


@pytest.mark.parametrize(
    ("code", "agent", "allowed"),
    [
        ("gfx1030", "gfx1036", True),
        ("gfx1036", "gfx1030", True),
        ("gfx1010", "gfx1012", True),
        ("gfx1012", "gfx1010", False),
        ("gfx900", "gfx90c", True),
        ("gfx900", "gfx904", False),
        ("gfx900", "gfx906", False),
        ("gfx1100", "gfx1101", False),
        ("gfx1150", "gfx1151", False),
        ("gfx90a", "gfx942", False),
    ],
)
def test_only_a_rule_allows_a_pair(code: str, agent: str, *, allowed: bool) -> None:
    assert (find_relabeling(code, agent) is not None) is allowed


@pytest.mark.parametrize(
    ("code", "agent"), [("gfx1012", "gfx1011"), ("gfx1150", "gfx1152"), ("gfx1200", "gfx1201"), ("gfx1100", "gfx1101")]
)
def test_runtimes_load_no_pair_without_a_patch(code: str, agent: str) -> None:
    assert not loads_when_patched(code, agent)


def test_pairs_are_parsed() -> None:
    assert parse_pairs("gfx1030=gfx1031,gfx1032") == (
        TargetPair(parse_target_id("gfx1030"), parse_target_id("gfx1031")),
        TargetPair(parse_target_id("gfx1030"), parse_target_id("gfx1032")),
    )
    assert [str(pair.agent) for pair in parse_pairs("gfx1010=extended")] == ["gfx1011", "gfx1012", "gfx1013"]


@pytest.mark.parametrize(
    ("pairs", "code", "agents"),
    [
        ("gfx900=extended", "gfx900:xnack-", ["gfx902:xnack-", "gfx909:xnack-", "gfx90c"]),
        ("gfx900=extended", "gfx900:xnack+", ["gfx902:xnack+", "gfx909:xnack+", None]),
        ("gfx900=gfx90c", "gfx900:xnack-", ["gfx90c"]),
        ("gfx900:xnack-=extended", "gfx900:xnack-", ["gfx902:xnack-", "gfx909:xnack-", "gfx90c"]),
        ("gfx900:xnack-=extended", "gfx900", [None, None, None]),
        ("gfx900:xnack+=extended", "gfx900:xnack+", ["gfx902:xnack+", "gfx909:xnack+"]),
        ("gfx90c=gfx900", "gfx90c:xnack-", ["gfx900:xnack-"]),
    ],
)
def test_a_copy_names_no_feature_that_runtimes_do_not_name(pairs: str, code: str, agents: list[str | None]) -> None:
    offered = [pair.agent_of(parse_target_id(code)) for pair in parse_pairs(pairs)]
    assert [agent and str(agent) for agent in offered] == agents


@pytest.mark.parametrize("pair", ["gfx900:xnack-=gfx90c:xnack-", "gfx900:xnack+=gfx90c"])
def test_a_pair_with_a_feature_that_runtimes_do_not_name_is_refused(pair: str) -> None:
    code, _, agent = pair.partition("=")
    with pytest.raises(InputError, match=re.escape(f"no rule allows code for {code} on {agent}; expected one")):
        parse_pairs(pair)
    assert [str(allowed.agent) for allowed in parse_pairs(pair, force=True)] == [agent]


@pytest.mark.parametrize(
    ("code", "offered"), [("gfx90a:xnack-", "gfx90c"), ("gfx90a:xnack+", None), ("gfx90a", "gfx90c")]
)
def test_a_forced_copy_also_names_no_feature_that_runtimes_do_not_name(code: str, offered: str | None) -> None:
    [pair] = parse_pairs("gfx90a=gfx90c", force=True)
    agent = pair.agent_of(parse_target_id(code))
    assert (agent and str(agent)) == offered


@pytest.mark.parametrize(
    "pair",
    ["gfx900:xnack-=gfx902:xnack+", "gfx900:xnack-=gfx900:xnack+", "gfx900:xnack-=gfx902", "gfx900:xnack+=gfx902"],
)
def test_a_pair_with_conflicting_features_is_refused(pair: str) -> None:
    code, _, agent = pair.partition("=")
    with pytest.raises(InputError, match=re.escape(f"no rule allows code for {code} on {agent}; expected one")):
        parse_pairs(pair)


def test_code_without_a_feature_setting_is_offered_to_an_agent_with_the_setting() -> None:
    assert [str(pair.agent) for pair in parse_pairs("gfx900=gfx902:xnack-")] == ["gfx902:xnack-"]


def test_a_pair_of_identical_targets_is_refused() -> None:
    message = (
        "FROM=TO: no target other than gfx1030, whose GPUs already load this code; expected another target after '='"
    )
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        parse_pairs("gfx1030=gfx1030")
    assert [str(pair.agent) for pair in parse_pairs("gfx1030=gfx1030,gfx1031")] == ["gfx1031"]


def test_other_pairs_are_accepted_only_with_force() -> None:
    [pair] = parse_pairs("gfx1100=gfx1101", force=True)
    assert str(pair.agent) == "gfx1101"
    message = (
        "FROM=TO: no rule allows code for gfx1100 on gfx1101; expected code with a rule. "
        "If you know that the code runs, use --force."
    )
    with pytest.raises(InputError, match=re.escape(message)):
        parse_pairs("gfx1100=gfx1101")


@pytest.mark.parametrize("text", ["gfx1030=gfx1037", "gfx1037=gfx1030"])
def test_force_does_not_allow_an_unknown_machine_number(text: str) -> None:
    message = (
        "FROM=TO: no machine number is known for 'gfx1037', but the code's header must contain it; "
        "expected a processor from `rocwheel targets list`, even with --force"
    )
    with pytest.raises(InputError, match=re.escape(message)):
        parse_pairs(text, force=True)
    with pytest.raises(InputError, match="'gfx1037' isn't a known GPU target"):
        parse_pairs(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gfx1030", "FROM=TO: 'gfx1030'; expected FROM=TO[,TO...], such as gfx1030=gfx1031,gfx1032"),
        ("gfx1030=", "FROM=TO: 'gfx1030='; expected FROM=TO[,TO...], such as gfx1030=gfx1031,gfx1032"),
        ("gfx942=extended", "FROM=TO: no rule allows code for gfx942 on any other GPU"),
        ("gfx1030=gfx1031,GFX", "FROM=TO: 'GFX' isn't a known GPU target, family, product, or policy"),
    ],
)
def test_invalid_pair_text_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        parse_pairs(text)
