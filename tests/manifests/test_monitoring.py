"""Rules and monitors ask for what is there."""

from __future__ import annotations

import re

import pytest
from prometheus_client import CollectorRegistry

from controller.metrics import PROGRAM as CONTROLLERS
from extender.cluster.metrics import SHARED
from extender.metrics.names import SCHEDULER
from tests.manifests.reading import MANIFESTS, documents, installed, objects, of_kind
from webhook.metrics import Metrics

FOLDER = MANIFESTS / "components" / "monitoring"
(RULE,) = documents((FOLDER / "rules.yaml").read_text())
ALERTS = {alert["alert"]: alert for group in RULE["spec"]["groups"] for alert in group["rules"]}
_SUFFIXES = ("", "_bucket", "_count", "_sum")


def known() -> set[str]:
    """Every series that our programs can show."""
    webhook: CollectorRegistry = Metrics().registry
    names = {metric.name for metric in (*SCHEDULER, *CONTROLLERS, *SHARED)}
    names |= {sample.name for family in webhook.collect() for sample in family.samples}
    names |= {f"{family.name}_total" for family in webhook.collect() if family.type == "counter"}
    return {name + suffix for name in names for suffix in _SUFFIXES}


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_looks_at_metrics_that_exist(name: str) -> None:
    asked = set(re.findall(r"\b(?:volcano|pumice)_\w+", ALERTS[name]["expr"]))
    assert asked
    assert asked <= known()


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
