"""ssh -- lets the pods of a job log in to each other: a Secret with one key pair and a client configuration.

Arguments: ssh-key-file-path, ssh-private-key, ssh-public-key, ssh-port. Keys never reach a log or an event.
Source: volcano ed72c7c, pkg/controllers/job/plugins/ssh. Differences: a key pair that exists is kept, and the list of hosts
follows the job when it is scaled."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from controller.job.plugins.base import MakeKeys, add_volume, host, host_name, owned
from controller.job.seen import JobSeen
from extender.api.job import Job, TaskSpec
from extender.api.job_plugins import FLAGS, parse_flags
from extender.api.meta import SECRET, Json, Key, Kind

DEFAULT_PATH, DEFAULT_PORT = str(FLAGS["ssh"]["ssh-key-file-path"]), int(FLAGS["ssh"]["ssh-port"])
FILES = ("id_rsa", "id_rsa.pub", "authorized_keys", "config")


def make_keys() -> tuple[str, str]:
    """A fresh pair: the private key in PKCS#1 PEM, the public one as a line of OpenSSH."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    return private.decode(), public.decode() + "\n"


class Ssh:
    name = "ssh"
    recorded = True

    def __init__(self, arguments: Sequence[str], keys: MakeKeys = make_keys) -> None:
        read = parse_flags(arguments, FLAGS[self.name])
        self.path = str(read["ssh-key-file-path"])
        self._private, self._public = str(read["ssh-private-key"]), str(read["ssh-public-key"])
        port = int(read["ssh-port"])
        self.port = port if 1 <= port <= 65535 else DEFAULT_PORT
        self._make_keys = keys

    def belongings(self, job: Key) -> Sequence[tuple[Kind, Key]]:
        return ((SECRET, Key(job.namespace, secret_name(job.name))),)

    def objects(self, seen: JobSeen) -> Iterable[Json]:
        """One Secret. A pair is made only where there is none: another would lock out the pods that run."""
        (secret,) = self.belongings(seen.key)
        data = {"config": self.client_config(seen.job)}
        if seen.resources.get(secret) is None:
            private, public = (self._private, self._public) if self._private else self._make_keys()
            data |= {"id_rsa": private, "id_rsa.pub": public, "authorized_keys": public}
        encoded = {file: base64.b64encode(text.encode()).decode() for file, text in data.items()}
        yield owned(seen, secret, {"type": "Opaque", "data": encoded})

    def align(self, stored: Json, wanted: Json) -> Json | None:
        config = wanted["data"]["config"]
        return None if (stored.get("data") or {}).get("config") == config else {"data": {"config": config}}

    def decorate(self, seen: JobSeen, task: TaskSpec, index: int, pod: Json) -> None:
        name = secret_name(seen.key.name)
        secret = {
            "secretName": name,
            "items": [{"key": file, "path": f".ssh/{file}"} for file in FILES],
            "defaultMode": 0o600 if self.path == DEFAULT_PATH else 0o644,
        }
        add_volume(pod, {"name": name, "secret": secret}, {"name": name, "mountPath": self.path, "subPath": ".ssh"})

    def client_config(self, job: Job) -> str:
        lines = ["StrictHostKeyChecking no", "UserKnownHostsFile /dev/null"]
        for task in job.spec.tasks:
            fixed = bool((task.template.get("spec") or {}).get("hostname"))
            for index in range(min(task.replicas, 1) if fixed else task.replicas):
                lines += [f"Host {host_name(job, task, index)}", f"  HostName {host(job, task, index)}", f"  Port {self.port}"]
        return "\n".join(lines) + "\n"


def secret_name(job: str) -> str:
    return f"{job}-ssh"
