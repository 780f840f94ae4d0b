"""Nodes by NodeShard: what is ours, what is said of it, and that a node never has two owners."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from extender.actions import ACTIONS
from extender.api.errors import Conflict, UsageError
from extender.api.meta import NODE_SHARD, POD, POD_GROUP, Json, Key, Kind
from extender.cli import assemble
from extender.cluster.clock import VirtualClock
from extender.cluster.flags import parse
from extender.cluster.memory import MemoryCluster
from extender.core import conf
from extender.core.conf import Shard
from extender.node_shards import NodeShards
from extender.options import PROGRAM, Options
from extender.plugins import PLUGINS
from extender.testing.builders import node, podgroup, queue, task

CONF = conf.load(conf.DEFAULT, PLUGINS, ACTIONS)


class Server(MemoryCluster):
    def __init__(self) -> None:
        self.clock = VirtualClock(1e9)
        super().__init__(self.clock)
        self.busy = False

    def shard(self, name: str, desired: Sequence[str], in_use: Sequence[str] = ()) -> None:
        obj = {"apiVersion": NODE_SHARD.api_version, "kind": NODE_SHARD.name, "metadata": {"name": name}}
        self.create(NODE_SHARD, obj | {"spec": {"nodesDesired": [*desired]}})
        if in_use:
            self.patch(NODE_SHARD, Key("", name), {"status": {"nodesInUse": [*in_use]}}, subresource="status")

    def wish(self, name: str, desired: Sequence[str]) -> None:
        self.patch(NODE_SHARD, Key("", name), {"spec": {"nodesDesired": [*desired]}})

    def status(self, name: str) -> Json:
        return dict(self.get(NODE_SHARD, Key("", name)).get("status") or {})

    def patch(self, kind: Kind, key: Key, patch: Json, *, subresource: str = "", dry_run: bool = False) -> Json:
        if self.busy and subresource:
            raise Conflict("somebody else has written")
        return super().patch(kind, key, patch, subresource=subresource, dry_run=dry_run)

    def following(self, name: str = "volcano", mode: str = "hard") -> NodeShards:
        return NodeShards(self, self.clock, mode, name)


@pytest.fixture
def server() -> Server:
    return Server()


def test_what_is_desired_is_ours_and_said_to_be_in_use(server: Server) -> None:
    server.shard("volcano", ["n2", "n1"])
    assert server.following().into(CONF).shard == Shard("hard", frozenset({"n1", "n2"}))
    assert server.status("volcano") == {"nodesInUse": ["n1", "n2"], "nodesToAdd": [], "nodesToRemove": []}


def test_what_another_still_uses_is_waited_for(server: Server) -> None:
    server.shard("volcano", ["n1", "n2"])
    server.shard("agent", ["n3"], in_use=["n2", "n3"])
    assert server.following().into(CONF).shard == Shard("hard", frozenset({"n1"}))
    assert server.status("volcano") == {"nodesInUse": ["n1"], "nodesToAdd": ["n2"], "nodesToRemove": []}


def test_a_node_changes_hands_when_its_owner_has_let_it_go(server: Server) -> None:
    """At no moment do both say that they use it."""
    server.shard("a", ["n1", "n2"])
    server.shard("b", ["n3"])
    a, b = server.following("a"), server.following("b")
    first, second = a.into(CONF), b.into(CONF)
    server.wish("a", ["n1"])
    server.wish("b", ["n2", "n3"])
    held = []
    for one, conf_before in ((b, second), (a, first), (b, second)):
        one.into(conf_before)
        held.append((server.status("a")["nodesInUse"], server.status("b")["nodesInUse"]))
    assert held == [(["n1", "n2"], ["n3"]), (["n1"], ["n3"]), (["n1"], ["n2", "n3"])]


def test_without_a_change_it_is_the_same_configuration_and_nothing_is_written(server: Server) -> None:
    server.shard("volcano", ["n1"])
    shards = server.following()
    first = shards.into(CONF)
    version = server.get(NODE_SHARD, Key("", "volcano"))["metadata"]["resourceVersion"]
    assert shards.into(first) is first
    assert server.get(NODE_SHARD, Key("", "volcano"))["metadata"]["resourceVersion"] == version


def test_a_shard_that_goes_leaves_what_it_said(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    server.shard("volcano", ["n1"])
    shards = server.following()
    before = shards.into(CONF)
    server.delete(NODE_SHARD, Key("", "volcano"))
    assert [shards.into(before) is before for _ in range(2)] == [True, True]
    assert [record.message for record in caplog.records] == ["our NodeShard is missing, its nodes stay what they were"]


def test_a_status_that_could_not_be_written_is_written_later(server: Server) -> None:
    server.shard("volcano", ["n1"])
    shards = server.following()
    server.busy = True
    first = shards.into(CONF)
    server.busy = False
    shards.into(first)
    assert server.status("volcano")["nodesInUse"] == ["n1"]


def test_a_new_configuration_keeps_the_shard(server: Server) -> None:
    server.shard("volcano", ["n1"])
    shards = server.following()
    shards.into(CONF)
    assert shards.into(conf.load(conf.DEFAULT, PLUGINS, ACTIONS)).shard == Shard("hard", frozenset({"n1"}))


# --- the daemon -----------------------------------------------------------------------------------------------------------


def scheduled(server: Server, mode: str, pods: int) -> list[str]:
    """Where pods of one CPU end up on two nodes of two, of which n2 is of our shard."""
    server.load([queue(), *(node(name).cpu(2).memory("8Gi") for name in ("n1", "n2"))])
    for number in range(pods):
        server.create(POD_GROUP, podgroup(f"g{number}"))
        server.create(POD, task(f"t-{number}", f"g{number}").cpu(1))
    server.shard("mine", ["n2"])
    words = [f"--scheduler-sharding-mode={mode}", "--scheduler-sharding-name=mine", "--leader-elect=false"]
    options = parse(Options(), words, {}, PROGRAM).options
    options.check()
    standalone = assemble(options, server, {}, clock=server.clock).standalone
    for _ in range(3):
        standalone.turn()
        server.clock.sleep(1)
    return sorted(pod["spec"].get("nodeName", "") for pod in server.list(POD).objects)


@pytest.mark.parametrize(
    ("mode", "where"), [("hard", ["", "n2", "n2"]), ("soft", ["n1", "n2", "n2"]), ("none", ["n1", "n1", "n2"])]
)
def test_where_pods_go(server: Server, mode: str, where: list[str]) -> None:
    """Ties go to the first node, so that without shards n1 has two."""
    assert scheduled(server, mode, 3) == where


def test_a_node_that_becomes_ours_is_used_at_once(server: Server) -> None:
    server.load([queue(), node("n1").cpu(2).memory("8Gi")])
    server.create(POD_GROUP, podgroup("g"))
    server.create(POD, task("t-0", "g").cpu(1))
    server.shard("volcano", [])
    options = parse(Options(), ["--scheduler-sharding-mode=hard", "--leader-elect=false"], {}, PROGRAM).options
    standalone = assemble(options, server, {}, clock=server.clock).standalone
    standalone.turn()
    before = node_of(server, "t-0")
    server.wish("volcano", ["n1"])
    standalone.turn()
    assert (before, node_of(server, "t-0")) == ("", "n1")


def test_nodes_of_others_are_a_reason_to_wait_and_none_to_give_up(server: Server) -> None:
    scheduled(server, "hard", 3)
    said = [each["message"] for name in ("g0", "g1", "g2")
            for each in (server.get(POD_GROUP, Key("default", name)).get("status") or {}).get("conditions") or ()
            if each["type"] == "Unschedulable" and each["status"] == "True"]  # fmt: skip
    assert len(said) == 1
    assert "1 Insufficient cpu, 1 node isn't in scheduler node shard" in said[0]
    assert "largest" not in said[0]


def node_of(server: Server, pod: str) -> str:
    return str(server.get(POD, Key("default", pod))["spec"].get("nodeName", ""))


def test_the_extender_has_no_shards() -> None:
    words = ["--extender-only", "--extender-address=:8090", "--scheduler-sharding-mode=soft"]
    with pytest.raises(UsageError, match="--node-selector"):
        parse(Options(), words, {}, PROGRAM).options.check()
