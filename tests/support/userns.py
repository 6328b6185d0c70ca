"""A user namespace for test processes without root, in which network namespaces can be made.

A process of its own holds it, and ends with the test process. Only programs that run in network
namespaces enter; the tests themselves keep the rights of their user.
"""

from __future__ import annotations

import atexit
import subprocess
from dataclasses import dataclass
from pathlib import Path

APPARMOR = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
HOLD = """
mount -t tmpfs tmpfs /run
mkdir /run/netns
ip netns add probe
ip netns exec probe true
ip netns delete probe
echo ready
exec cat
"""
"""The names of network namespaces are files in /run/netns, which only root can write outside."""


@dataclass(frozen=True, slots=True)
class UserNamespace:
    """A user namespace with a mount namespace of its own; root in it is the user of the tests."""

    holder: int
    """The id of the process that holds it."""
    has_all_users: bool
    """False if root is its only user."""

    def command(self) -> list[str]:
        """Return what goes before a command to run it inside, in the working directory."""
        # No shell: it would drop environment variables with a hyphen, as ExaBGP has them.
        return [
            "nsenter", "--target", str(self.holder), "--user", "--mount", "--net",
            "--preserve-credentials", "--", "env", f"--chdir={Path.cwd()}",
        ]  # fmt: skip


def make() -> UserNamespace | str:
    """Make a user namespace for the time of this process, or return the reason why not.

    The users of /etc/subuid are mapped where newuidmap is installed and lists the user.
    """
    reason = ""
    for mapping in (["--map-root-user", "--map-auto"], ["--map-root-user"]):
        command = ["unshare", "--user", *mapping, "--mount", "--net", "sh", "-euc", HOLD]
        try:
            holder = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
        except FileNotFoundError:
            return "there is no program unshare (Debian: util-linux)"
        assert holder.stdout is not None
        if holder.stdout.readline() == b"ready\n":
            atexit.register(holder.communicate)
            return UserNamespace(holder.pid, has_all_users="--map-auto" in mapping)
        _, error = holder.communicate()
        reason = " ".join(error.decode(errors="replace").split())
    if APPARMOR.exists() and APPARMOR.read_text().strip() != "0":
        reason += f"; {APPARMOR.name} is set, see sysctl kernel.{APPARMOR.name}"
    return reason
