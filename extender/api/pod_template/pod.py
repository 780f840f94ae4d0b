"""The pod template as a whole: metadata, the pod's own fields, and the parts beside it.

Source: kubernetes v1.36.1, validation.go, ValidatePodTemplateSpec, ValidatePodSpec."""

from __future__ import annotations

from collections.abc import Mapping

from extender.api.checks import (
    DNS_LABEL,
    DNS_SUBDOMAIN,
    Check,
    Faults,
    annotation_faults,
    apply,
    apply_each,
    between,
    is_ip,
    label_faults,
    one_of,
    only_one,
    optional,
    qualified_name,
    repeated,
    required,
)
from extender.api.errors import Fault
from extender.api.meta import Json
from extender.api.pod_template.annotations import known_annotation_faults
from extender.api.pod_template.containers import PodFacts, container_lists_faults
from extender.api.pod_template.placement import affinity_faults, spread_faults, toleration_faults
from extender.api.pod_template.resources import amounts_faults, huge_page_faults, pod_resource_faults
from extender.api.pod_template.security import pod_security_faults
from extender.api.pod_template.volumes import volume_faults

_GRACE_SECONDS = 30  # what Kubernetes fills in
_POD: Mapping[str, Check] = {
    "restartPolicy": optional(one_of("Always", "OnFailure", "Never")),
    "dnsPolicy": optional(one_of("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")),
    "serviceAccountName": optional(DNS_SUBDOMAIN),
    "nodeName": optional(DNS_SUBDOMAIN),
    "hostname": optional(DNS_LABEL),
    "subdomain": optional(DNS_LABEL),
    "priorityClassName": optional(DNS_SUBDOMAIN),
    "runtimeClassName": DNS_SUBDOMAIN,
    "preemptionPolicy": one_of("PreemptLowerPriority", "Never"),
    "activeDeadlineSeconds": between(1, 2**31 - 1),
}


def template_faults(template: Json, path: str) -> Faults:
    """Everything Kubernetes would refuse in this pod template, which must have been decoded by its shape."""
    meta, spec = template.get("metadata", {}), template.get("spec", {})
    yield from label_faults(meta.get("labels", {}), f"{path}.metadata.labels")
    yield from annotation_faults(meta.get("annotations", {}), f"{path}.metadata.annotations")
    yield from known_annotation_faults(template, path)
    yield from pod_spec_faults(spec, f"{path}.spec")


def pod_spec_faults(spec: Json, path: str) -> Faults:
    volumes, claims = spec.get("volumes", []), spec.get("resourceClaims", [])
    pod = PodFacts(
        volumes={volume["name"]: volume for volume in volumes if volume.get("name")},
        claims=frozenset(claim["name"] for claim in claims if claim.get("name")),
        restart_policy=spec.get("restartPolicy", "") or "Always",
        grace_seconds=spec.get("terminationGracePeriodSeconds", _GRACE_SECONDS),
        host_users=spec.get("hostUsers", True),
        os=spec.get("os", {}).get("name", ""),
    )
    yield from container_lists_faults(spec, pod, path)
    yield from volume_faults(volumes, f"{path}.volumes")
    yield from _claim_faults(claims, f"{path}.resourceClaims")
    yield from apply(_POD, spec, path)
    if not spec.get("serviceAccountName"):
        yield from apply({"serviceAccount": optional(DNS_SUBDOMAIN)}, spec, path)
    yield from label_faults(spec.get("nodeSelector", {}), f"{path}.nodeSelector")
    yield from affinity_faults(spec.get("affinity", {}), f"{path}.affinity")
    yield from toleration_faults(spec.get("tolerations", []), f"{path}.tolerations")
    yield from spread_faults(spec.get("topologySpreadConstraints", []), f"{path}.topologySpreadConstraints")
    yield from pod_security_faults(spec, path)
    if "resources" in spec:
        yield from pod_resource_faults(spec, pod.claims, path)
    yield from amounts_faults(spec.get("overhead", {}), f"{path}.overhead")
    yield from huge_page_faults({*spec.get("overhead", {})}, f"{path}.overhead")
    yield from _gate_faults(spec, path)
    yield from _network_faults(spec, path)


def _claim_faults(claims: list[Json], path: str) -> Faults:
    sources = ("resourceClaimName", "resourceClaimTemplateName")
    for index, claim in enumerate(claims):
        at = f"{path}[{index}]"
        yield from required(claim, at, "name")
        yield from only_one(claim, at, sources)
        yield from apply({"name": optional(DNS_LABEL), **dict.fromkeys(sources, DNS_SUBDOMAIN)}, claim, at)
    yield from repeated((claim.get("name") for claim in claims), path, "name")


def _gate_faults(spec: Json, path: str) -> Faults:
    for name, field in (("readinessGates", "conditionType"), ("schedulingGates", "name")):
        for index, gate in enumerate(spec.get(name, [])):
            yield from apply({field: qualified_name}, {field: gate.get(field, "")}, f"{path}.{name}[{index}]")
    yield from repeated((gate.get("name") for gate in spec.get("schedulingGates", [])), f"{path}.schedulingGates", "name")
    if "schedulingGroup" in spec:
        yield from only_one(spec["schedulingGroup"], f"{path}.schedulingGroup", ("podGroupName",))
        yield from apply({"podGroupName": DNS_SUBDOMAIN}, spec["schedulingGroup"], f"{path}.schedulingGroup")


def _network_faults(spec: Json, path: str) -> Faults:
    if spec.get("hostNetwork"):
        yield from _host_network_faults(spec.get("containers", []), f"{path}.containers")
    for index, alias in enumerate(spec.get("hostAliases", [])):
        at = f"{path}.hostAliases[{index}]"
        yield from apply({"ip": is_ip}, {"ip": alias.get("ip", "")}, at)
        yield from apply_each(DNS_SUBDOMAIN, alias.get("hostnames", []), f"{at}.hostnames")
    if "hostnameOverride" in spec:
        yield from _hostname_faults(spec, f"{path}.hostnameOverride")
    yield from _dns_faults(spec, f"{path}.dnsConfig")


def _host_network_faults(containers: list[Json], path: str) -> Faults:
    for index, container in enumerate(containers):
        for number, port in enumerate(container.get("ports", [])):
            if port.get("hostPort") and port["hostPort"] != port.get("containerPort"):
                where = f"{path}[{index}].ports[{number}].hostPort"
                yield Fault(where, f"is {port['hostPort']}, must be the containerPort where hostNetwork is true")


def _hostname_faults(spec: Json, path: str) -> Faults:
    name = spec["hostnameOverride"]
    for other in ("setHostnameAsFQDN", "hostNetwork"):
        if spec.get(other):
            yield Fault(path, f"cannot be combined with {other}")
    wrong = DNS_SUBDOMAIN(name) or (f"has {len(name)} characters, at most 64 are allowed" if len(name) > 64 else "")
    if wrong:
        yield Fault(path, wrong)


def _dns_faults(spec: Json, path: str) -> Faults:
    """Limits of the C library's resolver: 3 servers, 32 search domains, 2048 characters."""
    config = spec.get("dnsConfig", {})
    servers, searches = config.get("nameservers", []), config.get("searches", [])
    if spec.get("dnsPolicy") == "None" and not servers:
        yield Fault(f"{path}.nameservers", "dnsPolicy None needs at least one name server")
    if len(servers) > 3:
        yield Fault(f"{path}.nameservers", f"{len(servers)} name servers, at most 3 are allowed")
    yield from apply_each(is_ip, servers, f"{path}.nameservers")
    if len(searches) > 32 or len(" ".join(searches)) > 2048:
        yield Fault(f"{path}.searches", "at most 32 domains and 2048 characters are allowed")
    yield from apply_each(lambda domain: DNS_SUBDOMAIN(domain.removesuffix(".")), searches, f"{path}.searches")
    for index, option in enumerate(config.get("options", [])):
        yield from required(option, f"{path}.options[{index}]", "name")
