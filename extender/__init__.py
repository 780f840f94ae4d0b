"""The scheduler, and the words that every other package shares.

api/            words: frozen views of objects, quantities, labels, operations, errors. No I/O, no numpy
cluster/        ports and adapters: the only folder that talks to a cluster or a clock
core/           the pure scheduler: snapshot arrays in, operations and reasons out
plugins/        one module per plugin name of scheduler.conf; actions/ likewise per action
verbs/          the pure extender: kube-scheduler's questions in, answers and operations out
metrics/        what the scheduler counts and times
intake.py       all that the watches bring > one mirror, for loop and extender
loop.py         the standalone scheduler: watch, schedule, apply; awaiting.py: bindings that wait for volumes
service.py      the extender as it runs; server.py: its HTTP
cli.py          vc-scheduler: options.py its flags, standalone.py the loop as a daemon, extending.py the extender as one,
                reload.py a scheduler.conf that changes, explain.py dump.py its answers to people,
                node_shards.py ring.py which nodes are ours where several schedulers share a cluster
vocabulary.py   what the names in scheduler.conf stand for; plugin_folder.py plugin_answers.py: plugins of the user
local.py        a whole cluster in one process: API, controllers, scheduler, kubelet
ctl/            the commands for people; sees everything
testing/        what tests are made of: builders, stories, recorded sessions, questions
"""
