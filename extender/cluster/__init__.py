"""Ports and adapters: the only folder that talks to a cluster, a network or a clock.

port.py          the port: small Protocols, with two adapters and one contract suite (tests/cluster)
clock.py         the only source of time        retry.py     waits and rates
following.py     list, watch, list again        apply.py     operations > writes; side_by_side.py: many at once
events.py        events, repeats folded         lease.py     leader election

A real API server:
kubernetes.py    the adapter                    connection.py    who we are, kept-alive connections
remote_watch.py  an open watch                  answers.py       its refusals > our errors
ca_bundle.py     whom it trusts as a webhook    first_queues.py manifests.py    what must be there first

The embedded one:
memory.py        the adapter: an API server in memory. Its objects are in store.py, history.py and watching.py
metadata.py names.py matching.py patches.py owners.py refusals.py    rules and words that hold for every kind
core_kinds.py schema.py readable.py rules/                           those of built-in kinds, and of CRDs
pod_rules.py label_keys.py budgets.py quota.py limits.py             those of pods and of what limits them
kubelet.py room.py container_status.py workloads/ garbage.py         who plays on it: kubelets, controllers
hearing.py pod_history.py                                            who listens to it

Programs:
daemon.py flags.py options.py flag_pages.py version.py logs.py metrics.py from_files.py tls.py    what all of them have
endpoints.py health.py serving.py            pages of daemons
web.py in_process.py worker.py incoming.py   Flask and gunicorn, made safe against slow clients
"""
