"""The scheduler, and the words that every other package shares.

api/        words: frozen views of objects, quantities, labels, operations, errors. No I/O, no numpy
cluster/    ports and adapters: the only folder that talks to a cluster or a clock
core/       the pure scheduler: snapshot arrays in, operations and reasons out
plugins/    one module per plugin name of scheduler.conf; actions/ likewise per action
loop.py     the standalone scheduler: watch, schedule, apply
local.py    a whole cluster in one process: API, controllers, scheduler, kubelet
ctl/        the commands for people; sees everything
"""
