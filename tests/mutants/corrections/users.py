"""Mistakes that people met: of commands, of the chart and of the pages."""

from __future__ import annotations

from typing import Final

_CRDS: Final = "cmd/waggle/commands/crds.py"
_OF_CRDS: Final = "tests/cmd/test_crds.py"
_WITHOUT_EFFECT: Final = "tests/cmd/test_check_without_effect.py"
_LOAD: Final = "resources/manifests/load.py"
_HELPERS: Final = "deploy/helm/waggle/templates/_helpers.tpl"
_VALUES: Final = "tests/deploy/chart/test_values.py"
_REASONS: Final = "cmd/waggle/commands/demo/reasons.py"
_OF_REASONS: Final = "tests/cmd/test_demo_reasons.py"
_ERRORS: Final = "tests/cmd/test_error_form.py"

CHANGES: Final[tuple[tuple[str, ...], ...]] = (
    # Definitions of other projects
    (
        "definitions: the pages create one dialect's",
        "docs/install.md",
        "kubectl create -f deploy/helm/waggle/crds/cilium.yaml",
        "kubectl apply -f deploy/helm/waggle/crds",
        "tests/deploy/test_definitions.py::test_the_pages_name_the_definitions_of_one_dialect",
    ),
    (
        "definitions: another project's are not printed",
        _CRDS,
        "        elif is_generated(present) or kind in replaced:",
        "        elif True:",
        _OF_CRDS,
    ),
    (
        "definitions: ours are what the cluster has of Waggle",
        _CRDS,
        "            if not ours:\n                result.append(definition)",
        "            result.append(definition)",
        _OF_CRDS,
    ),
    # Objects without effect
    (
        "check: an object of MetalLB in another namespace has no effect",
        "reconcilers/metallb/admission.py",
        "            if row.metadata.namespace != namespace:\n                ref, text",
        "            if False:\n                ref, text",
        _WITHOUT_EFFECT,
    ),
    (
        "check: an FRRConfiguration in another namespace has no effect",
        "reconcilers/frrk8s/admission.py",
        "        if row.metadata.namespace != namespace:\n            text",
        "        if False:\n            text",
        _WITHOUT_EFFECT,
    ),
    (
        "check: an advertisement names pools and peers that are there",
        "reconcilers/metallb/admission.py",
        "            if name not in present:",
        "            if False:",
        _WITHOUT_EFFECT,
    ),
    (
        "check: an advertisement selects a pool",
        "reconcilers/metallb/admission.py",
        "        if not any(selector.matches(pool.metadata.labels) for pool in pools):",
        "        if False:",
        _WITHOUT_EFFECT,
    ),
    (
        "check: an unknown kind of a known group is a mistake",
        "resources/manifests/parse.py",
        "            if mistake:\n",
        "            if False:\n",
        _WITHOUT_EFFECT,
    ),
    (
        "check: a directory without a manifest is a problem",
        _LOAD,
        "        if root in scanned.directories and not any(_below(root, path) for path in catalog):",
        "        if False:",
        _WITHOUT_EFFECT,
    ),
    (
        "check: a link out of the directory is a problem",
        "resources/manifests/files.py",
        "        if is_directory is None and _leads_out(entry, root):",
        "        if False:",
        _WITHOUT_EFFECT,
    ),
    (
        "check: every problem of an object comes in one run",
        "reconcilers/check_manifests.py",
        "    if loaded.rejected:\n",
        "    if False:\n",
        _WITHOUT_EFFECT,
    ),
    (
        "check: every problem of a router's file comes in one run",
        "cmd/waggle/router_config/problems.py",
        "    while len(sentences) < MAX_PROBLEMS:",
        "    while not sentences:",
        "tests/cmd/test_router.py",
    ),
    # A dialect that feeds another dialect
    (
        "feeder: the chart switches on what it feeds",
        _HELPERS,
        '{{- $_ := set $cells .fed (mergeOverwrite (deepCopy $fed) (dict "enabled" true)) -}}\n',
        "",
        f"{_VALUES}::test_a_dialect_enables_the_dialect_that_it_feeds",
    ),
    (
        "feeder: the chart refuses it where the fed dialect is off by name",
        _HELPERS,
        '{{- if eq (toString $fed.enabled) "false" -}}',
        "{{- if false -}}",
        f"{_VALUES}::test_a_dialect_that_feeds_a_disabled_dialect_is_rejected_in_one_sentence",
    ),
    (
        "feeder: the programs switch on what it feeds",
        "cells/dialects/cell.py",
        "        needs=entry.feeds,\n",
        "",
        "tests/cells/test_options.py",
    ),
    # Flags and answers
    (
        "answers: offline flags beside an agent are refused",
        "cmd/waggle/commands/explain.py",
        "    if not args.filename and (offline := given_intent_flags(args, args.dialects)):",
        "    if not args.filename and (offline := given_intent_flags(args, args.dialects)[:0]):",
        "tests/cmd/test_explain.py",
    ),
    (
        "answers: a document without items has the error",
        "cmd/waggle/output.py",
        '[{"code": code, "message": message}]',
        "[]",
        "tests/cmd/test_error_documents.py",
        "tests/cmd/test_empty_answers.py",
    ),
    # The demo's reasons
    (
        "demo: a node without a peer is a reason",
        _REASONS,
        '    if not lines and not peers["items"]:',
        "    if False:",
        _OF_REASONS,
    ),
    (
        "demo: a dialect that is off is a reason",
        _REASONS,
        '    for unused in status.get("unusedObjects", ()):',
        '    for unused in status.get("unusedObjects", ())[:0]:',
        _OF_REASONS,
    ),
    (
        "demo: a part of the agent that is degraded is a reason",
        _REASONS,
        '    for part in status.get("degraded", ()):',
        '    for part in status.get("degraded", ())[:0]:',
        _OF_REASONS,
    ),
    # Pages
    (
        "pages: messages are the code's",
        "docs/runbook.md",
        "`you may not create pods/exec`",
        "`you are not allowed to create pods/exec`",
        "tests/test_pages.py::test_messages_of_a_page_are_in_the_code",
    ),
    (
        "pages: messages refer to a page by the command that prints it",
        "resources/pages.py",
        'else f"waggle docs {name}"',
        'else f"docs/{name}.md"',
        "tests/cmd/test_docs_command.py",
    ),
    (
        "pages: every log event is listed",
        "cells/hive/lifecycle.py",
        'event_name="hive.slow_hook"',
        'event_name="hive.hook_slow"',
        "tests/test_log_events.py",
    ),
    # Small ones
    (
        "words: a log line has its event",
        "cells/hive/lifecycle.py",
        '                event_name="hive.slow_hook",\n',
        "",
        "tests/cells/hive/test_lifecycle.py",
    ),
    (
        "words: a taint's key is checked",
        "reconcilers/intent/options.py",
        "                if is_key(text):",
        "                if True:",
        "tests/reconcilers/intent/test_drain.py",
    ),
    (
        "words: an empty variable of the socket is the default",
        "cells/api/agent_socket.py",
        "if os.environ.get(SOCKET_ENV) else default_path()",
        "if SOCKET_ENV in os.environ else default_path()",
        "tests/cells/api/test_client.py::test_the_socket_is_that_of_the_environment_or_of_the_user",
    ),
    (
        "words: a closed standard output is an error",
        "cmd/waggle/__main__.py",
        "    if open_standard_streams():",
        "    if open_standard_streams() and False:",
        f"{_ERRORS}::test_a_closed_standard_output_is_an_error",
    ),
    (
        "words: a prefix that a router does not originate is no success",
        "cmd/waggle/commands/router/actions.py",
        'for p in item.get("absent", ())]',
        'for p in item.get("absent", ())[:0]]',
        "tests/cmd/test_router_actions.py",
    ),
    (
        "words: --color=always has colours in a pipe",
        "cmd/waggle/output.py",
        '        return choice == "always"',
        '        return choice == "always" and stream.isatty()',
        "tests/cmd/test_output.py",
    ),
    (
        "words: an unknown key of a router's file has a similar one",
        "cmd/waggle/router_config/problems.py",
        "{did_you_mean(unknown[1], known)}'",
        "{did_you_mean(unknown[1], known[:0])}'",
        "tests/cmd/test_router_file.py",
    ),
    (
        "demo: the router's routes are read before its sessions",
        "cmd/waggle/commands/demo/program.py",
        (
            '            routes = router.get("/v1/routes", {"table": "received"})["items"]\n'
            '            peers = router.get("/v1/peers", {})["items"]\n'
        ),
        (
            '            peers = router.get("/v1/peers", {})["items"]\n'
            '            routes = router.get("/v1/routes", {"table": "received"})["items"]\n'
        ),
        "tests/cmd/test_demo_program.py",
    ),
)
