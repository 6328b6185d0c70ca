"""The source against a server that follows a script: everything that an API server does to a client.

Names F01 to F13 are from the list of failures that a speaker on a node has to survive. Times are
shortened; the order of things is not.
"""
