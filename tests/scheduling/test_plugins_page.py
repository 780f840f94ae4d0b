"""docs/plugins.md: its tables are those of the code, and its examples do what it says they do."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import numpy as np
import pytest
import yaml

from extender.api.meta import Json
from extender.api.operations import Bind, Evict
from extender.core.conf import Conf
from extender.core.extension_points import POINTS
from extender.core.plugin import Plugin
from extender.core.scheduling import Result, schedule
from extender.plugin_answers import HOOKS
from extender.testing.builders import node, podgroup, queue, task
from extender.vocabulary import vocabulary
from tests.scheduling.points import NOW, snapshot
from tests.scheduling.test_sub_groups import group, part

PAGE = Path(__file__).resolve().parents[2] / "docs" / "plugins.md"
OTHERS = [name for name in HOOKS if name not in {point.hook for point in POINTS}]
OF_PLUGIN = ("open", "close", "next_due", "follows")


def _signature(name: str, method: object) -> str:
    assert callable(method)
    signature = inspect.signature(method)
    given = [each for each in signature.parameters if each != "self"]
    return f"`{name}({', '.join(given)}) -> {signature.return_annotation}`".replace("|", "\\|")


def _meaning(method: object) -> str:
    return " ".join((inspect.getdoc(method) or "").split()).replace("|", "\\|")


def points_table() -> str:
    rows = ["| hook | switch | what it answers | how the answers of several plugins combine |", "| --- | --- | --- | --- |"]
    for point in POINTS:
        hook, switch = HOOKS[point.hook], f"`{point.switch}`" if point.switch else ""
        off = "" if point.default else " (off unless written)"
        rows.append(f"| {_signature(point.hook, hook)} | {switch}{off} | {_meaning(hook)} | {point.combine.value} |")
    return "\n".join(rows)


def others_table() -> str:
    rows = ["| method | what it answers |", "| --- | --- |"]
    for name, method in [*((name, HOOKS[name]) for name in OTHERS), *((name, getattr(Plugin, name)) for name in OF_PLUGIN)]:
        rows.append(f"| {_signature(name, method)} | {_meaning(method)} |")
    return "\n".join(rows)


@pytest.mark.parametrize(("name", "table"), [("points", points_table), ("others", others_table)], ids=["points", "others"])
def test_the_tables_are_current(name: str, table: object, update: bool) -> None:
    """Made of extension_points.py and hooks.py."""
    assert callable(table)
    mark = re.compile(rf"(<!-- {name}: begin [^>]*-->\n).*?(<!-- {name}: end -->)", re.DOTALL)
    text = PAGE.read_text()
    wanted = mark.sub(lambda found: f"{found[1]}{table()}\n{found[2]}", text)
    if update:
        PAGE.write_text(wanted)
    assert mark.search(text) is not None
    assert PAGE.read_text() == wanted, "pytest tests/scheduling --update writes it anew"


def test_every_point_has_its_signature() -> None:
    assert {point.hook for point in POINTS} <= set(HOOKS)


# --- the examples -------------------------------------------------------------------------------------------------------


def block(language: str, containing: str) -> str:
    """The one block of the page that holds these words."""
    (found,) = [text for text in re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL) if containing in text]
    return str(found)


def conf_with(tmp_path: Path, name: str) -> Conf:
    (tmp_path / f"{name}.py").write_text(block("python", f'"""{name} -- '))
    conf = vocabulary(str(tmp_path)).read(block("yaml", f"name: {name}"), "docs/plugins.md")
    assert conf.warnings == ()
    return conf


def _bound(result: Result) -> dict[str, str]:
    return {each.pod.name: each.node for each in result.operations if isinstance(each, Bind)}


RACK = "topology.example.com/rack"


def test_sub_groups_stay_within_a_rack(tmp_path: Path) -> None:
    """In the one with the least room that is enough; not in a, which is too small, nor on the node without the label."""
    sizes = {"a": (1, 1), "b": (4, 4), "c": (2, 2)}
    racks = [node(f"{rack}{i}").cpu(cpu).labels({RACK: rack}) for rack, cpus in sizes.items() for i, cpu in enumerate(cpus)]
    objects = (queue(), *racks, node("stray").cpu(64), group(4, size=4), *part("x", 4))
    result = schedule(snapshot(objects), conf_with(tmp_path, "racks"), NOW)
    assert {name[0] for name in _bound(result).values()} == {"c"}


@pytest.mark.parametrize("anywhere", [False, True])
def test_where_no_rack_has_room(tmp_path: Path, anywhere: bool) -> None:
    """The arguments are the plugin's own."""
    conf_with(tmp_path, "racks")
    document = yaml.safe_load(block("yaml", "name: racks"))
    document["tiers"][1]["plugins"][0]["arguments"]["anywhere"] = anywhere
    conf = vocabulary(str(tmp_path)).read(yaml.safe_dump(document), "test")
    objects = (queue(), *(node(f"n{i}").cpu(2).labels({RACK: str(i)}) for i in range(2)), group(4, size=4), *part("x", 4))
    assert len(_bound(schedule(snapshot(objects), conf, NOW))) == (4 if anywhere else 0)


PRICE = "example.com/price"


def test_points_from_arrays(tmp_path: Path) -> None:
    """Who asks for a GPU goes to the cheapest that has one; the others to the cheapest without, and rather to a dear one than
    to free GPUs."""
    names = {"dear": ("4", 0), "cheap": ("1", 0), "gpu": ("1", 2), "dear-gpu": ("4", 2)}
    nodes = [node(name).cpu(2).gpu(gpus).labels({PRICE: price}) for name, (price, gpus) in names.items()]
    pods = [task(f"w-{i}", "g").cpu(1) for i in range(3)]
    objects = (queue(), *nodes, podgroup("g").members(3), *pods, podgroup("l").members(1), task("learner", "l").cpu(1).gpu(1))
    bound = _bound(schedule(snapshot(objects), conf_with(tmp_path, "thrift"), NOW))
    assert bound == {"w-0": "cheap", "w-1": "cheap", "w-2": "dear", "learner": "gpu"}


def test_an_action_evicts_whom_a_plugin_names(tmp_path: Path) -> None:
    """The oldest beyond twelve hours, five at most; the pods of others are left alone."""
    hours = 3600.0
    running: list[Json] = [task(f"w-{i}", "g").on("n").created(NOW - (13 - i) * hours) for i in range(3)]
    stranger = task("s-0", "g").on("n").created(NOW - 99 * hours)
    stranger["metadata"]["annotations"].clear()
    objects = (queue(), node("n").cpu(64), podgroup("g").members(1).phase("Running"), *running, stranger)
    result = schedule(snapshot(objects), conf_with(tmp_path, "retire"), NOW, np.random.default_rng(0))
    assert [each.pod.name for each in result.operations if isinstance(each, Evict)] == ["w-0"]
