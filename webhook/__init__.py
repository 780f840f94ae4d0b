"""Admission: an object in, a patch or a denial out. Stateless.

routes.py    the table: path, kind, operations, shape, handler          admission.py  request > verdict; the port's Admission
verdict.py   Allow, Deny, Fault and the JSON Patch between two objects   settings.py   the flags, frozen
decode.py    raw JSON against a shape: wrong types become faults         shapes.py     the shapes of all kinds
checks.py    names, labels, ranges, amounts: tables of small checks      view.py       queues and namespaces, read only
destination.py graph.py   what jobs and groups, jobs and flows have in common
jobs/ pods/ podgroups/ queues/ jobflows/ cronjobs/ hypernodes/    mutate.py and validate.py of each: path = URL
pods/template/            what Kubernetes says about a pod template
"""
