"""Mistakes that lost or misrouted traffic, or admitted a stranger."""

from __future__ import annotations

from typing import Final

_FILES: Final = "resources/manifests/files.py"
_UNREADABLE: Final = "tests/resources/manifests/test_unreadable.py"
_INSTANCE: Final = "speaker/engine/instance/instance.py"
_SETTINGS: Final = "speaker/engine/instance/changed_settings.py"
_KEPT: Final = "tests/speaker/engine/test_kept_routes.py"
_MODEL: Final = "tests/cmd/test_router_reload_model.py"
_DYNAMIC: Final = "tests/speaker/engine/test_dynamic_peers.py"
_NEXT_HOPS: Final = "speaker/engine/export_rules.py"
_OF_NEXT_HOPS: Final = "tests/speaker/engine/test_next_hops.py"
_CONDITIONS: Final = "tests/reconcilers/frrk8s/test_conditions.py"

CHANGES: Final[tuple[tuple[str, ...], ...]] = (
    # An entry of a manifests directory that cannot be read
    (
        "manifests: a link that cannot be followed is a problem of that entry",
        _FILES,
        "        except OSError as error:\n            result.skipped[path]",
        "        except PermissionError as error:\n            result.skipped[path]",
        _UNREADABLE,
    ),
    (
        "manifests: a directory that cannot be listed is a problem of that entry",
        _FILES,
        "    except OSError as error:\n        result.skipped[directory]",
        "    except PermissionError as error:\n        result.skipped[directory]",
        _UNREADABLE,
    ),
    (
        "manifests: a file that cannot be looked at is a problem of that entry",
        _FILES,
        "    except OSError as error:\n        return unreadable(error)",
        "    except PermissionError as error:\n        return unreadable(error)",
        _UNREADABLE,
    ),
    # A second agent
    (
        "second agent: everything is reserved before anything starts",
        "cells/hive/lifecycle.py",
        "        self._entries.append(Entry(name, reserve, start, stop, stop_timeout, first))",
        (
            "        async def both() -> None:\n"
            "            for hook in filter(None, (reserve, start)):\n"
            "                await hook()\n\n"
            "        self._entries.append(Entry(name, None, both, stop, stop_timeout, first))"
        ),
        "tests/cells/hive/test_lifecycle.py",
    ),
    (
        "second agent: the state directory is locked",
        "cells/state/state_files.py",
        "                raise OSError(errno.EBUSY, IN_USE) from None",
        "                return",
        "tests/cells/bad_input/test_state_directory.py",
    ),
    (
        "second agent: the path of the API socket is locked",
        "cells/unix_socket.py",
        "        raise _in_use(path, program) from None",
        "        return os.open(_lock_path(path), os.O_RDWR)",
        "tests/cells/test_unix_socket.py",
    ),
    (
        "second agent: a recording is one process's",
        "speaker/server/recording_file.py",
        "                _lock(self._descriptor, path)",
        "                pass",
        "tests/speaker/server/test_recording_file.py",
    ),
    (
        "second agent: no connection leaves while another process has the port",
        "speaker/server/transports.py",
        "        if reason := refuse(action.instance):",
        "        if (reason := refuse(action.instance)) and not number:",
        (
            "tests/speaker/server/test_speaker.py::"
            "test_f28_sessions_wait_for_a_port_that_another_process_has"
        ),
    ),
    # A policy that changes together with what resets the session
    (
        "reload: kept routes follow a change that resets the session",
        _INSTANCE,
        (
            "                peer.reconfigure(config)\n"
            "                self._configure_kept_routes(peer, before)"
        ),
        "                peer.reconfigure(config)",
        _KEPT,
    ),
    (
        "reload: kept routes get the new import policy",
        _SETTINGS,
        "    _apply_import_policy(outbound, kept, before)\n",
        "",
        _KEPT,
        _MODEL,
    ),
    (
        "reload: kept paths are judged by the new settings",
        _SETTINGS,
        "    kept.stale.judge_again(kept.inbound, context)\n",
        "",
        _KEPT,
        _MODEL,
    ),
    (
        "reload: enforceFirstAS is an input of the cached judgement",
        "speaker/rib/inbound_context.py",
        '    "hold_time": 0,\n',
        '    "hold_time": 0,\n    "enforce_first_as": False,\n',
        _KEPT,
        _MODEL,
    ),
    # A peer of a range that gets an entry of its own
    (
        "range and entry: the entry takes the session over",
        _INSTANCE,
        "        self._leave_range(config)\n",
        "",
        _DYNAMIC,
    ),
    (
        "range and entry: an entry with another name ends the session by the rules of the range",
        _INSTANCE,
        "                elif peer.dynamic is not None:\n                    self._remove(peer)",
        "                elif peer.dynamic is not None:\n                    pass",
        _DYNAMIC,
    ),
    (
        "range and entry: the range takes the session back",
        _INSTANCE,
        "            peer.dynamic is not None or not self.dynamic_peers.take_over(peer)\n",
        "            True\n",
        _DYNAMIC,
    ),
    (
        "range and entry: a reload gives the entry its session before the range changes",
        "cmd/waggle/commands/router/reload.py",
        (
            "        *((peer.name, peer) for peer in neighbors if _end(peer) not in former),\n"
            "        *((peer.name, peer) for peer in changed if not _is_neighbor(peer)),"
        ),
        (
            "        *((peer.name, peer) for peer in changed if not _is_neighbor(peer)),\n"
            "        *((peer.name, peer) for peer in neighbors if _end(peer) not in former),"
        ),
        "tests/cmd/test_router_reload.py",
        _MODEL,
    ),
    # One dialect's Secret
    (
        "one dialect's Secret: the operator reads none of Antrea's",
        "reconcilers/antrea/dialect.py",
        "= (NODE, BGP_POLICY)\n",
        "= (NODE, BGP_POLICY, SECRET_KIND)\n",
        "tests/cells/faults/permissions/test_operator.py",
        "tests/deploy/chart/test_roles.py",
    ),
    (
        "one dialect's Secret: the webhook waits for kinds of the object's dialect alone",
        "cells/operator/webhook/cell.py",
        (
            "            if read.table in unread.kinds:\n"
            "                return unread.kinds[read.table]\n"
            "        return unread.waits_for"
        ),
        "            del read\n        return next(iter(unread.kinds.values()), unread.waits_for)",
        "tests/cells/faults/permissions/test_webhook.py",
    ),
    (
        "one dialect's Secret: a kind that may not be read delays its own dialect alone",
        "resources/kubernetes/reflector.py",
        "        if not self.feed.rows and now - since >= self._timeouts.forbidden_grace:",
        "        if False:",
        "tests/resources/kubernetes/source/test_kinds.py",
    ),
    # IPv4 routes over IPv6 sessions, and routes that are not sent
    (
        "unsent routes: IPv4 over IPv6 has the address of the interface as next hop",
        _NEXT_HOPS,
        "        return on_interface or _default(config.default_next_hop_ipv4)",
        "        return _default(config.default_next_hop_ipv4)",
        _OF_NEXT_HOPS,
    ),
    (
        "unsent routes: IPv4 over IPv6 has the Node's address otherwise",
        _NEXT_HOPS,
        "        return on_interface or _default(config.default_next_hop_ipv4)",
        "        return on_interface",
        _OF_NEXT_HOPS,
    ),
    (
        "unsent routes: each obstacle is a problem",
        "reconcilers/intent/unsent_routes.py",
        "            if family.left_out and family.obstacle:",
        "            if False:",
        "tests/reconcilers/frrk8s/test_next_hops.py",
        "tests/cells/apply/test_session_readings.py",
        "tests/scenarios/test_routes_are_sent.py",
    ),
    # Accepted routes that the kernel does not get
    (
        "kernel routes: accepted routes without a place in the kernel are a condition",
        "reconcilers/frrk8s/one_object/routers.py",
        "        if accepting:\n",
        "        if False:\n",
        _CONDITIONS,
    ),
    (
        "kernel routes: they are no condition where agents install them",
        "reconcilers/frrk8s/compile_node.py",
        "effective=WITH_KERNEL_ROUTES if context.routes_installed else frozenset(),",
        "effective=frozenset(),",
        _CONDITIONS,
    ),
    (
        "feeds: local preferences are compared with a feed that has an unrelated conflict",
        "reconcilers/frrk8s/in_effect.py",
        "            if name != feed\n",
        "            if name != feed and not self.feeds[name].problems\n",
        "tests/reconcilers/frrk8s/test_feeders.py",
    ),
)
LIVE: Final[tuple[tuple[str, ...], ...]] = (
    (
        "second agent: ten mistaken starts send a router nothing",
        "speaker/server/transports.py",
        "        if reason := refuse(action.instance):",
        "        if (reason := refuse(action.instance)) and not number:",
        (
            "tests/interop/test_second_agent.py::"
            "test_ten_mistaken_starts_send_the_router_nothing[bird]"
        ),
    ),
    (
        "reload: a policy that changes with the hold time reaches the routes of a router",
        _INSTANCE,
        (
            "                peer.reconfigure(config)\n"
            "                self._configure_kept_routes(peer, before)"
        ),
        "                peer.reconfigure(config)",
        "tests/interop/test_policy_changes.py",
    ),
    (
        "unsent routes: the interface of a connection is read",
        "speaker/server/transports.py",
        "        self._feed(TransportConnected(connection.number, local, remote, other))",
        "        self._feed(TransportConnected(connection.number, local, remote, None))",
        "tests/interop/test_dual_stack_next_hops.py",
    ),
)
