"""ResourceQuotas: what a namespace uses, and whether one more object fits.

Usage is kept up by watching, each object's part of it once, so that neither creation nor `settle` searches a namespace.
Source: kubernetes v1.36.1 pkg/quota/v1/evaluator/core/pods.go, staging/src/k8s.io/apiserver/pkg/admission/plugin/
resourcequota/controller.go; services by type and storage by class are left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from extender.api.errors import Gone, InvalidObject
from extender.api.meta import KINDS, POD, PVC, RESOURCE_QUOTA, Json, Key, Kind, key_of, uid_of
from extender.api.pod import ENDED, PodSpec
from extender.api.pod_requests import effective_requests
from extender.api.quantity import NANO, format_nanos, nanos
from extender.api.selectors import Requirement
from extender.api.views import view
from extender.cluster import refusals
from extender.cluster.port import Cluster, Watch

Amounts = dict[str, int]  # resource name of a quota -> nano-units

_BY_NAME = {refusals.resource(kind): kind for kind in KINDS if kind.namespaced}
_SHORT_COUNTS = ("pods", "services", "configmaps", "secrets", "persistentvolumeclaims", "resourcequotas",
                 "replicationcontrollers")  # fmt: skip
_MUST_BE_ASKED = ("cpu", "memory")  # without these a pod could not be counted; extended resources may be left out


def kinds_counted(hard: Mapping[str, object]) -> set[Kind]:
    """The kinds that a quota looks at."""
    found = {POD}
    for name in hard:
        counted = name.removeprefix("count/") if name.startswith("count/") else name if name in _SHORT_COUNTS else ""
        if counted in _BY_NAME:
            found.add(_BY_NAME[counted])
        if name == "requests.storage":
            found.add(PVC)
    return found


def usage(kind: Kind, obj: Json, hard: Mapping[str, object]) -> Amounts:
    """An object's part of what a quota counts. A pod that has ended counts only as an object."""
    name = refusals.resource(kind)
    amounts = {f"count/{name}": NANO}
    if kind == POD:
        if (obj.get("status") or {}).get("phase") not in ENDED:
            amounts |= _pod_usage(obj, any(each.startswith("limits.") for each in hard))
    else:
        amounts[name] = NANO
        if kind == PVC:
            asked = ((obj.get("spec") or {}).get("resources") or {}).get("requests") or {}
            amounts["requests.storage"] = nanos(asked.get("storage", 0))
    return {each: amount for each, amount in amounts.items() if each in hard}


def _pod_usage(pod: Json, with_limits: bool) -> Amounts:
    amounts = {"pods": NANO}
    try:
        for name, amount in effective_requests(view(PodSpec, pod["spec"])).items():
            amounts[f"requests.{name}"] = amount
            if "/" not in name:
                amounts[name] = amount
        if with_limits:
            limits = effective_requests(view(PodSpec, limits_as_requests(pod["spec"])))
            amounts |= {f"limits.{name}": amount for name, amount in limits.items()}
    except InvalidObject:  # loaded as it was found: counted as a pod that asks nothing
        return {"pods": NANO}
    return amounts


def limits_as_requests(spec: Json) -> Json:
    changed = dict(spec)
    for part in ("containers", "initContainers"):
        if spec.get(part):
            changed[part] = [
                {**each, "resources": {"requests": (each.get("resources") or {}).get("limits") or {}}} for each in spec[part]
            ]
    return changed


def in_scope(quota: Json, pod: Json) -> bool:
    """Whether every scope of the quota holds for a pod."""
    spec = quota.get("spec") or {}
    lines = [{"scopeName": scope, "operator": "Exists"} for scope in spec.get("scopes") or ()]
    lines += (spec.get("scopeSelector") or {}).get("matchExpressions") or []
    return all(_scope_holds(line, pod) for line in lines)


def _scope_holds(line: Json, pod: Json) -> bool:
    spec, best_effort = pod["spec"], (pod.get("status") or {}).get("qosClass") == "BestEffort"
    match line.get("scopeName"):
        case "BestEffort":
            return best_effort
        case "NotBestEffort":
            return not best_effort
        case "Terminating":
            return spec.get("activeDeadlineSeconds") is not None
        case "NotTerminating":
            return spec.get("activeDeadlineSeconds") is None
        case "PriorityClass":
            named = {"name": spec["priorityClassName"]} if spec.get("priorityClassName") else {}
            values = tuple(line.get("values") or ())
            return Requirement(key="name", operator=line.get("operator", ""), values=values).matches(named)
    return False


@dataclass(slots=True)
class _Account:
    """One quota: what each object takes of it, and the sum."""

    quota: Json
    hard: Amounts
    kinds: set[Kind]
    parts: dict[tuple[Kind, str], Amounts] = field(default_factory=dict)
    used: Amounts = field(default_factory=dict)

    def counts(self, kind: Kind, obj: Json) -> bool:
        return kind in self.kinds and (kind != POD or in_scope(self.quota, obj))

    def note(self, kind: Kind, obj: Json, *, gone: bool) -> None:
        part: Amounts = {} if gone or not self.counts(kind, obj) else usage(kind, obj, self.hard)
        before = self.parts.pop((kind, uid_of(obj)), {})
        if part:
            self.parts[kind, uid_of(obj)] = part
        if part != before:
            for name in self.hard:
                self.used[name] = self.used.get(name, 0) + part.get(name, 0) - before.get(name, 0)

    def status(self) -> Json:
        return {
            "hard": (self.quota.get("spec") or {}).get("hard") or {},
            "used": {name: _text(name, self.used.get(name, 0)) for name in self.hard},
        }


class Quotas:
    """Costs nothing while there is no quota."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._quotas: Watch | None = None
        self._watches: dict[Kind, Watch] = {}
        self._accounts: dict[str, dict[str, _Account]] = {}  # namespace -> quota's name -> account

    def admit(self, kind: Kind, obj: Json) -> None:
        """Raises Denied, in the API server's words, where a new object does not fit."""
        namespace = obj["metadata"].get("namespace", "")
        self._hear()
        for name, account in sorted(self._accounts.get(namespace, {}).items()):
            if account.counts(kind, obj):
                if kind == POD:
                    _check_asked(name, account, obj)
                _check_room(name, account, kind, obj)

    def settle(self) -> None:
        """Write the status of every quota whose use has changed."""
        self._hear()
        for accounts in self._accounts.values():
            for account in accounts.values():
                status = account.status()
                if status != account.quota.get("status"):
                    account.quota = self._cluster.patch(
                        RESOURCE_QUOTA, key_of(account.quota), {"status": status}, subresource="status"
                    )

    def _hear(self) -> None:
        try:
            if self._quotas is None:
                self._quotas = self._cluster.watch(RESOURCE_QUOTA, "0")
            for event in self._quotas.poll():
                self._hear_quota(event.object, gone=event.type == "DELETED")
            for kind, watch in self._watches.items():
                for event in watch.poll():
                    for account in self._accounts.get(event.object["metadata"]["namespace"], {}).values():
                        account.note(kind, event.object, gone=event.type == "DELETED")
        except Gone:
            self._quotas, self._watches, self._accounts = None, {}, {}
            self._hear()

    def _hear_quota(self, quota: Json, *, gone: bool) -> None:
        key = key_of(quota)
        accounts = self._accounts.setdefault(key.namespace, {})
        known = accounts.get(key.name)
        if gone:
            accounts.pop(key.name, None)
        elif known is not None and known.quota.get("spec") == quota.get("spec") and uid_of(known.quota) == uid_of(quota):
            known.quota = quota
        else:
            accounts[key.name] = self._opened(quota, key)

    def _opened(self, quota: Json, key: Key) -> _Account:
        hard = (quota.get("spec") or {}).get("hard") or {}
        account = _Account(quota, {name: nanos(amount) for name, amount in hard.items()}, kinds_counted(hard))
        for kind in account.kinds:
            if kind not in self._watches:
                self._watches[kind] = self._cluster.watch(kind, self._cluster.list(kind).resource_version)
            for obj in self._cluster.list(kind, key.namespace).objects:
                account.note(kind, obj, gone=False)
        return account


def _check_asked(name: str, account: _Account, pod: Json) -> None:
    missing: dict[str, list[str]] = {}
    spec = pod["spec"]
    for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]:
        resources = container.get("resources") or {}
        for limited in sorted(account.hard):
            part, _, resource = limited.rpartition(".")
            if resource in _MUST_BE_ASKED and resource not in (resources.get(part or "requests") or {}):
                missing.setdefault(limited, []).append(container["name"])
    if missing:
        words = "; ".join(f"{limited} for: {','.join(names)}" for limited, names in sorted(missing.items()))
        raise refusals.forbidden(POD, pod["metadata"]["name"], f"failed quota: {name}: must specify {words}")


def _check_room(name: str, account: _Account, kind: Kind, obj: Json) -> None:
    asked = usage(kind, obj, account.hard)
    over = [each for each, amount in sorted(asked.items()) if amount and account.used.get(each, 0) + amount > account.hard[each]]
    if over:

        def listed(amounts: Amounts) -> str:
            return ",".join(f"{each}={_text(each, amounts.get(each, 0))}" for each in over)

        why = f"exceeded quota: {name}, requested: {listed(asked)}, used: {listed(account.used)}, limited: {listed(account.hard)}"
        raise refusals.forbidden(kind, obj["metadata"]["name"], why)


def _text(name: str, amount: int) -> str:
    return format_nanos(amount, binary=name.endswith(("memory", "storage")))
