"""The agents of a whole cluster: ``--all-nodes`` reads from each of them, in parallel, by pods/exec.

`flags` declares the arguments, `agents` finds the Pods, `ask` sends the requests, `statuses` reads the
status objects of nodes without an answer, and `view` prints what a command shows of all of them.
"""
