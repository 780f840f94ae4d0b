"""pumice down: removes what `pumice up` has made, and nothing else; not under somebody who works with it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator

import click

from extender.api.errors import NotFound, PumiceError
from extender.api.meta import LEASE, MUTATING_WEBHOOKS, NAMESPACE, QUEUE, VALIDATING_WEBHOOKS, Key, Kind
from extender.cluster.kubernetes import KubernetesCluster, connect
from extender.cluster.port import Cluster
from extender.ctl import installing
from extender.ctl.installing import CRD
from extender.ctl.up import OWNER, Plan, where

_WEBHOOKS: tuple[Kind, ...] = (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)
_SIGN_OF_LIFE = 5.0  # seconds; whoever holds a lease renews it every two


class AtWork(PumiceError):
    """Somebody needs what was to be removed."""


@click.command("down")
@where
@click.option("-y", "--yes", is_flag=True, help="Do not ask before objects are removed together with their CRDs.")
def down(kubeconfig: str, context: str, namespace: str, yes: bool) -> None:
    """Remove what `pumice up` has made, and nothing else."""
    cluster = connect(kubeconfig, context, user_agent=OWNER)
    made = any(installing.made_by(cluster, kind, OWNER) for kind in (*_WEBHOOKS, QUEUE, CRD, NAMESPACE))
    if not made:
        click.echo("nothing of pumice up is here")
        return
    refuse_at_work(cluster, Plan(namespace).leases(), time.sleep)
    crds = [key.name for key in installing.made_by(cluster, CRD, OWNER)]
    held = [*installing.held(cluster, crds, OWNER), *installing.pods_in_ours(cluster, OWNER)]
    if held and not yes:
        for each in held:
            click.echo(f"{each.objects} object{'s' if each.objects > 1 else ''} of {each.of}")
        click.confirm("These objects go with what they belong to. Remove them?", abort=True)
    for line in remove(cluster):
        click.echo(f"removed {line}")


def remove(cluster: KubernetesCluster) -> Iterator[str]:
    """What was removed, one after the other: first what refuses others, then queues while their kind is there."""
    for kind in (*_WEBHOOKS, QUEUE, CRD, NAMESPACE):
        for key in installing.made_by(cluster, kind, OWNER):
            if installing.remove(cluster, kind, key):
                yield f"{kind} {key}"


def refuse_at_work(cluster: Cluster, leases: Iterable[Key], sleep: Callable[[float], None]) -> None:
    """Raises AtWork where somebody holds one of the leases and renews it; who was killed does not."""
    before = {key: found for key in leases if (found := _held(cluster, key))}
    if not before:
        return
    sleep(_SIGN_OF_LIFE)
    for key, (holder, renewed) in before.items():
        now = _held(cluster, key)
        if now and now != (holder, renewed):
            raise AtWork(f"nothing was removed: {now[0]} holds the lease {key} and is at work; end it first")


def _held(cluster: Cluster, key: Key) -> tuple[str, str] | None:
    """Holder and last renewal, if there is a holder."""
    try:
        spec = cluster.get(LEASE, key).get("spec") or {}
    except NotFound:
        return None
    return (spec["holderIdentity"], spec.get("renewTime", "")) if spec.get("holderIdentity") else None
