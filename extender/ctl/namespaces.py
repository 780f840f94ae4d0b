"""Namespaces that nobody wrote: the embedded cluster makes those that objects name, where kubectl would be refused.

Who wrote some of them wrote all that were meant: another is mostly a slip of the pen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from extender.api.errors import nearest
from extender.api.meta import NAMESPACE, key_of, kind_of
from extender.ctl.found import Found

_ON_ANY_CLUSTER = ("default", "kube-node-lease", "kube-public", "kube-system")


def unwritten(found: Sequence[Found]) -> Iterator[str]:
    """A line for each such namespace, which names the first object there. Nothing where no namespaces are written at all."""
    written = {key_of(each.manifest).name for each in found if kind_of(each.manifest) == NAMESPACE}
    if not written:
        return
    told = {"", *written, *_ON_ANY_CLUSTER}
    for each in found:
        if each.as_found or not kind_of(each.manifest).namespaced:
            continue
        namespace = key_of(each.manifest).namespace
        if namespace not in told:
            told.add(namespace)
            why = f"no Namespace '{namespace}' in these manifests, it is made{nearest(namespace, written)}"
            yield f"{each.where}: {each.subject}: metadata.namespace: {why}"
