"""Controllers: observed state in, operations out.

manager.py      the driver: changes > requests > decisions > operations, with retries; a step at a time or with threads
selection.py    the table of all controllers, and --controllers
reconciler.py   what a controller is: Decision, Stage, Controller
store.py feed.py workqueue.py writing.py    its picture of the cluster, how that is fed, what waits, how writes are done
job/            Volcano jobs: controller.py, observe.py, policies.py, phases.py (the table), sync.py, kill.py, pods.py,
                group.py, status.py, volumes.py, delayed.py, plugins/
queue.py podgroup.py garbage.py cronjob.py jobflow.py jobtemplate.py hypernode.py colocation.py    one file a controller
command.py schedule.py merge.py    what several of them need
"""
