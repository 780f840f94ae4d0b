"""Many small stories on one real cluster at once, each in a namespace of its own; its outcome is a list of what went wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

from extender.api.errors import PumiceError
from extender.api.meta import HYPER_NODE, NODE, Json, kind_of
from extender.cluster.kubernetes import KubernetesCluster
from tests.controlplane.lookout import Lookout
from tests.controlplane.one_namespace import CALM, OneNamespace, on_stage

AT_ONCE = 12
_CALMS = {"x": CALM, "y": 4 * CALM, "z": CALM}  # of each playing, by the suffix of its namespace
_USUAL = 10.0  # seconds that an act takes besides those that it waits for


class Outcome(Future[list[str]]):
    """Of the last playing of an act. `at_first`: of the first one, where it was played again."""

    at_first: Sequence[str] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Act:
    """`shares`: names of what others would see, too; `seconds` that it waits for. `in_real_time`: it tells in which order
    things come about, which depends on the pace of a machine that others use as well. What is wrong must be so each time, at
    another pace, too."""

    name: str
    shares: frozenset[str]
    play: Callable[[OneNamespace], list[str]]
    seconds: float = 0.0
    in_real_time: bool = False


def shared_names(objects: Iterable[Json]) -> frozenset[str]:
    """Of what these objects make or touch outside their namespace. HyperNodes count as one: who looks at any sees all."""
    found = set()
    for obj in objects:
        try:
            kind = kind_of(obj)
        except PumiceError:
            continue  # nothing comes of it
        if kind in (HYPER_NODE, NODE):
            found.add(HYPER_NODE.name)
        elif not kind.namespaced:
            found.add(f"{kind.name}/{obj['metadata']['name']}")
    return frozenset(found)


@contextmanager
def performing(cluster: KubernetesCluster, acts: Iterable[Act]) -> Iterator[dict[str, Outcome]]:
    """What each act comes to, by name. What has not begun when this is left is not begun any more."""
    lookout = Lookout(cluster)
    outcomes: dict[str, Outcome] = {}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for chain in _chains(acts):
            outcomes |= {act.name: Outcome() for act in chain}
            pool.submit(_perform, cluster, lookout, chain, outcomes)
        try:
            yield outcomes
        finally:
            for outcome in outcomes.values():
                outcome.cancel()
            pool.shutdown(cancel_futures=True)
    lookout.close()


def _chains(acts: Iterable[Act]) -> list[list[Act]]:
    """Those that share a name are played one after the other; the longest chains come first."""
    found: list[tuple[frozenset[str], list[Act]]] = []
    for act in acts:
        names, chain = act.shares, [act]
        for other in [each for each in found if each[0] & names]:
            found.remove(other)
            names, chain = names | other[0], [*other[1], *chain]
        found.append((names, chain))
    return sorted((chain for _, chain in found), key=lambda chain: -sum(_USUAL + act.seconds for act in chain))


def _perform(cluster: KubernetesCluster, lookout: Lookout, chain: list[Act], outcomes: dict[str, Outcome]) -> None:
    for act in chain:
        outcome = outcomes[act.name]
        if not outcome.set_running_or_notify_cancel():
            continue
        try:
            _play(cluster, lookout, act, outcome)
        except BaseException as error:
            if not outcome.done():
                outcome.set_exception(error)


def _play(cluster: KubernetesCluster, lookout: Lookout, act: Act, outcome: Outcome) -> None:
    times = len(_CALMS) if act.in_real_time else 1
    for number, (suffix, calm) in enumerate(_CALMS.items(), 1):
        with on_stage(cluster, lookout, f"{act.name}-{suffix}", hyper_nodes=HYPER_NODE.name in act.shares, calm=calm) as stage:
            found = act.play(stage)
            if not found or number == times:
                outcome.set_result(found)  # before the namespace goes, which takes its time
                return
        outcome.at_first = outcome.at_first or found
