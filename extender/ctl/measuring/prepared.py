"""An API server made ready for a measurement, and left as it was found."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from extender.cluster.clock import SystemClock
from extender.cluster.port import Cluster
from extender.ctl import installing
from extender.ctl.measuring.load import OWNER, make_namespace, make_nodes, make_queue, remove_all


@contextmanager
def prepared(server: Cluster, say: Callable[[str], None], nodes: int = 0, labels: Mapping[str, str] | None = None,
             ) -> Iterator[str]:  # fmt: skip
    """Kinds, queue, namespace and nodes; the namespace's name. What an earlier run left is removed first, all in the end."""
    remove_all(server)
    installed = installing.install_crds(server, OWNER)
    try:
        namespace = f"{OWNER}-{secrets.token_hex(3)}"
        make_namespace(server, namespace)
        make_queue(server)
        if nodes:
            say(f"making {nodes:,} nodes")
            make_nodes(server, nodes, SystemClock().now(), dict(labels or {}))
        yield namespace
    finally:
        say("cleaning up")
        remove_all(server)
        for each in installed:
            if each.made:
                installing.remove(server, each.kind, each.key)
