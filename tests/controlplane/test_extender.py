"""An unmodified kube-scheduler with our extender, on a real API server."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack, closing

from extender.api.meta import DEPLOYMENT, NODE, POD, Key, key_of, uid_of
from extender.cluster.kubernetes import KubernetesCluster
from tests.controlplane.daemons import SCHEDULER, Daemons
from tests.controlplane.extended import (
    ENDS,
    GANGS,
    ROOM,
    SIZE,
    Bindings,
    Daemon,
    create,
    deployment,
    extended,
    is_ready,
    kube_scheduler,
    member,
    nodes,
    priority_class,
)
from tests.controlplane.plane import Plane
from tests.controlplane.processes import free_ports
from tests.controlplane.proxy import FaultProxy, Refusal, Request
from tests.controlplane.test_faults_at_work import a_tenth_of_the_writes
from tests.controlplane.waiting import PATIENCE, wait_until


def test_gangs_start_whole_through_kube_scheduler(
    plane: Plane, kubernetes: KubernetesCluster, new_namespace: Callable[[], str]
) -> None:
    """40 gangs and a Deployment compete for room for 15 gangs: all run in the end, none is ever started in part."""
    namespace = new_namespace()
    bindings = Bindings(kubernetes, namespace, ROOM * SIZE)
    with closing(bindings), nodes(kubernetes, "x", ROOM), extended(plane):
        create(kubernetes, namespace, GANGS)
        kubernetes.create(DEPLOYMENT, deployment(namespace, 2 * SIZE))
        wait_until(lambda: bindings.members == GANGS * SIZE, "all gangs to be bound")
        wait_until(lambda: len(bindings.plain) >= 2 * SIZE, "the Deployment to be bound")
    assert (set(bindings.gangs.values()), bindings.overdrawn) == ({SIZE}, 0)
    assert all(len(nodes) == 1 for nodes in bindings.nodes.values())


def test_what_breaks_in_the_middle_loses_nothing(
    plane: Plane, kubernetes: KubernetesCluster, new_namespace: Callable[[], str]
) -> None:
    """The extender is killed, a node goes, a member is deleted and made again: all gangs run, no pod has two nodes."""
    namespace, gangs = new_namespace(), 12
    bindings, daemon = Bindings(kubernetes, namespace, 4 * SIZE), Daemon(plane)
    daemon.start()
    with closing(bindings), closing(daemon), nodes(kubernetes, "y", 4) as names, kube_scheduler(plane, daemon.port):
        create(kubernetes, namespace, gangs, ends=False)  # so that however late we look most of them still wait
        wait_until(lambda: bindings.members >= SIZE, "the first gang to start")
        daemon.kill()
        pods = kubernetes.list(POD, namespace).objects
        for pod in pods:
            kubernetes.patch(POD, key_of(pod), {"metadata": {"annotations": ENDS}})
        lost = names.pop()
        kubernetes.delete(NODE, Key("", lost))
        waiting = key_of(next(pod for pod in pods if not pod["spec"].get("nodeName")))
        kubernetes.delete(POD, waiting, grace_seconds=0)
        g, i = waiting.name.removeprefix("g").split("-")
        kubernetes.create(POD, member(namespace, int(g), int(i)))
        bound = [pod for pod in kubernetes.list(POD, namespace).objects if pod["spec"].get("nodeName")]
        wait_until(lambda: {uid_of(pod) for pod in bound} <= bindings.nodes.keys(), "the watch to show what was bound")
        bindings.lose(lost)
        daemon.start()
        wait_until(lambda: bindings.members >= gangs * SIZE, "all gangs to be bound")
    assert all(len(nodes) == 1 for nodes in bindings.nodes.values())
    assert bindings.overdrawn == 0


class StuckAfter:
    """Lets so many bindings through; the others hang until they are let go, and are refused then."""

    def __init__(self, count: int) -> None:
        self._left = count
        self._lock = threading.Lock()
        self._let_go = threading.Event()
        self.stuck = threading.Event()

    def __call__(self, request: Request) -> Refusal | None:
        if not request.path.endswith("/binding"):
            return None
        with self._lock:
            self._left -= 1
            if self._left >= 0:
                return None
        self.stuck.set()
        self._let_go.wait(PATIENCE)
        return Refusal(503)

    def let_go(self) -> None:
        self._let_go.set()


def test_a_gang_that_was_cut_off_amid_its_binds_is_completed(
    plane: Plane, kubernetes: KubernetesCluster, new_namespace: Callable[[], str]
) -> None:
    """kill -9 when three of eight are bound. The others find their room again, though kube-scheduler asks for others first."""
    namespace = new_namespace()
    bindings, stuck = Bindings(kubernetes, namespace, SIZE), StuckAfter(3)
    with ExitStack() as stack:
        stack.enter_context(closing(bindings))
        proxy = stack.enter_context(FaultProxy(plane))
        stack.enter_context(nodes(kubernetes, "k", 1))
        urgent = stack.enter_context(priority_class(kubernetes, "urgent"))
        proxy.refuse = stuck
        daemon = stack.enter_context(closing(Daemon(plane, proxy.kubeconfig)))
        daemon.start()
        with kube_scheduler(plane, daemon.port):
            create(kubernetes, namespace, 1)
            wait_until(lambda: stuck.stuck.is_set() and bindings.members == 3, "three members to be bound")
            daemon.kill()
            stuck.let_go()
            proxy.refuse = lambda _: None
        kubernetes.create(DEPLOYMENT, deployment(namespace, SIZE, urgent))
        wait_until(lambda: len(kubernetes.list(POD, namespace).objects) == 2 * SIZE, "the Deployment's pods")
        daemon.start()
        with kube_scheduler(plane, daemon.port):
            wait_until(lambda: bindings.members == SIZE, "the gang to be whole")
    assert bindings.most <= SIZE
    assert all(len(seen) == 1 for seen in bindings.nodes.values())


def test_faults_of_the_api_server_tear_no_gang(
    plane: Plane, kubernetes: KubernetesCluster, new_namespace: Callable[[], str]
) -> None:
    """A tenth of the writes is refused, or done without an answer, and watches are cut: all gangs run, each starts whole."""
    namespace, gangs = new_namespace(), 12
    bindings = Bindings(kubernetes, namespace, 4 * SIZE)
    with closing(bindings), FaultProxy(plane) as proxy, nodes(kubernetes, "f", 4):
        proxy.refuse = a_tenth_of_the_writes()
        with closing(Daemon(plane, proxy.kubeconfig)) as daemon:
            daemon.start()
            with kube_scheduler(plane, daemon.port):
                create(kubernetes, namespace, gangs)
                for some in range(1, gangs, 3):
                    wait_until(lambda some=some: bindings.members >= some * SIZE, f"{some} gangs to be bound")  # type: ignore[misc]
                    proxy.cut_watches()
                wait_until(lambda: bindings.members == gangs * SIZE, "all gangs to be bound")
        assert proxy.refused
    assert (set(bindings.gangs.values()), bindings.overdrawn) == ({SIZE}, 0)
    assert all(len(seen) == 1 for seen in bindings.nodes.values())


def test_loop_and_kube_scheduler_share_the_nodes(
    plane: Plane, kubernetes: KubernetesCluster, new_namespace: Callable[[], str]
) -> None:
    """One vc-scheduler with --extender-address: gangs of its own, gangs of kube-scheduler's and a Deployment compete. All run,
    each gang starts whole, no node ever has more pods than it has room for."""
    namespace, gangs = new_namespace(), 16
    bindings, daemons = Bindings(kubernetes, namespace, 5 * SIZE), Daemons(plane, kubernetes)
    (port,) = free_ports(1)
    with closing(bindings), nodes(kubernetes, "b", 5):
        daemons.start(SCHEDULER, f"--extender-address=127.0.0.1:{port}", "--leader-elect=false", "--schedule-period=100ms")
        wait_until(lambda: is_ready(port), "loop and extender to be ready")
        with kube_scheduler(plane, port):
            create(kubernetes, namespace, gangs, every=2)
            kubernetes.create(DEPLOYMENT, deployment(namespace, SIZE + 2))
            wait_until(lambda: bindings.members == gangs * SIZE, "all gangs to be bound")
            wait_until(lambda: len(bindings.plain) >= SIZE + 2, "the Deployment to be bound")
        daemons.forget_all()
    assert (set(bindings.gangs.values()), bindings.most <= SIZE, bindings.overdrawn) == ({SIZE}, True, 0)
    assert all(len(seen) == 1 for seen in bindings.nodes.values())
