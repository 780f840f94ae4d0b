"""Annotations of a pod that Kubernetes itself reads: each has a form of its own, and some must agree with a field.

Source: kubernetes v1.36.1, validation.go, ValidatePodSpecificAnnotations, validateSeccompAnnotationsAndFields,
validateAppArmorAnnotationsAndFieldsMatchOnCreate; core/helper, GetDeletionCostFromPodAnnotations."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from extender.api.checks import Faults, inner_path
from extender.api.decode import ListOf, child, decode
from extender.api.errors import Fault
from extender.api.meta import Json
from extender.api.pod_template.placement import toleration_faults
from extender.api.shapes import TOLERATION

_DOMAIN = "kubernetes.io/"  # all of them have it
_MIRROR = "kubernetes.io/config.mirror"
_TOLERATIONS = "scheduler.alpha.kubernetes.io/tolerations"
_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_SECCOMP_OF_POD = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP = "container.seccomp.security.alpha.kubernetes.io/"  # then the container's name
_APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"

_LOCAL = "localhost/"
Profiles = Mapping[str, tuple[str, ...]]  # type of a profile as a field has it -> its words in an annotation
_SECCOMP_PROFILES: Profiles = {"RuntimeDefault": ("runtime/default", "docker/default"), "Unconfined": ("unconfined",)}
_APP_ARMOR_PROFILES: Profiles = {"RuntimeDefault": ("runtime/default",), "Unconfined": ("unconfined",)}

_COST = re.compile(r"0|[1-9][0-9]*|-[0-9]+")
_TOLERATION_FIELDS = {name.lower(): name for name in TOLERATION}


def known_annotation_faults(template: Json, path: str) -> Faults:
    """`path`: of the template, "" for a pod by itself."""
    spec, annotations = template.get("spec", {}), template.get("metadata", {}).get("annotations", {})
    if not any(_DOMAIN in key for key in annotations):
        return
    at = child(path, "metadata.annotations")
    if _MIRROR in annotations and not spec.get("nodeName"):
        yield Fault(f"{at}[{_MIRROR}]", "a mirror pod has its node already: set spec.nodeName or take the annotation away")
    yield from _toleration_faults(annotations.get(_TOLERATIONS, ""), f"{at}[{_TOLERATIONS}]")
    cost = annotations.get(_DELETION_COST)
    if cost is not None and not (_COST.fullmatch(cost) and len(cost) < 12 and -(2**31) <= int(cost) < 2**31):
        yield Fault(f"{at}[{_DELETION_COST}]", f"'{cost}' must be a 32 bit integer")
    names = {container.get("name", "") for _, container in _containers(spec, path)}
    for key, value in annotations.items():
        if key == _SECCOMP_OF_POD or key.startswith(_SECCOMP):
            yield from _profile_faults(value, _SECCOMP_PROFILES, f"{at}[{key}]")
            yield from _outside_faults(value, f"{at}[{key}]")
        elif key.startswith(_APP_ARMOR):
            name = key.removeprefix(_APP_ARMOR)
            if name not in names:
                yield Fault(f"{at}[{key}]", f"the pod has no container '{name}'")
            if value:
                yield from _profile_faults(value, _APP_ARMOR_PROFILES, f"{at}[{key}]")
    yield from _disagreements(spec, annotations, path)


def _toleration_faults(text: str, path: str) -> Faults:
    """A list of tolerations as JSON. Upper and lower case of its fields are one, as Go reads them."""
    if not text:
        return
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        yield Fault(path, f"is not JSON: {error}")
        return
    if isinstance(value, list):
        value = [_with_known_names(item) if isinstance(item, dict) else item for item in value]
    tolerations, faults = decode([] if value is None else value, ListOf(TOLERATION), path)
    yield from faults
    if not faults:
        yield from toleration_faults(tolerations, path)


def _with_known_names(toleration: Json) -> Json:
    return {_TOLERATION_FIELDS.get(name.lower(), name): value for name, value in toleration.items()}


def _profile_faults(value: str, known: Profiles, path: str) -> Faults:
    words = [word for words in known.values() for word in words]
    if value not in words and not value.startswith(_LOCAL):
        yield Fault(path, f"'{value}' is not a profile: use {', '.join(words)} or {_LOCAL}<file>")


def _outside_faults(value: str, path: str) -> Faults:
    wrong = inner_path(value.removeprefix(_LOCAL)) if value.startswith(_LOCAL) else ""
    if wrong:
        yield Fault(path, wrong)


def _disagreements(spec: Json, annotations: Mapping[str, str], path: str) -> Faults:
    """Whoever gives a profile by a field and by an annotation must give the same."""
    of_pod = spec.get("securityContext", {})
    if _SECCOMP_OF_POD in annotations:
        at = child(path, "spec.securityContext.seccompProfile")
        yield from _disagreement(annotations[_SECCOMP_OF_POD], of_pod.get("seccompProfile", {}), _SECCOMP_PROFILES, at)
    for where, container in _containers(spec, path):
        own, at, name = container.get("securityContext", {}), f"{where}.securityContext", container.get("name", "")
        seccomp, app_armor = annotations.get(_SECCOMP + name), annotations.get(_APP_ARMOR + name)
        if seccomp is not None:
            yield from _disagreement(seccomp, own.get("seccompProfile", {}), _SECCOMP_PROFILES, f"{at}.seccompProfile")
        if app_armor is not None and spec.get("os", {}).get("name") != "windows":
            profile = own.get("appArmorProfile", of_pod.get("appArmorProfile", {}))
            yield from _disagreement(app_armor, profile, _APP_ARMOR_PROFILES, f"{at}.appArmorProfile")


def _disagreement(annotation: str, profile: Json, known: Profiles, path: str) -> Faults:
    kind = profile.get("type", "")
    if kind == "Localhost" and annotation.startswith(_LOCAL):
        if annotation.removeprefix(_LOCAL) != profile.get("localhostProfile"):
            yield Fault(f"{path}.localhostProfile", f"differs from the annotation's '{annotation}': give both the same")
    elif kind == "Localhost" or annotation not in known.get(kind, (annotation,)):
        yield Fault(f"{path}.type", f"is {kind}, the annotation says '{annotation}': give both the same")


def _containers(spec: Json, path: str) -> Iterator[tuple[str, Json]]:
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(kind, [])):
            yield child(path, f"spec.{kind}[{index}]"), container
