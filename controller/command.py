"""Commands: a request of a person to act on a Job or a Queue. Whoever takes one deletes it first and then acts, at most once.

Used by the controllers of jobs and of queues; each takes those of its own kind."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from controller.reconciler import NOTHING, Decision, Stage
from controller.store import Change, Store
from extender.api.command import Command
from extender.api.meta import COMMAND, Key, Kind
from extender.api.operations import Delete, Operation
from extender.api.views import view


@dataclass(frozen=True, slots=True)
class Take:
    """Take this command."""

    command: Key
    target: Key


def taken_by(change: Change, kind: Kind) -> Sequence[Take]:
    """The request to take a command that has come, if its target is of the given kind."""
    if change.new is None:
        return ()
    command = view(Command, change.new)
    if (command.target.api_version, command.target.kind) != (kind.api_version, kind.name):
        return ()
    namespace = command.metadata.namespace if kind.namespaced else ""
    return (Take(change.key, Key(namespace, command.target.name)),)


def take(store: Store, request: Take, then: Sequence[Hashable], tell: Sequence[Operation] = ()) -> Decision:
    """Delete it; if it was really there, tell and act."""
    command = store.get(COMMAND, request.command)
    if command is None:
        return NOTHING
    gone = Delete(COMMAND, request.command, uid=command["metadata"].get("uid", ""))
    return Decision((Stage((gone,)), Stage(tell)), follow_up=then, once=True)


def action_of(store: Store, request: Take) -> str:
    command = store.get(COMMAND, request.command)
    return view(Command, command).action if command is not None else ""
