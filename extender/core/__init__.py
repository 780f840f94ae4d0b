"""The pure scheduler: arrays in, operations and reasons out. No I/O, no clock, no threads, no logging.

What is there:
axis.py        resource name <-> column          status.py    task states and job phases as numbers
shapes.py      what a pod asks, interned         tables.py    one row per node, task, job; mirror.py: events -> those tables
columns.py     labels as integer columns         traits.py    what else filters and scorers look at in a node
followed.py    which kinds are followed          queue_facts.py   a queue's lists, read once
assuming.py    what our own writes will show     assumed_facts.py   the same of claims and volumes
snapshot.py    frozen copies of all that         reservations.py gang_books.py   what outlives a session

A session:
scheduling.py  schedule(snapshot, conf, now, rng) -> Result          conf.py      scheduler.conf -> Conf
session.py     what plugins and actions see                          statement.py the one thing that mutates it, and can undo
plugin.py      what a plugin is                                      hooks.py     what each hook is asked
extension_points.py  the table of hooks and how answers combine      answers.py   what the plugins say, combined
placement.py   masks, scores, best nodes for a task class            victims.py victim_order.py  who leaves
role_refusals.py promised.py  what narrows that: refusals of a role, promises of earlier sessions
members.py     roles and parts of a gang         sub_jobs.py   the parts: sub-groups of a job
hyper_nodes.py sets of nodes close to each other live_heap.py  a queue whose keys move
alike.py       jobs that fare the same          amounts.py    comparisons of amounts
quotas.py water.py  sums per queue, fair division
closing.py queue_use.py  what is written at its end    waiting.py reasons.py never.py  why a task waits, in words

kube/ volumes/ dra/    the filters and scorers of kube-scheduler, for nodes and pods, volumes, devices
"""
