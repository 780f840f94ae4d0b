"""Volcano jobs.

controller.py   changes > requests > decisions     requests.py   what there is to be done
observe.py      a change > requests                seen.py       what a decision looks at
policies.py     event and exit code > action       phases.py     the table of phases       counts.py    pods by phase and task
sync.py         make it so: pods.py group.py volumes.py          kill.py       take pods away
status.py       what is written of it              delayed.py    actions with a timeout
plugins/        env, svc, ssh, mpi and the rest: one module each
"""
