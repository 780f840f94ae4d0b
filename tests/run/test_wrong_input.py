"""Whatever is wrong with the input: one message with file, document and field, status 1 or 2, no output, no traceback."""

from __future__ import annotations

import json
from typing import NamedTuple

import pytest

from extender.api.errors import UsageError
from extender.ctl import reading
from tests.run.conftest import Command

JOB = """apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: train}
spec:
  minAvailable: 1
  tasks:
  - {name: worker, replicas: 1, template: {spec: {containers: [{name: main, image: app}]}}}
"""
POD = """apiVersion: v1
kind: Pod
metadata: {name: p, annotations: {%s}}
spec: {schedulerName: volcano, containers: [{name: main, image: app, resources: {requests: {cpu: %s}}}]}
"""
DEPLOYMENT = """apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
spec:
  selector: {matchLabels: %s}
  template: {metadata: {labels: {app: d}}, spec: {containers: [{name: main, image: app}]}}
"""
RING = """apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: train}
spec:
  tasks:
  - {name: a, replicas: 1, dependsOn: {name: [b]}, template: {spec: {containers: [{name: main, image: app}]}}}
  - {name: b, replicas: 1, dependsOn: {name: [a]}, template: {spec: {containers: [{name: main, image: app}]}}}
"""
BATCH = """apiVersion: batch/v1
kind: Job
metadata: {name: b}
spec:
  backoffLimit: %s
  template: {spec: {restartPolicy: Never, containers: [{name: main, image: app}]}}
"""
STATEFUL = """apiVersion: apps/v1
kind: StatefulSet
metadata: {name: s}
spec:
  replicas: %s
  volumeClaimTemplates: [%s]
  selector: {matchLabels: {app: s}}
  template: {metadata: {labels: {app: s}}, spec: {containers: [{name: main, image: app}]}}
"""
VOLUME = "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: v}\nspec: {claimRef: %s}"
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {%s: -5}"
QUEUE = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: %s}\nspec: {parent: %s}\n---\n"
LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 10)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
CONF = """actions: "enqueue, alocate"
tiers:
- plugins: [{name: gang}]
"""


TIME = "actions: 2026-13-45T00:00:00Z\n"


BAD = JOB.replace("replicas: 1", "replicas: -1")
BAD_SAYS = '1: Job train: Job.batch.volcano.sh "train" is invalid: [spec.tasks[0].replicas: '


class Wrong(NamedTuple):
    status: int
    text: str | bytes
    says: str


NO_TIME = "is not a time (seconds such as 90, or 500ms, 1m30s, 2h, 1d12h)"
FILES = {
    "not yaml": Wrong(
        2,
        "kind: [",
        "document 1: not YAML: while parsing a flow node, did not find expected node content (line 2, column 1)",
    ),
    "not yaml in the second document": Wrong(
        2,
        f"{JOB}---\nkind: {{",
        "document 2: not YAML: while parsing a flow node, did not find expected node content (line 10, column 1)",
    ),
    "a key twice": Wrong(
        2, "kind: Job\nspec: {queue: a, queue: b}", "document 1: not YAML: key 'queue' is given twice (line 2, column 18)"
    ),
    "a template of a chart": Wrong(
        2,
        "{{ if .Values.x }}\nkind: Job\n{{ end }}",
        "document 1: not YAML: while constructing a mapping, found unhashable key (line 1, column 2); "
        "if this is a template of a chart, give what comes of it: helm template CHART | pumice run -",
    ),
    "a tab": Wrong(
        2,
        "kind:\n\tJob",
        "document 1: not YAML: while scanning for the next token, found character that cannot start any token (line 2, column 1)",
    ),
    "an unknown tag": Wrong(
        2,
        "kind: !!python/object:os.system x",
        "document 1: not YAML: could not determine a constructor for the tag "
        "'tag:yaml.org,2002:python/object:os.system' (line 1, column 7)",
    ),
    "binary": Wrong(2, b"\x89PNG\r\n\x1a\n\x00", "not text: byte 0 is 0x89, which is no UTF-8"),
    "a zero byte": Wrong(2, b"kind: Job\x00", "not text: byte 9 is 0x00"),
    "very deep": Wrong(1, "a: " + "[" * 150 + "]" * 150, "document 1: nested more than 100 levels deep"),
    "deeper than the parser goes": Wrong(
        2,
        "[" * 100_000,
        "document 1: not YAML: while increasing flow level, exceeded maximum nesting depth (line 1, column 1001)",
    ),
    "an alias within itself": Wrong(1, "a: &a [*a]", "document 1: nested more than 100 levels deep"),
    "a billion laughs": Wrong(
        1,
        LAUGHS,
        "document 1: more than 2,000,000 values; a manifest of this size cannot be meant",
    ),
    "a list": Wrong(1, "- a\n- b\n", "document 1: a manifest is a map with apiVersion, kind and metadata, not a list"),
    "a word": Wrong(1, "hello", "document 1: a manifest is a map with apiVersion, kind and metadata, not text"),
    "no kind": Wrong(1, "apiVersion: v1\nmetadata: {name: a}", "document 1: kind: missing"),
    "no apiVersion": Wrong(1, "kind: Pod\nmetadata: {name: a}", "document 1: apiVersion: missing"),
    "an unknown kind": Wrong(
        1,
        "apiVersion: v1\nkind: Pood\nmetadata: {name: a}",
        "document 1: kind: no kind 'Pood' of 'v1' is played here; did you mean 'Pod'?",
    ),
    "a group with a slip": Wrong(
        1,
        JOB.replace("volcano.sh", "volcano.hs"),
        "document 1: apiVersion: Job is served as batch/v1 and batch.volcano.sh/v1alpha1, not as 'batch.volcano.hs/v1alpha1'",
    ),
    "another version": Wrong(
        1,
        JOB.replace("v1alpha1", "v1"),
        "document 1: apiVersion: Job is served as batch/v1 and batch.volcano.sh/v1alpha1, not as 'batch.volcano.sh/v1'",
    ),
    "a scheduler.conf among the manifests": Wrong(1, CONF, "document 1: this is a scheduler.conf; give it with --conf"),
    "no metadata": Wrong(1, "apiVersion: v1\nkind: Pod", "document 1: metadata: missing"),
    "a number for a name": Wrong(1, JOB.replace("train", "5"), "document 1: metadata.name: must be text, not 5"),
    "a label that is no text": Wrong(
        1,
        JOB.replace("{name: train}", "{name: train, labels: {a: true}}"),
        "document 1: metadata.labels[a]: must be text in quotes, not true",
    ),
    "a list for a spec": Wrong(
        1, "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: []", "document 1: spec: must be a map, not a list"
    ),
    "a list of labels to select by": Wrong(
        1,
        DEPLOYMENT % "[app]",
        'document 1: Deployment d: Deployment in version "v1" cannot be handled as a Deployment: '
        "spec.selector.matchLabels: must be an object, not a list",
    ),
    "a number in quotes": Wrong(
        1,
        BATCH % "'3'",
        'document 1: Job b: Job in version "v1" cannot be handled as a Job: spec.backoffLimit: must be an '
        "integer, not a string ('3')",
    ),
    "more pods than a run takes": Wrong(
        1,
        STATEFUL % (10**9, ""),
        "document 1: StatefulSet s: spec.replicas: 1,000,000,000 pods: a run takes at most 100,000",
    ),
    "more pods than a run takes, of all documents": Wrong(
        1,
        f"{STATEFUL % (99_999, '')}---\n{POD % ('', 1)}---\n{BATCH % 6}",
        "document 3: Job b: spec.parallelism: 1 pods after 100,000 of what comes before: a run takes at most 100,000",
    ),
    "more pods than a run takes, of the tasks of a job": Wrong(
        1,
        JOB.replace("replicas: 1", "replicas: 2000000000"),
        "document 1: Job train: spec.tasks[0].replicas: 2,000,000,000 pods: a run takes at most 100,000",
    ),
    "more completions than a run takes": Wrong(
        1,
        BATCH % "6\n  completions: 2000000000",
        "document 1: Job b: spec.completions: 2,000,000,000 pods: a run takes at most 100,000",
    ),
    "more replicas than an int32 counts in a task": Wrong(
        1,
        JOB.replace("replicas: 1", f"replicas: {2**31}"),
        'document 1: Job train: admission webhook "mutatejob.volcano.sh" denied the request: '
        "spec.tasks[0].replicas: 2147483648 does not fit into 32 bits",
    ),
    "more replicas than an int32 counts": Wrong(
        1,
        STATEFUL % (2**31, ""),
        'document 1: StatefulSet s: StatefulSet in version "v1" cannot be handled as a StatefulSet: '
        "spec.replicas: 2147483648 does not fit into 32 bits",
    ),
    "a claim without a name": Wrong(
        1,
        STATEFUL % (1, "{}"),
        'document 1: StatefulSet s: StatefulSet.apps "s" is invalid: [spec.volumeClaimTemplates[0].metadata.name: '
        "name is required, spec.volumeClaimTemplates[0].spec.accessModes: at least one access mode is required, "
        "spec.volumeClaimTemplates[0].spec.resources.requests.storage: the size of the claim is required]",
    ),
    "nothing for a claim": Wrong(
        1,
        STATEFUL % (1, "null"),
        'document 1: StatefulSet s: StatefulSet in version "v1" cannot be handled as a StatefulSet: '
        "spec.volumeClaimTemplates[0]: must be an object, not null",
    ),
    "a list for a claim": Wrong(
        1,
        STATEFUL % (1, "[]"),
        'document 1: StatefulSet s: StatefulSet in version "v1" cannot be handled as a StatefulSet: '
        "spec.volumeClaimTemplates[0]: must be an object, not a list",
    ),
    "text for the metadata of a claim": Wrong(
        1,
        STATEFUL % (1, "{metadata: data}"),
        'document 1: StatefulSet s: StatefulSet in version "v1" cannot be handled as a StatefulSet: '
        "spec.volumeClaimTemplates[0].metadata: must be an object, not a string ('data')",
    ),
    "a list for whose volume it is": Wrong(
        1,
        VOLUME % "[x]",
        'document 1: PersistentVolume v: PersistentVolume in version "v1" cannot be handled as a '
        "PersistentVolume: spec.claimRef: must be an object, not a list",
    ),
    "a map for the name of a claim": Wrong(
        1,
        VOLUME % "{name: {}}",
        'document 1: PersistentVolume v: PersistentVolume in version "v1" cannot be handled as a '
        "PersistentVolume: spec.claimRef.name: must be a string, not an object",
    ),
    "a map for the uid of an owner": Wrong(
        1,
        (POD % ("", 1)).replace("{name: p,", "{name: p, ownerReferences: [{apiVersion: v1, kind: Pod, name: o, uid: {}}],"),
        'document 1: Pod p: Pod in version "v1" cannot be handled as a Pod: '
        "metadata.ownerReferences[0].uid: Expected `str`, got `object`",
    ),
    "a map for the name of a node": Wrong(
        1,
        (POD % ("", 1)).replace("spec: {", "spec: {nodeName: {}, "),
        'document 1: Pod p: Pod in version "v1" cannot be handled as a Pod: spec.nodeName: Expected `str`, got `object`',
    ),
    "a number in a ConfigMap": Wrong(
        1,
        CONFIG % "volcano-controller.conf",
        'document 1: ConfigMap c: ConfigMap in version "v1" cannot be handled as a ConfigMap: '
        "data.volcano-controller.conf: must be a string, not a number (-5)",
    ),
    "a share that is none": Wrong(
        1,
        "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: b}\nspec: {minAvailable: half}",
        "document 1: PodDisruptionBudget b: PodDisruptionBudget.policy \"b\" is invalid: spec.minAvailable: 'half' "
        "is neither a number nor a percentage such as 25%",
    ),
    "a number for the scopes of a quota": Wrong(
        1,
        "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q}\nspec: {scopeSelector: {matchExpressions: [3]}}",
        'document 1: ResourceQuota q: ResourceQuota in version "v1" cannot be handled as a ResourceQuota: '
        "spec.scopeSelector.matchExpressions[0]: must be an object, not a number (3)",
    ),
    "a cluster's workload without a template": Wrong(
        1,
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d, resourceVersion: '5'}\nspec: {replicas: 1}",
        'document 1: Deployment d: Deployment.apps "d" is invalid: [spec.selector: a selector is required: an '
        "empty one would select every pod, spec.template.spec.containers: at least one container is required]",
    ),
    "a cluster's node without a name": Wrong(
        1,
        "apiVersion: v1\nkind: Node\nmetadata: {resourceVersion: '5'}\nstatus: {allocatable: {cpu: 1}}",
        'document 1: Node ...: Node "" is invalid: metadata.name: Required value: name or generateName is required',
    ),
    "a number for what a claim asks": Wrong(
        1,
        "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: c}\nspec: {resources: 5}",
        'document 1: PersistentVolumeClaim c: PersistentVolumeClaim in version "v1" cannot be handled as a '
        "PersistentVolumeClaim: spec.resources: must be an object, not a number (5)",
    ),
    "text for the topologies of a class": Wrong(
        1,
        "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: c}\nprovisioner: x\nallowedTopologies: zone",
        'document 1: StorageClass c: StorageClass in version "v1" cannot be handled as a StorageClass: '
        "allowedTopologies: must be a list, not a string ('zone')",
    ),
    "a List without items": Wrong(1, "apiVersion: v1\nkind: List", "document 1: items: missing"),
    "a fault within a List": Wrong(
        1,
        "apiVersion: v1\nkind: List\nitems:\n"
        "- {apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: c, image: i}]}}\n"
        "- {apiVersion: v1, kind: Bod}",
        "document 1, items[1]: kind: no kind 'Bod' of 'v1' is played here; did you mean 'Pod'?",
    ),
    "the same twice": Wrong(
        1,
        f"{JOB}---\n{JOB}",
        'document 2: Job train: jobs.batch.volcano.sh "train" already exists: it is in f.yaml: document 1 too',
    ),
    "a bad quantity": Wrong(
        1,
        POD % ("", "2x"),
        'document 1: Pod p: admission webhook "mutatepod.volcano.sh" denied the request: '
        "spec.containers[0].resources.requests.cpu: '2x' is not a quantity (such as 500m, 2, 1.5Gi, 1e3)",
    ),
    "a bad quantity of a node": Wrong(
        1,
        "apiVersion: v1\nkind: Node\nmetadata: {name: n}\nstatus: {allocatable: {cpu: lots}}",
        "document 1: Node n: Node in version \"v1\" cannot be handled as a Node: status.allocatable.cpu: 'lots' is "
        "not a quantity (such as 500m, 2, 1.5Gi, 1e3)",
    ),
    "a node that has nothing": Wrong(
        1,
        "apiVersion: v1\nkind: Node\nmetadata: {name: n}",
        "document 1: Node n: status.allocatable: missing; without it nothing fits there, give at least cpu, memory and pods",
    ),
    "a pod of no PodGroup": Wrong(
        1,
        POD % ("scheduling.k8s.io/group-name: gang", "1"),
        "document 1: Pod p: metadata.annotations[scheduling.k8s.io/group-name]: no PodGroup 'default/gang' in these manifests",
    ),
    "a pod of no queue": Wrong(
        1,
        POD % ("scheduling.volcano.sh/queue-name: defalt", "1"),
        "document 1: Pod p: metadata.annotations[scheduling.volcano.sh/queue-name]: no Queue 'defalt' in these manifests; "
        "did you mean 'default'?",
    ),
    "a job of no queue": Wrong(
        1,
        JOB.replace("  minAvailable", "  queue: fast\n  minAvailable"),
        "document 1: Job train: spec.queue: no Queue 'fast' in these manifests; known: default, root",
    ),
    "a job of no priority class": Wrong(
        1,
        JOB.replace("  minAvailable", "  priorityClassName: urgent\n  minAvailable"),
        "document 1: Job train: spec.priorityClassName: no PriorityClass 'urgent' in these manifests; "
        "known: system-cluster-critical, system-node-critical",
    ),
    "tasks that wait for each other": Wrong(
        1,
        RING,
        'document 1: Job train: admission webhook "validatejob.volcano.sh" denied the request: '
        "spec.tasks: tasks wait for each other in a cycle: a -> b -> a; dependsOn must be acyclic",
    ),
    "queues in a ring": Wrong(
        1,
        QUEUE % ("a", "b") + QUEUE % ("b", "a"),
        "document 1: Queue a: spec.parent: queues are parents of each other: a -> b -> a",
    ),
    "a time to run that cannot be read": Wrong(
        1,
        POD % ("pumice.io/run-seconds: soon", "1"),
        f"document 1: Pod p: metadata.annotations[pumice.io/run-seconds]: 'soon' {NO_TIME}",
    ),
    "a time to run that never ends": Wrong(
        1,
        POD % ("pumice.io/run-seconds: inf", "1"),
        f"document 1: Pod p: metadata.annotations[pumice.io/run-seconds]: 'inf' {NO_TIME}",
    ),
    "a time to run below zero": Wrong(
        1,
        POD % ("pumice.io/run-seconds: -3s", "1"),
        "document 1: Pod p: metadata.annotations[pumice.io/run-seconds]: '-3s' is below zero",
    ),
    "an exit code in the template of a job": Wrong(
        1,
        JOB.replace("template: {", "template: {metadata: {annotations: {pumice.io/exit-code: '256'}}, "),
        "document 1: Job train: spec.tasks[0].template.metadata.annotations[pumice.io/exit-code]: "
        "'256' is not an exit code (0 to 255)",
    ),
    "a bad time of arrival": Wrong(
        1,
        JOB.replace("{name: train}", "{name: train, annotations: {pumice.io/arrives-after: soon}}"),
        f"document 1: metadata.annotations[pumice.io/arrives-after]: 'soon' {NO_TIME}",
    ),
    "an arrival after the end": Wrong(
        1,
        JOB.replace("{name: train}", "{name: train, annotations: {pumice.io/arrives-after: 48h}}"),
        "document 1: metadata.annotations[pumice.io/arrives-after]: a run that ends by itself takes 24h0m0s at most; use --until",
    ),
}


@pytest.mark.parametrize("wrong", FILES.values(), ids=FILES)
def test_a_wrong_file(pumice: Command, wrong: Wrong) -> None:
    """The whole message, word by word."""
    ran = pumice("run", "f.yaml", files={"f.yaml": wrong.text})
    assert (ran.status, ran.fault, ran.out) == (wrong.status, f"f.yaml: {wrong.says}", "")


FOUND = "apiVersion: %s\nkind: %s\nmetadata: {name: o, uid: u, resourceVersion: '3'}\n%s"
FLOW = "flow.volcano.sh/v1alpha1", "JobFlow"
CRON = "batch.volcano.sh/v1alpha1", "CronJob"
VCJOB = "batch.volcano.sh/v1alpha1", "Job"
QUEUES = "scheduling.volcano.sh/v1beta1", "Queue"
OLD = "spec: {nodeName: n, containers: [{name: m, image: a, %s}]}\nstatus: {phase: %s}"
DUMPED = {
    "a queue's weight": (*QUEUES, "spec: {weight: 3x}", "spec.weight"),
    "what a queue holds": (*QUEUES, "spec: {weight: 1}\nstatus: {allocated: {cpu: x}}", "status.allocated.cpu"),
    "a flow's jobs": (*FLOW, "spec: {flows: [a, b]}", "spec.flows[0]"),
    "a flow's state": (*FLOW, "spec: {flows: [{name: a}]}\nstatus: {state: Running}", "status.state"),
    "a flow's list": (*FLOW, "spec: {flows: [{name: a}]}\nstatus: {jobStatusList: [a]}", "status.jobStatusList[0]"),
    "a cron job's running jobs": (*CRON, "spec: {schedule: '* * * * *'}\nstatus: {active: [x]}", "status.active[0]"),
    "a cron job's last time": (*CRON, "spec: {schedule: '* * * * *'}\nstatus: {lastScheduleTime: x}", "status.lastScheduleTime"),
    "how many of a job run": (*VCJOB, "spec: {tasks: []}\nstatus: {running: x}", "status.running"),
    "a job's containers": (*VCJOB, "spec: {tasks: [{name: w, template: {spec: {containers: [{name: m, image: a, env: x}]}}}]}",
                           "spec.tasks[0].template.spec.containers[0].env"),
    "how many of a group run": ("scheduling.volcano.sh/v1beta1", "PodGroup", "spec: {}\nstatus: {running: x}", "status.running"),
    "a hyper node's members": ("topology.volcano.sh/v1alpha1", "HyperNode", "spec: {tier: 1, members: [x]}", "spec.members[0]"),
    "what a pod asks": ("v1", "Pod", OLD % ("resources: {requests: {cpu: x}}", "Running"),
                        "spec.containers[0].resources.requests.cpu"),
    "a pod's phase": ("v1", "Pod", OLD % ("ports: []", "Runnin"), "status.phase"),
}  # fmt: skip


@pytest.mark.parametrize(("version", "kind", "text", "field"), DUMPED.values(), ids=DUMPED)
def test_a_dump_that_was_edited_wrongly(pumice: Command, version: str, kind: str, text: str, field: str) -> None:
    """No API server holds such an object: it is refused by its field, status included, before anything is played."""
    ran = pumice("run", "f.yaml", files={"f.yaml": FOUND % (version, kind, text)})
    assert ran.fault.startswith(f"f.yaml: document 1: {kind} o: ")
    assert f"{field}: " in f"{ran.fault}: "
    assert (ran.status, ran.out) == (1, "")


SEVERAL = {
    "in every part of the work, in the order of the documents": (
        "\n---\n".join((
            BAD,
            "apiVersion: v1\nkind: Pood\nmetadata: {name: x}",
            JOB.replace("train", "other").replace("  minAvailable", "  queue: defalt\n  minAvailable"),
            POD % ("pumice.io/run-seconds: soon", "1"),
        )),
        [BAD_SAYS, "2: kind: no kind 'Pood'",
         "3: Job other: spec.queue: no Queue 'defalt'",
         "4: Pod p: metadata.annotations[pumice.io/run-seconds]: 'soon'"],
    ),
    "what needs something at fault is not told as well": (
        QUEUE % ("a", "b") + QUEUE % ("b", "a") + QUEUE % ("c", "b")
        + JOB.replace("  minAvailable", "  queue: c\n  minAvailable"),
        ["1: Queue a: spec.parent: queues are parents of each other"],
    ),
    "what names something at fault is not told as well": (
        QUEUE % ("a", "3") + "\n" + JOB.replace("  minAvailable", "  queue: a\n  minAvailable"),
        ["1: Queue a: "],
    ),
    "what comes later": (
        BAD.replace("{name: train}", "{name: train, annotations: {pumice.io/arrives-after: 1h}}")
        + f"---\n{JOB.replace('train', 'other').replace('minAvailable: 1', 'minAvailable: -1')}",
        [BAD_SAYS, "2: Job other: "],
    ),
    "more than anyone reads": (
        "---\n".join(BAD.replace("train", f"t-{i}") for i in range(12)),
        [*(f"{i + 1}: Job t-{i}: " for i in range(10)), "... and 2 more"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "says"), SEVERAL.values(), ids=SEVERAL)
def test_all_that_is_wrong_is_told_in_one_go(pumice: Command, text: str, says: list[str]) -> None:
    """A line for each fault."""
    ran = pumice("run", "f.yaml", files={"f.yaml": text})
    lines = [line.removeprefix("f.yaml: document ") for line in ran.fault.splitlines()]
    assert (ran.status, ran.out, len(lines)) == (1, "", len(says))
    assert [line[: len(said)] for line, said in zip(lines, says, strict=True)] == says


def test_all_files_that_cannot_be_read_are_told(pumice: Command) -> None:
    """Nothing is said of what the others name: it may stand in there."""
    job = JOB.replace("  minAvailable", "  queue: q\n  minAvailable")
    ran = pumice("run", "nowhere.yaml", "d", files={"d/a.yaml": "kind: [", "d/b.yaml": job, "d/c.yaml": b"\0"})
    assert (ran.status, [line.partition(":")[0] for line in ran.fault.splitlines()]) == (
        2,
        ["nowhere.yaml", "d/a.yaml", "d/c.yaml"],
    )


SOURCES = {
    "kustomization.yaml": ("resources: [job.yaml]", "kubectl kustomize FOLDER | pumice run -"),
    "kustomization.yml": (
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization",
        "kubectl kustomize FOLDER | pumice run -",
    ),
    "Chart.yaml": ("apiVersion: v2\nname: jobs", "helm template FOLDER | pumice run -"),
    "values.yaml": ("replicas: 3", "helm template FOLDER | pumice run -"),
}


@pytest.mark.parametrize("name", SOURCES)
def test_what_manifests_are_made_of(pumice: Command, name: str) -> None:
    """Run without what it would change, they would be other manifests."""
    text, tool = SOURCES[name]
    ran = pumice("run", "d", files={f"d/{name}": text, "d/job.yaml": JOB})
    says = f"d/{name}: document 1: this is what manifests are made of; give what comes of it: {tool}"
    assert (ran.status, ran.fault) == (1, says)


MPI_JOB = "apiVersion: kubeflow.org/v1\nkind: MPIJob\nmetadata: {name: a}\n"
NOTHING = {
    "empty": ("", ""),
    "only comments": ("# nothing\n---\n# here\n", ""),
    "nothing that is played": (f"{MPI_JOB}---\n{MPI_JOB}", " that are played here, only MPIJob"),
}


@pytest.mark.parametrize(("text", "says"), NOTHING.values(), ids=NOTHING)
def test_nothing_in_it(pumice: Command, text: str, says: str) -> None:
    """There is no document that could be named."""
    ran = pumice("run", "f.yaml", files={"f.yaml": text})
    assert (ran.status, ran.fault, ran.out) == (1, f"no manifests in f.yaml{says}", "")


COMMANDS = {
    "no file": ((), 2, ""),
    "a file that is missing": (("nowhere.yaml",), 2, "nowhere.yaml: no such file"),
    "an empty folder": (("empty",), 2, "empty: no .yaml, .yml, .json file in this folder"),
    "a file without a name": (("",), 2, "the name of a file is empty"),
    "nodes without a word": (
        ("job.yaml", "--nodes", ""), 2, "--nodes: empty; write for instance '4x cpu=32,memory=128Gi,nvidia.com/gpu=8'",
    ),
    "standard input twice": (("-", "-"), 2, "standard input (-) can be read once only"),
    "a conf that is missing": (("job.yaml", "--conf", "no.conf"), 2, "--conf: no.conf: no such file"),
    "a conf without a name": (("job.yaml", "--conf", ""), 2, "--conf: the name of a file is empty"),
    "a conf that is no text": (("job.yaml", "--conf", "nul"), 2, "--conf: nul: not text: byte 1 is 0x00"),
    "a file of nodes that is missing": (("job.yaml", "--nodes", "no.yaml"), 2, "--nodes: no.yaml: no such file"),
    "plugins that are missing": (("job.yaml", "--plugins-dir", "no"), 2, "--plugins-dir: no: there is no such folder"),
    "plugins in a file": (("job.yaml", "--plugins-dir", "job.yaml"), 2, "--plugins-dir: job.yaml: Not a directory"),
    "a conf with a slip": (
        ("job.yaml", "--conf", "slip.conf"), 1, "slip.conf: actions: unknown action 'alocate'; did you mean 'allocate'?",
    ),
    "a conf with a time that is none": (
        ("job.yaml", "--conf", "time.conf"), 2,
        "--conf: time.conf: not YAML: a value is not what its form or tag says: month must be in 1..12",
    ),
    "a manifest without a conf for --conf": (
        ("job.yaml", "--conf", "job.yaml"), 1,
        "--conf: job.yaml: 0 ConfigMaps with a key 'volcano-scheduler.conf'; one is needed, or a plain scheduler.conf",
    ),
    "jobs for --nodes": (
        ("job.yaml", "--nodes", "job.yaml"), 1, "job.yaml: document 1: kind: --nodes takes Nodes only, not Job train",
    ),
    "a bad time": (("job.yaml", "--until", "soon"), 2, ""),
    "a negative time": (("job.yaml", "--until", "-5"), 2, ""),
    "no time at all": (("job.yaml", "--until", "0d"), 2, ""),
    "a time beyond all times": (("job.yaml", "--until", "9999999h"), 2, ""),
    "a scheduler without a name": (
        ("job.yaml", "--scheduler-name", ""), 2, "--scheduler-name: '' is no name; for several give the option again for each",
    ),
    "two schedulers in one word": (
        ("job.yaml", "--scheduler-name", "a,b"), 2,
        "--scheduler-name: 'a,b' is no name; for several give the option again for each",
    ),
    "no such output": (("job.yaml", "-o", "xml"), 2, ""),
    "a timeline of another sort": (
        ("job.yaml", "--timeline", "t.pdf"), 2, "--timeline t.pdf: write a name that ends in .png or .svg",
    ),
    "a timeline nowhere": (("job.yaml", "--timeline", "no/t.png"), 2, "--timeline no/t.png: there is no folder no"),
}  # fmt: skip


@pytest.mark.parametrize(("words", "status", "says"), COMMANDS.values(), ids=COMMANDS)
def test_a_wrong_command(pumice: Command, words: tuple[str, ...], status: int, says: str) -> None:
    """Where `says` is empty the words are the command line library's own."""
    ran = pumice("run", *words, files={"job.yaml": JOB, "slip.conf": CONF, "time.conf": TIME, "nul": "a\0",
                                      "empty/readme.txt": "no manifest"})  # fmt: skip
    assert (ran.status, ran.out) == (status, "")
    assert ran.fault == says if says else "Error: " in ran.err


def test_a_null_in_a_template_counts_as_not_written(pumice: Command) -> None:
    """As in a Pod: the annotation is left out and the pod runs."""
    noted = (BATCH % 6).replace("template: {", "template: {metadata: {annotations: {a: null}}, ")
    assert pumice("run", "f.yaml", files={"f.yaml": noted}).status == 0


def test_a_null_for_the_partition_counts_as_not_written(pumice: Command) -> None:
    rolling = (STATEFUL % (1, "")).replace("spec:\n", "spec:\n  updateStrategy: {rollingUpdate: {partition: null}}\n", 1)
    assert pumice("run", "f.yaml", files={"f.yaml": rolling}).status == 0


def test_two_configurations_among_the_manifests(pumice: Command) -> None:
    """Neither is chosen by chance."""
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {volcano-scheduler.conf: 'actions: \"allocate\"'}\n"
    ran = pumice("run", "a.yaml", "b.yaml", files={"a.yaml": text, "b.yaml": text.replace("name: a", "name: b")})
    says = "b.yaml: document 1: a second volcano-scheduler.conf, the first is in a.yaml: document 1; choose one with --conf FILE"
    assert (ran.status, ran.fault) == (1, says)


def test_matplotlib_is_missing(pumice: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says what to install, before the run and not after it."""
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    ran = pumice("run", "job.yaml", "--timeline", "t.png", files={"job.yaml": JOB})
    assert (ran.status, ran.fault) == (2, "--timeline needs matplotlib, which is not installed: pip install 'pumice[plot]'")


def test_a_mistyped_field_is_told(pumice: Command) -> None:
    """The API server drops it, as any does; the person hears of it."""
    ran = pumice("run", "job.yaml", files={"job.yaml": JOB.replace("minAvailable", "minAvailabel")})
    says = "warning: job.yaml: document 1: Job train: spec.minAvailabel: unknown field, passed over; did you mean 'minAvailable'?"
    assert says in ran.err.splitlines()


NOTES = {
    "a slip": (
        JOB.replace("template: {", "template: {metadata: {annotations: {pumice.io/run-second: '5'}}, "),
        "spec.tasks[0].template.metadata.annotations[pumice.io/run-second]: nobody reads it; did you mean 'run-seconds'?",
    ),
    "a word that is not near any": (
        JOB.replace("train}", "train, annotations: {pumice.io/x: '5'}}"),
        "metadata.annotations[pumice.io/x]: nobody reads it; known: arrives-after, exit-code, run-seconds",
    ),
    "on the job instead of its template": (
        JOB.replace("train}", "train, annotations: {pumice.io/run-seconds: '5'}}"),
        "metadata.annotations[pumice.io/run-seconds]: is looked for in pods and pod templates only; "
        "write it into the template's metadata",
    ),
    "on the template instead of the job": (
        JOB.replace("template: {", "template: {metadata: {annotations: {pumice.io/arrives-after: '5'}}, "),
        "spec.tasks[0].template.metadata.annotations[pumice.io/arrives-after]: "
        "is looked for in the metadata of the object itself only",
    ),
    "a label as an annotation": (
        JOB.replace("train}", "train, annotations: {pumice.io/schedule: 'true'}}"),
        "metadata.annotations[pumice.io/schedule]: is a label, and no annotation",
    ),
    "one of Volcano's": (
        JOB.replace("train}", "train, annotations: {volcano.sh/preemptible: 'true', volcano.sh/other: 'a'}}"),
        "metadata.annotations[volcano.sh/preemptible]: nobody reads it; did you mean 'preemptable'?",
    ),
}


@pytest.mark.parametrize(("text", "says"), NOTES.values(), ids=NOTES)
def test_an_annotation_that_nobody_reads_is_told(pumice: Command, text: str, says: str) -> None:
    """The API server keeps it, as any does; the person hears of it."""
    ran = pumice("run", "job.yaml", files={"job.yaml": text})
    warnings = [line for line in ran.err.splitlines() if line.startswith("warning: ")]
    assert (ran.status, warnings) == (0, [f"warning: job.yaml: document 1: Job train: {says}"])


LITTLE = {
    "without a unit": (
        POD.replace("cpu: %s", "memory: %s") % ("", "4"),
        "Pod p: spec.containers[0].resources.requests.memory: '4' is 4 bytes; was 4Gi meant?",
    ),
    "in thousandths": (
        POD.replace("cpu: %s", "memory: %s") % ("", "512m"),
        "Pod p: spec.containers[0].resources.requests.memory: '512m' is 0.512 bytes; was 512Mi meant?",
    ),
    "in a template": (
        JOB.replace("image: app", "image: app, resources: {limits: {memory: 1k}}"),
        "Job train: spec.tasks[0].template.spec.containers[0].resources.limits.memory: '1k' is 1000 bytes; was Mi or Gi meant?",
    ),
    "of a queue": (
        f"{QUEUE % ('q', 'root, capability: {memory: 8}')}{POD % ('', 1)}",
        "Queue q: spec.capability.memory: '8' is 8 bytes; was 8Gi meant?",
    ),
}


@pytest.mark.parametrize(("text", "says"), LITTLE.values(), ids=LITTLE)
def test_a_few_bytes_are_told(pumice: Command, text: str, says: str) -> None:
    """They are taken as written, and a container would die of them."""
    ran = pumice("run", "f.yaml", files={"f.yaml": text})
    assert [line for line in ran.err.splitlines() if line.startswith("warning: ")] == [f"warning: f.yaml: document 1: {says}"]


BARE = {
    "memory": ("3x cpu=8; cpu=2,memory=4Gi", "{memory: 1Gi}", ["memory"]),
    "cpu": ("memory=8Gi", "{cpu: 1}", ["cpu"]),
    "nobody asks": ("cpu=8", "{cpu: 1, memory: 0}", []),
    "all have both": ("cpu=8,memory=4Gi", "{cpu: 1, memory: 1Gi}", []),
}


@pytest.mark.parametrize(("nodes", "asked", "lacking"), BARE.values(), ids=BARE)
def test_nodes_without_what_is_asked_for_are_told(pumice: Command, nodes: str, asked: str, lacking: list[str]) -> None:
    text = JOB.replace("image: app", f"image: app, resources: {{requests: {asked}}}")
    ran = pumice("run", "f.yaml", "--nodes", nodes, files={"f.yaml": text})
    assert [line for line in ran.err.splitlines() if line.startswith("warning: ")] == [
        f"warning: --nodes: nodes without {name}: nothing that asks for {name} fits on them" for name in lacking
    ]


def test_standard_input_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in `pumice run - <&-` and `pumice score --jsonl <&-`, where Python has no stdin at all."""
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(UsageError, match="standard input is closed"):
        reading.standard_input()


def test_what_is_not_played_is_told(pumice: Command) -> None:
    """A CronJob of Kubernetes has no controller here, and a pod whose node is not given has nowhere to stay."""
    cron = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "tick"},
            "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {"spec": {
                "restartPolicy": "Never", "containers": [{"name": "main", "image": "app"}]}}}}}}  # fmt: skip
    stray = POD.replace("{name: p,", "{name: p, uid: u, resourceVersion: '5',").replace("spec: {", "spec: {nodeName: gone, ")
    ran = pumice("run", "f.yaml", files={"f.yaml": f"{json.dumps(cron)}\n---\n{stray % ('', 1)}"})
    assert [line for line in ran.err.splitlines() if line.startswith("warning: ")] == [
        "warning: f.yaml: document 1: CronJob tick: is not played, no job comes of it; write the Job that it would start",
        "warning: pods on nodes that are not among the manifests (gone), which go as on any cluster: 1",
    ]
