"""Certificates of the admission webhook: an authority and a serving pair, made, kept and renewed. No key is ever logged.

issue.py     the certificates themselves: what they say, whether they still do, when they are due; pure but for new keys
stock.py     what there is and what is missing: one decision for a folder and for a cluster
folder.py    kept as files          install.py  kept as Secrets, published in the webhook configurations
keeper.py    both now and then, as long as the program runs
cli.py       vc-certs
"""
