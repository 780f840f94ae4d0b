"""A job in partitions, from its manifest to its pods: each partition is a sub-group, placed whole."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from tests.run.conftest import Command

JOB = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: parts}
spec:
  minAvailable: 4
  tasks:
  - name: w
    replicas: 9
    partitionPolicy: {totalPartitions: 3, partitionSize: 3, minPartitions: %d}
    template:
      spec: {restartPolicy: Never, containers: [{name: m, image: x, resources: {requests: {cpu: 1}}}]}
"""

ROOM: dict[str, tuple[int, int, list[int]]] = {
    "for all": (2, 9, [3, 3, 3]),
    "for two partitions, and two pods of the third": (2, 8, [3, 3]),
    "for one less than it needs": (2, 5, []),
    "for minAvailable, but not for its partitions": (3, 8, []),
}


@pytest.mark.parametrize(("minimum", "cpu", "want"), ROOM.values(), ids=ROOM)
def test_partitions_start_whole(pumice: Command, minimum: int, cpu: int, want: list[int]) -> None:
    ran = pumice("run", "job.yaml", "--nodes", f"1x cpu={cpu},memory=8Gi", "-o", "json", files={"job.yaml": JOB % minimum})
    pods = json.loads(ran.out)["pods"]
    running = [int(name.rpartition("-")[2]) for name, pod in pods.items() if pod["node"]]
    assert sorted(Counter(index // 3 for index in running).values()) == want
