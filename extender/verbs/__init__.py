"""The four verbs of a kube-scheduler extender, pure: what is asked in, answers and operations out.

    wire        JSON of the contract (k8s.io/kube-scheduler v0.36.1, extender/v1) <-> questions and answers
    answering   Extender: filter, prioritize, bind, preempt over a mirror and the books; what happens to what is kept
    planning    a session that places one gang whole, or says why not
    scoring     what nodes were worth in the last filter, for the prioritize that follows
    survey      what sessions of the loop do beside placing pods; and who is to be woken
    foreign     pods without a gang: they pass, save for room that is kept and nodes that cannot take them
    preempting  who would have to leave for a gang, and which gangs would be torn by what kube-scheduler has chosen

Nothing here knows HTTP, threads or the cluster: extender/server.py drives it, under one lock."""
