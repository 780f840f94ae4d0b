"""Record what kube-scheduler answers to random questions: `python tests/parity/record_kube_scores.py ANSWERER`.

ANSWERER is a program that runs the real Filter and Score plugins of k8s.io/kubernetes v1.36.1, default profile: questions in,
answers out, one JSON object a line. Of SEED's questions those are kept that meet most rules, the small ones first."""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections import Counter
from pathlib import Path

import orjson

from extender.api.meta import Json
from extender.testing.questions import questions

VERSION = "k8s.io/kubernetes v1.36.1"
RECORD = Path(__file__).with_name("kube_scores.jsonl.gz")
SEED, ASKED, KEPT = 2026, 3000, 200
_LARGEST = 18_000  # bytes of a question


def features(question: Json, answer: Json) -> set[str]:
    """Rules that the question meets: verdicts, scorers whose points differ between nodes, fields of the pod."""
    found = {f"{v.get('plugin')} {v.get('code')} {v.get('reasons')}" for v in answer["filter"].values() if not v["ok"]}
    found |= {f"refused by {verdict['plugin']}" for verdict in answer["filter"].values() if not verdict["ok"]}
    found |= {f"points of {scorer}" for scorer, points in answer["score"].items() if len(set(points.values())) > 1}
    found |= {f"{scorer} is asked" for scorer in answer["score"]}
    spec = question["pod"]["spec"]
    for kind, affinity in spec.get("affinity", {}).items():
        found |= {f"{kind} {part}" for part in affinity}
    for constraint in spec.get("topologySpreadConstraints", ()):
        found |= {f"spread {constraint['whenUnsatisfiable']} {field}" for field in constraint}
    return found | {f"spec.{field}" for field in spec}


def chosen(asked: list[Json], answers: list[Json]) -> list[int]:
    """Those whose rules have been met least so far; filters that refuse and points that tell nodes apart are worth most."""
    met: Counter[str] = Counter()

    def worth(i: int) -> tuple[float, int]:
        return sum(
            (5 if feature.startswith(("points of", "refused by")) else 1) / (1 + met[feature]) ** 2 for feature in left[i]
        ), -i

    left = {i: features(q, answers[i]) for i, q in enumerate(asked) if len(orjson.dumps(q)) <= _LARGEST}
    picked: list[int] = []
    while len(picked) < KEPT:
        best = max(left, key=worth)
        met.update(left.pop(best))
        picked.append(best)
    return sorted(picked)


def main() -> None:
    asked = list(questions(SEED, ASKED))
    lines = b"".join(orjson.dumps(q, option=orjson.OPT_APPEND_NEWLINE) for q in asked)
    answered = subprocess.run([sys.argv[1]], input=lines, capture_output=True, check=True)
    answers = [orjson.loads(line) for line in answered.stdout.splitlines()]
    header = {"source": VERSION, "seed": SEED, "what": "question and answer, one pair a line; see extender/testing/questions.py"}
    record = [header, *({"question": asked[i], "answer": answers[i]} for i in chosen(asked, answers))]
    raw = b"".join(orjson.dumps(entry, option=orjson.OPT_APPEND_NEWLINE) for entry in record)
    RECORD.write_bytes(gzip.compress(raw, 9, mtime=0))


if __name__ == "__main__":
    main()
