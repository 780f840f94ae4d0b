"""Admission: an object in, a patch or a denial out. Stateless.

verdict.py  Allow, Deny, Fault and the JSON Patch between two objects
routes.py   the table path -> handler, kinds, operations
jobs/ pods/ podgroups/ queues/    mutate.py and validate.py of each: path = URL
"""
