"""svc -- lets the pods of a job find each other: a headless Service, host lists in a ConfigMap, a NetworkPolicy.

Arguments: publish-not-ready-addresses, disable-network-policy, inject-hosts-env.
Source: volcano ed72c7c, pkg/controllers/job/plugins/svc."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from controller.job.plugins.base import add_env, add_volume, all_containers, hosts, owned
from controller.job.seen import JobSeen
from controller.merge import merge_diff
from extender.api import labels as names
from extender.api.job import Job, TaskSpec
from extender.api.job_plugins import FLAGS, parse_flags
from extender.api.meta import CONFIG_MAP, NETWORK_POLICY, SERVICE, Json, Key, Kind

MOUNT_PATH = "/etc/volcano"


class Svc:
    name = "svc"
    recorded = True

    def __init__(self, arguments: Sequence[str]) -> None:
        read = parse_flags(arguments, FLAGS[self.name])
        self.publish, self.no_policy = bool(read["publish-not-ready-addresses"]), bool(read["disable-network-policy"])
        self.inject = bool(read["inject-hosts-env"])

    def belongings(self, job: Key) -> Sequence[tuple[Kind, Key]]:
        lists = (CONFIG_MAP, Key(job.namespace, config_map_name(job.name)))
        return (lists, (SERVICE, job)) if self.no_policy else (lists, (SERVICE, job), (NETWORK_POLICY, job))

    def objects(self, seen: JobSeen) -> Iterable[Json]:
        lists, service, *policy = self.belongings(seen.key)
        selector = {names.JOB_NAME: seen.key.name, names.JOB_NAMESPACE: seen.key.namespace}
        yield owned(seen, lists, {"data": host_lists(seen.job)})
        spec: Json = {"clusterIP": "None", "selector": selector}
        if self.publish:
            spec["publishNotReadyAddresses"] = True
        yield owned(seen, service, {"spec": spec})
        for each in policy:
            peers = {"podSelector": {"matchLabels": selector}}
            yield owned(seen, each, {"spec": {**peers, "policyTypes": ["Ingress"], "ingress": [{"from": [peers]}]}})

    def align(self, stored: Json, wanted: Json) -> Json | None:
        """Only the host lists follow the job."""
        if wanted["kind"] != CONFIG_MAP.name:
            return None
        diff = merge_diff(stored.get("data") or {}, wanted["data"])
        return {"data": diff} if diff else None

    def decorate(self, seen: JobSeen, task: TaskSpec, index: int, pod: Json) -> None:
        job, spec = seen.job, pod["spec"]
        spec["hostname"] = spec.get("hostname") or pod["metadata"]["name"]
        spec["subdomain"] = spec.get("subdomain") or job.metadata.name
        source = config_map_name(job.metadata.name)
        if self.inject:
            add_env(all_containers(pod), *(
                {"name": key, "valueFrom": {"configMapKeyRef": {"name": source, "key": key}}}
                for each in job.spec.tasks for key in _keys(each)
            ))  # fmt: skip
        volume = {"name": source, "configMap": {"name": source, "defaultMode": 0o644}}
        add_volume(pod, volume, {"name": source, "mountPath": MOUNT_PATH})


def config_map_name(job: str) -> str:
    return f"{job}-svc"


def host_lists(job: Job) -> dict[str, str]:
    """The data of the ConfigMap: per task a file of hosts, and the same for environment variables."""
    data = {}
    for task in job.spec.tasks:
        found = hosts(job, task)
        list_key, number_key = _keys(task)
        data[f"{_word(task)}.host"] = "\n".join(found)
        data[list_key] = ",".join(found)
        data[number_key] = str(len(found))
    return data


def _word(task: TaskSpec) -> str:
    return task.name.replace("-", "_")


def _keys(task: TaskSpec) -> tuple[str, str]:
    return f"VC_{_word(task).upper()}_HOSTS", f"VC_{_word(task).upper()}_NUM"
