"""ImageLocality: nodes that have the pod's images already. Source: k8s.io/kubernetes v1.36.1, imagelocality."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from extender.api.pod import PodSpec
from extender.core.axis import IntN
from extender.core.kube.normalise import MAX
from extender.core.snapshot import Nodes

_MIB = 1024 * 1024
_LEAST = 23 * _MIB  # below it an image is worth nothing
_MOST_PER_CONTAINER = 1000 * _MIB


class Images(NamedTuple):
    """What the points depend on: images of init containers, containers and image volumes, and how many are containers'."""

    names: tuple[str, ...]
    containers: int


def points(spec: PodSpec, nodes: Nodes) -> IntN | None:
    """(N,) 0..100; None where no node has any of the images."""
    there = nodes.traits.images
    used = images(spec)
    wanted = [there[name] for name in used.names if name in there]
    if not wanted:
        return None
    number = int(nodes.exists.sum())
    total: IntN = np.zeros(len(nodes), dtype=np.int64)
    for on in wanted:
        rows = np.fromiter(on, dtype=np.intp, count=len(on))
        sizes = np.fromiter(on.values(), dtype=np.float64, count=len(on))
        total[rows] += (sizes * (len(on) / number)).astype(np.int64)
    most = _MOST_PER_CONTAINER * used.containers
    clamped = np.clip(total, _LEAST, most)
    return MAX * (clamped - _LEAST) // (most - _LEAST)


def images(spec: PodSpec) -> Images:
    containers = (*(spec.init_containers or ()), *spec.containers)
    used = [container.image for container in containers]
    used += [volume.image.reference for volume in spec.volumes or () if volume.image is not None]
    return Images(tuple(_normalised(name) for name in used), len(containers))


def _normalised(name: str) -> str:
    """The name as a node's status gives it: with a tag."""
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"
