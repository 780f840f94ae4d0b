"""`pumice bench cluster`: what a scheduler does on a real API server, measured from outside.

load.py makes fake nodes and gangs; schedulers.py says which program decides and child.py runs it; counts.py and bindings.py read
off the API server what came of it; stages.py puts a measurement together; report.py holds its figures."""
