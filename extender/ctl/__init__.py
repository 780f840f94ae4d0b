"""The commands for people. The top layer: it sees everything, and nothing sees it.

pumice.py        gathers the commands, turns errors into exit statuses
named.py         options that name files, folders and namespaces, alike for all

pumice run:      run.py
    in           reading.py files > documents; loading.py documents > found.py manifests, each with its place; nodes.py --nodes;
                 configuring.py --conf; storage.py a StorageClass where there is none
    judged       sizing.py slips.py namespaces.py unknown_fields.py plugin_arguments.py unheeded.py
                 arranging.py (the order of creation, too)
    played       playing.py; commanding.py commands; progress.py meanwhile
    out          report.py failures.py lines.py tables.py group_names.py; timeline.py the picture
pumice score:    score.py
pumice up, down: up.py down.py; permitted.py installing.py admitting.py telling.py
pumice bench:    bench_session.py bench_cluster.py bench_webhook.py measuring/
"""
