"""Parts that all processes beside the agent share: messages and connection.

It imports the standard library alone, as these processes are to be small.

* `codec`: messages, which are frozen values, as octets; their versions
* `connection`: the end of the process, which never blocks
* `client`: the end of the agent
* `keeper`: starts the process again
* `log`: lines that the agent copies to its log
"""
