"""The Helm chart: without helm what can be known, with helm (on PATH, or where HELM says) what it makes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tomllib
from typing import Any

import jsonschema
import pytest
import yaml

from extender.api.meta import Json
from extender.cluster.flags import parse
from tests.controlplane.plane import Plane
from tests.manifests.needs import Need
from tests.manifests.reading import CHART, MANIFESTS, arguments, documents, installed, of_kind, pods, resources
from tests.manifests.test_objects import ENVIRON, OPTIONS
from tests.manifests.test_overlays import FOREIGN, refusal
from tests.manifests.test_rbac import granted
from webhook.routes import ROUTES

HELM = os.environ.get("HELM") or shutil.which("helm")
needs_helm = pytest.mark.skipif(HELM is None, reason="no helm: put it on PATH or name it in HELM to render the chart")
VALUES: Json = yaml.safe_load((CHART / "values.yaml").read_text())
MAPPING: dict[str, Any] = yaml.safe_load((CHART / "files" / "mapping.yaml").read_text())
AS_IN_BASE = ["--namespace=volcano-system", "--set=fullnameOverride=volcano"]
OF_THE_TEST = "test"
# Keys of a program that are left out of its values: those of all programs count then.
OF_ALL = {"affinity", "nodeSelector", "tolerations", "podLabels", "podSecurityContext", "securityContext"}


def rendered(*flags: str, release: str = "volcano") -> list[Json]:
    """The objects of a release. Fails where helm does."""
    return documents(helm("template", release, str(CHART), *flags).stdout)


def helm(*words: str) -> subprocess.CompletedProcess[str]:
    assert HELM is not None
    done = subprocess.run([HELM, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done


def at(values: Json, path: str) -> Any:
    for part in path.split("."):
        values = values[part]
    return values


# --- without helm ---------------------------------------------------------------------------------------------------------


def test_the_defaults_obey_the_schema() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    jsonschema.Draft7Validator(schema).validate(VALUES)


@pytest.mark.parametrize(("path", "value"), [
    ("scheduler.replica", 2), ("scheduler.replicas", "two"), ("schedulerNames", []), ("admission.paths", ["/nodes/mutate"]),
    ("image.digest", "sha256:short"), ("scheduler.schedulePeriod", "1"), ("sheduler", {}),
])  # fmt: skip
def test_a_mistake_in_the_values_is_found(path: str, value: object) -> None:
    values: Json = {}
    *parents, last = path.split(".")
    place = values
    for part in parents:
        place = place.setdefault(part, {})
    place[last] = value
    schema = json.loads((CHART / "values.schema.json").read_text())
    assert [error.message for error in jsonschema.Draft7Validator(schema).iter_errors(values)]


def test_its_version_is_ours() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    version = tomllib.loads((MANIFESTS.parent / "pyproject.toml").read_text())["project"]["version"]
    assert (chart["version"], chart["appVersion"]) == (version, version)


@pytest.mark.parametrize("folder", ["crds", "webhooks", "rbac"])
def test_its_files_are_those_of_the_other_manifests(folder: str) -> None:
    """Links, so that nothing is written twice."""
    linked = {file.name: file.resolve() for file in (CHART / "files" / folder).iterdir()}
    apart = {"sharding.yaml"} if folder == "rbac" else set()
    assert {name: file for name, file in linked.items() if name not in apart} == {
        file.name: file for file in (MANIFESTS / folder).glob("*.yaml") if file.name != "kustomization.yaml"
    }


@pytest.mark.parametrize("name", MAPPING)
def test_a_value_of_volcano_leads_to_one_of_ours(name: str) -> None:
    for target in MAPPING[name]["to"]:
        program, _, key = target.partition(".")
        assert at(VALUES, key if key in OF_ALL else target) is not None
        assert program in VALUES


def test_the_table_in_the_documentation_is_the_mapping() -> None:
    text = (MANIFESTS.parent / "docs" / "install.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith(("| `basic.", "| `custom."))]
    wanted = [f"| `{name}` | {', '.join(f'`{target}`' for target in rule['to'])} |" for name, rule in MAPPING.items()]
    assert rows == wanted


# --- with helm ------------------------------------------------------------------------------------------------------------


@needs_helm
def test_helm_finds_no_fault() -> None:
    said = helm("lint", "--strict", str(CHART)).stdout
    assert "0 chart(s) failed" in said
    assert "[WARNING]" not in said


@needs_helm
def test_the_chart_installs_what_kustomize_installs() -> None:
    """Under the names of Volcano's chart."""
    made = {(obj["kind"], obj["metadata"]["name"]) for obj in rendered(*AS_IN_BASE, "--set=crds.install=false")
            if obj["metadata"]["labels"]["app.kubernetes.io/component"] != OF_THE_TEST}  # fmt: skip
    config_maps = {("ConfigMap", f"volcano-{name}-configmap") for name in ("scheduler", "controller", "admission")}
    assert made == {(obj["kind"], obj["metadata"]["name"]) for obj in installed() if obj["kind"] != "Namespace"} | config_maps


@needs_helm
def test_the_rights_are_the_same() -> None:
    """But for the names of leases, which are those of the release."""
    ours, theirs = granted(rendered(*AS_IN_BASE, "--set=crds.install=false")), granted(installed())
    assert {str(each) for each in ours ^ theirs if "leases" not in str(each)} == set()
    assert {each for each in ours if isinstance(each, Need)} == {each for each in theirs if isinstance(each, Need)}


@needs_helm
def test_webhooks_are_the_same() -> None:
    ours = rendered(*AS_IN_BASE, "--set=crds.install=false")
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        made, wanted = of_kind(ours, kind), of_kind(installed(), kind)
        assert {name: obj["webhooks"] for name, obj in made.items()} == {name: obj["webhooks"] for name, obj in wanted.items()}


@needs_helm
def test_crds_are_the_same_and_stay() -> None:
    made = of_kind(rendered(*AS_IN_BASE), "CustomResourceDefinition")
    for file in sorted((MANIFESTS / "crds").glob("*.yaml")):
        (crd,) = documents(file.read_text())
        mine = made.pop(crd["metadata"]["name"])
        assert mine["spec"] == crd["spec"]
        assert mine["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    assert made == {}


@needs_helm
def test_pods_are_as_safe_and_understand_their_flags() -> None:
    base = {spec["containers"][0]["name"]: spec for _, spec in pods(installed())}
    for name, spec in pods(rendered(*AS_IN_BASE, "--set=crds.install=false")):
        (container,) = spec["containers"]
        if name == "volcano-answers":
            continue
        same = base[container["name"]]
        assert spec["securityContext"] == same["securityContext"]
        for part in ("securityContext", "livenessProbe", "readinessProbe", "startupProbe", "resources", "image", "command"):
            assert container.get(part) == same["containers"][0].get(part), part
        words = [word for word in arguments(container, ENVIRON) if word.startswith("-")]
        given = parse(OPTIONS[container["name"]], words, {}, container["name"])
        assert given.warnings == ()


@needs_helm
def test_values_of_volcano_are_understood() -> None:
    objs = rendered(
        "--set=crds.install=false,custom.scheduler_name=gpu,custom.scheduler_replicas=1,custom.leader_elect_enable=false",
        "--set=basic.image_pull_secret=registry,basic.image_registry=registry.example.com,basic.image_tag_version=9",
        "--set=custom.enabled_admissions=/jobs/mutate\\,/pods/validate,custom.default_ns.pool=system",
    )  # fmt: skip
    scheduler = of_kind(objs, "Deployment")["volcano-pumice-scheduler"]["spec"]
    spec = scheduler["template"]["spec"]
    assert scheduler["replicas"] == 1
    assert {"--scheduler-name=gpu", "--leader-elect=false"} <= {*spec["containers"][0]["args"]}
    assert spec["containers"][0]["image"] == "registry.example.com/pumice:9"
    assert (spec["imagePullSecrets"], spec["nodeSelector"]) == ([{"name": "registry"}], {"pool": "system"})
    webhooks = [obj for obj in objs if obj["kind"].endswith("WebhookConfiguration")]
    assert sorted(obj["metadata"]["name"].removeprefix("volcano-admission-service-") for obj in webhooks) == [
        "jobs-mutate", "pods-validate",
    ]  # fmt: skip
    (condition,) = webhooks[1]["webhooks"][0]["matchConditions"]
    assert "object.spec.schedulerName in ['gpu']" in condition["expression"]


@needs_helm
def test_beside_volcano_nothing_has_its_names() -> None:
    other = "--set=crds.install=false,schedulerNames={pumice},admission.configurationPrefix=pumice-admission"
    made = rendered("--namespace=pumice", other, release="pumice")
    assert not [obj["metadata"]["name"] for obj in made if "volcano" in obj["metadata"]["name"]]
    certs = [need for need in granted(made) if "webhookconfigurations" in str(need) and "name=" in str(need)]
    assert certs
    assert not [str(each) for each in certs if "volcano-admission" in str(each)]


@needs_helm
def test_with_resource_groups_all_pods_are_sent() -> None:
    file = MANIFESTS / "webhooks" / "pods-mutate-resource-groups.yaml"
    (whole,) = documents(file.read_text())
    groups = "--set=crds.install=false,admission.config=resourceGroups: [{resourceGroup: a}]"
    made = of_kind(rendered(*AS_IN_BASE, groups), "MutatingWebhookConfiguration")
    assert made[whole["metadata"]["name"]]["webhooks"] == whole["webhooks"]


@needs_helm
@pytest.mark.parametrize("flags", [
    (), ("--set=certManager.enabled=true",),
    ("--set=networkPolicy.enabled=true,controllers.controllers=*,metrics.serviceMonitor.enabled=true,"
     "metrics.prometheusRule.enabled=true",),
], ids=["defaults", "cert-manager", "all"])  # fmt: skip
def test_an_api_server_takes_what_the_chart_makes(plane: Plane, flags: tuple[str, ...]) -> None:
    plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": "volcano-system"}})
    objs = [obj for obj in rendered(*AS_IN_BASE, *flags) if not obj["apiVersion"].startswith(FOREIGN)]
    assert [why for obj in objs if (why := refusal(plane, obj))] == []


def test_every_admission_is_in_the_values() -> None:
    assert VALUES["admission"]["paths"] == [route.path for route in ROUTES]
    assert {file.stem for file in resources(MANIFESTS / "webhooks")} == {path.strip("/").replace("/", "-")
                                                                       for path in VALUES["admission"]["paths"]}  # fmt: skip
