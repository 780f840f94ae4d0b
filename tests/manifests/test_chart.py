"""The Helm chart: without helm what can be known, with helm what it makes."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from extender.api.meta import Json
from extender.cluster.flags import parse
from extender.cluster.options import LeaderOptions
from extender.options import Options
from extender.vocabulary import vocabulary
from tests.controlplane.plane import Plane
from tests.manifests.helm import AS_IN_BASE, NO_CRDS, Helm
from tests.manifests.needs import Named, Need
from tests.manifests.reading import CHART, MANIFESTS, arguments, documents, installed, of_kind, pods, resources
from tests.manifests.test_objects import ENVIRON, OPTIONS
from tests.manifests.test_overlays import FOREIGN, built, refusal
from tests.manifests.test_rbac import granted
from webhook.routes import ROUTES

VALUES: Json = yaml.safe_load((CHART / "values.yaml").read_text())
MAPPING: dict[str, Any] = yaml.safe_load((CHART / "files" / "mapping.yaml").read_text())
OF_THE_TEST = "volcano-answers"  # the pod of `helm test`
# Labels that say who has installed an object, and under which name.
OF_THE_INSTALLER = {f"app.kubernetes.io/{name}" for name in ("instance", "managed-by", "name", "version")} | {"helm.sh/chart"}
# Keys of a program that are left out of its values: those of all programs count then.
OF_ALL = {"affinity", "nodeSelector", "tolerations", "podLabels", "podSecurityContext", "securityContext"}


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
    ("image.digest", "sha256:short"), ("scheduler.plugins", {"a b": "x"}),
    ("scheduler.pluginsDir", "plugins"), ("scheduler.schedulePeriod", "1"), ("sheduler", {}),
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
    apart = {"extender.yaml", "sharding-controllers.yaml", "sharding-scheduler.yaml"} if folder == "rbac" else set()
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


def test_helm_finds_no_fault(helm: Helm) -> None:
    said = helm("lint", "--strict", str(CHART))
    assert "0 chart(s) failed" in said
    assert "[WARNING]" not in said


def test_the_chart_makes_what_kustomize_makes(helm: Helm, programs: Path) -> None:
    """Under the names of Volcano's chart, and but for what says who installed it (`meaning`)."""
    made = {named(obj): meaning(obj) for obj in helm.rendered(*AS_IN_BASE) if named(obj)[1] != OF_THE_TEST}
    wanted = {named(obj): meaning(obj) for obj in built(programs, MANIFESTS) if obj["kind"] != "Namespace"}
    assert sorted(made) == sorted(wanted)
    assert {name: (made[name], obj) for name, obj in wanted.items() if made[name] != obj} == {}


def named(obj: Json) -> tuple[str, str]:
    return obj["kind"], obj["metadata"]["name"]


def meaning(obj: Json) -> Json:
    """An object as far as base/ and the chart must agree: flags as they are understood, and without whose object it is."""
    found: Json = without_owner(obj)
    if obj["kind"] in ("ConfigMap", "CustomResourceDefinition"):
        found["metadata"]["labels"] = {}  # of no program where kustomize makes them
    for rule in found.get("rules", ()):
        if "leases" in rule["resources"] and "resourceNames" in rule:
            rule["resourceNames"] = ["the lease of the program"]
    for _, spec in pods([found]):
        (container,) = spec["containers"]
        options = options_of(container)
        container["args"] = replace(options, leader=LeaderOptions()) if hasattr(options, "leader") else options
        container["ports"] = {port["name"]: port["containerPort"] for port in container.get("ports", ())}
        container["env"] = [each for each in container["env"] if each["name"] != "HELM_RELEASE_NAME"]
    return found


def without_owner(value: object) -> Any:
    """A copy without the labels that name the installer."""
    if isinstance(value, dict):
        return {key: without_owner(each) for key, each in value.items() if key not in OF_THE_INSTALLER}
    return [without_owner(each) for each in value] if isinstance(value, list) else value


def options_of(container: Json) -> Any:
    """What a program makes of its flags."""
    words = [word for word in arguments(container, ENVIRON) if word.startswith("-")]
    given = parse(OPTIONS[container["name"]], words, {}, container["name"])
    assert given.warnings == ()
    return given.options


def elected(objs: Iterable[Json]) -> dict[str, Any]:
    """Service account -> options of leader election, of programs that have them."""
    specs = [spec for _, spec in pods(obj for obj in objs if obj["kind"] == "Deployment")]
    options = {spec["serviceAccountName"]: options_of(spec["containers"][0]) for spec in specs}
    return {account: each.leader for account, each in options.items() if hasattr(each, "leader")}


def test_one_of_several_leads_in_the_namespace_of_the_release(helm: Helm) -> None:
    for leader in [*elected(helm.rendered(*AS_IN_BASE)).values(), *elected(installed()).values()]:
        assert (leader.leader_elect, leader.namespace) == (True, ENVIRON["POD_NAMESPACE"])


def test_a_lease_may_be_written_by_the_program_that_wants_it(helm: Helm) -> None:
    objs = helm.rendered("--namespace=elsewhere", NO_CRDS, release="other")
    roles = {role["metadata"]["name"]: granted([role]) for role in objs if role["kind"] == "Role"}
    for account, leader in elected(objs).items():
        may = Named(Need("coordination.k8s.io", "leases", "update"), leader.leader_elect_resource_name)
        assert may in roles[account]


def test_crds_stay(helm: Helm) -> None:
    crds = of_kind(helm.rendered(*AS_IN_BASE), "CustomResourceDefinition").values()
    assert {crd["metadata"]["annotations"]["helm.sh/resource-policy"] for crd in crds} == {"keep"}


def test_values_of_volcano_are_understood(helm: Helm) -> None:
    objs = helm.rendered(
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
    ours = webhooks[1]["webhooks"][0]["matchConditions"][0]
    assert "object.spec.schedulerName in ['gpu']" in ours["expression"]


def test_beside_volcano_nothing_has_its_names(helm: Helm) -> None:
    other = "--set=crds.install=false,schedulerNames={pumice},admission.configurationPrefix=pumice-admission"
    made = helm.rendered("--namespace=pumice", other, release="pumice")
    assert not [obj["metadata"]["name"] for obj in made if "volcano" in obj["metadata"]["name"]]
    certs = [need for need in granted(made) if "webhookconfigurations" in str(need) and "name=" in str(need)]
    assert certs
    assert not [str(each) for each in certs if "volcano-admission" in str(each)]


EXTENDED = "--set=crds.install=false,extender.enabled=true"


def test_the_extender_of_the_chart_is_that_of_kustomize(helm: Helm, programs: Path) -> None:
    """Where a Deployment says what it means: what the program understands, who places it, which files it has."""
    made = [obj for obj in helm.rendered(*AS_IN_BASE, EXTENDED) if "extender" in obj["metadata"]["name"]]
    wanted = [obj for obj in built(programs, MANIFESTS / "overlays" / "extender") if "extender" in obj["metadata"]["name"]]
    assert sorted(obj["kind"] for obj in made) == sorted(obj["kind"] for obj in wanted)
    rights, theirs = granted(made), granted(wanted)
    assert {each for each in rights if isinstance(each, Need)} == {each for each in theirs if isinstance(each, Need)}
    (ours,), (base,) = ([spec for _, spec in pods(objs)] for objs in (made, wanted))
    assert (ours["schedulerName"], ours["volumes"]) == (base["schedulerName"], base["volumes"])
    options = [parse(Options(), words[1:] if words[0] == "vc-scheduler" else words, {}, "").options
               for words in (arguments(spec["containers"][0], ENVIRON) for spec in (ours, base))]  # fmt: skip
    for each in options:
        each.check()
    assert options[0].extender == options[1].extender


def test_the_extender_is_asked_where_it_is_served(helm: Helm) -> None:
    objs = helm.rendered(*AS_IN_BASE, EXTENDED + ",extender.port=9000")
    service = of_kind(objs, "Service")["volcano-extender-service"]["spec"]["ports"]
    (container,) = of_kind(objs, "Deployment")["volcano-extender"]["spec"]["template"]["spec"]["containers"]
    assert [(port["port"], port["targetPort"]) for port in service] == [(9000, "extender")]
    assert {"name": "extender", "containerPort": 9000} in container["ports"]
    assert parse(Options(), arguments(container, ENVIRON), {}, "").options.extender.extender_address == ":9000"


def test_the_extender_needs_who_places_it(helm: Helm) -> None:
    done = helm.tried("template", "volcano", str(CHART), EXTENDED + ",scheduler.enabled=false")
    assert done.returncode != 0
    assert "extender.enabled needs scheduler.enabled" in done.stderr


RACKS = """\
from extender.core.plugin import Plugin


def new(arguments):
    return Plugin(None)  # "quotes", {{ braces }} and # all the rest
"""


@pytest.fixture
def racks(tmp_path: Path) -> Path:
    file = tmp_path / "racks.py"
    file.write_text(RACKS)
    return file


def test_plugins_of_the_user_are_mounted_where_they_are_looked_for(helm: Helm, racks: Path) -> None:
    """By the scheduler and by the extender, who read one scheduler.conf; what is mounted can be loaded."""
    objs = helm.rendered(*AS_IN_BASE, EXTENDED, f"--set-file=scheduler.plugins.racks={racks}")
    folder = racks.with_name("mounted")
    mount(of_kind(objs, "ConfigMap")["volcano-scheduler-plugins"]["data"], folder)
    assert ((folder / "racks.py").read_text(), "racks" in vocabulary(str(folder)).plugins) == (RACKS, True)
    for name in ("volcano-scheduler", "volcano-extender"):
        template = of_kind(objs, "Deployment")[name]["spec"]["template"]
        (container,) = template["spec"]["containers"]
        paths = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
        sources = {each["name"]: each.get("configMap") for each in template["spec"]["volumes"]}
        assert parse(Options(), arguments(container, ENVIRON), {}, "").options.plugins_dir == paths["plugins"]
        assert sources["plugins"] == {"name": "volcano-scheduler-plugins"}


def mount(data: Json, folder: Path) -> None:
    """As the kubelet does it: links to files of a folder that is itself behind a link."""
    version = folder / "..2026_01_01"
    version.mkdir(parents=True)
    (folder / "..data").symlink_to(version.name)
    for name, text in data.items():
        (version / name).write_text(text)
        (folder / name).symlink_to(f"..data/{name}")


def test_other_plugins_mean_other_pods(helm: Helm, racks: Path) -> None:
    """They are read at the start only."""
    flag = f"--set-file=scheduler.plugins.racks={racks}"
    seen = [marked(helm.rendered(*AS_IN_BASE, flag))]
    racks.write_text(RACKS + "x = 1\n")
    seen.append(marked(helm.rendered(*AS_IN_BASE, flag, "--set=fullnameOverride=volcano")))
    assert seen[0] != seen[1]


def marked(objs: Iterable[Json]) -> Json:
    return dict(of_kind(objs, "Deployment")["volcano-scheduler"]["spec"]["template"]["metadata"]["annotations"])


def test_a_folder_of_the_image_needs_no_mount(helm: Helm) -> None:
    """Also by Volcano's name for it."""
    for value in ("scheduler.pluginsDir", "custom.scheduler_plugins_dir"):
        objs = helm.rendered(*AS_IN_BASE, NO_CRDS, f"--set={value}=/plugins")
        assert "volcano-scheduler-plugins" not in of_kind(objs, "ConfigMap")
        (container,) = of_kind(objs, "Deployment")["volcano-scheduler"]["spec"]["template"]["spec"]["containers"]
        assert parse(Options(), arguments(container, ENVIRON), {}, "").options.plugins_dir == "/plugins"


def test_modules_and_a_folder_are_one_too_many(helm: Helm, racks: Path) -> None:
    both = (f"--set-file=scheduler.plugins.racks={racks}", "--set=scheduler.pluginsDir=/plugins")
    done = helm.tried("template", "volcano", str(CHART), *both)
    assert (done.returncode, "not both" in done.stderr) == (1, True)


def test_a_budget_says_one_of_two_things(helm: Helm) -> None:
    """Both in one are refused by an API server; and nobody can drain a node where one replica must stay."""
    flags = "--set=crds.install=false,scheduler.podDisruptionBudget.minAvailable=50%,admission.replicas=1"
    budgets = of_kind(helm.rendered(*AS_IN_BASE, flags), "PodDisruptionBudget")
    said = {name: {key: value for key, value in each["spec"].items() if key != "selector"} for name, each in budgets.items()}
    assert said == {"volcano-scheduler": {"minAvailable": "50%"}, "volcano-controllers": {"maxUnavailable": 1}}


def test_with_resource_groups_all_pods_are_sent(helm: Helm) -> None:
    file = MANIFESTS / "webhooks" / "pods-mutate-resource-groups.yaml"
    (whole,) = documents(file.read_text())
    groups = "--set=crds.install=false,admission.config=resourceGroups: [{resourceGroup: a}]"
    made = of_kind(helm.rendered(*AS_IN_BASE, groups), "MutatingWebhookConfiguration")
    assert made[whole["metadata"]["name"]]["webhooks"] == whole["webhooks"]


@pytest.mark.parametrize("flags", [
    (), ("--set=certManager.enabled=true",), (EXTENDED,),
    ("--set=networkPolicy.enabled=true,controllers.controllers=*,metrics.serviceMonitor.enabled=true,"
     "metrics.prometheusRule.enabled=true",),
], ids=["defaults", "cert-manager", "extender", "all"])  # fmt: skip
def test_an_api_server_takes_what_the_chart_makes(plane: Plane, helm: Helm, flags: tuple[str, ...]) -> None:
    plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": "volcano-system"}})
    objs = [obj for obj in helm.rendered(*AS_IN_BASE, *flags) if not obj["apiVersion"].startswith(FOREIGN)]
    assert [why for obj in objs if (why := refusal(plane, obj))] == []


def test_every_admission_is_in_the_values() -> None:
    assert VALUES["admission"]["paths"] == [route.path for route in ROUTES]
    assert {file.stem for file in resources(MANIFESTS / "webhooks")} == {path.strip("/").replace("/", "-")
                                                                       for path in VALUES["admission"]["paths"]}  # fmt: skip
