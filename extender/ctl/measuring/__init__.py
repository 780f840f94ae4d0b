"""`pumice bench cluster`: what a scheduler does on a real API server, measured from outside.

prepared.py makes the server ready; load.py makes fake nodes and gangs; schedulers.py says which program decides and child.py runs
it; counts.py and bindings.py read off the API server what came of it; stages.py puts a measurement together; report.py holds its
figures.

`pumice bench webhook`: webhook.py serves it without an API server, reviews.py sends it reviews; creations.py times objects that
are made on a real API server with the webhooks and without."""
