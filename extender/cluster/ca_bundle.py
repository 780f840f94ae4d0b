"""The certificate authority in webhook configurations: what an API server trusts when it calls a webhook.

Only `clientConfig.caBundle` is ever written, and only where it differs; whoever keeps it else (cert-manager's injector) and
we agree as long as we say the same."""

from __future__ import annotations

from base64 import b64encode

from extender.api.errors import Conflict, Invalid
from extender.api.meta import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, Json, Key, Kind
from extender.cluster.port import Cluster

WEBHOOK_KINDS = (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)
_ATTEMPTS = 3


def publish(cluster: Cluster, kind: Kind, name: str, bundle: bytes) -> bool:
    """Bring one configuration in line; whether that took a write. Raises NotFound and other ClusterErrors."""
    for attempt in range(_ATTEMPTS):
        steps = differences(cluster.get(kind, Key("", name)), b64encode(bundle).decode())
        if not steps:
            return False
        try:
            cluster.json_patch(kind, Key("", name), steps)
        except (Conflict, Invalid):  # somebody else has changed the list meanwhile
            if attempt == _ATTEMPTS - 1:
                raise
        else:
            return True
    return False


def differences(configuration: Json, bundle: str) -> list[Json]:
    """The JSON patch; it holds only for the very list of webhooks that was seen."""
    steps: list[Json] = []
    for index, webhook in enumerate(configuration.get("webhooks") or ()):
        if webhook.get("clientConfig", {}).get("caBundle") != bundle:
            steps.append({"op": "test", "path": f"/webhooks/{index}/name", "value": webhook["name"]})
            steps.append({"op": "add", "path": f"/webhooks/{index}/clientConfig/caBundle", "value": bundle})
    return steps
