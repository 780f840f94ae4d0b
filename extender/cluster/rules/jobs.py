"""Job and CronJob of Kubernetes. Source: kubernetes v1.36.1 pkg/apis/batch/validation."""

from __future__ import annotations

from collections.abc import Mapping

from extender.api.checks import (
    DNS_LABEL,
    NOT_NEGATIVE,
    Check,
    Faults,
    apply,
    apply_each,
    one_of,
    only_one,
    optional,
    qualified_name,
    repeated,
    required,
)
from extender.api.errors import Fault
from extender.api.meta import Json
from extender.api.pod_template.pod import template_faults
from extender.cluster.rules.workloads import matching_faults

_COUNTS = ("parallelism", "completions", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished",
           "backoffLimitPerIndex", "maxFailedIndexes")  # fmt: skip
_JOB: Mapping[str, Check] = {
    **dict.fromkeys(_COUNTS, NOT_NEGATIVE),
    "completionMode": one_of("NonIndexed", "Indexed"), "podReplacementPolicy": one_of("TerminatingOrFailed", "Failed"),
}  # fmt: skip
_INDEXED = ("backoffLimitPerIndex", "maxFailedIndexes", "successPolicy")  # for indexed jobs only
_CRON: Mapping[str, Check] = {
    "concurrencyPolicy": optional(one_of("Allow", "Forbid", "Replace")),
    **dict.fromkeys(("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"), NOT_NEGATIVE),
}
_UIDS = {"batch.kubernetes.io/controller-uid", "controller-uid"}  # one of these is in a selector that the API server made
_ACTIONS = one_of("FailJob", "FailIndex", "Ignore", "Count")


def job_faults(new: Json) -> Faults:
    spec = new.get("spec", {})
    selector = spec.get("selector")
    yield from matching_faults(selector, spec.get("template", {}))
    if selector and not spec.get("manualSelector") and not _UIDS & selector.get("matchLabels", {}).keys():
        yield Fault("spec.selector", "is made by the API server; leave it out, or set manualSelector: true")
    yield from _spec_faults(spec, "spec")
    if spec.get("completionMode") == "Indexed":
        last = f"{new.get('metadata', {}).get('name', '')}-{max(spec.get('completions', 1) - 1, 0)}"
        if DNS_LABEL(last):
            yield Fault("metadata.name", f"pods are called <job>-<index>, and {DNS_LABEL(last)}")


def cron_job_faults(new: Json) -> Faults:
    spec = new.get("spec", {})
    yield from required(spec, "spec", "schedule")
    yield from apply(_CRON, spec, "spec")
    yield from _spec_faults(spec.get("jobTemplate", {}).get("spec", {}), "spec.jobTemplate.spec")


def _spec_faults(spec: Json, path: str) -> Faults:
    template = spec.get("template", {})
    yield from apply(_JOB, spec, path)
    yield from template_faults(template, f"{path}.template")
    policy = template.get("spec", {}).get("restartPolicy", "") or "Always"
    if policy == "Always":
        yield Fault(f"{path}.template.spec.restartPolicy", f"is {policy}, must be OnFailure or Never: the pods of a Job end")
    yield from _index_faults(spec, path)
    yield from _failure_faults(spec, policy, path)
    yield from _success_faults(spec.get("successPolicy"), f"{path}.successPolicy")


def _index_faults(spec: Json, path: str) -> Faults:
    if spec.get("completionMode") == "Indexed":
        if spec.get("completions") is None:
            yield Fault(f"{path}.completions", "is required where completionMode is Indexed")
        elif "maxFailedIndexes" in spec and spec["maxFailedIndexes"] > spec["completions"]:
            yield Fault(f"{path}.maxFailedIndexes", f"is {spec['maxFailedIndexes']}, must be at most completions")
    else:
        for name in _INDEXED:
            if name in spec:
                yield Fault(f"{path}.{name}", "needs completionMode: Indexed")
    if "maxFailedIndexes" in spec and "backoffLimitPerIndex" not in spec:
        yield Fault(f"{path}.backoffLimitPerIndex", "is required beside maxFailedIndexes")


def _failure_faults(spec: Json, restart_policy: str, path: str) -> Faults:
    policy, at = spec.get("podFailurePolicy"), f"{path}.podFailurePolicy"
    if policy is None:
        return
    if restart_policy != "Never":
        yield Fault(
            f"{path}.template.spec.restartPolicy", f"is {restart_policy}, must be Never where there is a podFailurePolicy"
        )
    if spec.get("podReplacementPolicy", "Failed") != "Failed":
        yield Fault(f"{path}.podReplacementPolicy", "must be Failed where there is a podFailurePolicy")
    pod = spec.get("template", {}).get("spec", {})
    names = [container.get("name", "") for part in ("containers", "initContainers") for container in pod.get(part, [])]
    for index, rule in enumerate(policy.get("rules", [])):
        here = f"{at}.rules[{index}]"
        yield from apply({"action": _ACTIONS}, {"action": rule.get("action", "")}, here)
        if rule.get("action") == "FailIndex" and "backoffLimitPerIndex" not in spec:
            yield Fault(f"{here}.action", "FailIndex needs backoffLimitPerIndex")
        chosen = {name: value for name, value in rule.items() if name == "onExitCodes" or (name == "onPodConditions" and value)}
        yield from only_one(chosen, here, ("onExitCodes", "onPodConditions"))
        if "onExitCodes" in rule:
            yield from _exit_code_faults(rule["onExitCodes"], names, f"{here}.onExitCodes")
        for position, condition in enumerate(rule.get("onPodConditions", [])):
            checks = {"type": qualified_name, "status": one_of("True", "False", "Unknown")}
            given = {"type": condition.get("type", ""), "status": condition.get("status", "") or "True"}
            yield from apply(checks, given, f"{here}.onPodConditions[{position}]")


def _exit_code_faults(codes: Json, containers: list[str], path: str) -> Faults:
    yield from apply({"operator": one_of("In", "NotIn")}, {"operator": codes.get("operator", "")}, path)
    values = codes.get("values", [])
    if not values:
        yield Fault(f"{path}.values", "at least one value is required")
    if codes.get("operator") == "In":
        yield from apply_each(lambda value: "" if value else "0 is no failure", values, f"{path}.values")
    yield from repeated(values, f"{path}.values")
    if values != sorted(values):
        yield Fault(f"{path}.values", "must be in rising order")
    if "containerName" in codes and codes["containerName"] not in containers:
        yield Fault(
            f"{path}.containerName", f"'{codes['containerName']}' is no container of the template ({', '.join(containers)})"
        )


def _success_faults(policy: Json | None, path: str) -> Faults:
    if policy is None:
        return
    yield from required(policy, path, "rules")
    for index, rule in enumerate(policy.get("rules", [])):
        here = f"{path}.rules[{index}]"
        if not {"succeededIndexes", "succeededCount"} & rule.keys():
            yield Fault(here, "one of succeededIndexes, succeededCount is required")
        yield from apply({"succeededCount": NOT_NEGATIVE}, rule, here)
