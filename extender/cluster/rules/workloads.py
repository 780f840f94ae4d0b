"""Whatever keeps up a number of equal pods. Source: kubernetes v1.36.1 pkg/apis/apps/validation, pkg/apis/core/validation."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from extender.api.checks import DNS_LABEL, NOT_NEGATIVE, Check, Faults, apply, one_of, optional, selector_faults
from extender.api.errors import Fault
from extender.api.meta import Json
from extender.api.pod_template.pod import template_faults
from extender.api.pod_template.volumes import claim_faults
from extender.api.selectors import LabelSelector
from extender.api.views import view

_COUNTS = dict.fromkeys(("replicas", "minReadySeconds"), NOT_NEGATIVE)
_HISTORY = {"revisionHistoryLimit": NOT_NEGATIVE}  # a StatefulSet takes any
_PERCENT = re.compile(r"[0-9]+%")
_RETENTION = optional(one_of("Retain", "Delete"))
_STATEFUL: Mapping[str, Check] = {
    "podManagementPolicy": optional(one_of("OrderedReady", "Parallel")), "serviceName": optional(DNS_LABEL),
}  # fmt: skip


def share(value: Any) -> str:
    """So many, or so much of all: a number that is not negative, or a percentage."""
    if isinstance(value, int):
        return NOT_NEGATIVE(value)
    return "" if _PERCENT.fullmatch(value) else f"'{value}' is neither a number nor a percentage such as 25%"


def part(value: Any) -> str:
    """A share that is not more than all."""
    wrong = share(value)
    return wrong or (f"is {value}, must be at most 100%" if isinstance(value, str) and int(value[:-1]) > 100 else "")


def deployment_faults(new: Json) -> Faults:
    spec = new.get("spec", {})
    yield from _common_faults(spec)
    yield from apply(_HISTORY, spec, "spec")
    yield from _strategy_faults(spec.get("strategy", {}), "spec.strategy", "RollingUpdate", "Recreate")
    ready, limit = spec.get("minReadySeconds", 0), spec.get("progressDeadlineSeconds")
    if limit is not None and limit <= ready:
        yield Fault("spec.progressDeadlineSeconds", f"is {limit}, must be greater than minReadySeconds ({ready})")
    rolling = spec.get("strategy", {}).get("rollingUpdate", {})
    if _none(rolling.get("maxSurge")) and _none(rolling.get("maxUnavailable")):
        yield Fault("spec.strategy.rollingUpdate.maxUnavailable", "cannot be 0 where maxSurge is 0: no pod could be replaced")


def replica_set_faults(new: Json) -> Faults:
    yield from _common_faults(new.get("spec", {}))


def replication_controller_faults(new: Json) -> Faults:
    """It selects by plain labels, which are those of its template where they are not written."""
    spec = new.get("spec", {})
    template, selector = spec.get("template", {}), spec.get("selector", {})
    yield from apply(_COUNTS, spec, "spec")
    yield from template_faults(template, "spec.template")
    yield from _keeps_running_faults(template)
    if not selector:
        yield Fault("spec.selector", "a selector is required")
    elif not selector.items() <= template.get("metadata", {}).get("labels", {}).items():
        yield Fault("spec.template.metadata.labels", f"must have the labels of the selector ({_words(selector)})")


def daemon_set_faults(new: Json) -> Faults:
    spec = new.get("spec", {})
    yield from _common_faults(spec)
    yield from apply(_HISTORY, spec, "spec")
    yield from _strategy_faults(spec.get("updateStrategy", {}), "spec.updateStrategy", "RollingUpdate", "OnDelete")
    rolling, at = spec.get("updateStrategy", {}).get("rollingUpdate", {}), "spec.updateStrategy.rollingUpdate"
    surge, gone = _none(rolling.get("maxSurge", 0)), _none(rolling.get("maxUnavailable", 1))
    if rolling and surge and gone:
        yield Fault(f"{at}.maxUnavailable", "cannot be 0 where maxSurge is 0: no pod could be replaced")
    if rolling and not (surge or gone):
        yield Fault(f"{at}.maxSurge", "must be 0 where maxUnavailable is not: a node has one pod of the set")


def stateful_set_faults(new: Json) -> Faults:
    spec = new.get("spec", {})
    claims = spec.get("volumeClaimTemplates", [])
    yield from _common_faults(spec, {claim.get("metadata", {}).get("name", "") for claim in claims})
    yield from apply({"name": DNS_LABEL}, new.get("metadata", {}), "metadata")  # its pods are hosts of that name
    yield from apply(_STATEFUL, spec, "spec")
    yield from apply({"start": NOT_NEGATIVE}, spec.get("ordinals", {}), "spec.ordinals")
    kept = "persistentVolumeClaimRetentionPolicy"
    yield from apply({"whenDeleted": _RETENTION, "whenScaled": _RETENTION}, spec.get(kept, {}), f"spec.{kept}")
    yield from _strategy_faults(spec.get("updateStrategy", {}), "spec.updateStrategy", "RollingUpdate", "OnDelete")
    yield from apply({"partition": NOT_NEGATIVE}, spec.get("updateStrategy", {}).get("rollingUpdate", {}),
                     "spec.updateStrategy.rollingUpdate")  # fmt: skip
    for index, claim in enumerate(claims):
        at = f"spec.volumeClaimTemplates[{index}]"
        if not claim.get("metadata", {}).get("name"):
            yield Fault(f"{at}.metadata.name", "name is required")
        yield from claim_faults(claim.get("spec", {}), f"{at}.spec")


def _common_faults(spec: Json, claims: Collection[str] = ()) -> Faults:
    """Of all that select their pods by a label selector. `claims`: volumes that the pods get besides their own."""
    template = spec.get("template", {})
    yield from apply(_COUNTS, spec, "spec")
    yield from matching_faults(spec.get("selector"), template)
    yield from template_faults(_with_claims(template, claims), "spec.template")
    yield from _keeps_running_faults(template)


def _with_claims(template: Json, names: Collection[str]) -> Json:
    if not names:
        return template
    spec = template.get("spec", {})
    own = [volume for volume in spec.get("volumes", []) if volume.get("name") not in names]
    made = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in sorted(names) if name]
    return {**template, "spec": {**spec, "volumes": [*own, *made]}}


def _keeps_running_faults(template: Json) -> Faults:
    spec, at = template.get("spec", {}), "spec.template.spec"
    if spec.get("restartPolicy", "") not in ("", "Always"):
        yield Fault(f"{at}.restartPolicy", f"is {spec['restartPolicy']}, must be Always: what ends is started again")
    if spec.get("activeDeadlineSeconds") is not None:
        yield Fault(f"{at}.activeDeadlineSeconds", "cannot be set for pods that shall go on running")


def matching_faults(selector: Json | None, template: Json) -> Faults:
    """The selector, and whether it finds the pods of the template."""
    if not selector or not any(selector.values()):
        yield Fault("spec.selector", "a selector is required: an empty one would select every pod")
        return
    wrong = list(selector_faults(selector, "spec.selector"))
    yield from wrong
    if not wrong and not view(LabelSelector, selector).matches(template.get("metadata", {}).get("labels", {})):
        yield Fault("spec.template.metadata.labels", "do not match spec.selector: the pods would not be found again")


def _strategy_faults(strategy: Json, path: str, *kinds: str) -> Faults:
    yield from apply({"type": optional(one_of(*kinds))}, strategy, path)
    rolling = strategy.get("rollingUpdate")
    if rolling and strategy.get("type") not in (None, "", "RollingUpdate"):
        yield Fault(f"{path}.rollingUpdate", f"cannot be set where type is {strategy['type']}")
    yield from apply({"maxSurge": share, "maxUnavailable": part}, rolling or {}, f"{path}.rollingUpdate")


def _none(value: Any) -> bool:
    return value in (0, "0%")


def _words(labels: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in labels.items())
