"""What `pumice run` gives back: the shape of its JSON, exit statuses, order of creation, time, the timeline, --help."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest
import yaml

from extender.cluster.clock import VirtualClock
from extender.ctl import configuring, nodes
from extender.ctl.progress import Progress
from extender.local import Local
from tests.run.conftest import Command

NODES = "--nodes", "2x cpu=8,memory=16Gi"


def job(name: str, replicas: int = 2, cpu: str = "1", *, queue: str = "default", seconds: int = 0, after: str = "") -> str:
    """A gang; it runs for ever where no seconds are given."""
    notes = {"pumice.io/run-seconds": str(seconds)} if seconds else {}
    resources = {"requests": {"cpu": cpu, "memory": "1Gi"}}
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "app", "resources": resources}]}
    task = {"name": "worker", "replicas": replicas, "template": {"metadata": {"annotations": notes}, "spec": pod}}
    metadata = {"name": name, "annotations": {"pumice.io/arrives-after": after} if after else {}}
    spec = {"queue": queue, "minAvailable": replicas, "tasks": [task]}
    return "---\n" + yaml.safe_dump(
        {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": metadata, "spec": spec}
    )


QUEUE = """---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: %s}
spec: {weight: 2%s}
"""
POD = """---
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec: {schedulerName: %s, containers: [{name: main, image: app, resources: {requests: {cpu: 1}}}]}
"""


# --- exit status --------------------------------------------------------------------------------------------------------

STATUSES = {
    "all is placed": (job("a"), 0),
    "all is done": (job("a", seconds=5), 0),
    "only queues": (QUEUE % ("team", ""), 0),
    "something must wait": (job("a", 2, "5") + job("b", 2, "5"), 3),
    "something never fits": (job("a", 1, "9"), 4),
    "one waits, another never fits": (job("a", 2, "5") + job("b", 2, "5") + job("c", 1, "20"), 4),
    "a pod of nobody's scheduler": (POD % ("p", "my-scheduler"), 3),
    "a pod of the default scheduler": (POD % ("p", "default-scheduler"), 0),
}


@pytest.mark.parametrize(("text", "status"), STATUSES.values(), ids=STATUSES)
def test_exit_status(pumice: Command, text: str, status: int) -> None:
    """0 placed, 3 must wait, 4 never fits; the largest counts."""
    assert pumice("run", "f.yaml", *NODES, files={"f.yaml": text}).status == status


# --- output -------------------------------------------------------------------------------------------------------------


def test_the_shape_of_the_json(pumice: Command) -> None:
    """As docs/run.md has it."""
    text = job("train", 2, "5") + job("waits", 1, "4") + job("short", 1, "1", seconds=10)
    ran = pumice("run", "f.yaml", *NODES, "-o", "json", files={"f.yaml": text})
    told = json.loads(ran.out)
    groups = {name.rsplit("/", 1)[-1].split("-")[0]: phase for name, phase in told.pop("podgroups").items()}
    podgroup = told["waiting"][0].pop("podgroup")
    places = {name: pod["node"] for name, pod in told["pods"].items() if pod["node"]}
    assert {places[f"default/train-worker-{i}"] for i in (0, 1)} == {"node-1", "node-2"}
    assert groups == {"train": "Running", "waits": "Inqueue"}
    assert podgroup.startswith("default/waits-")
    assert told == {
        "pods": {
            "default/train-worker-0": {"node": places["default/train-worker-0"], "phase": "Running"},
            "default/train-worker-1": {"node": places["default/train-worker-1"], "phase": "Running"},
            "default/waits-worker-0": {"node": "", "phase": "Pending"},
            "default/short-worker-0": {"node": places["default/short-worker-0"], "phase": "Succeeded"},
        },
        "jobs": {"default/train": "Running", "default/waits": "Pending", "default/short": "Completed"},
        "queues": told["queues"],
        "waiting": [
            {
                "job": "default/waits",
                "reason": "InsufficientResources",
                "message": "0/2 nodes are unavailable: 2 Insufficient cpu.",
                "numbers": told["waiting"][0]["numbers"],
            }
        ],
        "failed": [],
        "evictions": [],
        "clock": told["clock"],
        "ended": "settled",
        "cycles": told["cycles"],
    }
    assert told["queues"]["default"]["state"] == "Open"
    assert told["queues"]["default"]["allocated"]["cpu"] == "10"
    assert told["waiting"][0]["numbers"] | {"tasks": 1, "minAvailable": 1} == told["waiting"][0]["numbers"]
    assert told["clock"] > 10


@pytest.mark.parametrize("columns", ["30", "60", "79"])
def test_no_number_is_cut_on_a_narrow_terminal(pumice: Command, monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    """Lines are longer than the terminal is wide before `16/16Gi` becomes `16/1`."""
    monkeypatch.setenv("COLUMNS", columns)
    text = QUEUE % ("limited", ", capability: {cpu: 16, memory: 32Gi, nvidia.com/gpu: 8}") + job("a-job-of-some-length", 2, "5")
    words = pumice("run", "f.yaml", *NODES, files={"f.yaml": text}).out.split()
    assert {"a-job-of-some-length", "node-1,", "node-2", "RUNNING/MIN", "WAITED", "5/8", "10/16", "1Gi/16Gi"} <= set(words)


def test_a_pod_that_failed_is_no_success(pumice: Command) -> None:
    """The group made for it is Completed, as upstream has it; people ask for the pod."""
    text = POD % ("p", "volcano")
    text = text.replace("{name: p}", "{name: p, annotations: {pumice.io/run-seconds: '3', pumice.io/exit-code: '1'}}")
    ran = pumice("run", "f.yaml", *NODES, files={"f.yaml": text.replace("spec: {", "spec: {restartPolicy: Never, ")})
    assert [line.split()[2] for line in ran.out.splitlines() if line.startswith(" Pod p")] == ["Failed"]


FAILS = """      metadata: {annotations: {pumice.io/run-seconds: '5', pumice.io/exit-code: '1'}}
      spec: {restartPolicy: Never, containers: [{name: main, image: app}]}
"""
BATCH_JOB = f"""---
apiVersion: batch/v1
kind: Job
metadata: {{name: b}}
spec:
  backoffLimit: 1
  template:
{FAILS}"""
ONE_TASK = f"""spec:
  minAvailable: 1
  tasks:
  - name: main
    replicas: 1
    template:
{FAILS}"""
VC_JOB = f"""---
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {{name: j}}
{ONE_TASK}"""
ABORTED = VC_JOB.replace("  minAvailable", "  policies: [{event: PodFailed, action: AbortJob}]\n  minAvailable")
FLOW = "".join(f"""---
apiVersion: flow.volcano.sh/v1alpha1
kind: JobTemplate
metadata: {{name: {name}}}
{ONE_TASK}""" for name in "ab") + """---
apiVersion: flow.volcano.sh/v1alpha1
kind: JobFlow
metadata: {name: f}
spec: {jobRetainPolicy: retain, flows: [{name: a}, {name: b, dependsOn: {targets: [a]}}]}
"""  # fmt: skip
FAILURES = {
    "a batch job": (BATCH_JOB, "Job b Failed", {"Job default/b": "its pods failed"}),
    "a job": (VC_JOB, "j Failed", {"default/j": "1 of its pods failed"}),
    "a job that its policy aborts": (ABORTED, "j Aborted", {"default/j": "1 of its pods failed, it is Aborted"}),
    "a flow": (FLOW, "f-a Failed", {"default/f-a": "1 of its pods failed",
                                    "JobFlow default/f": "f-a is Failed; never to be started: f-b"}),
}  # fmt: skip


@pytest.mark.parametrize(("text", "row", "says"), FAILURES.values(), ids=FAILURES)
def test_what_fails_is_named_and_was_placed(pumice: Command, text: str, row: str, says: dict[str, str]) -> None:
    """Row, end lines and JSON say it; the status is that of the schedule."""
    ran = pumice("run", "f.yaml", *NODES, files={"f.yaml": text})
    lines = [" ".join(line.split()) for line in ran.out.splitlines()]
    assert any(line.startswith(f"{row} ") for line in lines)
    assert [line for line in lines if "has failed" in line] == [f"{job} has failed: {why}" for job, why in says.items()]
    told = json.loads(pumice("run", "f.yaml", *NODES, "-o", "json", files={"f.yaml": text}).out)
    assert {each["job"]: each["message"] for each in told["failed"]} == says
    assert ran.status == 0


def test_a_gang_of_which_some_pods_are_not_ours(pumice: Command) -> None:
    """They exist: it is their scheduler that is missing, not they."""
    ours = {"name": "b", "replicas": 2, "template": {"spec": {"containers": [{"name": "m", "image": "a"}]}}}
    theirs = {"schedulerName": "foo", "containers": [{"name": "m", "image": "a"}]}
    tasks = [{"name": "a", "replicas": 1, "template": {"spec": theirs}}, ours]
    whole = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"tasks": tasks}}
    ran = pumice("run", "f.yaml", *NODES, "-o", "json", files={"f.yaml": yaml.safe_dump(whole)})
    (wait,) = json.loads(ran.out)["waiting"]
    says = "the schedulerName of some of its pods is 'foo', which nobody here is; --scheduler-name foo makes it ours"
    assert (ran.status, wait["job"], wait["reason"], wait["message"]) == (3, "default/j", "OtherScheduler", says)


@pytest.mark.parametrize("output", ["table", "json", "yaml"])
def test_nobody_reads_the_output(tmp_path: Path, output: str) -> None:
    """`pumice run | head -0`: the status of a broken pipe, and no complaint."""
    (tmp_path / "f.yaml").write_text(job("a"))
    ours, theirs = os.pipe()
    os.close(ours)
    with os.fdopen(theirs, "wb") as closed:
        ran = _in_process_of_its_own(tmp_path, "run", "f.yaml", *NODES, "-o", output, stdout=closed)
    assert (ran.returncode, ran.stderr) == (141, "")


@pytest.mark.parametrize("output", ["table", "json"])
def test_the_output_cannot_be_written(tmp_path: Path, output: str) -> None:
    """A full disk is an error in one line."""
    (tmp_path / "f.yaml").write_text(job("a"))
    with open("/dev/full", "wb") as full:
        ran = _in_process_of_its_own(tmp_path, "run", "f.yaml", *NODES, "-o", output, stdout=full)
    assert (ran.returncode, ran.stderr) == (1, "error: No space left on device\n")


@pytest.mark.parametrize("words", ["run f.yaml", "score --jsonl", "bench session", "down", "--version"])
def test_the_output_is_closed(tmp_path: Path, words: str) -> None:
    """As in `pumice run f.yaml >&-`: nothing is begun."""
    program = f"{sys.executable} -c 'from extender.ctl.pumice import main; main()' {words} >&-"
    ran = subprocess.run(program, shell=True, cwd=tmp_path, stderr=subprocess.PIPE, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (1, "error: standard output is closed\n")


def _in_process_of_its_own(folder: Path, *words: str, stdout: IO[bytes]) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-c", "from extender.ctl.pumice import main; main()", *words]
    return subprocess.run(program, cwd=folder, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False)


def test_yaml_says_the_same_as_json(pumice: Command) -> None:
    """Only the notation differs."""
    files = {"f.yaml": job("train", 2, "5") + job("waits", 1, "4")}
    as_json = pumice("run", "f.yaml", *NODES, "-o", "json", files=files)
    as_yaml = pumice("run", "f.yaml", *NODES, "-o", "yaml", files=files)
    assert yaml.safe_load(as_yaml.out) == json.loads(as_json.out)


def test_two_runs_are_the_same(pumice: Command) -> None:
    """Time is virtual and chance has a seed."""
    files = {"f.yaml": job("a", 3, "2", seconds=30) + job("b", 3, "4")}
    first, second = (pumice("run", "f.yaml", *NODES, "-o", "json", files=files) for _ in range(2))
    assert first == second


def test_the_tables(pumice: Command) -> None:
    """Jobs, the reason of what waits, nodes and queues; no colours where nobody looks."""
    ran = pumice("run", "f.yaml", *NODES, files={"f.yaml": job("train", 2, "5") + job("waits", 1, "4")})
    lines = [" ".join(line.split()) for line in ran.out.splitlines()]
    assert "train Running 2/2 default node-1, node-2 1s" in lines
    assert "node-1 1 ██████░░░░ 5/8 █░░░░░░░░░ 1Gi/16Gi" in lines
    assert any(line.startswith("default/waits waits: 0/2 nodes are unavailable: 2 Insufficient cpu.") for line in lines)
    assert "\x1b" not in ran.out + ran.err


def test_many_lines_are_cut(pumice: Command) -> None:
    """A thousand rows help nobody; what waits is shown first."""
    text = "".join(job(f"j{i}", 1) for i in range(60))
    ran = pumice("run", "f.yaml", "--nodes", "30x cpu=1,memory=16Gi", files={"f.yaml": text})
    assert "... and 20 more  20 Running" in ran.out
    assert "all 30, 14 not shown" in ran.out
    assert "... and 10 more jobs wait" in ran.out


# --- what is read -------------------------------------------------------------------------------------------------------


def test_the_default_cluster(pumice: Command) -> None:
    """It is made where there are no nodes, and it is said so."""
    ran = pumice("run", "f.yaml", "-o", "json", files={"f.yaml": job("a", 5, "20")})
    assert "no nodes given: default cluster 4x cpu=32,memory=128Gi,nvidia.com/gpu=8" in ran.err
    assert json.loads(ran.out)["waiting"][0]["message"].startswith("gang of 5: even an empty cluster has room for 4")


def test_json_lists_and_standard_input(pumice: Command) -> None:
    """kubectl's own output is a List in JSON."""
    items = [yaml.safe_load(job("a")), yaml.safe_load(job("b"))]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    from_file = pumice("run", "f.json", *NODES, "-o", "json", files={"f.json": text})
    from_stdin = pumice("run", "-", *NODES, "-o", "json", stdin=text)
    assert json.loads(from_file.out)["jobs"] == {"default/a": "Running", "default/b": "Running"}
    assert from_stdin.out == from_file.out


def test_a_folder_is_read_by_name(pumice: Command) -> None:
    """Recursively, hidden files and other suffixes left out."""
    files = {
        "d/2/a.yaml": job("second"),
        "d/1/b.yml": job("first"),
        "d/1/c.yaml": job("first"),
        "d/readme.md": "not: [a manifest",
        "d/.hidden/c.yaml": "not: [a manifest",
    }
    ran = pumice("run", "d", *NODES, files=files)
    says = 'd/1/c.yaml: document 1: Job first: jobs.batch.volcano.sh "first" already exists: it is in d/1/b.yml: document 1 too'
    assert ran.fault == says
    (Path("d") / "1" / "c.yaml").unlink()
    ran = pumice("run", "d", *NODES, "-o", "json")
    assert json.loads(ran.out)["jobs"] == {"default/first": "Running", "default/second": "Running"}


def test_what_is_needed_is_created_first(pumice: Command) -> None:
    """A job before its queue, that before its parent, and the nodes last."""
    node = "---\napiVersion: v1\nkind: Node\nmetadata: {name: n}\nstatus: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}}\n"
    text = job("a", queue="child") + QUEUE % ("child", ", parent: above") + QUEUE % ("above", "") + node
    ran = pumice("run", "f.yaml", "-o", "json", files={"f.yaml": text})
    assert json.loads(ran.out)["jobs"] == {"default/a": "Running"}


WAITS = {
    "capability": (QUEUE % ("q", ", capability: {cpu: 3}") + job("a", 2, "1500m", queue="q") + job("b", 1, "1", queue="q"), "b",
                   "NotAdmitted", "queue q: cpu 3 used + 1 asked > capability 3"),
    "the cluster is the limit": (job("a", 2, "7500m") + job("b", 1, "1200m"), "b", "NotAdmitted",
                                 "queue default: cpu 15 used + 1.2 asked > the cluster's 16"),
    "more than can be counted": (job("a", 1, "1e30"), "a", "NeverFits",
                                 "its minimum can never fit: cpu 9223372036854776 or more asked > 16 in the cluster"),
    "pods larger than any node": (job("a", 2, "7500m") + job("b", 1, "9"), "b", "NeverFits",
                                  "its minimum can never fit: cpu 9 asked by one of its pods at least, the largest node has 8"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "name", "reason", "message"), WAITS.values(), ids=WAITS)
def test_why_a_job_waits(pumice: Command, text: str, name: str, reason: str, message: str) -> None:
    """In the words and units of whoever wrote the manifests."""
    (wait,) = json.loads(pumice("run", "f.yaml", *NODES, "-o", "json", files={"f.yaml": text}).out)["waiting"]
    assert (wait["job"], wait["reason"], wait["message"]) == (f"default/{name}", reason, message)


UNPLACED = {"let in first": "enqueue, backfill", "nothing lets it in": "reclaim"}


@pytest.mark.parametrize("actions", UNPLACED.values(), ids=UNPLACED)
def test_no_action_places_pods(pumice: Command, actions: str) -> None:
    """Its turn would never come: that is said, not that it waits for it."""
    files = {"f.yaml": job("a"), "c.conf": f'actions: "{actions}"\ntiers: [{{plugins: [{{name: gang}}]}}]'}
    ran = pumice("run", "f.yaml", *NODES, "--conf", "c.conf", "-o", "json", files=files)
    (wait,) = json.loads(ran.out)["waiting"]
    assert (ran.status, wait["reason"]) == (3, "NoAction")
    assert wait["message"] == "no action of scheduler.conf gives nodes to pods; add 'allocate' to its actions"
    assert "warning: c.conf: actions: none of them gives nodes to pods that ask for something; add 'allocate'" in ran.err


def test_pods_of_another_scheduler_wait(pumice: Command) -> None:
    """Of a gang as of any other: nobody here places them."""
    pods = job("a").replace("spec:\n", "spec:\n  schedulerName: volcno\n", 1)
    ran = pumice("run", "f.yaml", *NODES, "-o", "json", files={"f.yaml": pods})
    (wait,) = json.loads(ran.out)["waiting"]
    assert (ran.status, wait["job"], wait["reason"]) == (3, "default/a", "OtherScheduler")
    says = "the schedulerName of its pods is 'volcno', which nobody here is; --scheduler-name volcno makes it ours"
    assert wait["message"] == says
    assert pumice("run", "f.yaml", *NODES, "--scheduler-name", "volcno").status == 0


def test_a_job_that_was_given_up(pumice: Command) -> None:
    """Its pods are refused until its controller ends it: that is no success, and it is said what refused them."""
    quota = "---\napiVersion: v1\nkind: ResourceQuota\nmetadata: {name: few, namespace: default}\nspec: {hard: {pods: 1}}\n"
    ran = pumice("run", "f.yaml", *NODES, files={"f.yaml": quota + job("a")})
    line = next(line for line in ran.out.splitlines() if "default/a" in line)
    assert (ran.status, line.startswith("default/a was given up: "), "exceeded quota: few" in line) == (3, True, True)
    assert line.endswith("[GivenUp]")


def test_kinds_without_bearing_are_passed_over(pumice: Command) -> None:
    """Charts bring them along."""
    role = "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: r}\n"
    ran = pumice("run", "f.yaml", *NODES, files={"f.yaml": role + job("a")})
    assert (ran.status, "passed over, without bearing on scheduling: 1 Role" in ran.err) == (0, True)


FOREIGN = """---
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: r}
---
apiVersion: kubeflow.org/v1
kind: MPIJob
metadata: {name: m, namespace: x}
spec: {runPolicy: {}}
---
apiVersion: serving.knative.dev/v1
kind: Service
metadata: {name: s}
---
apiVersion: serving.knative.dev/v1
kind: Service
metadata: {name: s2}
"""


def test_kinds_that_nobody_plays_are_told(pumice: Command) -> None:
    """Other people's manifests are no reason to stop: one line names the first of each kind."""
    ran = pumice("run", "f.yaml", *NODES, files={"f.yaml": job("a") + FOREIGN})
    assert ran.status == 0
    assert [line for line in ran.err.splitlines() if line.startswith("warning: ")] == [
        "warning: f.yaml: document 4: Service s: 'Service' of 'serving.knative.dev/v1' is not played here, passed over"
        " (and 1 more of it)",
        "warning: f.yaml: document 3: MPIJob x/m: 'MPIJob' of 'kubeflow.org/v1' is not played here, passed over",
        "warning: f.yaml: document 2: RuntimeClass r: 'RuntimeClass' of 'node.k8s.io/v1' is not played here, passed over:"
        " its pods get no overhead and no node selector",
    ]


def test_objects_as_a_cluster_wrote_them(pumice: Command) -> None:
    """`kubectl get -o yaml`: a running pod holds its room; an owner that is not among the objects does not take it along."""
    pod = yaml.safe_load(POD % ("p", "default-scheduler"))
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r-uid", "controller": True}
    pod["metadata"] |= {"resourceVersion": "17", "uid": "p-uid", "ownerReferences": [owner]}
    pod["spec"] |= {"nodeName": "node-2"}
    pod["status"] = {"phase": "Running"}
    ran = pumice("run", "f.yaml", *NODES, "-o", "json", files={"f.yaml": "---\n" + yaml.safe_dump(pod) + job("a", 2, "8")})
    assert json.loads(ran.out)["pods"]["default/p"] == {"node": "node-2", "phase": "Running"}
    assert ran.status == 3


def test_what_a_run_left_behind_can_be_played_on(pumice: Command) -> None:
    """All objects of a cluster in the middle of its work: the running gang goes on to its end, then the waiting one starts."""
    local = Local(configuring.choose(None, ()).conf, VirtualClock(1e9))
    local.start()
    local.settle()
    local.create(found.manifest for found in nodes.from_spec("2x cpu=8,memory=16Gi"))
    local.create(yaml.safe_load_all(job("runs", 2, "5", seconds=60) + job("waits", 1, "6")))
    objects = local.run(10).objects
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [obj for kind in objects for obj in objects[kind]]})
    before, after = (json.loads(pumice("run", "-", *words, "-o", "json", stdin=text).out) for words in (("--until", "3"), ()))
    assert before["jobs"] == {"default/runs": "Running", "default/waits": "Pending"}
    assert after["jobs"] == {"default/runs": "Completed", "default/waits": "Running"}


def test_a_queue_that_is_there_already_is_changed(pumice: Command) -> None:
    """As `kubectl apply` would: every cluster has the queue `default`."""
    ran = pumice(
        "run", "f.yaml", *NODES, "-o", "json", files={"f.yaml": QUEUE % ("default", ", capability: {cpu: 1}") + job("a")}
    )
    assert ran.status == 4
    assert "capability 1 of queue default" in json.loads(ran.out)["waiting"][0]["message"]


def test_a_command_finds_its_target_by_name(pumice: Command) -> None:
    """Its uid cannot be known before the run."""
    target = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "a", "uid": "unknown"}
    metadata = {"name": "stop", "annotations": {"pumice.io/arrives-after": "10"}}
    stop = {
        "apiVersion": "bus.volcano.sh/v1alpha1",
        "kind": "Command",
        "metadata": metadata,
        "action": "AbortJob",
        "target": target,
    }
    ran = pumice("run", "f.yaml", *NODES, "-o", "json", files={"f.yaml": job("a") + "---\n" + yaml.safe_dump(stop)})
    assert json.loads(ran.out)["jobs"] == {"default/a": "Aborted"}


# --- configuration ------------------------------------------------------------------------------------------------------

CONF = 'actions: "enqueue, allocate"\ntiers:\n- plugins: [{name: gang}, {name: predicates}%s]\n'


def _map(conf: str) -> str:
    data = {"volcano-scheduler.conf": conf}
    return "---\n" + yaml.safe_dump({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data})


def test_where_the_configuration_comes_from(pumice: Command) -> None:
    """--conf, plain or within a ConfigMap, or a ConfigMap among the manifests: binpack puts both pods on one node."""
    packed = CONF % ", {name: binpack}"
    files = {
        "f.yaml": job("a", 2, "2"),
        "with.yaml": job("a", 2, "2") + _map(packed),
        "plain.conf": packed,
        "map.yaml": _map(packed),
    }
    for words in (("with.yaml",), ("f.yaml", "--conf", "plain.conf"), ("f.yaml", "--conf", "map.yaml")):
        ran = pumice("run", *words, *NODES, "-o", "json", files=files)
        assert {pod["node"] for pod in json.loads(ran.out)["pods"].values()} == {"node-1"}, words
    assert "scheduler.conf: from with.yaml: document 2: ConfigMap c" in pumice("run", "with.yaml", *NODES, files=files).err


# --- time ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("until", ["50", "50s", "0m50s"])
def test_until_ends_a_run(pumice: Command, until: str) -> None:
    """So many seconds and no more, whatever happens afterwards."""
    files = {"f.yaml": job("a", seconds=100)}
    ran = pumice("run", "f.yaml", *NODES, "--until", until, "-o", "json", files=files)
    told = json.loads(ran.out)
    assert (told["clock"], told["ended"], told["jobs"]) == (50, "until", {"default/a": "Running"})


def test_a_run_of_days(pumice: Command) -> None:
    ran = pumice("run", "f.yaml", *NODES, "--until", "1d1h", "-o", "json", files={"f.yaml": job("a", seconds=100)})
    assert json.loads(ran.out)["clock"] == 90000


def test_the_longest_run_is_named(pumice: Command) -> None:
    assert "'9999999h' is longer than 292 years" in pumice("run", "f.yaml", "--until", "9999999h").err


def test_an_object_that_comes_later(pumice: Command) -> None:
    """pumice.io/arrives-after: the first is done before the second comes."""
    files = {"f.yaml": job("late", 2, "5", after="1m") + job("early", 2, "5", seconds=20)}
    ran = pumice("run", "f.yaml", *NODES, "-o", "json", files=files)
    told = json.loads(ran.out)
    assert (ran.status, told["jobs"]) == (0, {"default/early": "Completed", "default/late": "Running"})
    assert 60 < told["clock"] < 70


def test_a_run_that_never_settles_is_ended(pumice: Command) -> None:
    """A CronJob goes on for ever: a day is enough, and it is said so."""
    cron = yaml.safe_load(job("tick", 1, "1", seconds=60))
    template = {"spec": cron["spec"]}
    cron |= {"kind": "CronJob", "spec": {"schedule": "0 */6 * * *", "jobTemplate": template}}
    ran = pumice("run", "f.yaml", *NODES, files={"f.yaml": "---\n" + yaml.safe_dump(cron)})
    assert ran.out.splitlines()[-1].startswith("1d of time")
    assert ran.out.splitlines()[-1].endswith("it never settles")


def test_interrupted(pumice: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C: what is known by then is printed, status 130."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Progress, "on_cycle", interrupt)
    ran = pumice("run", "f.yaml", *NODES, "-o", "json", files={"f.yaml": job("a")})
    assert (ran.status, json.loads(ran.out)["ended"]) == (130, "interrupted")


PICTURES = {"utf-8": ("█", "░"), "ascii": ("#", "."), "latin-1": ("#", ".")}


@pytest.mark.parametrize("encoding", PICTURES)
def test_tables_in_what_the_locale_has(tmp_path: Path, encoding: str) -> None:
    """Bars and lines of a table are drawn with what standard output can take."""
    (tmp_path / "f.yaml").write_text(job("a", 1, "4"))
    command = [sys.executable, "-c", "from extender.ctl.pumice import main; main()", "run", "f.yaml", *NODES]
    ran = subprocess.run(command, cwd=tmp_path, env=os.environ | {"PYTHONIOENCODING": encoding}, capture_output=True, check=True)
    full, empty = PICTURES[encoding]
    assert f"{full * 5}{empty * 5} 4/8" in ran.stdout.decode(encoding)


# --- long stories -------------------------------------------------------------------------------------------------------

LATER_TIER = """actions: "enqueue, allocate, preempt, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: nodeorder}]
"""
HIGH = "---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high}\nvalue: 1000\n"


def test_jobs_do_not_push_each_other_out_without_end(pumice: Command) -> None:
    """drf in a later tier gives the less important job a pod of the more important one, which takes its room back: that is it."""
    important = yaml.safe_load(job("important", 2, "2"))
    important["spec"]["tasks"][0]["template"]["spec"]["priorityClassName"] = "high"
    important["spec"]["priorityClassName"] = "high"
    text = HIGH + "---\n" + yaml.safe_dump(important) + job("other", 1, "2", after="10")
    words = "--conf", "c.conf", "--nodes", "1x cpu=4,memory=8Gi", "--until", "1h", "-o", "json"
    told = json.loads(pumice("run", "f.yaml", *words, files={"f.yaml": text, "c.conf": LATER_TIER}).out)
    assert [each["at"] for each in told["evictions"]] == [11]
    assert told["jobs"] == {"default/important": "Running", "default/other": "Pending"}


# --- the timeline -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "begins"), [("t.png", b"\x89PNG"), ("t.svg", b"<?xml")])
def test_the_timeline(pumice: Command, tmp_path: Path, name: str, begins: bytes) -> None:
    """A picture of some size in the format of its name."""
    ran = pumice("run", "f.yaml", *NODES, "--timeline", name, files={"f.yaml": job("a", seconds=30) + job("b", 2, "6")})
    picture = (tmp_path / name).read_bytes()
    assert ran.status == 0
    assert picture.startswith(begins)
    assert len(picture) > 10_000


def test_the_timeline_names_what_it_shows(pumice: Command, tmp_path: Path) -> None:
    """Jobs, nodes and queues are text in an SVG; two runs draw the same."""
    words = "run", "f.yaml", *NODES, "--timeline"
    files = {"f.yaml": QUEUE % ("team", "") + job("train", queue="team", seconds=200) + job("web")}
    pumice(*words, "one.svg", files=files)
    pumice(*words, "two.svg", files=files)
    text = (tmp_path / "one.svg").read_text()
    shown = ("default/train", "default/web", "node-1", "node-2", "team", "minutes since the start")
    assert [name for name in shown if f">{name}<" not in text] == []
    assert text == (tmp_path / "two.svg").read_text()


def test_a_timeline_of_nothing(pumice: Command, tmp_path: Path) -> None:
    """A cluster in which nothing runs still has nodes."""
    assert pumice("run", "f.yaml", *NODES, "--timeline", "t.svg", files={"f.yaml": QUEUE % ("team", "")}).status == 0
    assert ">node-2<" in (tmp_path / "t.svg").read_text()


# --- help ---------------------------------------------------------------------------------------------------------------


def test_help_lists_everything(pumice: Command) -> None:
    """Options, the default cluster, exit statuses, annotations."""
    ran = pumice("run", "--help")
    options = ("--nodes", "--conf", "--until", "--clock", "-o, --output", "--timeline", "--scheduler-name")
    others = (
        "4x cpu=32,memory=128Gi,nvidia.com/gpu=8",
        "something can never fit",
        "pumice.io/run-seconds",
        "pumice.io/arrives-after",
    )
    assert ran.status == 0
    assert [word for word in (*options, *others) if word not in ran.out] == []


def test_run_is_a_subcommand(pumice: Command) -> None:
    assert "run " in pumice("--help").out
