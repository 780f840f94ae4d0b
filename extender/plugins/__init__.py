"""PLUGINS: every plugin name of scheduler.conf and its class. The only registration."""

from __future__ import annotations

from typing import Any

from extender.core.plugin import Plugin
from extender.plugins.binpack import Binpack
from extender.plugins.capacity import Capacity
from extender.plugins.conformance import Conformance
from extender.plugins.drf import Drf
from extender.plugins.gang import Gang
from extender.plugins.nodeorder import NodeOrder
from extender.plugins.overcommit import Overcommit
from extender.plugins.pdb import Pdb
from extender.plugins.predicates import Predicates
from extender.plugins.priority import Priority
from extender.plugins.proportion import Proportion
from extender.plugins.resourcequota import ResourceQuotaPlugin
from extender.plugins.sla import Sla

PLUGINS: dict[str, type[Plugin[Any]]] = {
    plugin.name: plugin
    for plugin in (
        Binpack,
        Capacity,
        Conformance,
        Drf,
        Gang,
        NodeOrder,
        Overcommit,
        Pdb,
        Predicates,
        Priority,
        Proportion,
        ResourceQuotaPlugin,
        Sla,
    )
}

# Names that upstream knows and this version does not have yet: skipped with a warning.
LATER = (
    "cdp", "deviceshare", "extender", "network-topology-aware", "nodegroup", "numa-aware", "rescheduling",
    "resource-strategy-fit", "task-topology", "tdm", "usage",
)  # fmt: skip
