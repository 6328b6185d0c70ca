"""Errors of commands and of the API: words, meanings, remedies."""

from __future__ import annotations

from typing import Final

REASONS: Final[tuple[tuple[str, str, str], ...]] = (
    (
        "AgentNotRunning",
        "no process listens on the socket",
        "start the agent; `--socket` or WAGGLE_API_SOCKET where it has another socket",
    ),
    (
        "AgentUnreachable",
        "the agent does not answer, or the connection broke off",
        "its log, its probes; repeat the command",
    ),
    ("AgentStopped", "the agent closed the connection of a stream", "start the command again"),
    (
        "BadAnswer",
        "the process on the socket is no agent, or one of another version",
        "`waggle --version` and `waggle-agent --version`",
    ),
    (
        "BadRequest",
        "a parameter, a member of a body, or an input of a command is unknown or cannot be read",
        "the message",
    ),
    ("Forbidden", "the socket belongs to another user", "run the command as the user of the agent"),
    (
        "NotFound",
        "there is no peer, instance, prefix, object or kind of that name",
        "the message has the nearest names",
    ),
    ("NotEnabled", "the part of the agent that answers is off", "the flag that the message names"),
    (
        "InvalidConfiguration",
        "the file is no valid configuration of a router",
        "the message has the key and the rule",
    ),
    ("Unavailable", "the agent has not computed its first configuration yet", "repeat the command"),
    ("StreamEnded", "the agent could not continue a stream", "the message; start it again"),
    (
        "ClusterUnreachable",
        "the API server does not answer, or refuses `pods/exec`",
        "the message has what it answers; `kubectl auth can-i create pods --subresource exec`",
    ),
    ("NoAgents", "the namespace has no running Pod of an agent", "the namespace and the context"),
    ("AgentTooOld", "the agent of a node has no `waggle api`", "upgrade it; `waggle status` there"),
    ("TimedOut", "an agent has not answered in time", "the Pod and its log"),
    (
        "NotServed",
        "the API server has no objects of this kind",
        "the definitions of the dialect: `waggle crds`",
    ),
    ("TooLong", "an answer of an agent is longer than what is read", "narrow the request"),
    ("NotSupported", "this request is not for agents in a cluster", "run it in the Pod"),
    ("MaxWithdraw", "the plan withdraws more routes than `--max-withdraw`", "read the plan"),
    ("NoReset", "the plan ends a session, and `--no-reset` forbids it", "read the plan"),
    (
        "ListenFailed",
        "another process uses the port of `waggle ui`",
        "`--port`, or without it a free one",
    ),
    (
        "DemoFailed",
        "a program of the demo cannot run, or the router has other routes than `waggle render`",
        "the message; another `--timeout`",
    ),
    ("DemoRuns", "another demo runs with this socket", "`waggle demo --stop` ends it"),
    ("NoDemo", "no demo runs with this socket", "`--socket` where it has another socket"),
    (
        "Difference",
        "the replay of a recording has other results than the recording",
        "normal for a version with a correction in that place",
    ),
)
