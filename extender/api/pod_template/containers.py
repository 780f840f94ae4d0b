"""Containers of a pod, init containers and sidecars (init containers that restart always).

Source: kubernetes v1.36.1, validation.go, validateContainers, validateInitContainers, validateContainerCommon."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from extender.api.checks import (
    CONFIG_KEY,
    DNS_LABEL,
    DNS_SUBDOMAIN,
    ENV_NAME,
    HEADER_NAME,
    NOT_NEGATIVE,
    PORT_NAME,
    PORT_NUMBER,
    Check,
    Faults,
    apply,
    at_least,
    no_backsteps,
    one_of,
    only_one,
    optional,
    port_reference,
    repeated,
    required,
)
from extender.api.errors import Fault
from extender.api.meta import Json
from extender.api.pod_template.projected import ENV_FIELDS, field_reference_faults, resource_reference_faults
from extender.api.pod_template.resources import resource_faults
from extender.api.pod_template.security import container_security_faults
from extender.api.pod_template.volumes import mount_faults

_CONTAINER: Mapping[str, Check] = {
    "name": optional(DNS_LABEL),
    "terminationMessagePolicy": optional(one_of("File", "FallbackToLogsOnError")),
    "imagePullPolicy": optional(one_of("Always", "IfNotPresent", "Never")),
}
_PORT: Mapping[str, Check] = {
    "name": optional(PORT_NAME),
    "containerPort": optional(PORT_NUMBER),
    "hostPort": optional(PORT_NUMBER),
    "protocol": optional(one_of("TCP", "UDP", "SCTP")),
}
_TIMES = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_SIGNAL_NAME = re.compile(
    r"SIG(ABRT|ALRM|BUS|CHLD|CLD|CONT|FPE|HUP|ILL|INT|IO|IOT|KILL|PIPE|POLL|PROF|PWR|QUIT|SEGV|STKFLT|STOP|SYS|TERM|TRAP|TSTP|"
    r"TTIN|TTOU|URG|USR1|USR2|VTALRM|WINCH|XCPU|XFSZ|RTMIN(\+([1-9]|1[0-5]))?|RTMAX(-([1-9]|1[0-4]))?)"
)


@dataclass(frozen=True, slots=True)
class PodFacts:
    """What the checks of a container need to know of its pod."""

    volumes: Mapping[str, Json]
    claims: frozenset[str]
    restart_policy: str
    grace_seconds: int
    host_users: bool
    os: str


def container_lists_faults(spec: Json, pod: PodFacts, path: str) -> Faults:
    """All containers of a pod spec, and what must differ between them."""
    containers, inits = spec.get("containers", []), spec.get("initContainers", [])
    if not containers:
        yield Fault(f"{path}.containers", "at least one container is required")
    for index, container in enumerate(containers):
        at = f"{path}.containers[{index}]"
        yield from _common_faults(container, pod, at)
        yield from _lifetime_faults(container, pod, at)
        if "restartPolicy" in container:
            yield Fault(f"{at}.restartPolicy", "only init containers may have one; use the pod's restartPolicy")
    for index, container in enumerate(inits):
        yield from _init_faults(container, pod, f"{path}.initContainers[{index}]")
        yield from _host_port_faults([container], [f"{path}.initContainers[{index}]"])
    yield from repeated((c.get("name") for c in containers), f"{path}.containers", "name")
    yield from _init_name_faults(containers, inits, path)
    yield from _host_port_faults(containers, [f"{path}.containers[{index}]" for index in range(len(containers))])
    if spec.get("ephemeralContainers"):
        yield Fault(f"{path}.ephemeralContainers", "a template cannot have ephemeral containers")


def _init_name_faults(containers: list[Json], inits: list[Json], path: str) -> Faults:
    seen = {container.get("name"): f"{path}.containers[{index}].name" for index, container in enumerate(containers)}
    for index, container in enumerate(inits):
        name, at = container.get("name"), f"{path}.initContainers[{index}].name"
        if name and name in seen:
            yield Fault(at, f"'{name}' duplicates {seen[name]}; give it another value")
        seen.setdefault(name, at)


def _common_faults(container: Json, pod: PodFacts, path: str) -> Faults:
    yield from required(container, path, "name", "image")
    yield from apply(_CONTAINER, container, path)
    yield from _port_faults(container.get("ports", []), f"{path}.ports")
    yield from _env_faults(container.get("env", []), pod.volumes, f"{path}.env")
    yield from _env_from_faults(container.get("envFrom", []), f"{path}.envFrom")
    yield from mount_faults(container, pod.volumes, path)
    yield from resource_faults(container.get("resources", {}), pod.claims, f"{path}.resources")
    yield from _resize_faults(container.get("resizePolicy", []), pod.restart_policy, f"{path}.resizePolicy")
    yield from container_security_faults(container.get("securityContext", {}), f"{path}.securityContext", pod.host_users)


def _init_faults(container: Json, pod: PodFacts, path: str) -> Faults:
    yield from _common_faults(container, pod, path)
    yield from apply({"restartPolicy": one_of("Always")}, container, path)
    if container.get("restartPolicyRules") and "restartPolicy" not in container:
        yield Fault(f"{path}.restartPolicy", "restartPolicy is required beside restartPolicyRules")
    if container.get("restartPolicy") == "Always":
        yield from _lifetime_faults(container, pod, path)
    else:
        for name in ("lifecycle", *_PROBES):
            if name in container:
                yield Fault(f"{path}.{name}", "only init containers with restartPolicy Always may have one")
    if container.get("resizePolicy"):
        yield Fault(f"{path}.resizePolicy", "init containers cannot have one")


# --- ports --------------------------------------------------------------------------------------------------------------------
def _port_faults(ports: list[Json], path: str) -> Faults:
    for index, port in enumerate(ports):
        yield from required(port, f"{path}[{index}]", "containerPort")
        yield from apply(_PORT, port, f"{path}[{index}]")
    yield from repeated((port.get("name") for port in ports), path, "name")


def _host_port_faults(containers: Iterable[Json], paths: list[str]) -> Faults:
    """No two containers that run together can have the same port of the node."""
    taken: dict[tuple[str, str, int], str] = {}
    for container, path in zip(containers, paths, strict=True):
        for index, port in enumerate(container.get("ports", [])):
            number, at = port.get("hostPort", 0), f"{path}.ports[{index}].hostPort"
            key = (port.get("protocol", "") or "TCP", port.get("hostIP", ""), number)
            if number and key in taken:
                yield Fault(at, f"{number} is taken by {taken[key]}")
            taken.setdefault(key, at)


# --- environment --------------------------------------------------------------------------------------------------------------
def _env_faults(variables: list[Json], volumes: Mapping[str, Json], path: str) -> Faults:
    for index, variable in enumerate(variables):
        at = f"{path}[{index}]"
        yield from required(variable, at, "name")
        yield from apply({"name": optional(ENV_NAME)}, variable, at)
        if "valueFrom" in variable:
            yield from _value_from_faults(variable, volumes, f"{at}.valueFrom")


def _value_from_faults(variable: Json, volumes: Mapping[str, Json], path: str) -> Faults:
    source = variable["valueFrom"]
    yield from only_one(source, path, ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"))
    if source and variable.get("value"):
        yield Fault(path, "cannot be combined with value")
    if "fieldRef" in source:
        yield from field_reference_faults(source["fieldRef"], ENV_FIELDS, f"{path}.fieldRef")
    if "resourceFieldRef" in source:
        yield from resource_reference_faults(source["resourceFieldRef"], f"{path}.resourceFieldRef", of_volume=False)
    for name in ("configMapKeyRef", "secretKeyRef"):
        if name in source:
            yield from required(source[name], f"{path}.{name}", "name", "key")
            yield from apply({"name": optional(DNS_SUBDOMAIN), "key": optional(CONFIG_KEY)}, source[name], f"{path}.{name}")
    if "fileKeyRef" in source:
        yield from _file_key_faults(source["fileKeyRef"], volumes, f"{path}.fileKeyRef")


def _file_key_faults(reference: Json, volumes: Mapping[str, Json], path: str) -> Faults:
    yield from required(reference, path, "volumeName", "path", "key")
    yield from apply({"volumeName": optional(DNS_LABEL), "path": no_backsteps}, reference, path)
    name = reference.get("volumeName", "")
    sources = volumes.get(name, {}).keys() - {"name"}
    if name and (name not in volumes or sources - {"emptyDir"}):
        yield Fault(f"{path}.volumeName", f"'{name}' must be an emptyDir volume of the pod")


def _env_from_faults(sources: list[Json], path: str) -> Faults:
    for index, source in enumerate(sources):
        at = f"{path}[{index}]"
        yield from apply({"prefix": optional(ENV_NAME)}, source, at)
        yield from only_one(source, at, ("configMapRef", "secretRef"))
        for name in ("configMapRef", "secretRef"):
            if name in source:
                yield from required(source[name], f"{at}.{name}", "name")
                yield from apply({"name": optional(lambda v: DNS_SUBDOMAIN(v.removesuffix("-")))}, source[name], f"{at}.{name}")


# --- probes and hooks -----------------------------------------------------------------------------------------------------------
def _lifetime_faults(container: Json, pod: PodFacts, path: str) -> Faults:
    for name in _PROBES:
        if name in container:
            yield from _probe_faults(name, container[name], f"{path}.{name}")
    lifecycle = container.get("lifecycle", {})
    for hook in ("postStart", "preStop"):
        if hook in lifecycle:
            yield from _hook_faults(lifecycle[hook], pod, f"{path}.lifecycle.{hook}")
    if "stopSignal" in lifecycle:
        yield from _signal_faults(lifecycle["stopSignal"], pod.os, f"{path}.lifecycle.stopSignal")


def _probe_faults(kind: str, probe: Json, path: str) -> Faults:
    yield from only_one(probe, path, ("exec", "httpGet", "tcpSocket", "grpc"))
    yield from _action_faults(probe, path)
    yield from apply(dict.fromkeys(_TIMES, NOT_NEGATIVE), probe, path)
    if kind == "readinessProbe":
        if "terminationGracePeriodSeconds" in probe:
            yield Fault(f"{path}.terminationGracePeriodSeconds", "a readiness probe cannot have one")
    else:
        yield from apply({"terminationGracePeriodSeconds": at_least(1)}, probe, path)
        if probe.get("successThreshold", 0) > 1:
            yield Fault(f"{path}.successThreshold", f"is {probe['successThreshold']}, must be 1 for a {kind}")


def _hook_faults(hook: Json, pod: PodFacts, path: str) -> Faults:
    yield from only_one(hook, path, ("exec", "httpGet", "tcpSocket", "sleep"))
    yield from _action_faults(hook, path)
    seconds = hook.get("sleep", {}).get("seconds", 0)
    if "sleep" in hook and not 0 < seconds <= pod.grace_seconds:
        limit = f"must be from 1 to the pod's terminationGracePeriodSeconds ({pod.grace_seconds})"
        yield Fault(f"{path}.sleep.seconds", f"is {seconds}, {limit}")


def _action_faults(handler: Json, path: str) -> Faults:
    if "exec" in handler:
        yield from required(handler["exec"], f"{path}.exec", "command")
    for kind in ("httpGet", "tcpSocket", "grpc"):
        if kind in handler:
            wrong = port_reference(handler[kind].get("port", 0))
            if wrong:
                yield Fault(f"{path}.{kind}.port", wrong)
    http = handler.get("httpGet", {})
    yield from apply({"scheme": optional(one_of("HTTP", "HTTPS"))}, http, f"{path}.httpGet")
    for index, header in enumerate(http.get("httpHeaders", [])):
        yield from apply({"name": HEADER_NAME}, {"name": header.get("name", "")}, f"{path}.httpGet.httpHeaders[{index}]")


def _signal_faults(signal: str, os: str, path: str) -> Faults:
    known = signal in ("SIGKILL", "SIGTERM") if os == "windows" else _SIGNAL_NAME.fullmatch(signal)
    if not os:
        yield Fault(path, "needs spec.os.name: signals differ between operating systems")
    elif not known:
        yield Fault(path, f"'{signal}' is not a signal of {os}")


def _resize_faults(policies: list[Json], restart_policy: str, path: str) -> Faults:
    table: Mapping[str, Check] = {
        "resourceName": one_of("cpu", "memory"),
        "restartPolicy": one_of("NotRequired", "RestartContainer"),
    }
    for index, policy in enumerate(policies):
        at = f"{path}[{index}]"
        yield from required(policy, at, "resourceName", "restartPolicy")
        yield from apply({name: optional(check) for name, check in table.items()}, policy, at)
        if restart_policy == "Never" and policy.get("restartPolicy") == "RestartContainer":
            yield Fault(f"{at}.restartPolicy", "must be NotRequired where the pod's restartPolicy is Never")
    yield from repeated((policy.get("resourceName") for policy in policies), path, "resourceName")
