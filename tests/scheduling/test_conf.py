"""scheduler.conf: what is accepted, and how each mistake is told."""

from __future__ import annotations

import pytest

from extender.actions import ACTIONS
from extender.actions import LATER as LATER_ACTIONS
from extender.api.errors import ConfError
from extender.core import conf
from extender.plugins import LATER, PLUGINS

GOOD = 'actions: "enqueue, allocate"\ntiers: [{plugins: [{name: gang}]}]'

MISTAKES = {
    "an action misspelt": (
        GOOD.replace("allocate", "alocate"),
        "scheduler.conf: actions: unknown action 'alocate'; did you mean 'allocate'?",
    ),
    "no action at all": ("tiers: []", "actions: must be a string such as 'enqueue, allocate, backfill'"),
    "a plugin misspelt": (
        GOOD.replace("gang", "gnag"),
        "scheduler.conf: tiers[0].plugins[0].name: unknown plugin 'gnag'; did you mean 'gang'?",
    ),
    "a switch misspelt": (
        GOOD.replace("name: gang", "name: gang, enableJobOrdr: true"),
        "tiers[0].plugins[0].enableJobOrdr: unknown key; did you mean 'enableJobOrder'?",
    ),
    "a switch that is no boolean": (
        GOOD.replace("name: gang", "name: gang, enableJobOrder: 3"),
        "tiers[0].plugins[0].enableJobOrder: must be true or false, not 3",
    ),
    "an argument of the wrong type": (
        GOOD.replace("name: gang", "name: binpack, arguments: {binpack.weight: five}"),
        "tiers[0].plugins[0].arguments.binpack.weight: must be an integer, not 'five'",
    ),
    "arguments that are no map": (
        GOOD.replace("name: gang", "name: gang, arguments: [1]"),
        "tiers[0].plugins[0].arguments: must be a map, not [1]",
    ),
    "an unknown key at the top": (GOOD + "\ntires: []", "tires: unknown key; did you mean 'tiers'?"),
    "tiers that are no list": ('actions: "allocate"\ntiers: {a: 1}', "tiers: must be a list, not {'a': 1}"),
    "hierarchical drf beside proportion": (
        'actions: "allocate"\ntiers: [{plugins: [{name: drf, enableHierarchy: true}, {name: proportion}]}]',
        "tiers[0]: proportion and drf with enableHierarchy conflict; leave out one of them",
    ),
    "a time that is none": (
        "actions: 2026-13-45T00:00:00Z",
        "scheduler.conf: not YAML: a value is not what its form or tag says: month must be in 1..12",
    ),
    "a tag that does not fit": (
        "actions: !!bool perhaps",
        "scheduler.conf: not YAML: a value is not what its form or tag says: ",
    ),
    "not YAML": (
        "actions: [",
        "scheduler.conf: not YAML: while parsing a flow node, did not find expected node content (line 2, column 1)",
    ),
    "metrics that are no map": (GOOD + "\nmetrics: [1]", "scheduler.conf: metrics: must be a map, not [1]"),
    "arguments of an action that are no map": (
        GOOD + "\nconfigurations: [{name: allocate, arguments: [1]}]",
        "scheduler.conf: configurations[0].arguments: must be a map, not [1]",
    ),
    "a factor that is no number": (
        GOOD.replace("name: gang", "name: overcommit, arguments: {overcommit-factor: .nan}"),
        "tiers[0].plugins[0].arguments.overcommit-factor: must be at least 1, not nan",
    ),
    "a comma too many": (
        GOOD.replace("allocate", "allocate,"),
        "actions: a name is missing: they are parted by single commas, as in 'enqueue, allocate'",
    ),
    "no commas": (GOOD.replace(", ", " ", 1), "actions: 'enqueue allocate': part the names by commas: 'enqueue, allocate'"),
    "plugins without a tier": (
        'actions: "allocate"\nplugins: [{name: gang}]',
        "scheduler.conf: plugins: stands within a tier: write 'tiers: [{plugins: [...]}]'",
    ),
    "a tier that is a plugin": (
        'actions: "allocate"\ntiers: [{name: gang}]',
        "tiers[0].name: a tier has no name, its plugins have: write '- plugins: [{name: gang}]'",
    ),
    "a name alone": (GOOD.replace("{name: gang}", "gang"), "scheduler.conf: tiers[0].plugins[0]: write 'name: gang'"),
    "an argument beside the name": (
        GOOD.replace("name: gang", "name: binpack, binpack.cpu: 3"),
        "tiers[0].plugins[0].binpack.cpu: what a plugin takes stands in its 'arguments'",
    ),
    "a manifest": ("kind: Job\nspec: {}", "scheduler.conf: this is a manifest (kind: Job), and no scheduler.conf"),
    "not a map": ("- a", "must be a map with 'actions' and 'tiers'"),
}


@pytest.mark.parametrize(("text", "message"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_told_with_its_path(text: str, message: str) -> None:
    with pytest.raises(ConfError) as told:
        conf.load(text, PLUGINS, ACTIONS)
    assert message in str(told.value)


ALIASES = {
    "of an alias within itself": "a: &a [*a]",
    "of a billion laughs": "a: &a [x, x]\n"
    + "".join(f"b{i}: &b{i} [{'*a, ' * 9 if i == 0 else f'*b{i - 1}, ' * 9}]\n" for i in range(20))
    + 'actions: "allocate"\nmetrics: *b19\ntiers: [{plugins: [{name: binpack, arguments: {binpack.weight: *b19}}]}]',
}


@pytest.mark.parametrize("text", ALIASES.values(), ids=ALIASES)
def test_no_end_of_aliases_is_no_end_of_work(text: str) -> None:
    with pytest.raises(ConfError, match="a: unknown key"):
        conf.load(text, PLUGINS, ACTIONS)


def test_every_mistake_is_told_at_once() -> None:
    with pytest.raises(ConfError) as told:
        conf.load('actions: "alocate"\ntiers: [{plugins: [{name: gnag}]}]', PLUGINS, ACTIONS)
    assert len(str(told.value).splitlines()) == 2


def test_an_argument_that_nobody_reads_is_warned_of() -> None:
    text = GOOD.replace("name: gang", "name: binpack, arguments: {binpack.weigth: 5}")
    assert conf.load(text, PLUGINS, ACTIONS).warnings == (
        "tiers[0].plugins[0].arguments.binpack.weigth: nobody reads this argument; did you mean 'binpack.weight'?",
    )


def test_arguments_of_an_action_that_there_is_not_are_warned_of() -> None:
    text = GOOD + "\nconfigurations: [{name: alocate, arguments: {a: 1}}]"
    assert conf.load(text, PLUGINS, ACTIONS).warnings == (
        "configurations[0].name: there is no action 'alocate'; did you mean 'allocate'?",
    )


WARNINGS = {
    "an action twice": (
        GOOD.replace("allocate", "allocate, enqueue"),
        "actions: 'enqueue' is given 2 times and runs as often in each session",
    ),
    "a plugin twice": (
        GOOD.replace("}]}]", "}]}, {plugins: [{name: drf}, {name: gang}]}]"),
        "tiers[1].plugins[1].name: 'gang' stands in tiers[0].plugins[0] already; both take part, points count twice",
    ),
    "a key twice": (GOOD + '\nactions: "allocate"', "actions: is given twice; the last counts"),
    "a switch twice": (
        GOOD.replace("gang", "gang, enableJobOrder: true, enableJobOrder: false"),
        "tiers[0].plugins[0].enableJobOrder: is given twice; the last counts",
    ),
    "arguments of an action twice": (
        GOOD + "\nconfigurations: [{name: allocate}, {name: allocate}]",
        "configurations[1].name: 'allocate' stands above already; the first counts",
    ),
    "two that divide the cluster": (
        GOOD.replace("gang", "capacity}, {name: proportion"),
        "tiers: proportion and capacity both say what a queue deserves; leave out one of them",
    ),
    "no plugins": (
        'actions: "allocate"\ntiers: []',
        "tiers: no plugins: gangs are not kept whole, queues do not share; docs/configuration.md has some to start with",
    ),
    "nothing that places pods": (
        GOOD.replace("allocate", "backfill, preempt"),
        "actions: none of them gives nodes to pods that ask for something; add 'allocate'",
    ),
}


@pytest.mark.parametrize(("text", "warning"), WARNINGS.values(), ids=WARNINGS)
def test_what_nobody_can_mean_is_warned_of(text: str, warning: str) -> None:
    """Upstream takes it without a word, and so it is no error."""
    assert conf.load(text, PLUGINS, ACTIONS).warnings == (warning,)


def test_a_plugin_of_upstream_that_is_not_here_yet_is_skipped_with_a_warning() -> None:
    loaded = conf.load(GOOD.replace("name: gang", "name: tdm"), PLUGINS, ACTIONS, later=LATER)
    assert (loaded.tiers, loaded.warnings) == (
        ((),),
        ("tiers[0].plugins[0].name: plugin 'tdm' is not available in this version and is skipped",),
    )


def test_switches_are_on_where_they_are_not_written() -> None:
    entry = conf.load(GOOD, PLUGINS, ACTIONS).tiers[0][0]
    assert entry.switches["enablePreemptable"] is True


def test_hierarchy_is_off_where_it_is_not_written() -> None:
    entry = conf.load(GOOD, PLUGINS, ACTIONS).tiers[0][0]
    assert entry.switches["enableHierarchy"] is False


def test_the_built_in_configuration_has_no_mistakes() -> None:
    assert conf.load(conf.DEFAULT, PLUGINS, ACTIONS, later=(*LATER, *LATER_ACTIONS)).warnings == ()
