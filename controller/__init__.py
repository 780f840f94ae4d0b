"""Controllers: observed state in, operations out.

manager.py      the driver: changes > requests > decisions > operations, with retries; a step at a time or with threads
selection.py    the table of all controllers, and --controllers
reconciler.py   what a controller is: Decision, Stage, Controller
store.py feed.py workqueue.py writing.py    its picture of the cluster, how that is fed, what waits, how writes are done
job/            Volcano jobs
queue.py podgroup.py garbage.py cronjob.py jobflow.py jobtemplate.py hypernode.py nodeshard.py colocation.py    one file each
command.py merge.py    what several of them need
schedule.py discovery.py sharding.py    what one decides by: when a cron job is due, HyperNodes by label, nodes for schedulers
cli.py metrics.py      vc-controller-manager
"""
