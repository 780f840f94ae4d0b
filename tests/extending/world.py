"""A small world for the extender: a mirror fed by builders, the verbs called without HTTP, a clock in hand."""

from __future__ import annotations

from typing import Any

from extender.actions import ACTIONS
from extender.api.meta import Json, kind_of
from extender.api.pod import Pod
from extender.api.views import view
from extender.core import conf
from extender.core.mirror import Mirror
from extender.plugins import PLUGINS
from extender.testing.builders import PodBuilder, node, podgroup, queue, task
from extender.verbs.answering import Extender, Turn
from extender.verbs.wire import Asked, AskedToPreempt, Binding, Filtered, Victims

SCHEDULER = "default-scheduler"
PREEMPTING = conf.DEFAULT.replace("enqueue, allocate, backfill", "enqueue, allocate, preempt, backfill")


def member(name: str, gang: str = "g") -> PodBuilder:
    """A pod of kube-scheduler's, member of a gang."""
    return task(name, gang).scheduler(SCHEDULER)


class World:
    """`objects` are there from the start, beside an open queue `default`."""

    def __init__(self, *objects: Json, text: str = conf.DEFAULT, most_waiting: int = 1000) -> None:
        self.now = 1000.0
        self.pods: dict[str, Json] = {}
        self.extender = Extender(Mirror((), brought=[SCHEDULER]), conf.load(text, PLUGINS, ACTIONS), most_waiting=most_waiting)
        for obj in (queue(), *objects):
            self.see(obj)

    def see(self, obj: Json, event: str = "ADDED") -> None:
        """The watch brings it."""
        kind = kind_of(obj)
        self.extender.mirror.apply(kind, event, obj)
        self.extender.saw(kind, event, obj)
        if obj["kind"] == "Pod":
            self.pods[obj["metadata"]["name"]] = obj

    def gone(self, obj: Json) -> None:
        self.see(obj, "DELETED")

    @property
    def nodes(self) -> list[str]:
        table = self.extender.mirror.nodes
        return [name for name, row in table.rows.items() if table.exists[row]]

    def filter(self, pod: str, *names: str) -> Filtered:
        """`names`: the nodes asked about, all where none is given."""
        return self.extender.filter(Asked(view(Pod, self.pods[pod]), names or self.nodes), self.now)

    def place(self, *pods: str) -> list[str]:
        """The one node of each pod, "" where it has none."""
        return [",".join(self.filter(pod).names) for pod in pods]

    def scores(self, pod: str, *names: str) -> list[int]:
        return self.extender.prioritize(Asked(view(Pod, self.pods[pod]), names or self.nodes), self.now)

    def ask(self, pod: str, node_name: str) -> Turn:
        obj = self.pods[pod]
        verdict = self.extender.ask_to_bind(Binding(view(Pod, obj).metadata.key, obj["metadata"]["uid"], node_name), self.now)
        return verdict.turn

    def preempt(self, pod: str, **victims: list[str]) -> dict[str, list[str]]:
        """Node -> uids of the victims, asked with kube-scheduler's choice of pods by name."""
        asked = {name: Victims(tuple(self.pods[each]["metadata"]["uid"] for each in pods)) for name, pods in victims.items()}
        answer = self.extender.preempt(AskedToPreempt(view(Pod, self.pods[pod]), asked), self.now)
        names = {pod["metadata"]["uid"]: name for name, pod in self.pods.items()}
        return {name: sorted(names[uid] for uid in each.uids) for name, each in answer.items()}


def gang(name: str, members: int, *, cpu: Any = 1, least: int | None = None) -> list[Json]:
    """A PodGroup and its pods `<name>-0`, `<name>-1` ..."""
    least = members if least is None else least
    return [podgroup(name).members(least), *(member(f"{name}-{i}", name).cpu(cpu) for i in range(members))]


def machines(count: int, cpu: int = 4) -> list[Json]:
    return [node(f"n{i}").cpu(cpu) for i in range(count)]
