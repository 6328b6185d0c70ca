"""The writer of kernel routes: the only part of Waggle that needs CAP_NET_ADMIN.

A process of its own, because 100,000 routes take the kernel hundreds of milliseconds, in which an event
loop would stand still. It imports the standard library alone, so that it stays small.

* `values`: the messages between agent and writer
* `port`: the writer as the agent sees it
"""
