"""The pure scheduler: arrays in, operations and reasons out. No I/O, no clock, no threads, no logging.

axis.py        resource name <-> column          status.py    task states and job phases as numbers
shapes.py      what a pod asks, interned         tables.py    one row per node, task, job; mirror.py: events -> those tables
columns.py     labels as integer columns         snapshot.py  frozen copies of all that
session.py     what plugins and actions see      statement.py the one thing that mutates a session, and can undo
members.py     roles and parts of a gang         queue_facts.py  a queue's lists, read once
sub_jobs.py    the parts: sub-groups of a job    hyper_nodes.py  sets of nodes that are close to each other
amounts.py     comparisons of amounts            quotas.py, water.py  sums per queue, fair division
placement.py   masks, scores, best nodes for a task class     victims.py  the search preempt and reclaim share
plugin.py      what a plugin is                  extension_points.py  the table of hooks and how answers combine
hooks.py       what each hook is asked           answers.py   what the plugins say, combined; the half of a session they are asked
conf.py        scheduler.conf -> Conf            scheduling.py  schedule(snapshot, conf, now, rng) -> Result
closing.py     conditions, phases, events when a session ends    waiting.py, reasons.py  why a task waits, in words
"""
