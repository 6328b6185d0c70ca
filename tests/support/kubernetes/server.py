"""One API server with its etcd, on loopback ports of its own, and requests to it.

No kubelet, scheduler or controller runs: objects are stored, validated, watched and served, and
nothing comes of them. Tokens are made for this server and mean nothing elsewhere.
"""

from __future__ import annotations

import base64
import contextlib
import json
import secrets
import subprocess
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.certificates import authority_and_server
from tests.support.daemon import Daemon
from tests.support.kubernetes.assets import Assets
from tests.support.kubernetes.connections import SECONDS, Connections
from tests.support.ports import free_port
from tests.support.wait import NotReadyError, eventually

START_SECONDS = 120.0
STOP_SECONDS = 3.0
BUSY_ATTEMPTS = 60
BUSY_PAUSE = 0.5
AUDIT_POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - {level: Metadata, userGroups: ["system:serviceaccounts"]}
  - {level: None}
"""
"""What ServiceAccounts ask for is written down, without content."""
SPACIOUS = {"GOGC": "400"}
"""Go's collector of garbage, which else takes a quarter of the server's processor time, for 200 MB."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A response: the HTTP status and the object."""

    status: int
    body: dict[str, Any]

    @property
    def ok(self) -> bool:
        """True if the request succeeded."""
        return self.status < 300

    @property
    def causes(self) -> dict[str, str]:
        """Of a refusal: the messages by field."""
        causes = self.body.get("details", {}).get("causes", [])
        return {cause.get("field", ""): cause.get("message", "") for cause in causes}


@dataclass(frozen=True, slots=True)
class Request:
    """A request of a ServiceAccount, from the server's audit log."""

    verb: str
    group: str
    resource: str
    """With its subresource: ``nodes/status``."""
    namespace: str
    name: str
    status: int
    """Of the answer."""

    def __str__(self) -> str:
        """Return it as one line."""
        where = f" in {self.namespace}" if self.namespace else ""
        what = f"{self.resource}.{self.group}".removesuffix(".")
        return f"{self.verb} {what} {self.name}{where}: {self.status}"


class KubeApiServer:
    """A running API server; `directory` is for its data, logs and credentials."""

    def __init__(self, assets: Assets, directory: Path) -> None:
        self.directory = directory
        self._assets = assets
        self._etcd_port, self._peer_port, self._port = (free_port("127.0.0.1") for _ in range(3))
        self._token = secrets.token_hex(16)
        self._etcd = Daemon("etcd", self._etcd_command(), log=directory / "etcd.log")
        self._server = Daemon(
            "kube-apiserver",
            self._server_command(),
            log=directory / "kube-apiserver.log",
            environment=SPACIOUS,
        )
        self._connections = Connections(self._port, directory / "certs" / "apiserver.crt")

    @property
    def url(self) -> str:
        """Where it is."""
        return f"https://127.0.0.1:{self._port}"

    @property
    def kubeconfig(self) -> Path:
        """A file with the administrator's access."""
        return self.directory / "kubeconfig"

    def start(self) -> None:
        """Start both, and wait until it is ready."""
        tokens = f"{self._token},admin,admin,system:masters\n"
        (self.directory / "tokens.csv").write_text(tokens)
        (self.directory / "audit.yaml").write_text(AUDIT_POLICY)
        # Else the server makes an RSA key, with which each connection takes longer. Tokens are signed
        # with the same one.
        certificates = self.directory / "certs"
        certificates.mkdir()
        authority_and_server(certificates, "apiserver")
        self._etcd.start()
        self.start_server()

    def start_server(self) -> None:
        """Start the API server alone, perhaps again."""
        self._server.start()
        eventually(self._check_ready, within=START_SECONDS, interval=0.2, context=self._server.tail)
        self.kubeconfig.write_text(json.dumps(self._access()))

    def stop_server(self) -> None:
        """Stop the API server, killed while watches keep it; etcd goes on, with all objects."""
        self._connections.close()
        self._server.stop(timeout=STOP_SECONDS)

    def crash_server(self) -> None:
        """Kill the API server; etcd goes on, with all objects."""
        self._connections.close()
        self._server.kill()

    def end(self) -> None:
        """End both at once: a stop would wait for open requests, and nothing of them is used again."""
        self._connections.close()
        self._server.kill()
        self._etcd.kill()

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        kind: str = "json",
        *,
        token: str | None = None,
    ) -> Answer:
        """Ask it, as the administrator or as the owner of a token.

        `kind` is the last part of the media type, such as ``apply-patch+yaml``. As every client
        does, it retries where the server is not ready yet (429).
        """
        for _ in range(BUSY_ATTEMPTS):
            answer = self._request(method, path, body, kind, token)
            if answer.status != 429:
                break
            time.sleep(BUSY_PAUSE)
        return answer

    def _request(
        self, method: str, path: str, body: object, kind: str, token: str | None
    ) -> Answer:
        headers = {
            "Authorization": f"Bearer {token or self._token}",
            "Content-Type": f"application/{kind}",
            "Accept": "application/json",
        }
        octets = None if body is None else json.dumps(body).encode()
        return _answer(*self._connections.request(method, path, octets, headers))

    def compact(self, revision: str) -> None:
        """Let etcd forget what was before a resource version."""
        self._gateway("kv/compaction", {"revision": revision, "physical": True})

    def stored(self, prefix: str) -> list[bytes]:
        """Return what etcd has under keys that begin so, as it is stored."""
        key = prefix.encode()
        wanted = {"key": key, "range_end": key[:-1] + bytes([key[-1] + 1])}
        spelt = {name: base64.b64encode(value).decode() for name, value in wanted.items()}
        found = self._gateway("kv/range", spelt).get("kvs", [])
        return [base64.b64decode(item["value"]) for item in found]

    def _gateway(self, what: str, body: dict[str, Any]) -> dict[str, Any]:
        """Ask etcd through its HTTP gateway."""
        url = f"http://127.0.0.1:{self._etcd_port}/v3/{what}"
        with urllib.request.urlopen(url, json.dumps(body).encode(), timeout=SECONDS) as answer:
            found: dict[str, Any] = json.loads(answer.read())
            return found

    @property
    def audited(self) -> int:
        """How many octets of requests have been written down up to now."""
        log = self.directory / "audit.log"
        return log.stat().st_size if log.exists() else 0

    def requests_by(self, account: str, namespace: str, since: int = 0) -> set[Request]:
        """Return all requests of a ServiceAccount; ``since`` is an earlier `audited`."""
        return set(self.request_counts(account, namespace, since))

    def request_counts(self, account: str, namespace: str, since: int = 0) -> Counter[Request]:
        """Return the requests of a ServiceAccount with their numbers."""
        user = f"system:serviceaccount:{namespace}:{account}"
        if not self.audited:
            return Counter()
        with (self.directory / "audit.log").open() as log:
            log.seek(since)
            # The last line may be half written.
            events = [json.loads(line) for line in log if line.endswith("\n")]
        return Counter(_request(event) for event in events if event["user"]["username"] == user)

    def token(self, account: str, namespace: str, node: str = "") -> str:
        """Make a token of a ServiceAccount; with a node, as the kubelet does for a Pod on it."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        spec = {"boundObjectRef": self._pod(account, namespace, node)} if node else {}
        wish = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        answer = self.request("POST", path, wish)
        assert answer.ok, answer.body
        return str(answer.body["status"]["token"])

    def _pod(self, account: str, namespace: str, node: str) -> dict[str, str]:
        """Make a Pod of a ServiceAccount on a node, if there is none; its reference."""
        kind = {"apiVersion": "v1", "kind": "Pod"}
        name = f"{account}-{node}"
        container = {"name": "program", "image": "waggle"}
        spec = {"serviceAccountName": account, "nodeName": node, "containers": [container]}
        value = {**kind, "metadata": {"name": name}, "spec": spec}
        path = f"/api/v1/namespaces/{namespace}/pods"
        made = self.request("POST", path, value)
        if made.status == 409:
            made = self.request("GET", f"{path}/{name}")
        assert made.ok, made.body
        return {**kind, "name": name, "uid": made.body["metadata"]["uid"]}

    def access_with(self, token: str, path: Path) -> Path:
        """Write a kubeconfig for the owner of a token."""
        access = self._access()
        access["users"] = [{"name": "admin", "user": {"token": token}}]
        path.write_text(json.dumps(access))
        return path

    def kubectl(self, *arguments: str, text: str | None = None) -> str:
        """Run kubectl as the administrator; gives its output, raises with its error."""
        # It would keep for hours which kinds there are, and tests define their own.
        with tempfile.TemporaryDirectory(dir=self.directory) as home:
            done = subprocess.run(
                [self._assets.kubectl, "--kubeconfig", self.kubeconfig, *arguments],
                input=text,
                capture_output=True,
                text=True,
                check=False,
                env={"HOME": home, "PATH": "", "GOGC": "off"},  # it ends soon
            )
        if done.returncode != 0:
            raise RuntimeError(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def _check_ready(self) -> None:
        self._etcd.check()
        self._server.check()
        try:
            answer = self.request("GET", "/readyz")
        except OSError as error:
            raise NotReadyError(str(error)) from None
        assert answer.ok, answer

    def _etcd_command(self) -> list[str | Path]:
        client = f"http://127.0.0.1:{self._etcd_port}"
        peer = f"http://127.0.0.1:{self._peer_port}"
        return [
            self._assets.etcd,
            "--data-dir",
            self.directory / "etcd",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            # Nothing here has to outlive a power failure.
            "--unsafe-no-fsync",
        ]

    def _server_command(self) -> list[str | Path]:
        certificates = self.directory / "certs"
        return [
            self._assets.apiserver,
            f"--etcd-servers=http://127.0.0.1:{self._etcd_port}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={self._port}",
            f"--cert-dir={certificates}",
            f"--token-auth-file={self.directory / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            f"--audit-policy-file={self.directory / 'audit.yaml'}",
            f"--audit-log-path={self.directory / 'audit.log'}",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={certificates / 'apiserver.crt'}",
            f"--service-account-signing-key-file={certificates / 'apiserver.key'}",
            # No controller creates the ServiceAccount `default` that Pods need.
            "--disable-admission-plugins=ServiceAccount",
            "--endpoint-reconciler-type=none",
        ]

    def _access(self) -> dict[str, object]:
        certificate = str(self.directory / "certs" / "apiserver.crt")
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [
                {
                    "name": "test",
                    "cluster": {"server": self.url, "certificate-authority": certificate},
                }
            ],
            "users": [{"name": "admin", "user": {"token": self._token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin"}}],
        }


@contextlib.contextmanager
def api_server(assets: Assets, directory: Path) -> Iterator[KubeApiServer]:
    """Run an API server."""
    server = KubeApiServer(assets, directory)
    try:
        server.start()
        yield server
    finally:
        server.end()


def _request(event: dict[str, Any]) -> Request:
    what = event.get("objectRef", {})
    subresource = what.get("subresource", "")
    return Request(
        verb=event["verb"],
        group=what.get("apiGroup", ""),
        resource=what.get("resource", event["requestURI"]) + (subresource and f"/{subresource}"),
        namespace=what.get("namespace", ""),
        name=what.get("name", ""),
        status=event.get("responseStatus", {}).get("code", 0),
    )


def _answer(status: int, octets: bytes) -> Answer:
    try:
        body = json.loads(octets)
    except ValueError:
        body = {"message": octets.decode(errors="replace")}
    return Answer(status, body if isinstance(body, dict) else {"value": body})
