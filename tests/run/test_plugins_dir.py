"""--plugins-dir: modules of the user in a run, and what is said of those that cannot be used."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from extender.api.errors import ConfError, PluginError
from extender.api.meta import Json
from extender.cli import check_conf
from extender.core.conf import Conf
from extender.core.hyper_nodes import HyperNode, Purpose
from extender.core.scheduling import schedule
from extender.core.session import Session
from extender.options import Options
from extender.plugin_answers import ASKED, checked
from extender.testing.builders import node, podgroup, queue, task
from extender.vocabulary import BUILT_IN, vocabulary
from tests.run.conftest import Command
from tests.run.test_run import job
from tests.scheduling.points import conf_of, snapshot

CONF = 'actions: "allocate"\ntiers: [{plugins: [{name: gang}, {name: %s, arguments: {%s}}]}]\n'
LAST = """
import numpy as np
from extender.core.plugin import Plugin

class Last(Plugin[float]):
    def node_order(self, ssn, cls, at):
        return self.args * at.rows.astype(float)

def new(arguments):
    return Last(arguments.number("weight", 1.0))
"""


def folder(tmp_path: Path, **modules: str) -> str:
    """Of these modules."""
    place = tmp_path / "plugins"
    place.mkdir(exist_ok=True)
    for name, text in modules.items():
        (place / f"{name}.py").write_text(text)
    return str(place)


def read(tmp_path: Path, text: str, **modules: str) -> Conf:
    return vocabulary(folder(tmp_path, **modules)).read(text, "scheduler.conf")


def test_a_run_with_a_plugin(pumice: Command, tmp_path: Path) -> None:
    """Its points count; without it the first node is taken."""
    plugins = folder(tmp_path, last=LAST)
    files = {"jobs.yaml": job("a", 1), "scheduler.conf": CONF % ("last", "weight: 2")}
    words = ("run", "jobs.yaml", "--conf", "scheduler.conf", "--nodes", "3x cpu=8,memory=16Gi", "-o", "json")
    ran = pumice(*words, "--plugins-dir", plugins, files=files)
    assert (ran.status, json.loads(ran.out)["pods"]["default/a-worker-0"]["node"]) == (0, "node-3")
    assert pumice(*words).fault.startswith("scheduler.conf: tiers[0].plugins[1].name: unknown plugin 'last'")


def test_a_bench_with_a_plugin(pumice: Command, tmp_path: Path) -> None:
    files = {"scheduler.conf": CONF % ("last", "")}
    words = ("--nodes", "3", "--gangs", "1", "--size", "2", "--conf", "scheduler.conf", "-o", "json")
    ran = pumice("bench", "session", *words, "--plugins-dir", folder(tmp_path, last=LAST), files=files)
    assert json.loads(ran.out)["bound"] == 2


def test_a_name_that_a_later_version_has_is_free(tmp_path: Path) -> None:
    """The user's plugin is used instead of being skipped with a warning; switches gate it as any other."""
    text = 'actions: "allocate"\ntiers: [{plugins: [{name: task-topology, enableNodeOrder: false}]}]\n'
    assert BUILT_IN.read(text, "scheduler.conf").warnings != ()
    conf = read(tmp_path, text, **{"task-topology": LAST})
    assert (conf.warnings, conf.tiers[0][0].switches["enableNodeOrder"]) == ((), False)


def test_modules_that_begin_with_an_underscore_are_none(tmp_path: Path) -> None:
    assert "_tools" not in vocabulary(folder(tmp_path, last=LAST, _tools="this is no Python")).plugins


def test_no_folder_means_what_is_built_in() -> None:
    assert vocabulary() is BUILT_IN


ARGUMENTS = {
    "one of the wrong type": ("weight: heavy", "tiers[0].plugins[1].arguments.weight: must be a number, not 'heavy'"),
    "one that the plugin refuses": ("weight: -1", "tiers[0].plugins[1].arguments.weight: must not be negative"),
}
CAREFUL = LAST.replace(
    'return Last(arguments.number("weight", 1.0))',
    """weight = arguments.number("weight", 1.0)
    if weight < 0:
        arguments.wrong("weight", "must not be negative")
    return Last(weight)""",
)


@pytest.mark.parametrize(("given", "said"), ARGUMENTS.values(), ids=ARGUMENTS)
def test_a_wrong_argument_is_an_error_with_its_path(tmp_path: Path, given: str, said: str) -> None:
    with pytest.raises(ConfError) as error:
        read(tmp_path, CONF % ("last", given), last=CAREFUL)
    assert str(error.value) == f"scheduler.conf: {said}"


def test_an_argument_that_nobody_reads_is_a_warning(tmp_path: Path) -> None:
    conf = read(tmp_path, CONF % ("last", "wieght: 2"), last=LAST)
    assert conf.warnings == ("tiers[0].plugins[1].arguments.wieght: nobody reads this argument; did you mean 'weight'?",)


PLUGIN = "from extender.core.plugin import Plugin\nclass Mine(Plugin[None]):\n%s\ndef new(arguments):\n    return %s\n"
UNLOADABLE = {
    "no Python": ("x = = 1\n", "mine.py:1: SyntaxError: invalid syntax"),
    "an import that fails": ("import os\nimport nowhere_to_be_found\n", "mine.py:2: ModuleNotFoundError: No module named"),
    "it ends the program": ("raise SystemExit(3)\n", "mine.py:1: SystemExit: 3"),
    "neither plugin nor action": ("x = 1\n", "mine.py: has neither new(arguments), which makes a plugin, nor ACTION"),
    "a factory without a parameter": ("def new():\n    pass\n", "mine.py:1: new must be a function of one argument"),
    "an action of another name": (
        "from extender.core.conf import Action\nACTION = Action('yours', print, print)\n", "that is called 'mine'",
    ),
    "an action that never runs": (
        "from extender.core.conf import Action\nasync def run(ssn, args): pass\nACTION = Action('mine', run, str)\n",
        "mine.py:2: the run of ACTION must be a plain function: one with async or yield would never run",
    ),
    "something else for an action": ("ACTION = print\n", "mine.py: ACTION must be an Action of extender.core.conf"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "said"), UNLOADABLE.values(), ids=UNLOADABLE)
def test_a_module_that_cannot_be_loaded(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfError) as error:
        vocabulary(folder(tmp_path, mine=text))
    assert said in str(error.value)


def test_all_that_is_wrong_with_the_folder_is_said_at_once(tmp_path: Path) -> None:
    place = folder(tmp_path, gang=LAST, broken="1/0\n", **{"not a name": LAST})
    (tmp_path / "plugins" / "magic.so").write_bytes(b"\x7fELF")
    with pytest.raises(ConfError) as error:
        vocabulary(place)
    lines = [line.removeprefix(f"--plugins-dir: {place}/") for line in str(error.value).splitlines()]
    assert lines == [
        "magic.so: plugins written in Go cannot be loaded; see docs/plugins.md",
        "broken.py:1: ZeroDivisionError: division by zero",
        "gang.py: 'gang' is built in; rename the file",
        "not a name.py: a plugin's name has letters, digits, - _ and . only; rename the file",
    ]


def test_a_folder_named_from_here(pumice: Command, tmp_path: Path) -> None:
    """Its files are told with the line, too."""
    folder(tmp_path, broken="\n1/0\n")
    ran = pumice("run", "jobs.yaml", "--plugins-dir", "plugins", files={"jobs.yaml": job("a", 1)})
    assert (ran.status, ran.fault.endswith("plugins/broken.py:2: ZeroDivisionError: division by zero")) == (1, True)


def test_warnings_of_a_configuration_of_the_bench(pumice: Command) -> None:
    words = ("bench", "session", "--nodes", "1", "--gangs", "1", "--size", "1", "--conf", "c.conf")
    ran = pumice(*words, files={"c.conf": 'actions: "enqueue"\ntiers: [{plugins: [{name: gang}]}]'})
    says = "warning: c.conf: actions: none of them gives nodes to pods that ask for something; add 'allocate'\n"
    assert (ran.status, ran.err) == (0, says)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--nodes", "100000000"), "100000000 is not in the range 1<=x<=100000"),
        (("--gangs", "1001", "--size", "1000"), "--gangs, --size: 1,001 times 1,000 are more than 1,000,000 pods"),
    ],
)
def test_a_bench_that_no_machine_could_hold(pumice: Command, words: tuple[str, ...], says: str) -> None:
    ran = pumice("bench", "session", *words)
    assert (ran.status, says in ran.err) == (2, True)


def test_a_configuration_of_the_bench_that_is_no_text(pumice: Command) -> None:
    ran = pumice("bench", "session", "--nodes", "1", "--gangs", "1", "--conf", "bin.conf", files={"bin.conf": b"\xff\xfe"})
    assert (ran.status, "bin.conf" in ran.fault) == (2, True)


FAULTY = {
    "a hook with other parameters": (
        "    def predicate(self, ssn, cls): pass", "mine.py:3: predicate must take (self, ssn, cls, at)",
    ),
    "a hook in Volcano's spelling": (
        "    def jobOrder(self, ssn, job): pass", "mine.py:3: there is no hook 'jobOrder'; did you mean 'job_order'?",
    ),
    "a slip of the pen": (
        "    x = 1\n    def node_ordr(self, ssn, cls, at): pass",
        "mine.py:4: there is no hook 'node_ordr'; did you mean 'node_order'?",
    ),
    "a slip in the beginning": (
        "    def opens(self, ssn): pass", "mine.py:3: there is no hook 'opens'; did you mean 'open'?",
    ),
    "a number for a hook": ("    job_order = 5", "mine.py: job_order must be a method, not 5"),
    "a number for the beginning": ("    open = 5", "mine.py: open must be a method, not 5"),
    "an end with other parameters": ("    def close(self): pass", "mine.py:3: close must take (self, ssn)"),
    "a hook that never runs": (
        "    async def job_ready(self, ssn, job): return True",
        "mine.py:3: job_ready must be a plain method: one with async or yield would never run",
    ),
    "a beginning that never runs": ("    def open(self, ssn): yield", "mine.py:3: open must be a plain method"),
    "kinds that only an instance knows": (
        "    def follows(self, args): return ()", "mine.py:3: follows must be a classmethod that takes (cls, args)",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "said"), FAULTY.values(), ids=FAULTY)
def test_a_method_that_cannot_be_asked_is_found_with_the_folder(tmp_path: Path, text: str, said: str) -> None:
    """Whether scheduler.conf names the plugin or not."""
    place = folder(tmp_path, mine=PLUGIN % (text, "Mine(None)"))
    with pytest.raises(ConfError) as error:
        vocabulary(place)
    assert str(error.value).startswith(f"--plugins-dir: {place}/{said}")
    assert len(str(error.value).splitlines()) == 1


def test_methods_without_a_self_are_hooks_too(tmp_path: Path) -> None:
    static = "    @staticmethod\n    def job_ready(ssn, job): return True\n"
    of_class = "    @classmethod\n    def job_valid(cls, ssn, job): return None"
    read(tmp_path, CONF % ("mine", ""), mine=PLUGIN % (static + of_class, "Mine(None)"))


USELESS = {
    "it makes no plugin": (PLUGIN % ("    pass", "None"), "must answer a Plugin of extender.core.plugin, not None"),
    "it fails": (PLUGIN % ("    pass", "1/0"), "mine.py:5: ZeroDivisionError"),
    "a hook that one made alone has": (
        PLUGIN % ("    def __init__(self): self.job_order = 5", "Mine()"), "mine.py: job_order must be a method, not 5",
    ),
    "numbers for kinds": (
        PLUGIN % ("    @classmethod\n    def follows(cls, args): return (1,)", "Mine(None)"),
        "mine.py: TypeError: follows answered (1,), not tuple[Kind, ...]",
    ),
    "it does not know its arguments": (
        PLUGIN % ("    def __init__(self): pass", "Mine()"), "mine.py: AttributeError: 'Mine' object has no attribute 'args'",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "said"), USELESS.values(), ids=USELESS)
def test_a_plugin_that_is_of_no_use_is_found_with_the_configuration(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfError) as error:
        read(tmp_path, CONF % ("mine", ""), mine=text)
    assert said in str(error.value)
    assert str(error.value).startswith("scheduler.conf: tiers[0].plugins[1].arguments: ")


def test_methods_of_its_own_are_its_own(tmp_path: Path) -> None:
    """As long as they are not taken for a hook."""
    read(tmp_path, CONF % ("mine", ""), mine=PLUGIN % ("    def score(self): pass", "Mine(None)"))


FAILING = {
    "a hook": PLUGIN % ("    def job_order(self, ssn, job):\n        return {}[job]", "Mine(None)"),
    "a hook that is cancelled": PLUGIN.replace("class", "import asyncio\nclass", 1)
    % ("    def job_order(self, ssn, job): raise asyncio.CancelledError(0)", "Mine(None)"),
    "the beginning": PLUGIN % ("    def open(self, ssn):\n        raise KeyError(0)", "Mine(None)"),
    "an action": "from extender.core.conf import Action\ndef run(ssn, args):\n\n    {}[0]\nACTION = Action('mine', run, str)\n",
}


@pytest.mark.parametrize("text", FAILING.values(), ids=FAILING)
def test_what_fails_later_is_said_with_file_and_line(tmp_path: Path, text: str) -> None:
    action = "mine" if "ACTION" in text else "allocate"
    tiers = "[]" if "ACTION" in text else "[{plugins: [{name: mine}]}]"
    conf = read(tmp_path, f"actions: {action}\ntiers: {tiers}\n", mine=text)
    with pytest.raises(PluginError, match=r"mine\.py:4: (KeyError|CancelledError): 0"):
        schedule(snapshot(), conf, 0.0)


ANSWERS = {
    "nothing for a list": ("    def predicate(self, ssn, cls, at): pass", "predicate answered None, not list[Refusal]"),
    "words for refusals": (
        "    def predicate(self, ssn, cls, at): return ['no']", "predicate answered ['no'], not list[Refusal]",
    ),
    "one number for all places": (
        "    def node_order(self, ssn, cls, at): return 1.0", "node_order answered 1.0, not FloatN | None",
    ),
    "too many places": (
        "    def node_order(self, ssn, cls, at): return np.zeros(99)",
        "node_order answered an array of shape (99,), not (3,)",
    ),
    "too few refusals": (
        "    def predicate(self, ssn, cls, at): return [Refusal('no', np.ones(1, bool))]",
        "predicate answered an array of shape (1,), not (3,)",
    ),
    "nothing for yes or no": ("    def job_ready(self, ssn, job): pass", "job_ready answered None, not bool"),
    "a word for a number": (
        "    def allocatable(self, ssn, queue, request, count): return 'all'", "allocatable answered 'all', not int",
    ),
    "yes for a vote": (
        "    def job_ready(self, ssn, job): return False\n    def job_pipelined(self, ssn, job): return 'yes'",
        "job_pipelined answered 'yes', not Vote",
    ),
    "a vote that there is not": (
        "    def job_ready(self, ssn, job): return False\n    def job_pipelined(self, ssn, job): return 5",
        "job_pipelined answered 5, not Vote",
    ),
    "a node that there is not": (
        "    def best_node(self, ssn, cls, scores): return -1", "best_node answered -1, which is not the row of a feasible node",
    ),
    "a node far beyond": (
        "    def best_node(self, ssn, cls, scores): return 10**30",
        f"best_node answered {10**30}, which is not the row of a feasible node",
    ),
    "a fraction of a node": ("    def best_node(self, ssn, cls, scores): return 1.0", "best_node answered 1.0, not int | None"),
    "yes for a node": (
        "    def best_node(self, ssn, cls, scores): return True",
        "best_node answered True, which is not the row of a feasible node",
    ),
    "an object for a key": (
        "    def job_order(self, ssn, job): return (1, print)",
        "job_order answered (1, <built-in function print>), not a number, a string or a tuple of such",
    ),
    "an array for a key": (
        "    def task_order(self, ssn, task): return np.zeros(2)",
        "task_order answered array([0., 0.]), not a number, a string or a tuple of such",
    ),
    "no number for a key": (
        "    def job_order(self, ssn, job): return float('nan')",
        "job_order answered nan, not a number, a string or a tuple of such",
    ),
    "keys that cannot be compared": (
        "    def job_order(self, ssn, job): return (0, 'x' if job else 0)",
        "job_order answered (0, 'x'), which cannot be compared with what it answered before",
    ),
    "rows for refusals": (
        "    def predicate_across(self, ssn, cls): return [99999]", "predicate_across answered [99999], not list[Refusal] | None",
    ),
    "refusals of other nodes": (
        "    def predicate_across(self, ssn, cls): return [Refusal('no', np.ones(2, bool))]",
        "predicate_across answered an array of shape (2,), not (3,)",
    ),
    "numbers for yes and no": (
        "    def predicate(self, ssn, cls, at): return [Refusal('no', np.zeros(3, int))]",
        "predicate answered an array of int64, not of yes and no",
    ),
    "points that are no numbers": (
        "    def node_order(self, ssn, cls, at): return np.full(3, np.nan)",
        "node_order answered points that are no numbers, or beyond 1e+15",
    ),
    "words for points": (
        "    def node_map(self, ssn, cls, at): return np.array(['a', 'b', 'c'])",
        "node_map answered an array of <U1, not of numbers",
    ),
    "a list within points": (
        "    def batch_node_order(self, ssn, cls, feasible): return Across([0, 0, 0])",
        "batch_node_order answered an array [0, 0, 0], not of numbers",
    ),
    "points without end": (
        "    def batch_node_order(self, ssn, cls, feasible): return Across(np.full(3, -np.inf))",
        "batch_node_order answered points that are no numbers, or beyond 1e+15",
    ),
    "rows for what comes first": (
        "    def before_bind(self, ssn, task): return [99999]", "before_bind answered [99999], not list[Prior]",
    ),
    "what has no hash": ("    def distinguish(self, ssn, task): return ([],)", "distinguish answered ([],), not Hashable"),
}  # fmt: skip


@pytest.mark.parametrize(("method", "said"), ANSWERS.values(), ids=ANSWERS)
def test_an_answer_of_the_wrong_kind_is_said_of_the_plugin(tmp_path: Path, method: str, said: str) -> None:
    """Not of whoever would have worked with it."""
    text = "import numpy as np\nfrom extender.core.plugin import Across, Refusal\n" + PLUGIN % (method, "Mine(None)")
    conf = read(tmp_path, "actions: allocate\ntiers: [{plugins: [{name: mine}]}]\n", mine=text)
    with pytest.raises(PluginError) as error:
        schedule(snapshot(), conf, 0.0)
    assert str(error.value) == f"{tmp_path}/plugins/mine.py: TypeError: {said}"


FULL = """
import numpy as np
from extender.core.plugin import Plugin
class Mine(Plugin[None]):
    def best_node(self, ssn, cls, scores):
        scores[:] = 0.0  # what it does with them is its own
        return 0
    def batch_node_order(self, ssn, cls, feasible):
        feasible[:] = True
def new(arguments):
    return Mine(None)
"""


def test_no_plugin_puts_more_on_a_node_than_it_holds(tmp_path: Path) -> None:
    """The first task takes n0 whole; for the second n0 is not feasible, and to insist on it is a mistake."""
    conf = read(tmp_path, "actions: allocate\ntiers: [{plugins: [{name: mine}]}]\n", mine=FULL)
    small: list[Json] = [node("n0").cpu(1), node("n1").cpu(1), queue(), podgroup("g").members(1).phase("Inqueue")]
    said = r"mine\.py: TypeError: best_node answered 0, which is not the row of a feasible node"
    for tasks, expected in ((1, contextlib.nullcontext()), (2, pytest.raises(PluginError, match=said))):
        objects = (*small, *(task(f"g-w-{i}", "g").cpu(1) for i in range(tasks)))
        with expected:
            schedule(snapshot(objects), conf, 0.0)


GREEDY = {
    "free room": "ssn.idle[:] = 10**12",
    "used room": "at.used[:] = 0",
    "the places": "at.rows[:] = 0",
    "what nodes have": "ssn.nodes.allocatable[:] = 10**12",
    "what a class asks": "cls.request[:] = 0",
    "what all such pods ask": "cls.shape.request *= 0",
    "the status of tasks": "ssn.task_status[:] = 3",
}


@pytest.mark.parametrize("line", GREEDY.values(), ids=GREEDY)
def test_a_plugin_only_reads(tmp_path: Path, line: str) -> None:
    """What it writes would be room that there is not, some of it beyond the session."""
    method = f"    def predicate(self, ssn, cls, at):\n        {line}\n        return []\n"
    conf = read(tmp_path, "actions: allocate\ntiers: [{plugins: [{name: mine}]}]\n", mine=PLUGIN % (method, "Mine(None)"))
    with pytest.raises(PluginError, match=r"mine\.py:4: ValueError: .*read-only"):
        schedule(snapshot(), conf, 0.0)


ROWS = {
    "a word": ("preemptable", "x", "preemptable answered 'x', not Sequence[int] | None"),
    "no numbers": ("reclaimable", np.full(2, np.nan), "reclaimable answered array([nan, nan]), not Sequence[int] | None"),
    "others": ("unified_evictable", [4, 5], "unified_evictable answered 5, which is none of those that it was given"),
    "one twice": ("victim_tasks", [4, 4], "victim_tasks answered [4, 4], one of them twice"),
    "another job": ("target_job", 5, "target_job answered 5, which is none of those that it was given"),
}  # fmt: skip


@pytest.mark.parametrize(("hook", "answer", "said"), ROWS.values(), ids=ROWS)
def test_rows_must_be_among_those_that_were_given(hook: str, answer: object, said: str) -> None:
    """The plugin cannot widen them by changing what it is lent."""

    def method(*given: Any) -> object:
        given[-1].append(5)
        return answer

    with pytest.raises(TypeError) as error:
        checked(hook, method)(None, 0, [3, 4])
    assert str(error.value) == said


GRADIENTS = {
    "a word": ("x", "'x', not Gradient"),
    "rows": ([99999], "[99999], not Gradient"),
    "a word in it": (["x"], "['x'], not Gradient"),
    "of other nodes": ([[HyperNode("r", np.ones(2, bool))]], "a HyperNode with an array of shape (2,), not (3,)"),
}


@pytest.mark.parametrize("hook", ["hyper_node_gradient_for_job", "hyper_node_gradient_for_sub_job"])
@pytest.mark.parametrize(("answer", "said"), GRADIENTS.values(), ids=GRADIENTS)
def test_a_gradient_is_lists_of_hyper_nodes(hook: str, answer: object, said: str) -> None:
    ssn = Session(snapshot(), conf_of([[]]), 0.0, np.random.default_rng(0))
    with pytest.raises(TypeError) as error:
        checked(hook, lambda *_: answer)(ssn, 0, ssn.root, Purpose.ALLOCATE)
    assert str(error.value) == f"{hook} answered {said}"
    assert checked(hook, lambda *_: [[ssn.root]])(ssn, 0, ssn.root, Purpose.ALLOCATE) == [[ssn.root]]


DUE = {"a word": ("'x'", "'x'"), "an array": ("np.zeros(2)", "array([0., 0.])"), "never": ("float('inf')", "inf")}


@pytest.mark.parametrize(("answer", "said"), DUE.values(), ids=DUE)
def test_when_answers_change_is_a_time(pumice: Command, tmp_path: Path, answer: str, said: str) -> None:
    text = "import numpy as np\n" + PLUGIN % (f"    def next_due(self, ssn): return {answer}", "Mine(None)")
    files = {"jobs.yaml": job("a", 1), "scheduler.conf": CONF % ("mine", "")}
    ran = pumice("run", "jobs.yaml", "--conf", "scheduler.conf", "--plugins-dir", folder(tmp_path, mine=text), files=files)
    assert (ran.status, "Traceback" in ran.err) == (1, False)
    assert ran.fault == f"{tmp_path}/plugins/mine.py: TypeError: next_due answered {said}, not Time | None"


def test_a_hook_that_is_none_is_one_that_the_plugin_has_not(tmp_path: Path) -> None:
    """As Python does it where a class takes a method of its base away."""
    text = PLUGIN % ("    tasks_to_ready = job_order = None", "Mine(None)")
    conf = read(tmp_path, "actions: allocate\ntiers: [{plugins: [{name: gang}, {name: mine}]}]\n", mine=text)
    assert len(schedule(snapshot(), conf, 0.0).operations) >= 3


@pytest.mark.parametrize("hook", ASKED)
def test_the_answer_of_every_hook_can_be_checked(hook: str) -> None:
    assert checked(hook, lambda: None) is not None


def test_check_conf_knows_the_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Good and bad alike."""
    file = tmp_path / "scheduler.conf"
    file.write_text(CONF % ("last", ""))
    options = Options(scheduler_conf=str(file), plugins_dir=folder(tmp_path, last=LAST))
    assert (check_conf(options), capsys.readouterr().out) == (0, f"{file}: can be used\n")
    folder(tmp_path, worse="1/0\n")
    assert check_conf(options) == 1
    worse = tmp_path / "plugins" / "worse.py"
    assert capsys.readouterr().err == f"error: --plugins-dir: {worse}:1: ZeroDivisionError: division by zero\n"


def test_a_run_whose_plugin_fails_is_an_error(pumice: Command, tmp_path: Path) -> None:
    """Without a traceback."""
    text = PLUGIN % ("    def job_order(self, ssn, job):\n        return {}[job]", "Mine(None)")
    files = {"jobs.yaml": job("a", 1), "scheduler.conf": CONF % ("mine", "")}
    ran = pumice("run", "jobs.yaml", "--conf", "scheduler.conf", "--plugins-dir", folder(tmp_path, mine=text), files=files)
    assert (ran.status, "Traceback" in ran.err) == (1, False)
    assert ran.fault == f"{tmp_path}/plugins/mine.py:4: KeyError: 0"
