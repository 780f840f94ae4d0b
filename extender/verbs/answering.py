"""Extender: the four verbs over a mirror and the books of gangs. One caller at a time; `now` comes with each call.

A gang is planned whole when its first member is asked about, and its nodes are kept: the bindings are assumed in the mirror,
so that they count as used for everybody else. Its other members find their node there. The gang starts when enough members
have asked to be bound; until then whoever asks is told to wait."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import numpy as np

from extender.api import meta
from extender.api.errors import ClusterError, Conflict, NotFound
from extender.api.meta import Json, Key, Kind, Time
from extender.api.operations import Bind
from extender.api.pod import Pod
from extender.core import status as st
from extender.core.axis import BoolN, Rows
from extender.core.conf import Conf
from extender.core.gang_books import Hold, Seat
from extender.core.mirror import Mirror
from extender.core.reasons import Reason, Waiting
from extender.core.reservations import Reservations
from extender.verbs import foreign, preempting
from extender.verbs.planning import Planned, Refused, fits, open_session, plan
from extender.verbs.scoring import Evaluations
from extender.verbs.wire import Asked, AskedToPreempt, Binding, Filtered, Victims

NOT_NEEDED = "the pod has its node already"
_FORGOTTEN = 60.0  # seconds after which a pod that was asked about and never came is not waited for any more
_COMPLETED = 20  # gangs that are completed at once; the others have their turn in the next survey


class Turn(Enum):
    """What a pod that asks to be bound is told."""

    GO = auto()
    WAIT = auto()  # for the rest of its gang
    NO = auto()


@dataclass(frozen=True, slots=True)
class Verdict:
    turn: Turn
    bind: Bind
    error: str = ""


def _put_aside(pod: Json) -> bool:
    """By what kube-scheduler says in its conditions. The mirror passes over them while it assumes the pod's binding."""
    said = (pod.get("status") or {}).get("conditions") or ()
    waits = not (pod.get("spec") or {}).get("nodeName")
    return waits and any(each.get("type") == "PodScheduled" and each.get("status") == "False" for each in said)


class NotSeenYet(Exception):
    """kube-scheduler knows a pod that our own watch has not brought yet."""


class Extender:
    """`most_waiting`: so many members of gangs may be on their way at once; the driver has a thread for each of them."""

    def __init__(self, mirror: Mirror, conf: Conf, reservations: Reservations | None = None, *, most_waiting: int = 1000) -> None:
        self.mirror, self.conf = mirror, conf
        self.reservations = reservations if reservations is not None else Reservations()
        self.books = self.reservations.gangs
        self.most_waiting = most_waiting
        self.waiting: dict[Key, tuple[Time, Waiting]] = {}  # gang -> when it was last refused, and why
        self._evaluations = Evaluations()
        self.put_aside: set[str] = set()  # uids of pods that kube-scheduler could not place when it last tried
        self._unseen: dict[str, Time] = {}  # pods that were asked about before the watch brought them

    # --- what the driver tells ------------------------------------------------------------------------------------------

    def saw(self, kind: Kind, event: str, obj: Json) -> None:
        """A change came in; the mirror has it already. What is kept for a gang that lost a member or a node is given back."""
        if kind is meta.POD:
            uid = meta.uid_of(obj)
            self._unseen.pop(uid, None)
            (self.put_aside.add if event != "DELETED" and _put_aside(obj) else self.put_aside.discard)(uid)
            found = self.books.find(uid)
            if found is None:
                return
            if event == "DELETED" or "deletionTimestamp" in obj["metadata"]:
                self._gone(found[0], uid)
            elif (obj.get("spec") or {}).get("nodeName"):
                self.books.settled(uid)
        elif kind is meta.NODE and event == "DELETED":
            for gang in self.books.on_node(meta.key_of(obj).name):
                self._drop(gang)
        elif kind is meta.POD_GROUP and event == "DELETED":
            self._drop(meta.key_of(obj))
            self.waiting.pop(meta.key_of(obj), None)

    def tend(self, now: Time) -> None:
        """Give back what nobody has come for in time."""
        for gang in self.books.expired(now):
            self._drop(gang)
        if self._unseen:
            self._unseen = {uid: at for uid, at in self._unseen.items() if now - at < _FORGOTTEN}

    def torn(self) -> bool:
        """Is there a gang of which some members have had a node, but fewer than it needs, and some wait for one?"""
        return len(self._torn()) > 0

    def _torn(self) -> Rows:
        jobs, n = self.mirror.jobs, len(self.mirror.jobs.key)
        counts = jobs.counts[:n]
        ready = counts[:, st.IS_READY].sum(axis=1)
        found: Rows = np.flatnonzero((ready > 0) & (ready < jobs.min_available[:n]) & (counts[:, st.PENDING] > 0))
        return found

    def complete(self, now: Time) -> None:
        """Keep room for what a gang lacks that has started in part: its binds were cut off by our own end, or it lost a node.

        It comes before everybody else; done before the first question, so that nobody takes the room while its members are
        on their way back."""
        for job in self._torn()[:_COMPLETED]:
            ssn = open_session(self.mirror, self.conf, now, self.reservations)
            if not fits(ssn, int(job)):
                continue
            ssn = open_session(self.mirror, self.conf, now, self.reservations)
            found = plan(ssn, ssn.pending_tasks(int(job))[0], None)
            if isinstance(found, Planned):
                self.mirror.assume(found.binds)
                self.books.start(self.books.hold(ssn.job_key(int(job)), found.binds, now))

    def _gone(self, held: Hold, uid: str) -> None:
        """A member is gone. One that has started needs nothing kept but its other members' nodes."""
        if held.started:
            self.books.settled(uid)
        else:
            self.books.settled(uid)
            self._drop(held.gang)

    def _drop(self, gang: Key, *, only_unasked: bool = False) -> None:
        for bind in self.books.release(gang, only_unasked=only_unasked):
            self._forget(bind)

    def _forget(self, bind: Bind) -> None:
        if self.mirror.assumes(bind):
            self.mirror.forget(bind)

    # --- filter ---------------------------------------------------------------------------------------------------------

    def filter(self, asked: Asked, now: Time) -> Filtered:
        """Raises NotSeenYet."""
        self.tend(now)
        pod = asked.pod
        if not pod.group:
            if pod.spec.scheduler_name in self.mirror.brought and not self._knows(pod.metadata.key, pod.metadata.uid):
                self._unseen[pod.metadata.uid] = now
            return foreign.judge(self.mirror, self._kept(), pod, asked.names)
        if pod.spec.scheduler_name not in self.mirror.brought:
            return Filtered(error=f"pods of scheduler {pod.spec.scheduler_name} are not followed here, yet {pod.metadata.key} is "
                                  f"in gang {pod.group}: name the scheduler in --extender-scheduler-name")  # fmt: skip
        task = self._task(pod)
        node = int(self.mirror.tasks.node[task])
        found = self.books.find(pod.metadata.uid)
        if found is None and node >= 0:
            return self._only(asked, self.mirror.nodes.name[node], NOT_NEEDED)
        if found is not None:
            answer = self._reserved(asked, *found, now)
            if answer is not None:
                return answer
        return self._plan(asked, now, again=found is not None)

    def _kept(self) -> Iterator[int]:
        """Tasks that have room of which kube-scheduler cannot know: members that have not come yet, and what the loop binds."""
        tasks, n = self.mirror.tasks, len(self.mirror.tasks.key)
        yield from (tasks.rows[seat.bind.pod] for held in self.books for seat in held.unasked if self.mirror.assumes(seat.bind))
        yield from np.flatnonzero((tasks.status[:n] == st.BINDING) & ~tasks.brought[:n]).tolist()

    def _knows(self, key: Key, uid: str) -> bool:
        row = self.mirror.tasks.rows.get(key)
        pod = self.mirror.tasks.pod[row] if row is not None else None
        return pod is not None and pod.metadata.uid == uid

    def _task(self, pod: Pod) -> int:
        """The row of a member."""
        if not self._knows(pod.metadata.key, pod.metadata.uid):
            raise NotSeenYet(f"pod {pod.metadata.key} is not in the cache yet")
        return self.mirror.tasks.rows[pod.metadata.key]

    def _only(self, asked: Asked, node: str, text: str) -> Filtered:
        """Just this node, if it was asked about; else why not. What is said of others while one is left reaches nobody."""
        return Filtered([node]) if node in asked.names else Filtered([], {}, dict.fromkeys(asked.names, text))

    def _reserved(self, asked: Asked, held: Hold, seat: Seat, now: Time) -> Filtered | None:
        """The node that is kept for the member; None where it will not do, and the gang is to be planned anew."""
        node = seat.bind.node
        if self._changed(asked.pod, seat):
            self._drop(held.gang)
            self.mirror.pod_changed(asked.pod.metadata.key, asked.pod)  # which passed over what the watch said meanwhile
            return None
        if node in asked.names:
            self.books.come_for(held, now)
            return self._only(asked, node, f"gang {held.gang.name}: another node is kept for this member")
        if self._first_look(asked) and not seat.passed_over:
            seat.passed_over = True
            return self._only(asked, node, f"gang {held.gang.name}: another node is kept for this member")
        seat.asked = False
        self._drop(held.gang, only_unasked=True)
        return None

    def _first_look(self, asked: Asked) -> bool:
        """kube-scheduler asks about the pod's nominated node alone before it asks about all."""
        return len(asked.names) == 1 and asked.names[0] == asked.pod.status.nominated_node_name

    def _changed(self, pod: Pod, seat: Seat) -> bool:
        """Does the member ask for other things than its node was chosen for?"""
        known = self.mirror.tasks.pod[self.mirror.tasks.rows[seat.bind.pod]]
        return known is not None and [c.resources for c in known.spec.containers] != [c.resources for c in pod.spec.containers]

    def _plan(self, asked: Asked, now: Time, *, again: bool) -> Filtered:
        """`again`: what was kept for the member will not do; where nothing else is found its whole gang loses what it has."""
        pod = asked.pod
        task = self._task(pod)
        gang = Key(pod.metadata.namespace, pod.group)
        crowded = self._crowded(gang)
        if crowded is not None:
            return Filtered([], {}, dict.fromkeys(asked.names, crowded))
        first_look = self._first_look(asked)
        ssn = open_session(self.mirror, self.conf, now, self.reservations)
        found = plan(ssn, task, None if first_look else self._mask(asked.names))
        if isinstance(found, Refused):
            if again:
                self._drop(gang)
            return self._refuse(asked, gang, found, now)
        self.mirror.assume(found.binds)
        self.books.hold(gang, found.binds, now)
        self.waiting.pop(gang, None)
        self._evaluations.note(pod.metadata.uid, found.scores, now)
        node = next(bind.node for bind in found.binds if bind.uid == pod.metadata.uid)
        return self._only(asked, node, f"gang {gang.name}: another node is kept for this member")

    def _mask(self, names: Sequence[str]) -> BoolN:
        mask = np.zeros(len(self.mirror.nodes.name), dtype=bool)
        rows = foreign.rows_of(self.mirror, names)
        mask[rows[rows >= 0]] = True
        return mask

    def _crowded(self, gang: Key) -> str | None:
        """Every member on its way may come to hold a thread: no more gangs begin than there are threads for."""
        job = self.mirror.jobs.rows.get(gang)
        size = int(self.mirror.jobs.min_available[job]) if job is not None else 0
        if size > self.most_waiting:
            return f"gang {gang.name}: {size} members are more than --extender-threads has room for ({self.most_waiting})"
        if self.books.not_started + size > self.most_waiting:
            return f"gang {gang.name}: it is not its turn: {self.books.not_started} members of other gangs are starting"
        return None

    def _refuse(self, asked: Asked, gang: Key, refused: Refused, now: Time) -> Filtered:
        self.waiting[gang] = (now, refused.why)
        curable = {name: refused.text for name in asked.names if name in refused.leaving}
        return Filtered([], curable, {name: refused.text for name in asked.names if name not in curable})

    # --- prioritize -----------------------------------------------------------------------------------------------------

    def prioritize(self, asked: Asked, now: Time) -> list[int]:
        """0 to 10 for each node asked about: the planned one 10, the others by their rank; 0 for all of a foreign pod."""
        found = self.books.find(asked.pod.metadata.uid)
        if found is None:
            return [0] * len(asked.names)
        rows = foreign.rows_of(self.mirror, asked.names)
        return self._evaluations.ranks(asked.pod.metadata.uid, asked.names, rows, found[1].bind.node, now)

    # --- bind -----------------------------------------------------------------------------------------------------------

    def ask_to_bind(self, asked: Binding, now: Time) -> Verdict:
        """Whether the pod may be bound now, is to wait for its gang, or has lost its node. Raises NotSeenYet."""
        self.tend(now)
        found = self.books.find(asked.uid)
        if found is None:
            return self._without_seat(asked)
        seat = found[1]
        if seat.bind.node != asked.node:
            other = Bind(asked.pod, asked.node, asked.uid)
            return Verdict(Turn.NO, other, f"node {seat.bind.node} is kept for {asked.pod}, not {asked.node}")
        self.books.ask(asked.uid, now)
        return self.turn(seat.bind)

    def _without_seat(self, asked: Binding) -> Verdict:
        """A foreign pod is bound unless its room has gone since it was chosen; a member only where it is bound already."""
        bind = Bind(asked.pod, asked.node, asked.uid)
        if not self._knows(asked.pod, asked.uid):
            if asked.uid in self._unseen:
                raise NotSeenYet(f"pod {asked.pod} is not in the cache yet")
            return Verdict(Turn.GO, bind)
        task = self.mirror.tasks.rows[asked.pod]
        node, pod = int(self.mirror.tasks.node[task]), self.mirror.tasks.pod[task]
        if node >= 0 and (self.mirror.nodes.name[node] == asked.node or pod is None or not pod.group):
            return Verdict(Turn.GO, bind)  # once more: the binding itself tells whether it is done
        if pod is not None and pod.group:
            return Verdict(Turn.NO, bind, f"no node is kept for {asked.pod} of gang {pod.group} any more")
        lacking = foreign.lacks(self.mirror, task, asked.node)
        if lacking:
            return Verdict(Turn.NO, bind, f"node {asked.node} has been given to others meanwhile: {lacking}")
        self.mirror.assume([bind])
        return Verdict(Turn.GO, bind)

    def turn(self, bind: Bind) -> Verdict:
        """How it stands with a pod that has asked."""
        found = self.books.find(bind.uid)
        if found is None or not found[1].asked or found[1].bind.node != bind.node:
            return Verdict(Turn.NO, bind, "its gang could not start whole, nothing is kept for it any more")
        held = found[0]
        if not held.started and self._whole(held):
            self.books.start(held)
        return Verdict(Turn.GO if held.started else Turn.WAIT, bind)

    def _whole(self, held: Hold) -> bool:
        """Do those that are on nodes and those that have asked make the gang's minimum, and of each role?"""
        job = self.mirror.jobs.rows.get(held.gang)
        group = self.mirror.jobs.group[job] if job is not None else None
        if job is None or group is None:
            return False
        if group.spec.min_task_member or group.spec.sub_group_policy:
            return not held.unasked
        ready = int(self.mirror.jobs.counts[job].dot(st.IS_READY))
        return ready - len(held.unasked) >= int(self.mirror.jobs.min_available[job])

    def give_up(self, bind: Bind) -> None:
        """The wait of a pod ended without the gang: nothing is kept for any of its members."""
        found = self.books.find(bind.uid)
        if found is not None and not found[0].started:
            self._drop(found[0].gang)

    def bound(self, bind: Bind) -> None:
        """The API server has taken the binding."""
        self.books.settled(bind.uid)

    def bind_failed(self, bind: Bind, error: ClusterError) -> None:
        """Refused for good: the node is free again. Otherwise it is kept, and kube-scheduler will ask once more."""
        found = self.books.find(bind.uid)
        if found is None or isinstance(error, (NotFound, Conflict)):
            self.books.settled(bind.uid)
            self._forget(bind)
        else:
            found[1].asked = False

    # --- preempt --------------------------------------------------------------------------------------------------------

    def preempt(self, asked: AskedToPreempt, now: Time) -> dict[str, Victims]:
        """Who leaves which node. Raises NotSeenYet."""
        self.tend(now)
        if not asked.pod.group:
            return preempting.untorn(self.mirror, self.books, asked.pod, asked.victims)
        task = self._task(asked.pod)
        if self.mirror.tasks.node[task] >= 0:
            return {}
        ssn = open_session(self.mirror, self.conf, now, self.reservations)
        found = plan(ssn, task, self._mask(list(asked.victims)))
        if isinstance(found, Planned):
            return {}  # there is room by now: it will be found without evicting anybody
        chosen = {node: Victims(tuple(uids), asked.victims[node].violations) for node, uids in found.leaving.items()
                  if node in asked.victims}  # fmt: skip
        return preempting.untorn(self.mirror, self.books, asked.pod, chosen)

    # --- for people -----------------------------------------------------------------------------------------------------

    def explain(self, gang: Key, now: Time) -> dict[str, Any] | None:
        """Why the gang waits, or what is kept for it; None where there is no such gang."""
        job = self.mirror.jobs.rows.get(gang)
        if job is None:
            return None
        held = self.books.of(gang)
        minimum = int(self.mirror.jobs.min_available[job])
        told: dict[str, Any] = {"group": str(gang), "minMember": minimum, "tasks": len(self.mirror.jobs.tasks[job]),
                                "ready": int(self.mirror.jobs.counts[job].dot(st.IS_READY))}  # fmt: skip
        if self.mirror.jobs.group[job] is None:
            return told | {"reason": Reason.GROUP_UNKNOWN, "message": f"PodGroup {gang} does not exist"}
        if held is not None:
            seats = {str(seat.bind.pod): {"node": seat.bind.node, "asked": seat.asked} for seat in held.seats.values()}
            told["kept"] = {"secondsLeft": max(held.until - now, 0.0), "started": held.started, "members": seats}
        refused = self.waiting.get(gang)
        if refused is not None:
            at, why = refused
            told |= {"reason": why.reason, "message": why.message, "numbers": why.numbers, "refusedSecondsAgo": now - at}
        return told
