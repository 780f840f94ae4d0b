"""A real control plane on loopback, for as long as it is wanted: etcd, kube-apiserver, kube-controller-manager, kwok and,
where it is asked for, kube-scheduler.

    plane = start(build.programs())
    ... plane.kubeconfig ...               # of somebody who may do everything; plane.kubeconfig_of(...) of anybody else
    plane.stop()

RBAC is on, tokens of service accounts are issued and taken, webhooks are reached by an URL with 127.0.0.1 (their
certificates from plane.authority). All files, logs too, are in a temporary folder that goes with the plane."""

from __future__ import annotations

import json
import shutil
import signal
import ssl
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import urllib3
import yaml

from extender.cluster.tls import Reached
from tests.controlplane.pki import Authority, Pair
from tests.controlplane.processes import Processes, free_ports

PROJECT = Path(__file__).resolve().parents[2]
CRDS = PROJECT / "manifests" / "crds"
ETCD, API_SERVER = "etcd", "kube-apiserver"
CONTROLLER_MANAGER, SCHEDULER, KWOK = "kube-controller-manager", "kube-scheduler", "kwok"
NOT_PLAYED = "test/not-played"  # label of nodes that kwok leaves alone
_SERVICES = "10.96.0.0/16"
_PATIENCE = 300.0  # seconds for a program to get ready
_SHOWN = 4000  # characters of each log that a failure shows
_CRD_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

Config = dict[str, Any]


class NotReady(Exception):
    """A program ended or did not get ready in time; the message ends with what the logs say."""


class Plane:
    """What is running. `start` makes one."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self.programs = programs
        self.folder = folder
        self.authority = Authority(folder)
        etcd, peer, api = free_ports(3)
        self.url = f"https://127.0.0.1:{api}"
        self._etcd, self._peer = f"http://127.0.0.1:{etcd}", f"http://127.0.0.1:{peer}"
        self._port = api
        self._commands: dict[str, list[str]] = {}
        self.processes = Processes(folder)
        self._admin = admin = self.authority.client("admin", "admin", ["system:masters"])
        self.kubeconfig = self.write_kubeconfig("admin", _certified(admin))
        self._http = urllib3.PoolManager(ca_certs=str(self.authority.certificate), cert_file=str(admin.certificate),
                                         key_file=str(admin.key), retries=False)  # fmt: skip

    # --- one program after the other ---

    def start_storage(self) -> None:
        self._run(ETCD, [
            f"--data-dir={self.folder / 'etcd'}", f"--listen-client-urls={self._etcd}", f"--advertise-client-urls={self._etcd}",
            f"--listen-peer-urls={self._peer}", f"--initial-advertise-peer-urls={self._peer}",
            f"--initial-cluster=default={self._peer}", "--unsafe-no-fsync", "--log-level=warn",
        ])  # fmt: skip
        self._await(ETCD, lambda: self._answers(f"{self._etcd}/health"))

    def start_api_server(self, *flags: str) -> None:
        serving = self.authority.serving("apiserver", ["127.0.0.1", "localhost", "10.96.0.1", "kubernetes.default.svc"])
        signing = self.authority.signing_key("service-accounts")
        self._run(API_SERVER, [
            f"--etcd-servers={self._etcd}", "--bind-address=127.0.0.1", f"--secure-port={self._port}",
            f"--cert-dir={self.folder}", f"--tls-cert-file={serving.certificate}", f"--tls-private-key-file={serving.key}",
            f"--client-ca-file={self.authority.certificate}", "--authorization-mode=Node,RBAC",
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
            f"--service-account-key-file={signing}", f"--service-account-signing-key-file={signing}",
            f"--service-cluster-ip-range={_SERVICES}", "--endpoint-reconciler-type=none", "--allow-privileged=true",
            "--profiling=false", *flags,
        ])  # fmt: skip
        self.await_api_server()

    def await_api_server(self) -> None:
        self._await(API_SERVER, lambda: self._answers(f"{self.url}/readyz"))

    def start_controller_manager(self, *flags: str) -> None:
        """Nodes that nobody renews stay ready: kwok sets their condition once."""
        self._run(CONTROLLER_MANAGER, [
            f"--kubeconfig={self.kubeconfig_of('system:kube-controller-manager')}", "--leader-elect=false", "--secure-port=0",
            f"--service-account-private-key-file={self.folder / 'service-accounts.key'}",
            f"--root-ca-file={self.authority.certificate}", "--use-service-account-credentials=true",
            "--node-monitor-grace-period=24h", "--kube-api-qps=500", "--kube-api-burst=1000", *flags,
        ])  # fmt: skip
        path = "/api/v1/namespaces/default/serviceaccounts/default"
        self._await(CONTROLLER_MANAGER, lambda: self._answers(self.url + path))

    def start_scheduler(self, configuration: Config | None = None, *flags: str) -> None:
        """`configuration`: a KubeSchedulerConfiguration without its clientConnection, which is filled in."""
        whole = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
                 "leaderElection": {"leaderElect": False}, **(configuration or {})}  # fmt: skip
        connection = {"qps": 2000, "burst": 2000, "kubeconfig": str(self.kubeconfig_of("system:kube-scheduler"))}
        file = self.folder / "kube-scheduler.yaml"
        file.write_text(yaml.safe_dump(whole | {"clientConnection": connection}))
        (port,) = free_ports(1)
        self._run(SCHEDULER, [f"--config={file}", "--bind-address=127.0.0.1", f"--secure-port={port}",
                              f"--cert-dir={self.folder / 'scheduler'}", *flags])  # fmt: skip
        self._await(SCHEDULER, lambda: self._answers(f"https://127.0.0.1:{port}/readyz", checked=False))

    def start_kwok(self, *flags: str) -> None:
        """Plays every node that is created, and its pods, but for those with the label NOT_PLAYED."""
        (port,) = free_ports(1)
        self._run(KWOK, [
            f"--kubeconfig={self.kubeconfig}", f"--config={Path(__file__).with_name('stages.yaml')}", "--manage-all-nodes=false",
            f"--manage-nodes-with-label-selector=!{NOT_PLAYED}",
            "--node-lease-duration-seconds=0", f"--server-address=127.0.0.1:{port}", *flags,
        ])  # fmt: skip
        self._await(KWOK, lambda: self._answers(f"http://127.0.0.1:{port}/readyz"))

    def apply_crds(self, folder: Path = CRDS) -> None:
        """Returns when all of them are served."""
        names = []
        for file in sorted(folder.glob("*.yaml")):
            crd = yaml.safe_load(file.read_text())
            names.append(crd["metadata"]["name"])
            status, answer = self.request("POST", _CRD_PATH, crd)
            if status not in (201, 409):
                raise NotReady(f"{file.name}: {answer.get('message')}")
        for name in names:
            self._await(API_SERVER, lambda name=name: self._established(name))  # type: ignore[misc]

    # --- faults ---

    def kill(self, name: str) -> None:
        """As `kill -9`."""
        self.processes.end(name, signal.SIGKILL)

    def restart(self, name: str) -> None:
        """With the same command; the API server is ready again when this returns."""
        self.processes.start(name, self._commands[name])
        if name == API_SERVER:
            self.await_api_server()

    def forget_the_past(self) -> None:
        """Compact etcd: what it kept of older versions is gone. The API server still remembers kinds that it caches."""
        version = self.request("GET", "/api/v1/namespaces")[1]["metadata"]["resourceVersion"]
        done = self._http.request("POST", f"{self._etcd}/v3/kv/compaction", json={"revision": version, "physical": True})
        assert done.status == 200, done.data

    # --- who asks ---

    def kubeconfig_of(self, user: str, groups: Iterable[str] = ()) -> Path:
        """A kubeconfig of a user with a client certificate."""
        name = user.replace(":", "-")
        pair: Pair = self.authority.client(name, user, groups)
        return self.write_kubeconfig(name, _certified(pair))

    def kubeconfig_of_service_account(self, namespace: str, name: str, seconds: int = 3600) -> Path:
        """A kubeconfig with a token of a service account, which must be there."""
        return self.write_kubeconfig(f"{namespace}-{name}", {"token": self.token_of(namespace, name, seconds)})

    def token_of(self, namespace: str, name: str, seconds: int = 3600) -> str:
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        status, answer = self.request("POST", path, {"spec": {"expirationSeconds": seconds}})
        if status != 201:
            raise NotReady(f"no token for {namespace}/{name}: {answer.get('message')}")
        return str(answer["status"]["token"])

    def write_kubeconfig(self, name: str, user: Mapping[str, object], server: str = "") -> Path:
        """`user`: how to authenticate, in a kubeconfig's words; `server`: another address than that of the API server."""
        cluster = {"server": server or self.url, "certificate-authority": str(self.authority.certificate)}
        config = {
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": name, "user": dict(user)}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": name}}],
        }  # fmt: skip
        file = self.folder / f"{name}.kubeconfig"
        file.touch(mode=0o600)
        file.write_text(yaml.safe_dump(config))
        return file

    def request(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Ask the API server as its administrator: HTTP status and the JSON it answers."""
        sent = json.dumps(body) if body is not None else None
        answer = self._http.request(method, self.url + path, body=sent, headers={"Content-Type": "application/json"})
        return answer.status, json.loads(answer.data)

    def tls(self, *, as_admin: bool) -> ssl.SSLContext:
        """For a connection to the API server, with or without the administrator's certificate."""
        context = ssl.create_default_context(cafile=str(self.authority.certificate))
        context.sslsocket_class = Reached  # tests kill the server amid connections
        if as_admin:
            context.load_cert_chain(self._admin.certificate, self._admin.key)
        return context

    # --- the end ---

    def logs(self) -> dict[str, str]:
        """The end of what each program said."""
        return {file.stem: file.read_text(errors="replace")[-_SHOWN:] for file in sorted(self.folder.glob("*.log"))}

    def stop(self) -> None:
        """Ends all programs and removes the folder."""
        self.processes.end_all()
        self._http.clear()
        shutil.rmtree(self.folder, ignore_errors=True)

    # --- small things ---

    def _run(self, name: str, flags: list[str]) -> None:
        self._commands[name] = [str(self.programs / name), *flags]
        self.processes.start(name, self._commands[name])

    def _await(self, name: str, ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _PATIENCE
        while not ready():
            status = self.processes.exit_status(name)
            if status is not None:
                raise NotReady(f"{name} ended with {status}:\n{self.logs().get(name, '')}")
            if time.monotonic() > deadline:
                raise NotReady(f"{name} is not ready after {_PATIENCE:.0f} s:\n{self.logs().get(name, '')}")
            time.sleep(0.1)

    def _answers(self, url: str, *, checked: bool = True) -> bool:
        http = self._http if checked else urllib3.PoolManager(cert_reqs="CERT_NONE", assert_hostname=False, retries=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", urllib3.exceptions.InsecureRequestWarning)
            try:
                return http.request("GET", url, timeout=5.0).status == 200
            except urllib3.exceptions.HTTPError:
                return False

    def _established(self, crd: str) -> bool:
        _, answer = self.request("GET", f"{_CRD_PATH}/{crd}")
        conditions = answer.get("status", {}).get("conditions", ())
        return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def _certified(pair: Pair) -> dict[str, str]:
    return {"client-certificate": str(pair.certificate), "client-key": str(pair.key)}


def start(programs: Path, *, controllers: bool = True, nodes: bool = True, scheduler: Config | None = None,
          crds: bool = True) -> Plane:  # fmt: skip
    """A plane that is ready. `nodes`: with kwok; `scheduler`: with kube-scheduler, by this configuration ({}: its own)."""
    plane = Plane(programs, Path(tempfile.mkdtemp(prefix="pumice-plane-")))
    try:
        plane.start_storage()
        plane.start_api_server()
        if crds:
            plane.apply_crds()
        if controllers:
            plane.start_controller_manager()
        if nodes:
            plane.start_kwok()
        if scheduler is not None:
            plane.start_scheduler(scheduler)
    except BaseException:
        plane.stop()
        raise
    return plane
