"""The driver of all controllers: watch events > store > requests > decisions > operations carried out > retries.

`step` does all that is due now and returns; tests and the embedded cluster call it in a loop, on whatever clock they like.
`run` does the same with threads, until told to stop. Everything between them is shared and free of waiting."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Hashable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import partial
from typing import NamedTuple, TypeVar

from controller.feed import Feed
from controller.reconciler import Controller, Decision, NotYet, Settings
from controller.selection import chosen
from controller.store import Change, Store
from controller.workqueue import WorkQueue
from controller.writing import Apply, Failure, Recorder, carry_out, spread
from extender.api.errors import AlreadyExists, ClusterError, Conflict, InvalidObject, NotFound, PumiceError
from extender.api.meta import Json, Key, Kind, Time
from extender.cluster.apply import apply as carry_out_on
from extender.cluster.clock import Clock
from extender.cluster.events import EventRecorder
from extender.cluster.port import Cluster

COMPONENT = "vc-controller-manager"  # the source of events
ROUNDS = 100  # of draining and handling in one step: what then still moves is left for the next step
REMEMBERED = 50_000  # objects of unwatched kinds
POLL_SECONDS = 1.0
ABSENT_SECONDS = 30.0  # before a kind that the server does not know is asked for again
SIDE_BY_SIDE = 16  # writes on their way at once

T = TypeVar("T")

log = logging.getLogger(__name__)


class Item(NamedTuple):
    """A request of one controller."""

    controller: int
    request: Hashable


class Manager:
    """One for each process. `lookup.store` and `read` are what controllers may look at."""

    def __init__(self, cluster: Cluster, clock: Clock, settings: Settings, controllers: Sequence[Controller] | None = None,
                 apply: Apply | None = None) -> None:  # fmt: skip
        self._cluster, self._clock, self._settings = cluster, clock, settings
        self._apply = apply or partial(carry_out_on, events=EventRecorder(clock, COMPONENT))
        self._controllers = controllers = chosen() if controllers is None else controllers
        self._lock = threading.RLock()
        self._wake = threading.Condition(self._lock)
        self.store = Store(index for each in controllers for index in each.indexes)
        self._queue: WorkQueue[Item] = WorkQueue(clock, self._group_of, self._is_urgent)
        self._read: dict[tuple[Kind, Key], Json | None] = {}
        self._patient: set[Item] = set()
        self._feeds: list[Feed] = []
        self._started = False
        self.kinds = tuple(dict.fromkeys(kind for each in controllers for kind in each.kinds))
        for each in controllers:
            each.start(self, settings)

    # --- driven by hand ---

    def start(self) -> None:
        """List everything, then let the controllers look at it: none decides on half a picture."""
        self._feeds = [Feed(self._cluster, kind, self.store, self._only(kind)) for kind in self.kinds]
        changes = [change for feed in self._feeds for change in feed.open()]
        with self._lock:
            self._observe(changes)
        self._started = True

    @property
    def started(self) -> bool:
        """Has every list come?"""
        return self._started

    def looking(self, at: Callable[[Store], T]) -> T:
        """What `at` finds in the picture, which stands still meanwhile. From any thread."""
        with self._lock:
            return at(self.store)

    def _only(self, kind: Kind) -> Key | None:
        wishes = {each.only(kind) for each in self._controllers if kind in each.kinds}
        return next(iter(wishes)) if len(wishes) == 1 else None

    def step(self) -> int:
        """Everything that is due now, in bounded rounds; how much work that was (0: settled until `next_due`)."""
        work = 0
        for _ in range(ROUNDS):
            did = self._drain() + self._handle_due()
            work += did
            if not did:
                break
        return work

    def next_due(self) -> Time | None:
        """When the earliest request is due that waits for a time: a retry, a timeout, an end of life."""
        with self._lock:
            return self._queue.next_due()

    def queue_length(self) -> int:
        """Requests that wait, those for a retry included."""
        with self._lock:
            return len(self._queue)

    def close(self) -> None:
        for feed in self._feeds:
            feed.close()
        self._feeds.clear()

    # --- driven by threads ---

    def run(self, stop: threading.Event) -> None:
        """Until `stop` is set. One thread for each watch, `settings.workers` for the requests."""
        if not self._started:
            self.start()
        pool = ThreadPoolExecutor(SIDE_BY_SIDE, thread_name_prefix="write")
        self._apply = spread(self._apply, pool)
        threads = [threading.Thread(target=self._follow, args=(feed, stop), name=f"watch-{feed.kind}") for feed in self._feeds]
        threads += [threading.Thread(target=self._work, args=(stop,), name=f"worker-{i}") for i in range(self._settings.workers)]
        for thread in threads:
            thread.start()
        stop.wait()
        with self._wake:
            self._wake.notify_all()
        for thread in threads:
            thread.join()
        pool.shutdown()
        self.close()

    def _follow(self, feed: Feed, stop: threading.Event) -> None:
        while not stop.is_set():
            try:
                self._take_in(feed, POLL_SECONDS)
            except NotFound:
                stop.wait(ABSENT_SECONDS)
            except ClusterError as error:
                log.warning("watching %s: %s", feed.kind.plural, error)
                stop.wait(POLL_SECONDS)
            except Exception:
                log.exception("watching %s", feed.kind.plural)
                stop.wait(POLL_SECONDS)

    def _work(self, stop: threading.Event) -> None:
        while not stop.is_set():
            with self._wake:
                item = self._queue.pop()
                if item is None:
                    due = self._queue.next_due()
                    wait = POLL_SECONDS if due is None else min(max(due - self._clock.now(), 0.001), POLL_SECONDS)
                    self._wake.wait(wait)
                    continue
            try:
                self._handle(item)
            except Exception:
                log.exception("handling %s", item.request)
                with self._wake:
                    self._queue.retry(item)
                    self._queue.done(item)

    # --- what changed ---

    def _drain(self) -> int:
        news = 0
        for feed in self._feeds:
            with suppress(NotFound):
                news += self._take_in(feed, 0.0)
        return news

    def _take_in(self, feed: Feed, timeout: float) -> int:
        news = feed.poll(timeout)
        with self._lock:
            return self._observe(feed.absorb(news))

    def _observe(self, changes: Iterable[Change | None]) -> int:
        """Let the controllers look at the changes; the number of changes."""
        now, seen = self._clock.now(), 0
        for change in changes:
            if change is None:
                continue
            seen += 1
            for number, controller in enumerate(self._controllers):
                if change.kind in controller.kinds:
                    self._show(number, change, now)
        if seen:
            self._wake.notify_all()
        return seen

    def _show(self, number: int, change: Change, now: Time) -> None:
        """One object that cannot be read must not keep all others from being looked at."""
        try:
            self._request(number, self._controllers[number].observe(change, now))
        except InvalidObject as error:
            log.warning("%s passes over %s %s: %s", self._controllers[number].name, change.kind, change.key, error)

    def _request(self, controller: int, requests: Iterable[Hashable | tuple[Hashable, Time]]) -> None:
        for request in requests:
            if type(request) is tuple:
                self._queue.add_at(Item(controller, request[0]), request[1])
            else:
                self._queue.add(Item(controller, request))

    # --- what is done about it ---

    def _handle_due(self) -> int:
        handled = 0
        for _ in range(len(self._queue)):
            with self._lock:
                item = self._queue.pop()
            if item is None:
                break
            self._handle(item)
            handled += 1
        return handled

    def _handle(self, item: Item) -> None:
        """Decide, carry out, take in the answers; then forget the request or try again later."""
        with self._lock:
            decision, error = self._decide(item)
        failures = self._carry_out(item, decision)
        with self._wake:
            if error is None and not failures:
                self._succeeded(item, decision)
            elif isinstance(error, NotYet) and not error.poll:
                self._queue.forget(item)
            elif not (decision.once and any(isinstance(each.error, NotFound) for each in failures)):
                self._retry(item, error or failures[0].error)
            self._queue.done(item)
            self._wake.notify_all()

    def _decide(self, item: Item) -> tuple[Decision, PumiceError | None]:
        controller = self._controllers[item.controller]
        try:
            return controller.reconcile(item.request, self._clock.now()), None
        except PumiceError as error:
            told = controller.failed(item.request, None, error)
            return Decision.telling(told), error

    def _carry_out(self, item: Item, decision: Decision) -> Sequence[Failure]:
        controller = self._controllers[item.controller]
        recorder = Recorder(self._cluster)
        failures = carry_out(recorder, decision, self._apply, self._clock)
        told = [
            each for operation, error in failures if not _overtaken(error)
            for each in controller.failed(item.request, operation, error)
        ]  # fmt: skip
        if told:
            carry_out(recorder, Decision.telling(told), self._apply, self._clock)
        with self._lock:
            self._take_in_answers(recorder)
        return failures

    def _succeeded(self, item: Item, decision: Decision) -> None:
        self._queue.forget(item)
        self._patient.discard(item)
        self._request(item.controller, decision.follow_up)
        for request in decision.cancelled:
            self._queue.cancel(Item(item.controller, request))
        for request, when in decision.later:
            self._queue.add_at(Item(item.controller, request), when)

    def _retry(self, item: Item, why: PumiceError) -> None:
        """Again after a while. What waits for others is not counted; anything else has a budget."""
        patient = isinstance(why, NotYet)
        if patient:
            self._patient.add(item)
        elif item in self._patient:
            self._patient.discard(item)
            self._queue.forget(item)
        times = self._queue.retry(item)
        if patient or self._settings.max_requeue < 0 or times <= self._settings.max_requeue:
            return
        self._queue.cancel(item)
        name = self._controllers[item.controller].name
        log.warning("%s gives %s up after %d attempts: %s", name, _told(item.request), times, why)
        try:
            decision = self._controllers[item.controller].gave_up(item.request, self._clock.now())
        except PumiceError as error:
            log.warning("%s cannot even give it up: %s", name, error)
            return
        self._carry_out(item, decision)

    def _take_in_answers(self, recorder: Recorder) -> None:
        """Our own writes are known at once, before the watch tells."""
        for kind, key in recorder.surprises():
            self.forget(kind, key)
        changes = []
        for kind, key, answer in recorder.answers():
            if kind in self.kinds and self._only(kind) in (None, key):
                changes.append(
                    self.store.put(kind, answer) if answer is not None
                    else self.store.assume_deleted(kind, key, self._clock.now()))  # fmt: skip
            elif (kind, key) in self._read:
                self._read[kind, key] = answer
        self._observe(changes)

    # --- what controllers may look at ---

    def read(self, kind: Kind, key: Key) -> Json | None:
        if kind in self.kinds and self._only(kind) in (None, key):
            return self.store.get(kind, key)
        if (kind, key) not in self._read:
            while len(self._read) >= REMEMBERED:
                del self._read[next(iter(self._read))]
            try:
                self._read[kind, key] = self._cluster.get(kind, key)
            except NotFound:
                self._read[kind, key] = None
        return self._read[kind, key]

    def forget(self, kind: Kind, key: Key) -> None:
        self._read.pop((kind, key), None)

    def _group_of(self, item: Item) -> Hashable:
        return item.controller, self._controllers[item.controller].group_of(item.request)

    def _is_urgent(self, item: Item) -> bool:
        return self._controllers[item.controller].is_urgent(item.request)


def _overtaken(error: ClusterError) -> bool:
    """Somebody else changed the object first. The next attempt sees what they made of it: nobody need do anything about it."""
    return isinstance(error, Conflict) and not isinstance(error, AlreadyExists)


def _told(request: Hashable) -> str:
    """`default/train`: what a request is about, as people name it."""
    parts = [getattr(request, field.name) for field in fields(request)] if is_dataclass(request) else [request]
    named = [part for part in parts if isinstance(part, (Kind, Key))] or parts[:1]
    return " ".join(map(str, named)) or type(request).__name__
