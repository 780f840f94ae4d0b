"""What tests are made of; shipped, so that plugins of others can be tried with it.

builders.py      objects that set only what matters; devices.py storage.py: those of ResourceClaims and volumes
opened.py        an open session over them
cases.py         case files, kept outside; paths.py: fields by path
sessions.py      recorded decisions of one session, run and compared
scenario.py      stories of a whole cluster: played.py what became of it, tape.py what was written, faults.py what goes wrong,
                 expectations.py what must hold
questions.py volume_questions.py    generated questions for comparing filters and scorers with kube-scheduler's own
"""
