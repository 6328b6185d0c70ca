"""``waggle schema``: what each command prints with ``-o json`` is valid, and has no unknown member."""

from __future__ import annotations

import functools
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconcilers.compile_manifests import compile_manifests
from reconcilers.kernel.received_file import FileRoutes, ReceivedRoute
from tests.cells.api.test_client import answering, http
from tests.cmd.lab import NODE, configuration, service
from tests.cmd.schema_members import FILE, lines
from tests.cmd.test_replay import recorded
from tests.support import json_schema, plain_yaml, scenario
from tests.support.agent import Agent
from tests.support.reason_words import sources
from waggle.__main__ import COMMANDS, main
from waggle.commands.schema.schemas import item_types, kinds, schema
from waggle.dialects import DIALECTS

OPEN = f"{'ff' * 16}001d0104fde8005ac000020100"
OF_AGENT = (
    *(
        "status",
        "peers",
        "bfd",
        "bugreport -O /dev/null",
        "routes",
        "routes available",
        "routes received",
        "routes --count",
        "events",
    ),
    *("explain", "explain --all", "explain shop/web", "explain 198.51.100.10 --received"),
    *(
        "reconcilers",
        "verify",
        "log",
        "log info",
        "history",
        "peers --peer none",
        "routes 203.0.113.0/24",
    ),
    *(
        "routes 203.0.113.0/24",
        "peers clear tor-1",
        "explain none/none",
        "trace 198.51.100.10/32",
        "routes kernel",
        "metrics session_up",
        "metrics none",
    ),
    "plan -f {}",
    "top",
    "api /v1/peers",
    "api /v1/process",
)
OFFLINE = (
    *("plan -f {} --from {} --add", "docs", "docs router", "errors", "errors NoRule", "schema"),
    *("router check examples/router.yaml", "router check none", "completion bash"),
    *(f"decode {OPEN}", "errors none", "explain -f {} --node node-1 --all"),
)
OF_DIALECTS: tuple[tuple[str, str, Any], ...] = (
    ("antrea policy", "AntreaPolicyList", {"name": "edge", "localASN": 65001, "memberASNs": [1]}),
    ("antrea peers", "AntreaPeerList", [{"peer": "10.0.0.1:179", "asn": 65000, "state": "Idle"}]),
    ("antrea peers --ipv6-only", "AntreaPeerList", None),
    ("antrea routes", "AntreaRouteList", [{"route": "10.0.0.0/24", "type": "NodeIPAMPodCIDR"}]),
)
"""Commands of dialects, their kinds, and the agent's answer."""
WITHOUT_A_LIST = {
    *("check", "convert", "crds", "render", "replay"),
    *("watch", "plan", "doctor", "demo", "ui"),
}
"""Documents of another API, objects of Kubernetes, streams, programs; ``doctor`` reads a cluster.

The documents of ``demo`` and ``ui`` are in their own tests."""


shared = pytest.mark.xdist_group("agent-of-schemas")
"""Of tests that share an agent."""


@pytest.fixture(name="agent", scope="module")
def running_agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    """An agent with a Service and a peer that does not answer."""
    arguments = ("--enable-cell", "cilium", "--trace-buffer", "100")
    agent = Agent(None, tmp_path_factory.mktemp("agent"), node=NODE, arguments=arguments)
    agent.write_objects("all.json", *configuration([1]), service("web", "198.51.100.10"))
    agent.start()
    agent.wait_ready()
    yield agent
    agent.stop()


def strict(value: Any) -> Any:  # noqa: ANN401  JSON
    """Return a schema that allows no member that it does not have."""
    if isinstance(value, list):
        return [strict(part) for part in value]
    if not isinstance(value, dict):
        return value
    closed = {name: strict(part) for name, part in value.items()}
    if "properties" in value and value.get("title") != "MessageItem":
        closed["additionalProperties"] = False
    return closed


@functools.cache
def validator(kind: str) -> json_schema.Validator:
    """Return the validator of documents of a kind; the schema itself is checked once."""
    closed = strict(schema(kind))
    json_schema.Validator.check_schema(closed)
    return json_schema.Validator(closed)


def check(printed: str) -> dict[str, Any]:
    """Check an answer by the schema of its kind; returns it."""
    answer: dict[str, Any] = json.loads(printed)
    validator(answer["kind"]).validate(answer)
    return answer


@pytest.mark.program
@shared
def test_the_answers_of_an_agent_are_valid(
    agent: Agent, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in OF_AGENT:
        words = command.format(agent.manifests).split()
        main([*words, "-o", "json", "--socket", str(agent.socket)])
        printed = capsys.readouterr()
        assert printed.out, (command, printed.err)
        check(printed.out)


@pytest.mark.program
@shared
@pytest.mark.parametrize("path", ["cells", "health", "host", "process", "intent"])
def test_the_answers_of_paths_without_a_command_are_valid(
    agent: Agent, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from cells.api.client import at_socket

    assert check(json.dumps(at_socket(agent.socket).get(f"/v1/{path}", {})))["items"]


@pytest.mark.parametrize("command", OFFLINE)
def test_answers_without_an_agent_are_valid(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifests = tmp_path / "all.json"
    objects = [*configuration([1]), service("web", "198.51.100.10")]
    manifests.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    main([*command.replace("{}", str(manifests)).split(), "-o", "json"])
    check(capsys.readouterr().out)


@pytest.mark.parametrize(("command", "kind", "content"), OF_DIALECTS)
def test_the_answers_of_commands_of_dialects_are_valid(
    command: str, kind: str, content: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for form, decode in (("json", json.loads), ("yaml", plain_yaml.load)):
        path = tmp_path / form
        with answering(path, http(content)):
            assert main([*command.split(), "-o", form, "--socket", str(path)]) == 0
        answer = check(json.dumps(decode(capsys.readouterr().out), default=str))
        items = content if isinstance(content, list) else [content] if content else []
        assert (answer["kind"], answer["items"], answer["errors"]) == (kind, items, [])


def test_every_command_and_kind_of_a_dialect_is_checked() -> None:
    assert {command.split()[0] for command, _, _ in OF_DIALECTS} == set(DIALECTS.subcommands)
    kinds_of = {k for command in DIALECTS.subcommands.values() for k in command.load().items}
    assert {kind for _, kind, _ in OF_DIALECTS} == kinds_of


@pytest.mark.parametrize(
    ("words", "status", "code"),
    [
        ("antrea policy", 4, "NotFound"),
        ("antrea nodes", 2, "BadRequest"),
        ("antrea policy --ipv4-only", 2, "BadRequest"),
    ],
)
def test_an_error_of_a_command_of_a_dialect_is_valid(
    words: str, status: int, code: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "api"
    body = b"there is no effective bgp policy applied to the Node\n"
    refusal = b"HTTP/1.1 404 Not Found\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    with answering(path, refusal):
        assert main([*words.split(), "-o", "json", "--socket", str(path)]) == status
    answer = check(capsys.readouterr().out)
    assert (answer["kind"], answer["items"]) == ("ErrorList", [])
    assert [error["code"] for error in answer["errors"]] == [code]


@pytest.mark.parametrize(
    "command",
    ["peers", "routes", "explain", "status", "verify", "history", *DIALECTS.subcommands],
)
def test_an_error_is_valid_too(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [command, *(["policy"] if command == "antrea" else [])]
    assert main([*words, "-o", "json", "--socket", str(tmp_path / "none")]) == 1
    assert check(capsys.readouterr().out)["errors"][0]["code"] == "AgentNotRunning"


@pytest.mark.parametrize(
    ("command", "status", "code", "kind"),
    [
        ("check -f none", 2, "BadRequest", "ErrorList"),
        ("check -f {} --node other", 4, "NotFound", "ErrorList"),
        ("render -f none --node node-1", 2, "BadRequest", "ErrorList"),
        ("render -f {} --node node-1 --received none", 2, "BadRequest", "ErrorList"),
        ("render -f {} --node node-1 --fib-table 255", 2, "BadRequest", "ErrorList"),
        ("convert -f none", 2, "BadRequest", "ErrorList"),
        ("convert -f {} --to nothing", 2, "BadRequest", "ErrorList"),
        ("crds Nothing", 4, "NotFound", "ErrorList"),
        ("crds --installed none", 2, "BadRequest", "ErrorList"),
        ("crds --installed {}", 2, "BadRequest", "ErrorList"),
        ("decode zz", 2, "BadRequest", "MessageList"),
        ("decode --pcap none", 2, "BadRequest", "MessageList"),
        ("decode --pcap {}", 2, "BadRequest", "MessageList"),
        ("decode --jsonl none", 2, "BadRequest", "MessageList"),
        ("replay none", 2, "BadRequest", "PeerList"),
        ("replay {}", 2, "BadRequest", "PeerList"),
        ("replay none --show routes", 2, "BadRequest", "RouteList"),
        ("replay {} --show actions", 2, "BadRequest", "ActionList"),
    ],
)
def test_input_without_a_result_is_an_error_in_every_format_for_programs(
    command: str,
    status: int,
    code: str,
    kind: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    manifests = tmp_path / "all.json"
    objects = [*configuration([1]), service("web", "198.51.100.10")]
    manifests.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    words = command.replace("{}", str(manifests)).split()
    assert main([*words, "-o", "table"]) == status
    nothing, sentence = capsys.readouterr()
    assert nothing == ""
    for form, decode in (("json", json.loads), ("yaml", plain_yaml.load)):
        assert main([*words, "-o", form]) == status
        printed = capsys.readouterr()
        assert printed.err == sentence
        answer = check(json.dumps(decode(printed.out), default=str))
        assert (answer["kind"], answer["items"]) == (kind, [])
        (error,) = answer["errors"]
        assert sentence == f"waggle {words[0]}: {error['message']}\n"
        assert error["code"] == code
    assert main([*words, "-o", "jsonpath={.errors[*].code}"]) == status
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == (code, f"waggle: {error['message']}\n")


def test_every_command_is_checked() -> None:
    checked = {command.split()[0] for command in (*OF_AGENT, *OFFLINE)}
    assert set(COMMANDS) - checked - WITHOUT_A_LIST == set()


def check_document(printed: str, kind: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(printed)
    validator(kind).validate(document)
    return document


@pytest.mark.program
@shared
def test_the_findings_and_the_changes_of_an_agent_are_valid(
    agent: Agent, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", "-o", "json", "--socket", str(agent.socket)]) == 1
    assert check(capsys.readouterr().out)["kind"] == "CheckList"
    command = [sys.executable, "-m", "waggle", "watch", "services", "-o", "jsonl"]
    command += ["--socket", str(agent.socket)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        line = watching.stdout.readline()
        watching.terminate()
    assert check_document(line, "WatchItem")["type"] == "ADDED"


def test_the_recording_of_a_program_is_valid(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = recorded(tmp_path)
    for words, kind in (
        (["--show", "state"], "PeerList"),
        (["--show", "routes", "--table", "available"], "RouteList"),
        (["--show", "actions"], "ActionList"),
    ):
        main(["replay", str(path), *words, "-o", "json"])
        assert check(capsys.readouterr().out)["kind"] == kind


def test_the_document_of_check_is_valid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "all.json"
    _, *objects = configuration([1])
    wrong = {"name": "wrong"}
    objects.append({**objects[1], "metadata": wrong, "spec": {"timers": {"holdTimeSeconds": 1}}})
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    assert main(["check", "-f", str(path), "-o", "json"]) == 1
    document = check_document(capsys.readouterr().out, "CheckDocument")
    assert document["problems"]
    assert document["assumedNodes"]


@pytest.mark.parametrize("directory", scenario.directories(), ids=lambda path: path.name)
def test_the_document_of_render_is_valid(directory: Path, tmp_path: Path) -> None:
    described = scenario.load(directory)
    for step in described.steps:
        scenario.carry_out(directory, step, tmp_path)
    compiled = compile_manifests([str(tmp_path)], described.dialects, described.settings)
    document = compiled.whole_document()
    received: FileRoutes = {"name": (ReceivedRoute(prefix="203.0.113.0/24"),)}
    document |= compiled.kernel(received, unknown=set())
    check_document(json.dumps(document), "RenderDocument")


def test_every_kind_that_the_code_names_has_a_schema() -> None:
    # Constants: texts with nothing else between their quotation marks.
    word = r'"((?!NotIn|Reconciler)[A-Z][A-Za-z]+Report|(?!NotIn)[A-Z][A-Za-z]+List)"'
    named = {
        name
        for path in sources()
        if path.parts[-4:-2] != ("cmd", "tests")
        for name in re.findall(word, path.read_text())
    }
    # Kubernetes has two of the names.
    assert named - {"List", "SecretList"} | {"ReconcilerList"} == set(item_types())


def test_members_are_only_added() -> None:
    """``python -m tests.cmd.schema_members`` adds a new one to the file."""
    assert set(FILE.read_text().splitlines()) == set(lines())


def test_schemas_are_valid_themselves() -> None:
    for kind in kinds():
        json_schema.Validator.check_schema(schema(kind))


def test_a_schema_is_printed_by_its_kind(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "PeerList"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == schema("PeerList")
    assert printed["$id"] == "urn:cli.waggle:v1:PeerList"
    assert main(["schema", "PeersList"]) == 4
    text = "waggle schema: there is no kind 'PeersList'; did you mean PeerList?\n"
    assert capsys.readouterr().err == text


def test_the_kind_may_be_in_any_case(capsys: pytest.CaptureFixture[str]) -> None:
    printed = []
    for word in ("PeerList", "peerlist"):
        assert main(["schema", word]) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
