"""Admission: an object in, a patch or a denial out. Stateless.

routes.py    the table: path, kind, operations, shape, handler          admission.py  request > verdict; the port's Admission
verdict.py   Allow, Deny, Fault and the JSON Patch between two objects   settings.py   the flags, frozen
shapes.py    the shapes of our kinds                                     view.py       queues and namespaces, read only
destination.py graph.py budgets.py   what jobs and groups, jobs and flows, jobs and pods have in common
jobs/ pods/ podgroups/ queues/ jobflows/ cronjobs/ hypernodes/    mutate.py and validate.py of each: path = URL
Shared with the embedded API server: extender/api/decode.py (raw JSON against a shape: wrong types become faults),
extender/api/checks.py (names, labels, ranges, amounts: tables of small checks), extender/api/pod_template/ (what Kubernetes says
of a pod).

Served by vc-webhook-manager (cli.py):
review.py     AdmissionReview v1: bytes > question, verdict > bytes      app.py        the routes over HTTP (Flask)
watched.py    the ClusterView that watches                               errands.py    what is made on the way, after the answer
serving.py    processes, files, addresses (gunicorn)                     metrics.py    what is counted
manifests.py  the webhook configurations, out of the table              trust.py      our authority into them
"""
