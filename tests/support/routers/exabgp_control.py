"""The helper program that ExaBGP runs at the other end of its pipes.

Run by path, so it may not import anything of this project. ``commands SOCKET`` lends the pipes to
a client of the Unix socket: one client at a time, one command a connection, and the answer
is every line up to its last. ``events FILE`` records ExaBGP's events.
"""

from __future__ import annotations

import json
import select
import socket
import sys
from pathlib import Path

ENDS = ("done", "error", "shutdown")


def is_end(line: str) -> bool:
    """Whether a line from ExaBGP ends an answer."""
    if line in ENDS:
        return True
    try:
        value = json.loads(line)
    except ValueError:
        return False
    return isinstance(value, dict) and value.get("answer") in ENDS


def serve(path: str) -> None:
    """Answer clients until ExaBGP closes the pipe."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        while True:
            ready, _, _ = select.select([server, sys.stdin], [], [])
            if server not in ready:
                # ExaBGP writes nothing unrequested; when it has been killed, the pipe ends.
                if not sys.stdin.readline():
                    return
                continue
            client, _ = server.accept()
            with client, client.makefile("rw", encoding="utf-8") as stream:
                sys.stdout.write(stream.readline())
                sys.stdout.flush()
                while line := sys.stdin.readline():
                    stream.write(line)
                    if is_end(line.strip()):
                        break
                else:
                    return


def write_down(path: Path) -> None:
    """Append every line to a file, a whole line at a time."""
    with path.open("a") as file:
        for line in sys.stdin:
            file.write(line)
            file.flush()


if __name__ == "__main__":
    if sys.argv[1] == "commands":
        serve(sys.argv[2])
    else:
        write_down(Path(sys.argv[2]))
