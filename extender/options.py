"""The flags of vc-scheduler (volcano ed72c7c, cmd/scheduler/app/options), and what they and the environment say is ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from extender.api.errors import UsageError
from extender.api.labels import SCHEDULERS
from extender.api.meta import NODE, POD_GROUP, Json, Key, labels_of
from extender.cluster.flags import ARRAY, DURATION, LIST, flag, group
from extender.cluster.options import ClientOptions, GateOptions, LeaderOptions, LogOptions, ServingOptions
from extender.extending import ExtenderOptions
from extender.intake import Ours
from extender.ring import ENABLED, Share

PROGRAM = "vc-scheduler"
EXTENDER = "vc-extender"
_ALL_NODES = "every node that fits is compared"
_WATCHED = "watched where a plugin asks for it"
# Variables of the reference that do nothing here, and why.
_UNUSED = {
    "BATCH_BIND_NUM": "bindings are written side by side, not gathered",
    "PANIC_ON_ERROR": "there are no assertions to survive",
    "DEBUG_SOCKET_DIR": "--v says how much is told",
}
_CLIENT, _LEADER = ClientOptions(kube_api_qps=2000.0, kube_api_burst=2000), LeaderOptions()


@dataclass(frozen=True, slots=True)
class Options:
    scheduler_name: tuple[str, ...] = flag(SCHEDULERS, "pods with this spec.schedulerName are ours; may be given again",
                                           kind=ARRAY)  # fmt: skip
    scheduler_conf: str = flag("", "path of scheduler.conf; it is read again when it changes")
    disable_default_scheduler_config: bool = flag(False, "do not start without --scheduler-conf")
    check_conf: bool = flag(False, "print what is wrong with the configuration and exit, with status 1 if it cannot be used")
    schedule_period: float = flag(1.0, "pause between two sessions", kind=DURATION)
    default_queue: str = flag("default", "queue of PodGroups that name none")
    node_selector: tuple[str, ...] = flag((), "label:value; only nodes that have one of them are ours", kind=LIST)
    resource_sync_timeout: float = flag(60.0, "after so long without the first lists it is told which are missing; no session "
                                        "begins without them", kind=DURATION)  # fmt: skip
    cache_dumper: bool = flag(True, "on SIGUSR1 and SIGUSR2 write what the scheduler believes to a file")
    cache_dump_dir: str = flag("/tmp", "folder of these files")
    enable_per_job_metrics: bool = flag(False, "show metrics with the names of jobs, which grow with them")
    enable_pprof: bool = flag(False, "serve /debug/stacks and /debug/flags at --listen-address")
    scheduler_sharding_mode: str = flag("none", "only the nodes of our NodeShard (hard), or others where none of them will do "
                                        "(soft)", choices=("none", "hard", "soft"))  # fmt: skip
    scheduler_sharding_name: str = flag("volcano", "name of our NodeShard")
    minimum_feasible_nodes: int = flag(100, "nodes to look for", unused=_ALL_NODES)
    minimum_percentage_nodes_to_find: int = flag(5, "likewise, in percent", unused=_ALL_NODES)
    percentage_nodes_to_find: int = flag(0, "likewise, in percent", unused=_ALL_NODES)
    node_worker_threads: int = flag(20, "threads for events of nodes", unused="one event costs microseconds")
    gate_removal_worker_num: int = flag(5, "threads that remove gates", unused="writes go side by side anyway")
    priority_class: bool = flag(True, "watch PriorityClasses", unused="always")
    csi_storage: bool = flag(True, "watch CSIDrivers and CSIStorageCapacities", unused=_WATCHED)
    ignored_provisioners: tuple[str, ...] = flag((), "provisioners to ignore", kind=LIST, unused=_WATCHED)
    resync_period: float = flag(0.0, "look at everything again", kind=DURATION, unused="watches lose nothing")
    plugins_dir: str = flag("", "folder of plugins and actions of your own, in Python")
    client: ClientOptions = field(default=_CLIENT, metadata=group("API server"))
    leader: LeaderOptions = field(default=_LEADER, metadata=group("leader election"))
    serving: ServingOptions = field(default=ServingOptions(), metadata=group("health and metrics"))
    gates: GateOptions = field(default=GateOptions(), metadata=group("feature gates"))
    logs: LogOptions = field(default=LogOptions(), metadata=group("logs"))
    extender: ExtenderOptions = field(default=ExtenderOptions(), metadata=group("extender of kube-scheduler"))

    @property
    def component(self) -> str:
        """What events and the lease call us."""
        if self.extender.extender_only:
            return EXTENDER
        return self.scheduler_name[0] if len(self.scheduler_name) == 1 else SCHEDULERS[0]

    @property
    def lease(self) -> Key:
        """By default of the scheduler's name: schedulers of different names do not wait for each other."""
        return Key(self.leader.namespace, self.leader.leader_elect_resource_name or self.component)

    def check(self) -> None:
        """Raises UsageError for what cannot work together."""
        self.leader.check()
        self.serving.check()
        self.extender.check()
        both = set(self.scheduler_name) & set(self.extender.extender_scheduler_name)
        if self.extender.extender_address and not self.extender.extender_only and both:
            raise UsageError(f"--scheduler-name and --extender-scheduler-name both name {', '.join(sorted(both))}: either the "
                             "loop places these pods, or kube-scheduler does")  # fmt: skip
        if self.schedule_period < 0 or not self.scheduler_name:
            raise UsageError("--schedule-period must not be negative, and --scheduler-name not be empty")
        if self.scheduler_sharding_mode != "none" and self.extender.extender_address:
            raise UsageError("--scheduler-sharding-mode: kube-scheduler knows no shards; give the extender a --node-selector")
        if self.disable_default_scheduler_config and not self.scheduler_conf:
            raise UsageError("--disable-default-scheduler-config needs --scheduler-conf")
        node_filter(self.node_selector)


def node_filter(selector: Sequence[str]) -> Callable[[Json], bool] | None:
    """Nodes that have at least one of the labels; None: all nodes."""
    pairs = [tuple(part.strip() for part in word.split(":", 1)) for word in selector]
    if any(len(pair) != 2 or not all(pair) for pair in pairs):
        raise UsageError(f"--node-selector: '{','.join(selector)}' must be label:value, parted by commas")
    if not pairs:
        return None
    return lambda node: any(labels_of(node).get(label) == value for label, value in pairs)


def share_of(options: Options, environ: Mapping[str, str]) -> Ours:
    """What is there for us, by --node-selector and by the hash of names. Raises UsageError."""
    selected, share = node_filter(options.node_selector), Share.of(environ)
    if share is None:
        return {NODE: selected} if selected else {}
    if options.extender.extender_address:
        raise UsageError(f"{ENABLED}: kube-scheduler has one extender; give it a --node-selector")
    return {NODE: lambda node: share.has_node(node) and (selected is None or selected(node)), POD_GROUP: share.has_group}


def with_lease(options: Options, environ: Mapping[str, str]) -> Options:
    """Where several work at once by the hash of names each has a lease of its own name. Raises UsageError."""
    share = Share.of(environ)
    if share is None or options.leader.leader_elect_resource_name:
        return options
    return replace(options, leader=replace(options.leader, leader_elect_resource_name=share.member))


def unused(environ: Mapping[str, str]) -> list[str]:
    """A warning for each variable that was set in vain."""
    return [f"{name} has no effect: {why}" for name, why in _UNUSED.items() if name in environ]
