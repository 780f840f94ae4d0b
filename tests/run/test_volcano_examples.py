"""Every file of Volcano's example folder: played to its end, or waiting for a reason that is true, or refused by the right field.

What each file comes to stands in examples.py."""

from __future__ import annotations

import json

import pytest

from tests.run.conftest import Command
from tests.run.examples import (
    AGENT,
    BESIDE,
    CONF_MAPS,
    CONFS,
    FOLDER,
    FOREIGN,
    MISSING,
    NAMES,
    PLAYED,
    REFUSED,
    UNSERVED,
    WAITS,
    WITH,
)

_JOB = """apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: probe}
spec:
  minAvailable: 3
  tasks:
  - name: worker
    replicas: 3
    template: {spec: {containers: [{name: main, image: app, resources: {requests: {cpu: "2", memory: 2Gi}}}]}}
"""

pytestmark = pytest.mark.skipif(not NAMES, reason=MISSING)


def _files(name: str) -> list[str]:
    return [str(FOLDER / f"{each}.yaml") for each in (name, *WITH.get(name, ()))]


def _beside(name: str) -> tuple[list[str], dict[str, str | bytes]]:
    return (["beside.yaml"], {"beside.yaml": BESIDE[name]}) if name in BESIDE else ([], {})


@pytest.mark.parametrize(("name", "field"), [*REFUSED.items(), *UNSERVED.items()])
def test_it_is_refused(pumice: Command, name: str, field: str) -> None:
    """With file, document and field."""
    more, files = _beside(name)
    ran = pumice("run", *_files(name), *more, files=files)
    assert (ran.status, ran.out) == (1, "")
    assert ran.fault.startswith(f"{FOLDER / name}.yaml: document ")
    assert f" {field}: " in ran.fault.replace(" [", " ")


@pytest.mark.parametrize("name", FOREIGN)
def test_it_is_of_another_project(pumice: Command, name: str) -> None:
    ran = pumice("run", *_files(name))
    assert (ran.status, ran.fault) == (1, f"no manifests in {FOLDER / name}.yaml that are played here, only Workflow")


@pytest.mark.parametrize("name", WAITS)
def test_it_waits(pumice: Command, name: str) -> None:
    """For a reason that names what is missing."""
    status, reason, names = WAITS[name]
    more, files = _beside(name)
    ran = pumice("run", *_files(name), *more, "-o", "json", files=files)
    told = json.loads(ran.out)["waiting"]
    assert ran.status == status
    assert [wait["reason"] for wait in told] == [reason] * len(told)
    assert names in told[0]["message"]


@pytest.mark.parametrize("name", PLAYED)
def test_it_is_played(pumice: Command, name: str) -> None:
    """All its pods get nodes, all its jobs run."""
    more, files = _beside(name)
    ran = pumice("run", *_files(name), *more, "-o", "json", files=files)
    told = json.loads(ran.out)
    assert (ran.status, told["waiting"]) == (0, [])
    assert [key for key, pod in told["pods"].items() if not pod["node"] or pod["phase"] == "Pending"] == []
    assert set(told["jobs"].values()) <= {"Running", "Completed"}


@pytest.mark.parametrize("name", CONFS)
def test_a_configuration_file(pumice: Command, name: str) -> None:
    """What Volcano reads is read, and a gang is placed under it."""
    ran = pumice("run", "job.yaml", "--conf", f"{FOLDER / name}.yaml", "-o", "json", files={"job.yaml": _JOB})
    assert (ran.status, json.loads(ran.out)["jobs"]) == (0, {"default/probe": "Running"})


@pytest.mark.parametrize("name", CONF_MAPS)
def test_a_configuration_in_a_config_map(pumice: Command, name: str) -> None:
    """Likewise, found among the manifests."""
    ran = pumice("run", "job.yaml", f"{FOLDER / name}.yaml", "-o", "json", files={"job.yaml": _JOB})
    assert f"scheduler.conf: from {FOLDER / name}.yaml: document " in ran.err
    assert (ran.status, json.loads(ran.out)["jobs"]) == (0, {"default/probe": "Running"})


def test_the_tables_name_files_that_are_there() -> None:
    """A file that is gone or has another name is no silent success."""
    assert {*REFUSED, *UNSERVED, *FOREIGN, *WAITS, *WITH, *BESIDE, AGENT} - set(NAMES) == set()
    assert len(PLAYED) > 90
