"""NodePorts: host ports that pods on the node hold already. Source: k8s.io/kubernetes v1.36.1, nodeports; kube-scheduler
v0.36.1, HostPortInfo."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from extender.api.pod import PodSpec
from extender.core.kube.neighbours import DomainCounts, Neighbours, Weights
from extender.core.shapes import Shape

REASON = "node(s) didn't have free ports for the requested pod ports"
_ANY = "0.0.0.0"


class HostPort(NamedTuple):
    address: str
    protocol: str
    port: int

    def conflicts(self, other: HostPort) -> bool:
        same = self.protocol == other.protocol and self.port == other.port
        return same and (self.address == other.address or _ANY in (self.address, other.address))


def host_ports(spec: PodSpec) -> list[HostPort]:
    """Host ports of containers and sidecars."""
    lasting = (*(c for c in spec.init_containers or () if c.sidecar), *spec.containers)
    return [
        HostPort(port.host_ip or _ANY, port.protocol or "TCP", port.host_port)
        for container in lasting
        for port in container.ports or ()
        if port.host_port > 0
    ]


def by_shape(shapes: Sequence[Shape | None]) -> dict[int, list[HostPort]]:
    """Shape id -> its host ports, for shapes that have any."""
    found = {}
    for number, shape in enumerate(shapes):
        if shape is not None:
            held = shape.extra.get("host_ports")
            if not isinstance(held, list):
                held = shape.extra["host_ports"] = host_ports(shape.spec)
            if held:
                found[number] = held
    return found


def holders(wanted: list[HostPort], held: dict[int, list[HostPort]], neighbours: Neighbours) -> DomainCounts:
    """Per node the number of pods that hold one of the wanted ports; `held` as by_shape gives it."""
    table = np.zeros(len(neighbours.snapshot.shapes), dtype=np.int64)
    for number, ports in held.items():
        table[number] = any(one.conflicts(other) for one in wanted for other in ports)
    return DomainCounts(neighbours, neighbours.each_node(), [Weights(neighbours.tasks.shape, table)])
