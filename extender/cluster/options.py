"""Flags that every daemon has: the API server, leader election, health and metrics, logs. Names and defaults are the
reference's (volcano ed72c7c, cmd/*/app/options); what one daemon has otherwise is in the defaults it gives to the group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from extender.api.errors import UsageError, nearest
from extender.api.labels import SYSTEM_NAMESPACE
from extender.cluster.flags import DURATION, SWITCHES, flag
from extender.cluster.kubernetes import KubernetesCluster, connect
from extender.cluster.logs import FORMATS

# Gates of the reference with their defaults; those of Kubernetes are accepted by the same flag.
GATES: Mapping[str, bool] = {
    "WorkLoadSupport": True,
    "VolcanoJobSupport": True,
    "PodDisruptionBudgetsSupport": True,
    "QueueCommandSync": True,
    "PriorityClass": True,
    "CSIStorage": False,
    "ResourceTopology": True,
    "CronVolcanoJobSupport": True,
    "SchedulingGatesQueueAdmission": False,
}


@dataclass(frozen=True, slots=True)
class ClientOptions:
    master: str = flag("", "address of the API server; overrides the one in the kubeconfig")
    kubeconfig: str = flag("", "path to a kubeconfig; without it and --master the configuration of the pod")
    kube_api_qps: float = flag(50.0, "requests a second to the API server")
    kube_api_burst: int = flag(100, "requests that may go at once beyond that")

    def connect(self, program: str) -> KubernetesCluster:
        """The cluster that they name. Raises ConfError; the server is not asked yet."""
        return connect(self.kubeconfig, master=self.master, rate=self.kube_api_qps, burst=self.kube_api_burst, user_agent=program)


@dataclass(frozen=True, slots=True)
class LeaderOptions:
    leader_elect: bool = flag(True, "work only while holding the lease; losing it ends the process")
    leader_elect_lease_duration: float = flag(15.0, "others wait so long after the last renewal", kind=DURATION)
    leader_elect_renew_deadline: float = flag(10.0, "the leader gives up after so long without a renewal", kind=DURATION)
    leader_elect_retry_period: float = flag(2.0, "pause between two attempts", kind=DURATION)
    leader_elect_resource_lock: str = flag("leases", "kind of the lock", unused="it is always a Lease")
    leader_elect_resource_name: str = flag("", "name of the Lease; without it that of the scheduler")
    leader_elect_resource_namespace: str = flag(SYSTEM_NAMESPACE, "namespace of the Lease")
    lock_object_namespace: str = flag("", "deprecated: overrides --leader-elect-resource-namespace")

    @property
    def namespace(self) -> str:
        return self.lock_object_namespace or self.leader_elect_resource_namespace

    def check(self) -> None:
        """The rules of client-go: a lease outlives the deadline, which leaves time for more than one attempt."""
        if not self.leader_elect:
            return
        if self.leader_elect_lease_duration <= self.leader_elect_renew_deadline:
            raise UsageError("--leader-elect-lease-duration must be longer than --leader-elect-renew-deadline")
        if self.leader_elect_renew_deadline <= 1.2 * self.leader_elect_retry_period:
            raise UsageError("--leader-elect-renew-deadline must be longer than 1.2 times --leader-elect-retry-period")
        if self.leader_elect_retry_period <= 0:
            raise UsageError("--leader-elect-retry-period must be more than 0")


@dataclass(frozen=True, slots=True)
class ServingOptions:
    enable_healthz: bool = flag(False, "serve /healthz, /livez and /readyz")
    healthz_address: str = flag(":11251", "where to serve them")
    enable_metrics: bool = flag(False, "serve /metrics")
    listen_address: str = flag(":8080", "where to serve it")
    ca_cert_file: str = flag("", "certificate authority of clients; a client certificate, if shown, must be its")
    tls_cert_file: str = flag("", "certificate for the health address; it serves TLS where all three files are given")
    tls_private_key_file: str = flag("", "key of the certificate")

    def check(self) -> None:
        for name, address in (("healthz-address", self.healthz_address), ("listen-address", self.listen_address)):
            split_address(address, name)


@dataclass(frozen=True, slots=True)
class LogOptions:
    verbosity: int = flag(0, "how much to tell, 0 to 10; as klog's levels", name="v")
    logging_format: str = flag("text", "form of the lines", choices=FORMATS)


@dataclass(frozen=True, slots=True)
class GateOptions:
    feature_gates: tuple[tuple[str, bool], ...] = flag((), "Name=true or Name=false, parted by commas", kind=SWITCHES)

    def enabled(self, name: str) -> bool:
        return dict(self.feature_gates).get(name, GATES[name])

    def warnings(self) -> list[str]:
        """Gates that nobody here reads. Those of Kubernetes look the same, so they are no mistake."""
        return [f"--feature-gates: nobody reads {name}{nearest(name, GATES)}"
                for name, _ in self.feature_gates if name not in GATES]  # fmt: skip


def split_address(address: str, name: str) -> tuple[str, int]:
    """`:8080` -> every interface. Raises UsageError."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise UsageError(f"--{name}: '{address}' is no address such as :8080 or 127.0.0.1:8080")
    return host.removeprefix("[").removesuffix("]"), int(port)
