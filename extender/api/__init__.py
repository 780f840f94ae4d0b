"""Words: what the other packages call things. No I/O, no numpy, no clock.

meta.py          Key, Kind, the table of kinds, owners, times   views.py        what a frozen view of an object is
operations.py    all we ever ask of a cluster, as plain data    errors.py       the one error tree
labels.py        labels, annotations, taints, gates, names of schedulers: who writes them, who reads them

How text is read:
quantity.py integer.py duration.py boolean.py cron.py pattern.py formats.py selectors.py yaml_text.py

Kinds, as far as we read them:
pod.py node.py workload.py volume.py claim.py device.py         Kubernetes' own; pod_requests.py: what a pod asks of its node
job.py podgroup.py queue.py command.py                          Volcano's

What admission shares with controllers or with the embedded API server:
decode.py shapes.py checks.py    raw JSON against the shape of its kind: wrong types and values become faults by field
pod_template/                    what Kubernetes says of a pod
grouping.py job_plugins.py usage.py    the group of a plain pod, arguments of job plugins, what a pod counts in a quota
"""
