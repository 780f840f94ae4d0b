"""Rules, monitors and dashboards ask for what is there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from controller.metrics import PROGRAM as CONTROLLERS
from extender.api.meta import Json
from extender.cluster.metrics import SHARED
from extender.metrics.names import SCHEDULER
from extender.server import PROGRAM as EXTENDER
from tests.manifests.helm import AS_IN_BASE, NO_CRDS, Helm
from tests.manifests.reading import MANIFESTS, documents, installed, objects, of_kind
from tests.manifests.test_overlays import built
from webhook.metrics import ADMISSION

FOLDER = MANIFESTS / "components" / "monitoring"
(RULE,) = documents((FOLDER / "rules.yaml").read_text())
ALERTS = {alert["alert"]: alert for group in RULE["spec"]["groups"] for alert in group["rules"]}
DASHBOARDS: dict[str, Json] = {file.stem: json.loads(file.read_text()) for file in (FOLDER / "dashboards").glob("*.json")}
_SUFFIXES: dict[str, set[str]] = {"": set(), "_bucket": {"le"}, "_count": set(), "_sum": set()}
_TARGET = {"job", "namespace", "instance", "pod", "service"}  # labels that whoever scrapes adds
_SELECTOR = re.compile(r"\b((?:volcano|pumice|process)_\w+)(?:\{([^}]*)\})?")
_GROUPED = re.compile(r"\b(?:by|on) \(([^)]*)\)")


def series() -> dict[str, set[str]]:
    """Every series that our programs can show, with its labels, but for those that grow with jobs."""
    rows = [row for row in (*SCHEDULER, *CONTROLLERS, *SHARED, *ADMISSION, *EXTENDER) if not row.per_job]
    found = {row.name: set(row.labels) for row in rows}
    found |= {name: set() for name in ("process_resident_memory_bytes", "process_cpu_seconds_total")}
    return {name + suffix: labels | more for name, labels in found.items() for suffix, more in _SUFFIXES.items()}


SERIES = series()


def queries(dashboard: Json) -> Iterator[tuple[str, str]]:
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["name"], variable["query"]


def mistakes(query: str) -> list[str]:
    """Series that nobody shows, and labels that they have not."""
    asked = _SELECTOR.findall(query)
    unknown = [name for name, _ in asked if name not in SERIES]
    if unknown or not asked:
        return unknown or ["no series of ours"]
    has: set[str] = set().union(*(SERIES[name] for name, _ in asked)) | _TARGET
    matched = [(label, SERIES[name] | _TARGET) for name, inside in asked for label in re.findall(r'(\w+)\s*[=!]~?"', inside)]
    grouped = [(label.strip(), has) for words in _GROUPED.findall(query) for label in words.split(",")]
    return [label for label, there in (*matched, *grouped) if label not in there]


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_looks_at_series_that_exist(name: str) -> None:
    assert mistakes(ALERTS[name]["expr"]) == []


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_says_what_is_the_matter(name: str) -> None:
    assert ALERTS[name]["annotations"]["summary"].endswith(".")
    assert ALERTS[name]["labels"]["severity"] in ("critical", "warning", "info")


def test_every_monitor_finds_its_service() -> None:
    services = of_kind(installed(), "Service").values()
    for monitor in of_kind(objects(FOLDER), "ServiceMonitor").values():
        labels = monitor["spec"]["selector"]["matchLabels"].items()
        (found,) = [service for service in services if labels <= service["metadata"]["labels"].items()]
        assert {endpoint["port"] for endpoint in monitor["spec"]["endpoints"]} <= {
            port["name"] for port in found["spec"]["ports"]
        }


# --- dashboards -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DASHBOARDS)
def test_a_panel_looks_at_series_that_exist(name: str) -> None:
    assert {title: found for title, query in queries(DASHBOARDS[name]) if (found := mistakes(query))} == {}


@pytest.mark.parametrize("name", DASHBOARDS)
def test_a_variable_that_is_used_is_defined(name: str) -> None:
    defined = {variable["name"] for variable in DASHBOARDS[name]["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(DASHBOARDS[name]["panels"])))
    assert used <= defined | {"__rate_interval"}


@pytest.mark.parametrize("name", DASHBOARDS)
def test_no_panel_lies_on_another(name: str) -> None:
    taken: dict[tuple[int, int], str] = {}
    for panel in DASHBOARDS[name]["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert taken.setdefault((x, y), panel["title"]) == panel["title"]


def test_dashboards_and_panels_can_be_told_apart() -> None:
    assert len({board["uid"] for board in DASHBOARDS.values()}) == len(DASHBOARDS) == 2
    for board in DASHBOARDS.values():
        assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])


def test_kustomize_and_the_chart_bring_the_same_dashboards(helm: Helm, programs: Path) -> None:
    on = "--set=metrics.dashboards.enabled=true"
    made = of_kind(helm.rendered(*AS_IN_BASE, NO_CRDS, on), "ConfigMap")["volcano-dashboards"]
    wanted = of_kind(built(programs, MANIFESTS / "overlays" / "monitoring"), "ConfigMap")["volcano-dashboards"]
    assert {name: json.loads(text) for name, text in made["data"].items()} == {
        name: json.loads(text) for name, text in wanted["data"].items()
    }
    assert made["metadata"]["labels"]["grafana_dashboard"] == wanted["metadata"]["labels"]["grafana_dashboard"] == "1"
