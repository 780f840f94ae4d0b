"""What the manifests say of our programs is true, and safe to run."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import certs.cli
import controller.cli
import extender.options
import webhook.cli
from controller.reconciler import CONFIGURATION
from extender.actions import ACTIONS
from extender.api.errors import InvalidObject
from extender.api.meta import Json, kind_of
from extender.cluster.clock import VirtualClock
from extender.cluster.flags import parse
from extender.cluster.memory import MemoryCluster
from extender.core.conf import load
from extender.plugins import PLUGINS
from tests.manifests.reading import CHART, MANIFESTS, PARTS, arguments, documents, installed, of_kind, pods, resources
from webhook.manifests import configuration_name
from webhook.routes import enabled_paths

ENVIRON = {"POD_NAMESPACE": "volcano-system", "POD_NAME": "some-pod"}
OPTIONS: dict[str, Any] = {
    "vc-scheduler": extender.options.Options(),
    "vc-controller-manager": controller.cli.Options(),
    "vc-webhook-manager": webhook.cli.Options(),
    "vc-certs": certs.cli.KeepOptions(),
}
PODS = dict(pods(installed()))
CONTAINERS = {each["name"]: each for spec in PODS.values() for each in spec["containers"]}
FILES = [file for pattern in ("*.yaml", "*/*.yaml", "*/*/*.yaml") for file in sorted(MANIFESTS.glob(pattern))
         if CHART / "templates" not in file.parents]  # fmt: skip


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(MANIFESTS)))
def test_a_manifest_is_yaml(file: Path) -> None:
    assert list(yaml.safe_load_all(file.read_text()))


@pytest.mark.parametrize("part", [*PARTS, "queues"])
def test_what_the_embedded_cluster_knows_it_takes(part: str) -> None:
    cluster, taken = MemoryCluster(VirtualClock(0.0)), 0
    for obj in (obj for file in resources(MANIFESTS / part) for obj in documents(file.read_text())):
        try:
            kind = kind_of(obj)
        except InvalidObject:
            continue  # rights: nothing that programs look at
        cluster.create(kind, obj)
        taken += 1
    assert taken or part == "rbac"


# --- the programs ---------------------------------------------------------------------------------------------------------


def flags(program: str) -> list[str]:
    """Without the name of a subcommand."""
    return [word for word in arguments(CONTAINERS[program], ENVIRON) if word.startswith("-")]


@pytest.mark.parametrize("program", OPTIONS)
def test_a_program_understands_its_flags(program: str) -> None:
    given = parse(OPTIONS[program], flags(program), {}, program)
    assert given.warnings == ()
    if hasattr(given.options, "check"):
        given.options.check()


@pytest.mark.parametrize("program", OPTIONS)
def test_a_program_is_a_command_of_the_distribution(program: str) -> None:
    project = tomllib.loads((MANIFESTS.parent / "pyproject.toml").read_text())["project"]
    assert CONTAINERS[program]["command"][0] == program
    assert program in project["scripts"]
    assert CONTAINERS[program]["image"] == f"pumice:{project['version']}"


@pytest.mark.parametrize("program", OPTIONS)
def test_probes_ask_where_the_program_answers(program: str) -> None:
    container = CONTAINERS[program]
    options = parse(OPTIONS[program], flags(program), {}, program).options
    serving = getattr(options, "serving", options)
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert serving.enable_healthz
    assert serving.healthz_address == f":{ports['health']}"
    paths = {name: container[name]["httpGet"] for name in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert paths == {
        "startupProbe": {"path": "/livez", "port": "health"},
        "livenessProbe": {"path": "/livez", "port": "health"},
        "readinessProbe": {"path": "/readyz", "port": "health"},
    }


def test_ports_are_those_of_the_reference() -> None:
    ports = {name: {port["name"]: port["containerPort"] for port in each.get("ports", ())} for name, each in CONTAINERS.items()}
    assert ports == {
        "vc-scheduler": {"metrics": 8080, "health": 11251},
        "vc-controller-manager": {"metrics": 8081, "health": 11251},
        "vc-webhook-manager": {"https": 8443, "health": 11251},
        "vc-certs": {"health": 11251},
    }


def test_what_is_sent_to_admission_is_served() -> None:
    options = parse(OPTIONS["vc-webhook-manager"], arguments(CONTAINERS["vc-webhook-manager"], ENVIRON), {}, "").options
    sent = {obj["metadata"]["name"] for obj in installed() if obj["kind"].endswith("WebhookConfiguration")}
    assert sent == {configuration_name(path) for path in enabled_paths(options.enabled_admission)}


def test_admission_is_not_told_the_authority() -> None:
    """It would write it into the configurations, for which it has no rights: vc-certs or cert-manager do that."""
    assert not [word for word in arguments(CONTAINERS["vc-webhook-manager"], ENVIRON) if "ca-cert-file" in word]


def test_the_configuration_of_the_scheduler_is_that_of_the_chart() -> None:
    """Of the reference's chart, and nothing in it is new to this scheduler."""
    text = (MANIFESTS / "deploy" / "volcano-scheduler.conf").read_text()
    conf = load(text, PLUGINS, ACTIONS)
    assert conf.warnings == ()
    assert [each.action.name for each in conf.actions] == ["enqueue", "allocate", "backfill"]
    assert [[each.name for each in tier] for tier in conf.tiers] == [
        ["priority", "gang", "conformance"],
        ["overcommit", "drf", "predicates", "proportion", "nodeorder", "binpack"],
    ]


def test_every_config_map_that_is_mounted_is_made() -> None:
    (kustomization,) = documents((MANIFESTS / "deploy" / "kustomization.yaml").read_text())
    made = {each["name"] for each in kustomization["configMapGenerator"]}
    mounted = {volume["configMap"]["name"] for spec in PODS.values() for volume in spec["volumes"] if "configMap" in volume}
    assert made == {*mounted, CONFIGURATION.name}


# --- safety ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PODS)
def test_a_pod_is_restricted(name: str) -> None:
    """By the Pod Security Standard of that name, and its files cannot be changed."""
    spec = PODS[name]
    context = spec["securityContext"]
    assert (context["runAsNonRoot"], context["runAsUser"], context["seccompProfile"]) == (True, 65532, {"type": "RuntimeDefault"})
    assert not [key for key in ("hostNetwork", "hostPID", "hostIPC") if key in spec]
    for container in spec["containers"]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
        }  # fmt: skip
        assert "/tmp" in [mount["mountPath"] for mount in container["volumeMounts"]]


@pytest.mark.parametrize("name", PODS)
def test_a_pod_says_what_it_needs_and_that_the_cluster_needs_it(name: str) -> None:
    spec = PODS[name]
    assert spec["priorityClassName"] == "system-cluster-critical"
    for container in spec["containers"]:
        assert {*container["resources"]["requests"]} == {"cpu", "memory"}
        assert {*container["resources"]["limits"]} == {"memory"}


def test_an_account_is_there_for_each_pod_and_used_by_it_only() -> None:
    accounts = of_kind(installed(), "ServiceAccount")
    assert sorted(spec["serviceAccountName"] for spec in PODS.values()) == sorted(accounts)
    assert not any(each["automountServiceAccountToken"] for each in accounts.values())


def test_a_budget_is_there_where_there_are_two() -> None:
    deployments, budgets = of_kind(installed(), "Deployment"), of_kind(installed(), "PodDisruptionBudget")
    assert set(budgets) == {name for name, each in deployments.items() if each["spec"]["replicas"] > 1}
    for name, budget in budgets.items():
        assert selects(budget["spec"]["selector"]["matchLabels"], deployments[name])


def test_a_service_leads_to_ports_that_are_there() -> None:
    deployments = of_kind(installed(), "Deployment").values()
    for service in of_kind(installed(), "Service").values():
        (behind,) = [each for each in deployments if selects(service["spec"]["selector"], each)]
        (container,) = behind["spec"]["template"]["spec"]["containers"]
        ports = {port["name"] for port in container["ports"]}
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports


def test_every_object_is_labelled_as_ours() -> None:
    assert {obj["metadata"]["labels"]["app.kubernetes.io/part-of"] for obj in installed()} == {"pumice"}
    assert not [obj["metadata"]["name"] for obj in installed() if "app.kubernetes.io/component" not in obj["metadata"]["labels"]
                and obj["kind"] != "Namespace"]  # fmt: skip


def selects(selector: Json, workload: Json) -> bool:
    return bool(selector.items() <= workload["spec"]["template"]["metadata"]["labels"].items())
