"""`pumice score`: the table for people, the answers for machines, and errors that name file, document and field."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import orjson
import pytest
import yaml
from click.testing import CliRunner, Result

from extender.api.errors import PumiceError, UsageError
from extender.api.meta import Json
from extender.ctl.found import Refused
from extender.ctl.score import score
from extender.testing.builders import node, pod


def invoke(*arguments: str, stdin: str = "") -> Result:
    """An error that the entry point would print is raised."""
    result = CliRunner().invoke(score, arguments, input=stdin)
    if isinstance(result.exception, PumiceError):
        raise result.exception
    assert result.exception is None, result.exception
    return result


class Write(Protocol):
    """Objects -> a YAML file in a folder of the test's own, its path."""

    def __call__(self, name: str, *objects: Json) -> str: ...


@pytest.fixture
def file(tmp_path: Path) -> Write:
    def write(name: str, *objects: Json) -> str:
        path = tmp_path / name
        path.write_text(yaml.safe_dump_all([orjson.loads(orjson.dumps(obj)) for obj in objects]))
        return str(path)

    return write


NODES = [
    node("n1").cpu(4).memory("8Gi"),
    node("n2").cpu(1).memory("8Gi"),
    node("n3").cpu(8).memory("8Gi"),
    node("n4").taint("gpu"),
]


def test_the_table_has_the_best_node_first_and_says_why_others_are_out(file: Write) -> None:
    lines = invoke(file("pod.yaml", pod().cpu(2)), file("cluster.yaml", *NODES)).output.splitlines()
    assert lines == [
        "NODE  TOTAL  TAINTS*3  FREE-ROOM*1  BALANCE*1  IMAGES*1  VERDICT",
        "n3    454    100       86           68         0         passes",
        "n1    435    100       73           62         0         passes",
        "n2    -      -         -            -          -         NodeResourcesFit: Insufficient cpu",
        "n4    -      -         -            -          -         TaintToleration: node(s) had untolerated taint(s)",
    ]


def test_a_node_that_no_term_names_is_explained(file: Write) -> None:
    field = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [field]}]}}
    asked = file("pod.yaml", pod().with_("spec.affinity.nodeAffinity", affinity))
    lines = invoke(asked, file("cluster.yaml", *NODES[:2])).output.splitlines()
    assert lines[2].endswith("PreFilter: the pod's node affinity names other nodes")


def test_the_total_is_that_of_weighted_points(file: Write) -> None:
    found = orjson.loads(invoke(file("pod.yaml", pod().cpu(2)), file("cluster.yaml", *NODES), "-o", "json").output)
    for name, total in found["total"].items():
        assert total == sum(found["weight"][scorer] * points[name] for scorer, points in found["score"].items())
    assert set(found["total"]) == {"n1", "n3"}


def test_the_cluster_may_be_a_folder_and_may_hold_the_pod_itself(file: Write, tmp_path: Path) -> None:
    """A pod that is bound already is judged as if it were not there."""
    (tmp_path / "cluster").mkdir()
    file("cluster/nodes.yaml", node("n1").cpu(4).memory("8Gi"))
    file("cluster/pods.yaml", pod().cpu(3).on("n1"), pod("other").cpu(1).on("n1"))
    found = orjson.loads(invoke(file("pod.yaml", pod().cpu(3)), str(tmp_path / "cluster"), "-o", "json").output)
    assert found["filter"] == {"n1": {"ok": True}}


def test_pods_that_have_ended_take_no_room(file: Write) -> None:
    ended = pod("done").cpu(4).on("n1", phase="Succeeded")
    cluster = file("cluster.yaml", node("n1").cpu(4).memory("8Gi"), ended)
    found = orjson.loads(invoke(file("pod.yaml", pod().cpu(4)), cluster, "-o", "json").output)
    assert found["filter"] == {"n1": {"ok": True}}


def test_answers_come_in_the_order_of_questions_and_errors_in_their_place() -> None:
    asked = [
        {"id": "a", "nodes": [node("n1").cpu(1)], "pod": pod()},
        {"id": "b", "nodes": [node("n1").cpu("1x")], "pod": pod()},
        {"id": "c", "nodes": [], "pod": pod()},
        {"id": "d", "nodes": [], "pod": pod(), "objects": [{"kind": "Gadget"}]},
    ]
    lines = [orjson.dumps(question).decode() for question in asked]
    ran = CliRunner().invoke(score, ["--jsonl"], input="\n".join([*lines, ""]))
    answers = [orjson.loads(line) for line in ran.stdout.splitlines()]
    assert [answer["id"] for answer in answers] == ["a", "b", "c", "d"]
    assert answers[0]["filter"] == {"n1": {"ok": True}}
    assert "status.allocatable[cpu]: '1x' is not a quantity" in answers[1]["error"]
    assert answers[2] == {"id": "c", "filter": {}, "score": {}, "weight": {}, "total": {}}
    assert answers[3]["error"] == 'objects: unknown kind "Gadget"'
    assert str(ran.exception) == "--jsonl: 2 of 4 lines could not be answered; their errors say why"


@pytest.mark.parametrize("line", ["{", "[]", "nonsense", "", "  ", "{}"])
def test_a_line_that_is_no_question(line: str) -> None:
    """It is answered in its place, the others are too; the exit status is not 0."""
    question = orjson.dumps({"id": "a", "nodes": [node("n1").cpu(1)], "pod": pod()}).decode()
    ran = CliRunner().invoke(score, ["--jsonl"], input="\n".join([question, line, question]))
    answers = [orjson.loads(line) for line in ran.stdout.splitlines()]
    assert [(answer["id"], bool(answer.get("error"))) for answer in answers] == [("a", False), ("", True), ("a", False)]
    assert str(ran.exception) == "--jsonl: 1 of 3 lines could not be answered; its error says why"


BAD_OBJECT = '{"id": "%s", "nodes": [], "pod": {}, "objects": [{"kind": "Service", "metadata": %s}]}'
BAD_LINES = {
    "a map for a name": (BAD_OBJECT % ("x", '{"name": {}}'), "metadata.name: Expected `str`, got `object`"),
    "a list for a namespace": (BAD_OBJECT % ("x", '{"namespace": []}'), "metadata.namespace: Expected `str`, got `array`"),
    "a number for metadata": (BAD_OBJECT % ("x", "5"), "metadata: Expected `object | null`, got `int`"),
    "no end of lists": ("[" * 5000, "nested too deeply"),
    "no end of maps where nobody looks": ('{"id": "x", "more": ' + '{"a":' * 5000, "nested too deeply"),
    "no UTF-8": (b'{"id": "\xff"}', "Invalid UTF-8"),
}


@pytest.mark.parametrize(("line", "says"), BAD_LINES.values(), ids=BAD_LINES)
def test_after_a_bad_line_the_next_one_is_answered(line: str | bytes, says: str) -> None:
    question = orjson.dumps({"id": "next", "nodes": [node("n1").cpu(1)], "pod": pod()})
    bad = line if isinstance(line, bytes) else line.encode()
    ran = CliRunner().invoke(score, ["--jsonl"], input=bad + b"\n" + question)
    refused, answered = (orjson.loads(each) for each in ran.stdout.splitlines())
    assert says in refused["error"]
    assert (answered["id"], answered["filter"]) == ("next", {"n1": {"ok": True}})


def test_all_of_the_cluster_that_cannot_be_read_is_told(file: Write) -> None:
    """Each with its document."""
    nodes = [node(f"n{i}").with_("status.allocatable.cpu", "four") for i in range(2)]
    with pytest.raises(PumiceError) as told:
        invoke(file("pod.yaml", pod()), file("nodes.yaml", *nodes))
    assert [line.partition("nodes.yaml: ")[2] for line in str(told.value).splitlines()] == [
        f"document {i}: status.allocatable[cpu]: 'four' is not a quantity (such as 500m, 2, 1.5Gi, 1e3)" for i in (1, 2)
    ]


def test_slips_in_the_pod_are_warned_of(file: Write) -> None:
    """It is judged as a server would read it."""
    ran = invoke(file("pod.yaml", pod().memory(512).with_("spec.nodeSelectr", {"a": "b"})), file("nodes.yaml", *NODES))
    assert [line.partition("pod.yaml: document 1: ")[2] for line in ran.stderr.splitlines()] == [
        "Pod default/p: spec.nodeSelectr: unknown field, passed over; did you mean 'nodeSelector'?",
        "Pod default/p: spec.containers[0].resources.requests.memory: '512' is 512 bytes; was 512Gi meant?",
    ]


def test_null_is_as_good_as_absent() -> None:
    """Go writes empty lists and maps as null."""
    on = {**node("n1").cpu(1), "spec": {"taints": None}}
    spec = {"containers": [{"name": "c", "resources": None, "ports": None}], "tolerations": None, "affinity": None}
    asked = {**pod(), "spec": spec}
    question = {"id": "a", "nodes": [on], "pods": None, "objects": None, "pod": asked}
    answer = orjson.loads(invoke("--jsonl", stdin=orjson.dumps(question).decode()).output)
    assert answer["filter"] == {"n1": {"ok": True}}


def test_a_question_s_pods_hold_their_nodes_whatever_their_phase() -> None:
    question = {"id": "a", "nodes": [node("n1").cpu(1)], "pods": [pod("o").cpu(1).on("n1", phase="Failed")], "pod": pod().cpu(1)}
    answer = orjson.loads(invoke("--jsonl", stdin=orjson.dumps(question).decode()).output)
    assert answer["filter"]["n1"]["reasons"] == ["Insufficient cpu"]


def test_what_cannot_be_read_is_named_with_file_document_and_field(file: Write) -> None:
    asked, bad = file("pod.yaml", pod()), file("bad.yaml", node("n1").cpu(1), node("n2").cpu("1x"))
    with pytest.raises(PumiceError, match=r"bad\.yaml: document 2: status\.allocatable\[cpu\]: '1x' is not a quantity"):
        invoke(asked, bad)
    with pytest.raises(PumiceError, match=r"pod2\.yaml: document 1: .*spec\.containers\[0\]\.resources\.requests\[cpu\]"):
        invoke(file("pod2.yaml", pod().cpu("2z")), file("nodes.yaml", node("n1").cpu(1)))


MISUSE = {
    "nothing given": ([], UsageError, "give a pod and the cluster"),
    "no cluster": (["pod.yaml"], UsageError, "give a pod and the cluster"),
    "no such file": (["gone.yaml", "nodes.yaml"], UsageError, "gone.yaml: no such file"),
    "no pod in the file": (
        ["nodes.yaml", "nodes.yaml"], Refused, "exactly one Pod, and holds 1 Node; the pod comes first, then the cluster",
    ),
    "no node in the cluster": (["pod.yaml", "pod.yaml"], Refused, "no Node in"),
    "files beside --jsonl": (["--jsonl", "pod.yaml"], UsageError, "it takes no files"),
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "sort", "message"), MISUSE.values(), ids=MISUSE)
def test_misuse_says_what_to_do(file: Write, tmp_path: Path, arguments: list[str], sort: type, message: str) -> None:
    """UsageError is status 2, Refused status 1: what was read cannot be used."""
    file("pod.yaml", pod())
    file("nodes.yaml", node("n1").cpu(1))
    with pytest.raises(sort, match=message):
        invoke(*(str(tmp_path / a) if a.endswith(".yaml") else a for a in arguments))


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"id": "q7", "node": []}', "node: a question has no such field; did you mean 'nodes'?"),
        ('{"id": "q7", "nodes": 3}', None),
    ],
)
def test_a_line_that_is_no_question_keeps_its_id(line: str, says: str | None) -> None:
    ran = CliRunner().invoke(score, ["--jsonl"], input=line)
    answer = orjson.loads(ran.stdout)
    assert (answer["id"], answer["filter"], says in (None, answer["error"])) == ("q7", None, True)
