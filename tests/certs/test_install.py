"""Certificates in a cluster: Secrets, webhook configurations, and others who keep them."""

from __future__ import annotations

import socket
import threading
from base64 import b64decode, b64encode

import pytest
import urllib3

from certs.cli import KeepOptions, PlaceOptions, assemble
from certs.install import CERT_MANAGER, Place, keep, load
from certs.issue import hosts, read, signed_by
from certs.keeper import LATE, Keeper
from extender.api.errors import Conflict, Unavailable
from extender.api.meta import MUTATING_WEBHOOKS, SECRET, VALIDATING_WEBHOOKS, Json, Key, Kind, kind_of
from extender.cluster.clock import VirtualClock
from extender.cluster.memory import MemoryCluster
from extender.cluster.options import LeaderOptions, ServingOptions
from tests.daemons.running import Runs, until

NOW = 1_736_121_600.0
DAY = 86400.0
PLACE = Place("volcano-system", "webhook", "webhook-secret")


def empty(make: type[MemoryCluster] = MemoryCluster) -> MemoryCluster:
    made = make(VirtualClock(NOW))
    made.load([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "volcano-system"}}])
    return made


def configuration(kind: str, name: str, service: str = "webhook") -> Json:
    client = {"service": {"namespace": "volcano-system", "name": service, "path": "/x"}}
    return {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name},
            "webhooks": [{"name": f"{n}.example.test", "clientConfig": client} for n in "ab"]}  # fmt: skip


@pytest.fixture
def cluster() -> MemoryCluster:
    made = empty()
    for obj in (configuration("MutatingWebhookConfiguration", "ours"), configuration("ValidatingWebhookConfiguration", "ours"),
                configuration("ValidatingWebhookConfiguration", "foreign", "other")):  # fmt: skip
        made.create(kind_of(obj), obj)
    return made


def bundles(cluster: MemoryCluster, name: str = "ours") -> set[bytes | None]:
    found = set()
    for kind in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS):
        for made in cluster.list(kind).objects:
            if made["metadata"]["name"] == name:
                found |= {webhook["clientConfig"].get("caBundle") for webhook in made["webhooks"]}
    return {None if text is None else b64decode(text) for text in found}


def test_the_first_time(cluster: MemoryCluster) -> None:
    written = keep(cluster, PLACE, NOW)
    stock = load(cluster, PLACE)[0]
    assert stock.serving is not None
    certificate = read(stock.serving.certificate)[0]
    assert "webhook.volcano-system.svc" in hosts(certificate)
    assert signed_by(certificate, read(stock.trusted))
    assert bundles(cluster) == {stock.trusted}
    secrets = [f"Secret {PLACE.serving}", f"Secret {PLACE.authority}"]
    assert sorted(written) == ["MutatingWebhookConfiguration ours", *secrets, "ValidatingWebhookConfiguration ours"]


def test_the_second_time_nothing_is_written(cluster: MemoryCluster) -> None:
    keep(cluster, PLACE, NOW)
    assert keep(cluster, PLACE, NOW + DAY) == []


def test_the_secret_that_is_mounted_cannot_sign(cluster: MemoryCluster) -> None:
    keep(cluster, PLACE, NOW)
    assert set(cluster.get(SECRET, PLACE.serving)["data"]) == {"tls.crt", "tls.key", "ca.crt"}


def test_a_foreign_configuration_is_left_alone(cluster: MemoryCluster) -> None:
    keep(cluster, PLACE, NOW)
    assert bundles(cluster, "foreign") == {None}


def test_a_configuration_that_comes_later_is_told(cluster: MemoryCluster) -> None:
    keep(cluster, PLACE, NOW)
    late = configuration("ValidatingWebhookConfiguration", "late")
    cluster.create(VALIDATING_WEBHOOKS, late)
    assert keep(cluster, PLACE, NOW) == ["ValidatingWebhookConfiguration late"]


def test_a_renewed_pair_needs_no_new_trust(cluster: MemoryCluster) -> None:
    keep(cluster, PLACE, NOW)
    assert keep(cluster, PLACE, NOW + 250 * DAY) == ["Secret volcano-system/webhook-secret"]


def test_a_new_authority_is_told_beside_the_old_one(cluster: MemoryCluster) -> None:
    keep(cluster, PLACE, NOW)
    keep(cluster, PLACE, NOW + 2500 * DAY)
    (told,) = bundles(cluster)
    assert told is not None
    assert len(read(told)) == 2


def test_a_secret_of_the_reference_is_taken_over_without_a_gap(cluster: MemoryCluster) -> None:
    """Its authority stays trusted: some replica may still show what that one has signed."""
    other = empty()
    keep(other, PLACE, NOW)
    secret = other.get(SECRET, PLACE.serving)
    cluster.create(SECRET, {**secret, "metadata": {"name": secret["metadata"]["name"], "namespace": "volcano-system"}})
    keep(cluster, PLACE, NOW)
    (told,) = bundles(cluster)
    assert told is not None
    assert set(read(b64decode(secret["data"]["ca.crt"]))) < set(read(told))


def managed(bundle: bytes = b"") -> Json:
    data = {"tls.crt": "", "tls.key": "", **({"ca.crt": b64encode(bundle).decode()} if bundle else {})}
    meta = {"namespace": "volcano-system", "name": "webhook-secret", "annotations": {CERT_MANAGER: "webhook"}}
    return {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "data": data, "metadata": meta}


def test_a_secret_of_cert_manager_is_told_and_not_touched(cluster: MemoryCluster) -> None:
    cluster.create(SECRET, managed(b"-----BEGIN CERTIFICATE-----"))
    before = cluster.get(SECRET, PLACE.serving)
    assert len(keep(cluster, PLACE, NOW)) == 2
    assert cluster.get(SECRET, PLACE.serving) == before
    assert bundles(cluster) == {b"-----BEGIN CERTIFICATE-----"}


def test_nothing_is_done_before_cert_manager(cluster: MemoryCluster) -> None:
    assert keep(cluster, PLACE, NOW, external=True) == []


class Contested(MemoryCluster):
    """Somebody else is quicker between reading and writing."""

    def create(self, kind: Kind, obj: Json, *, dry_run: bool = False) -> Json:
        super().create(kind, obj, dry_run=dry_run)
        return super().create(kind, obj, dry_run=dry_run)


class Unreachable(MemoryCluster):
    def get(self, kind: Kind, key: Key) -> Json:
        raise Unavailable(f"no {kind} {key} today")


def test_of_two_that_begin_one_is_told_so() -> None:
    with pytest.raises(Conflict):
        keep(empty(Contested), PLACE, NOW)


class Twice(threading.Event):
    """Is set when it has been waited for twice."""

    def __init__(self) -> None:
        super().__init__()
        self.pauses: list[float | None] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.pauses.append(timeout)
        if len(self.pauses) == 2:
            self.set()
        return self.is_set()


def test_it_is_looked_after_now_and_then(cluster: MemoryCluster) -> None:
    stop = Twice()
    Keeper(cluster, PLACE, VirtualClock(NOW), 3600.0).run(stop)
    assert stop.pauses == [3600.0, 3600.0]
    assert load(cluster, PLACE)[0].serving is not None


def test_what_fails_is_tried_again_soon(caplog: pytest.LogCaptureFixture) -> None:
    """And until then it is not ready."""
    stop, keeper = Twice(), Keeper(empty(Unreachable), PLACE, VirtualClock(NOW), 3600.0)
    assert keeper.ready() is None
    keeper.run(stop)
    assert stop.pauses == [60.0, 60.0]
    assert "certificates could not be kept" in caplog.text
    assert "today" in (keeper.ready() or "")


def test_a_loop_that_stands_still_is_not_alive(cluster: MemoryCluster) -> None:
    """A pause is no standstill, and who only waits for the lease does not stand still."""
    clock = VirtualClock(NOW)
    keeper = Keeper(cluster, PLACE, clock, 3600.0)
    clock.sleep(DAY)
    assert keeper.alive() is None
    keeper.run(Twice())
    clock.sleep(3600.0 + LATE)
    assert keeper.alive() is None
    clock.sleep(1.0)
    assert keeper.alive() == "the loop stands still"


def test_probes_are_answered(cluster: MemoryCluster) -> None:
    """Ready while others have the lease, and once everything has been looked at."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    options = KeepOptions(serving=ServingOptions(enable_healthz=True, healthz_address=address),
                          leader=LeaderOptions(leader_elect=False),
                          webhook=PlaceOptions(PLACE.namespace, PLACE.service, PLACE.secret))  # fmt: skip
    daemon = assemble(options, cluster, cluster, VirtualClock(NOW))
    with urllib3.PoolManager(retries=False, timeout=30.0) as http:
        assert [http.request("GET", f"http://{address}{path}").status for path in ("/livez", "/readyz")] == [200, 200]
        runs = Runs(daemon)
        assert until(lambda: load(cluster, PLACE)[0].serving is not None)
        assert http.request("GET", f"http://{address}/readyz/certificates").data == b"ok"
    assert runs.stop() == 0
