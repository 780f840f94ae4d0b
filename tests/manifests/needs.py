"""What each component asks of the API server, read off the code: what it follows, and every operation that it can decide on.

A need is (group, resource, verb), as in a rule of RBAC. Operations are found in the sources, where their kind is written out;
the few places where it is not are listed in `_OPEN`, and a new one is an error. What an operation comes to is told by
extender/cluster/apply.py and extender/cluster/kubernetes.py."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from certs.install import Place
from controller.job.plugins import PLUGINS as JOB_PLUGINS
from controller.manager import Manager
from controller.reconciler import Settings
from controller.selection import DEFAULT, chosen
from extender.api import meta
from extender.api.grouping import OWNERS
from extender.api.meta import Key, Kind
from extender.cluster.ca_bundle import WEBHOOK_KINDS
from extender.cluster.clock import VirtualClock
from extender.cluster.memory import MemoryCluster
from extender.core.followed import ALWAYS, DEVICES, VOLUMES
from webhook.manifests import configuration_kind, configuration_name
from webhook.routes import ROUTES

PROJECT = Path(__file__).resolve().parents[2]


class Need(NamedTuple):
    group: str
    resource: str
    verb: str


class Named(NamedTuple):
    """A need that is about one object only."""

    need: Need
    name: str


_VERBS = {"get": "get", "list": "list", "watch": "watch", "create": "create", "update": "update", "patch": "patch",
          "json_patch": "patch", "delete": "delete"}  # fmt: skip
_OWNED = {"Create", "Patch", "PatchStatus", "Delete", "Emit", "Evict", "Bind"}
# Where the kind of an operation is a variable: the kinds that it can have.
_OPEN: Mapping[tuple[str, str], Callable[[], Iterable[Kind]]] = {
    ("controller/job/sync.py", "Create"): lambda: job_plugin_kinds(),
    ("controller/job/sync.py", "Patch"): lambda: (meta.CONFIG_MAP, meta.SECRET),  # Plugin.align of svc and ssh
    ("controller/job/kill.py", "Delete"): lambda: job_plugin_kinds(),
    ("extender/cli.py", "Emit"): lambda: (meta.POD,),
}
# What plugins look at besides (Plugin.follows).
ASKED_FOR = (*DEVICES, *VOLUMES)
# What of extender/ is no part of vc-scheduler: shared words, and what runs elsewhere.
_NOT_SCHEDULER = ("api", "cluster", "ctl", "local.py", "testing")


def of(kind: Kind, *verbs: str, part: str = "") -> Iterator[Need]:
    for verb in verbs:
        yield Need(kind.group, f"{kind.plural}/{part}" if part else kind.plural, verb)


def followed(kind: Kind) -> Iterator[Need]:
    return of(kind, "list", "watch")


def events() -> Iterator[Need]:
    """extender/cluster/events.py: one is made, counted, and read where it was there already."""
    return of(meta.EVENT, "create", "get", "patch")


def operation(name: str, kind: Kind) -> Iterator[Need]:
    """What an operation comes to."""
    match name:
        case "Create":
            yield from of(kind, "create")
        case "Patch":
            yield from of(kind, "patch")
        case "Delete":
            yield from of(kind, "delete")
        case "Emit":
            yield from events()
        case "PatchStatus" if not kind.status_subresource:
            yield from of(kind, "patch")
        case "PatchStatus":
            yield from of(kind, "patch", part="status")
            if kind.group.endswith("volcano.sh"):  # the version guards what a uid does not: KubernetesCluster.patch
                yield from of(kind, "get")
            if kind == meta.RESOURCE_CLAIM:  # since Kubernetes 1.36, for status.allocation and status.reservedFor
                yield from of(kind, "patch", part="binding")
        case "Bind":
            yield from of(meta.POD, "create", part="binding")
            yield from (*of(meta.POD, "get"), *of(meta.POD, "patch", part="status"), *events())
        case "Evict":
            yield from (*of(meta.POD, "get", "delete"), *of(meta.POD, "patch", part="status"), *events())


def sources(folder: str) -> list[Path]:
    return sorted((PROJECT / folder).rglob("*.py"))


def operations(files: Iterable[Path]) -> set[tuple[str, Kind]]:
    """Every operation that is made in these files."""
    return {made for file in files for made in _operations_of(file)}


def calls(files: Iterable[Path]) -> set[Need]:
    """What is asked of a cluster directly, not by an operation: `cluster.get(POD, ...)`."""
    return {need for file in files for need in _calls_of(file)}


def _calls_of(file: Path) -> Iterator[Need]:
    for node in ast.walk(ast.parse(file.read_text())):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not node.args:
            continue
        receiver, verb, kind = ast.unparse(node.func.value), node.func.attr, _kind(node.args[0])
        if receiver.endswith("cluster") and verb in _VERBS and kind is not None:
            parts = [each.value.value for each in node.keywords
                     if each.arg == "subresource" and isinstance(each.value, ast.Constant)]  # fmt: skip
            yield from of(kind, _VERBS[verb], part=str(parts[0]) if parts else "")


def _operations_of(file: Path) -> Iterator[tuple[str, Kind]]:
    where = file.relative_to(PROJECT).as_posix()
    for node in ast.walk(ast.parse(file.read_text())):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id not in _OWNED:
            continue
        name = node.func.id
        if name in ("Bind", "Evict"):
            yield name, meta.POD
            continue
        kind = _kind(node.args[0]) if node.args else None
        if kind is not None:
            yield name, kind
        elif (where, name) in _OPEN:
            yield from ((name, each) for each in _OPEN[where, name]())
        else:
            raise AssertionError(f"{where}:{node.lineno}: of which kind is this {name}? Add it to _OPEN")


def _kind(argument: ast.expr) -> Kind | None:
    name = argument.attr if isinstance(argument, ast.Attribute) else argument.id if isinstance(argument, ast.Name) else ""
    found = getattr(meta, name, None)
    return found if isinstance(found, Kind) else None


def job_plugin_kinds() -> set[Kind]:
    """Of what the plugins of a job make."""
    return {kind for make in JOB_PLUGINS for kind, _ in make(()).belongings(Key("ns", "job"))}


# --- the components -------------------------------------------------------------------------------------------------------


def scheduler(*, sharding: bool = False) -> set[Need]:
    home = PROJECT / "extender"
    apart = set() if sharding else {home / "node_shards.py"}
    files = [file for file in sources("extender") if file.relative_to(home).parts[0] not in _NOT_SCHEDULER and file not in apart]
    made = operations(files)
    needs = calls(files) | {need for name, kind in made for need in operation(name, kind)}
    kinds = (*ALWAYS, *ASKED_FOR, *((meta.NODE_SHARD,) if sharding else ()))
    needs |= {need for kind in kinds for need in followed(kind)}
    # Intake.look_again reads what could not be written.
    needs |= {need for name, kind in made if name in ("Bind", "Evict", "Patch", "PatchStatus") for need in of(kind, "get")}
    return needs | set(of(meta.QUEUE, "get", "create"))  # extender/cluster/first_queues.py


def extender() -> set[Need]:
    """--extender-only: it binds by itself (Service), and of what a session decides it tells about PodGroups and queues only
    (Survey.take); kube-scheduler evicts, and writes claims."""
    home = PROJECT / "extender"
    files = [*sources("extender/verbs"), home / "service.py", home / "extending.py"]
    made = {(name, kind) for name, kind in operations(files) if name != "Bind"}
    told = operations([home / "core" / "closing.py", home / "core" / "queue_use.py", home / "actions" / "enqueue.py"])
    made |= {(name, kind) for name, kind in told if kind in (meta.POD_GROUP, meta.QUEUE)}
    needs = calls(files) | {need for name, kind in made for need in operation(name, kind)}
    needs |= {*events(), *of(meta.POD, "create", part="binding")}
    needs |= {need for kind in (*ALWAYS, *ASKED_FOR) for need in followed(kind)}
    needs |= {need for name, kind in made if name in ("Patch", "PatchStatus") for need in of(kind, "get")}
    return needs | set(of(meta.QUEUE, "get", "create"))


def controllers(words: Iterable[str] = DEFAULT) -> set[Need]:
    selected = chosen(tuple(words))
    files = _sources({each.name for each in selected})
    made = operations(files)
    needs = calls(files) | {need for name, kind in made for need in operation(name, kind)}
    clock = VirtualClock(0.0)
    manager = Manager(MemoryCluster(clock), clock, Settings(), selected)
    needs |= {need for kind in manager.kinds if kind != meta.CONFIG_MAP for need in followed(kind)}
    # Read one by one: what the plugins of a job have made, and the owners of pods that are not watched.
    read = {*job_plugin_kinds(), *(kind for kind in OWNERS if kind not in manager.kinds)}
    needs |= {need for kind in read for need in of(kind, "get")}
    # An owner is named with blockOwnerDeletion; a cluster may ask for this right then (OwnerReferencesPermissionEnforcement).
    owners = (meta.JOB, meta.CRON_JOB, meta.JOB_FLOW, meta.POD, *OWNERS)
    return needs | {need for kind in owners for need in of(kind, "update", part="finalizers")}


def _sources(names: set[str]) -> list[Path]:
    """The files of all controllers but those that are not chosen, so that rights can be given for these apart."""
    apart = {"sharding-controller": PROJECT / "controller" / "nodeshard.py"}
    left_out = {file for name, file in apart.items() if name not in names}
    return [file for file in sources("controller") if file not in left_out]


def admission() -> set[Need]:
    files = sources("webhook")
    needs = calls(files) | {need for name, kind in operations(files) for need in operation(name, kind)}
    needs |= {need for route in ROUTES for kind in route.reads for need in followed(kind)}
    needs |= {need for kind in OWNERS for need in of(kind, "get")}
    return needs | {need for kind in (meta.POD, *OWNERS) for need in of(kind, "update", part="finalizers")}


def certificates() -> set[Need | Named]:
    """certs/install.py: of the webhook configurations all are listed, and ours are written."""
    place = Place()
    secrets = {Named(need, key.name) for key in (place.serving, place.authority) for need in of(meta.SECRET, "get", "patch")}
    listed = {need for kind in WEBHOOK_KINDS for need in of(kind, "list")}
    ours = {Named(need, configuration_name(route.path)) for route in ROUTES
            for need in of(configuration_kind(route), "get", "patch")}  # fmt: skip
    return {*secrets, *of(meta.SECRET, "create"), *listed, *ours}


def lease(name: str) -> set[Need | Named]:
    return {*of(meta.LEASE, "create"), *(Named(need, name) for need in of(meta.LEASE, "get", "update"))}
