"""Controllers: observed state in, operations out.

manager.py    events > keys > reconcile > apply
workqueue.py  keys that wait, deduplicated, with back-off, on a Clock
job/          Volcano jobs: reconcile.py, phases.py (the table), pods.py, policies.py, plugins/
queue.py podgroup.py command.py garbage.py    one file a controller
"""
