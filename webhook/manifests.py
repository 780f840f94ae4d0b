"""The webhook configurations, out of the routes table: `python -m webhook.manifests [FOLDER]` writes manifests/webhooks/.

What an API server does while nobody answers is decided here. Objects of our own kinds wait until somebody does (Fail), since
what was not checked may do harm for ever; pods never do (Ignore): what admission missed the controllers make up for. A pod is
not even sent unless it, its namespace or its scheduler asks for that."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from extender.api.labels import DEFAULT_SCHEDULER, GROUP_NAME, JOB_NAME, NAMESPACE_NAME, SCHEDULE, SCHEDULERS, SYSTEM_NAMESPACE
from extender.api.meta import HYPER_NODE, MUTATING_WEBHOOKS, POD, VALIDATING_WEBHOOKS, Json, Kind
from webhook.budgets import BUDGETS
from webhook.routes import ROUTES, UPDATE, Route

PREFIX = "volcano-admission-service"  # of the configurations' names, whatever the service is called; as the chart has it
SERVICE = "volcano-admission-service"
FOLDER = Path(__file__).resolve().parents[1] / "manifests" / "webhooks"
POD_SECONDS, OWN_SECONDS = 3, 10  # how long the API server waits for an answer
_LABELS = {"app": "volcano-admission", "app.kubernetes.io/part-of": "pumice", "app.kubernetes.io/component": "admission"}


def configuration_name(path: str) -> str:
    """/jobs/mutate -> volcano-admission-service-jobs-mutate."""
    return PREFIX + path.replace("/", "-")


def configuration_kind(route: Route) -> Kind:
    return MUTATING_WEBHOOKS if route.mutating else VALIDATING_WEBHOOKS


def configurations(
    namespace: str = SYSTEM_NAMESPACE,
    service: str = SERVICE,
    *,
    routes: Iterable[Route] = ROUTES,
    scheduler_names: Sequence[str] = SCHEDULERS,
    resource_groups: bool = False,
) -> list[Json]:
    """One for each route. `resource_groups`: pods that ask for nothing are sent too, for an admission configuration may
    choose them by namespace or by any annotation."""
    return [_configuration(route, namespace, service, scheduler_names, resource_groups) for route in routes]


def _configuration(route: Route, namespace: str, service: str, scheduler_names: Sequence[str], resource_groups: bool) -> Json:
    kind = configuration_kind(route)
    common: Json = {
        "clientConfig": {"service": {"namespace": namespace, "name": service, "path": route.path, "port": 443}},
        "rules": [_rule(route)],
        "admissionReviewVersions": ["v1"],
        "matchPolicy": "Equivalent",
        "sideEffects": "NoneOnDryRun" if route.kind == POD and route.mutating else "None",
        "failurePolicy": "Ignore" if route.kind == POD else "Fail",
        "timeoutSeconds": POD_SECONDS if route.kind == POD else OWN_SECONDS,
    }
    if route.mutating:
        common["reinvocationPolicy"] = "IfNeeded" if route.kind == POD else "Never"
    conditions = list(_conditions(route, scheduler_names, resource_groups))
    if conditions:
        common["matchConditions"] = [{"name": name, "expression": expression} for name, expression in conditions]
    return {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "metadata": {"name": configuration_name(route.path), "labels": dict(_LABELS)},
        "webhooks": [{"name": name, **common, **selectors} for name, selectors in
                     _selections(route, namespace, resource_groups)],
    }  # fmt: skip


def _rule(route: Route) -> Json:
    """Main resources only: status updates are never sent."""
    return {
        "apiGroups": [route.kind.group],
        "apiVersions": [route.kind.version],
        "resources": [route.kind.plural],
        "operations": list(route.operations),
        "scope": "Namespaced" if route.kind.namespaced else "Cluster",
    }


def _conditions(route: Route, scheduler_names: Sequence[str], resource_groups: bool) -> Iterable[tuple[str, str]]:
    """CEL."""
    ours = f"object.spec.schedulerName in [{', '.join(map(repr, scheduler_names))}]"
    if route.kind == POD and route.mutating:
        yield "has-no-node-yet", "!has(object.spec.nodeName) || object.spec.nodeName == ''"
        if not resource_groups:
            grouped = f"has(object.metadata.annotations) && '{GROUP_NAME}' in object.metadata.annotations"
            nobodys = f"!has(object.spec.schedulerName) || object.spec.schedulerName == '{DEFAULT_SCHEDULER}'"
            yield "lacks-scheduler-or-group", f"{nobodys} || ({ours} && !({grouped}))"
    elif route.kind == POD:
        yield "of-our-scheduler", f"has(object.spec.schedulerName) && {ours}"
        named = " || ".join(f"'{name}' in object.metadata.annotations" for name in BUDGETS)
        yield "names-a-budget", f"has(object.metadata.annotations) && ({named})"  # nothing else of a pod is judged
    elif UPDATE in route.operations:
        # What is going away must be able to: its finalizers are taken off by updates.
        yield "not-being-deleted", "request.operation != 'UPDATE' || !has(object.metadata.deletionTimestamp)"


def _selections(route: Route, namespace: str, resource_groups: bool) -> list[tuple[str, Json]]:
    """Names and selectors of the webhooks of a route. Pods ask by their own label or by that of their namespace. Those of a
    job were judged with it: by a label that costs the API server nothing, while a condition makes it take the pod apart."""
    if route.kind == HYPER_NODE or not route.kind.namespaced:
        return [(route.name, {})]
    elsewhere = {"key": NAMESPACE_NAME, "operator": "NotIn", "values": [namespace, "kube-system"]}
    if route.kind == POD and not route.mutating:
        of_no_job = {"key": JOB_NAME, "operator": "DoesNotExist"}
        return [(route.name, {"namespaceSelector": {"matchExpressions": [elsewhere]},
                              "objectSelector": {"matchExpressions": [of_no_job]}})]  # fmt: skip
    if route.kind != POD or resource_groups:
        return [(route.name, {"namespaceSelector": {"matchExpressions": [elsewhere]}})]
    asks = {"key": SCHEDULE, "operator": "In", "values": ["true"]}
    silent = {"key": SCHEDULE, "operator": "DoesNotExist"}
    return [
        (f"namespace.{route.name}", {"namespaceSelector": {"matchExpressions": [elsewhere, asks]},
                                     "objectSelector": {"matchExpressions": [silent]}}),
        (f"pod.{route.name}", {"namespaceSelector": {"matchExpressions": [elsewhere]},
                               "objectSelector": {"matchExpressions": [asks]}}),
    ]  # fmt: skip


def files() -> Mapping[str, str]:
    """Name -> content of all that belongs into manifests/webhooks/."""
    made = {f"{path_name(route.path)}.yaml": _yaml(_only(route)) for route in ROUTES}
    kustomization = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": sorted(made)}
    whole = next(route for route in ROUTES if route.kind == POD and route.mutating)
    return {
        **made,
        f"{path_name(whole.path)}-resource-groups.yaml": _yaml(_only(whole, resource_groups=True)),
        "kustomization.yaml": _yaml(kustomization),
    }


def path_name(path: str) -> str:
    return path.strip("/").replace("/", "-")


def _only(route: Route, *, resource_groups: bool = False) -> Json:
    return configurations(routes=[route], resource_groups=resource_groups)[0]


def _yaml(document: Any) -> str:
    note = "# Made by `python -m webhook.manifests` out of webhook/routes.py.\n"
    return note + yaml.dump(document, Dumper=_Plain, sort_keys=False, width=130)


class _Plain(yaml.SafeDumper):
    """Without anchors: they are hard to read and to patch."""

    def ignore_aliases(self, _: Any) -> bool:
        return True


def main(folder: Path = FOLDER) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files().items():
        (folder / name).write_text(content)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
