"""From a request to a verdict, and admission for a cluster that lives in this process.

`answer` is what every way of serving shares: it refuses operations and objects that a handler could not read, so that
handlers see decoded objects only. `WebhookAdmission` is the port's Admission over the routes table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from extender.api.decode import decode
from extender.api.errors import Denied, Fault
from extender.api.meta import Json
from extender.api.operations import Operation
from extender.cluster.patches import json_patch
from extender.cluster.port import AdmissionRequest, Reader
from webhook.routes import DELETE, ROUTES, Route
from webhook.settings import Settings
from webhook.verdict import Allow, Deny, Verdict
from webhook.view import ClusterView, ReaderView


def answer(route: Route, request: AdmissionRequest, cluster: ClusterView, settings: Settings) -> Verdict:
    """The verdict of one route. The patch of an Allow fits the request's object as it came."""
    if request.operation not in route.operations:
        if route.other_operations == "allowed":
            return Allow()
        what = f"{request.operation} is not handled by {route.path}, only {', '.join(route.operations)}"
        return Deny((Fault("operation", what),))
    if request.operation == DELETE:
        return route.handler(request, cluster, settings)
    obj, faults = decode(request.object, route.shape)
    if faults:
        return Deny(tuple(faults))
    # A stored object that breaks its shape must still be mendable: only its readable part is compared.
    old = None if request.old is None else decode(request.old, route.shape)[0]
    return route.handler(request._replace(object=obj, old=old), cluster, settings)


class WebhookAdmission:
    """The enabled routes, asked as an API server asks its webhooks: in the order of the table, until one refuses."""

    def __init__(
        self,
        reader: Reader,
        settings: Settings | None = None,
        carry_out: Callable[[Sequence[Operation]], object] | None = None,
    ) -> None:
        self._reader = reader
        self._settings = settings or Settings()
        self._carry_out = carry_out

    def mutate(self, request: AdmissionRequest) -> Json | None:
        for route in self._routes(request, mutating=True):
            allowed = self._allowed(route, request)
            if request.object is not None and allowed.patch:
                request = request._replace(object=json_patch(request.object, list(allowed.patch)))
        return request.object

    def validate(self, request: AdmissionRequest) -> None:
        for route in self._routes(request, mutating=False):
            self._allowed(route, request)

    def _routes(self, request: AdmissionRequest, *, mutating: bool) -> Iterator[Route]:
        """As the webhook configurations have it: an operation that a route does not list is never sent to it."""
        for route in ROUTES:
            sent = route.kind == request.kind and request.operation in route.operations
            if sent and route.mutating == mutating and route.path in self._settings.enabled:
                yield route

    def _allowed(self, route: Route, request: AdmissionRequest) -> Allow:
        verdict = answer(route, request, ReaderView(self._reader), self._settings)
        if isinstance(verdict, Deny):
            raise Denied(f'admission webhook "{route.name}" denied the request: {verdict.message}')
        if verdict.operations and self._carry_out and not request.dry_run:
            self._carry_out(verdict.operations)
        return verdict
