"""vc-scheduler --extender-address: the extender as a daemon, alone (--extender-only) or beside the loop: lease, probes, reloads.

Only the leader reads the cluster and answers; the others say that they are not ready, so that a Service sends nobody there.

Beside the loop both share one mirror, one set of reservations and one lock. The loop holds it for the length of a session, a
verb for the length of its answer; both write without it. So a question waits for one session at most, and a session for the
question that is being answered. What one has assumed the other counts as used."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from prometheus_client import CollectorRegistry

from extender.api.errors import UsageError
from extender.api.meta import Time
from extender.cluster.clock import Clock
from extender.cluster.flags import ARRAY, DURATION, flag
from extender.cluster.health import Health
from extender.cluster.in_process import LONGEST_BODY, Listen, Server
from extender.cluster.options import split_address
from extender.cluster.tls import TlsFiles
from extender.core.conf import Conf
from extender.core.gang_books import TTL
from extender.core.mirror import Mirror
from extender.core.reservations import Reservations
from extender.core.scheduling import Result
from extender.loop import Decide
from extender.server import SPARE, at_once, create_app
from extender.service import PROFILES, Service, Settings

SWITCH_SECONDS = 0.0005  # kube-scheduler waits for each answer: a thread that is busy gives way sooner than Python's 5 ms
NO_LEADER = "another replica leads"
NO_SESSION = "the first session has not been held yet"


@dataclass(frozen=True, slots=True)
class ExtenderOptions:
    extender_address: str = flag("", "where kube-scheduler finds the extender, such as :8090; without it there is none")
    extender_only: bool = flag(False, "the extender alone: pods of --scheduler-name are left to others")
    extender_scheduler_name: tuple[str, ...] = flag(PROFILES, "schedulerName of a profile of that kube-scheduler; "
                                                    "may be given again", kind=ARRAY)  # fmt: skip
    extender_barrier: float = flag(25.0, "a member's bind waits so long for the rest of its gang; httpTimeout must be longer",
                                   kind=DURATION)  # fmt: skip
    extender_reservation: float = flag(TTL, "a gang's nodes are kept so long without anybody coming for them", kind=DURATION)
    extender_threads: int = flag(1024, "each member on its way holds one: the most that may be on their way, and 64 more")
    extender_max_body: int = flag(LONGEST_BODY, "bytes of a request; more than the default only without nodeCacheCapable")
    extender_tls_cert_file: str = flag("", "certificate; with it and its key HTTPS is served")
    extender_tls_private_key_file: str = flag("", "key of the certificate")
    extender_client_ca_file: str = flag("", "certificate authority of clients; a client certificate, if shown, must be its")

    def check(self) -> None:
        """Raises UsageError for what cannot work together."""
        if self.extender_only and not self.extender_address:
            raise UsageError("--extender-only needs --extender-address")
        if not self.extender_address:
            return
        split_address(self.extender_address, "extender-address")
        if bool(self.extender_tls_cert_file) != bool(self.extender_tls_private_key_file):
            raise UsageError("--extender-tls-cert-file and --extender-tls-private-key-file belong together")
        if self.extender_threads <= SPARE or self.extender_barrier <= 0 or not self.extender_scheduler_name:
            raise UsageError(f"--extender-threads must be more than {SPARE}, --extender-barrier more than 0, "
                             "--extender-scheduler-name not empty")  # fmt: skip
        if self.extender_reservation <= self.extender_barrier:
            raise UsageError("--extender-reservation must be longer than --extender-barrier")

    def settings(self, default_queue: str) -> Settings:
        return Settings(self.extender_scheduler_name, default_queue, self.extender_barrier, self.extender_reservation,
                        self.extender_threads - SPARE)  # fmt: skip


class Extending:
    """The work of the daemon. Serves from the start, not ready until `run`. Raises UsageError."""

    def __init__(self, options: ExtenderOptions, service: Service, registry: CollectorRegistry, health: Health, clock: Clock,
                 new_conf: Callable[[], Conf | None] = lambda: None) -> None:  # fmt: skip
        self.service, self._new_conf = service, new_conf
        tls = None
        if options.extender_tls_cert_file:
            files = TlsFiles(
                options.extender_tls_cert_file, options.extender_tls_private_key_file, options.extender_client_ca_file
            )
            try:
                tls = files.followed(clock)
            except (OSError, ValueError) as error:
                raise UsageError(f"--extender-tls-cert-file {files.certificate}: {error}") from None
        listen = Listen(split_address(options.extender_address, "extender-address"), tls, options.extender_threads,
                        options.extender_max_body, at_once=at_once)  # fmt: skip
        app = create_app(service, registry, health, longest_body=options.extender_max_body)
        try:
            self.server = Server(app, listen)
        except OSError as error:
            raise UsageError(f"--extender-address {options.extender_address}: {error}") from None

    def run(self, stop: threading.Event) -> None:
        sys.setswitchinterval(SWITCH_SECONDS)
        try:
            self.service.run(stop, self._look)
        finally:
            self.server.close()

    def _look(self) -> None:
        conf = self._new_conf()
        if conf is not None:
            self.service.use(conf)


@contextlib.contextmanager
def beside(extending: Extending | None, stop: threading.Event) -> Iterator[None]:
    """Extends in a thread for as long as the block lasts. If it fails all is to stop, and the failure is raised here."""
    if extending is None:
        yield
        return
    with ThreadPoolExecutor(1, thread_name_prefix="extending") as pool:
        work = pool.submit(extending.run, stop)
        work.add_done_callback(lambda _: stop.set())
        try:
            yield
        finally:
            stop.set()
        work.result()


def after(service: Service, decide: Decide) -> Decide:
    """No session before gangs that kube-scheduler has begun have what they lack."""

    def decided(mirror: Mirror, conf: Conf, now: Time, rng: np.random.Generator, reservations: Reservations) -> Result:
        service.begin()
        return decide(mirror, conf, now, rng, reservations)

    return decided
