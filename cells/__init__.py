"""The composition of the agent: the hive, and the cells in rooms by what they wire.

This is the only room that knows dependency injection, the OpenTelemetry SDK, signals of the
operating system and the shape of the whole. It holds no rule of BGP or of Kubernetes: those live
in the rooms below, which never import this one.
"""
