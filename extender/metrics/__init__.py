"""The metrics of the scheduler.

names.py        every metric: name, type, labels, what it means; docs/metrics.md is made of it
scheduler.py    SchedulerMetrics: fed with each cycle of the loop and each reload
queues.py       what is worked out of the last session when it is scraped
timed.py        Timed: how long sessions, actions and plugins take
"""
