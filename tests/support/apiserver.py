"""A small API server over HTTP that follows a script: lists, watches, and everything that goes wrong.

It keeps objects with resource versions, pages lists and streams watches as a healthy API server does,
and on request does what a healthy one does not. It validates nothing. Loopback only.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import yaml
from aiohttp import web

from resources.kind import Kind
from tests.support.background_loop import BackgroundLoop
from tests.support.kinds import CONFIG_MAP, KINDS
from tests.support.ports import free_port

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]
"""What is done with one request in place of the usual."""
Object = dict[str, Any]

MERGE = "application/merge-patch+json"


def status(code: int, reason: str, message: str, headers: dict[str, str] | None = None) -> Answer:
    """Answer with a Status object."""
    body = json.dumps(
        {"kind": "Status", "status": "Failure", "reason": reason, "message": message, "code": code}
    )

    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(
            status=code, text=body, content_type="application/json", headers=headers
        )

    return answer


def text(code: int, body: str, content_type: str = "text/plain") -> Answer:
    """Answer with something that is not the API's, as a proxy does."""

    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(status=code, text=body, content_type=content_type)

    return answer


def stream(*pieces: str | bytes, then: str = "end") -> Answer:
    """Answer a watch with these pieces, then ``end`` it, ``hang`` for ever, or ``cut`` the line."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece.encode() if isinstance(piece, str) else piece)
        if then == "hang":
            await asyncio.Event().wait()
        if then == "cut" and request.transport is not None:
            request.transport.abort()
        return response

    return answer


async def cut(request: web.Request) -> web.StreamResponse:
    """Break the connection without an answer."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


def event(kind: str, obj: Object) -> str:
    """Spell one line of a watch."""
    return json.dumps({"type": kind, "object": obj}) + "\n"


def write_kubeconfig(path: Path, url: str, user: dict[str, str], *, ca: str = "") -> Path:
    """Write a kubeconfig that leads to a server."""
    cluster = {"server": url} | ({"certificate-authority": ca} if ca else {})
    path.write_text(
        yaml.dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "here",
                "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
                "clusters": [{"name": "c", "cluster": cluster}],
                "users": [{"name": "u", "user": user}],
            },
            Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper),
        )
    )
    return path


class ApiServer:
    """The server; `start` it within a running loop."""

    def __init__(self, kinds: Iterable[Kind[Any]] = KINDS) -> None:
        self._kinds = {kind.name: kind for kind in (*kinds, CONFIG_MAP)}
        self._by_plural = {kind.plural: kind for kind in self._kinds.values()}
        self.version = 100
        self.objects: dict[str, dict[tuple[str, str], Object]] = {p: {} for p in self._by_plural}
        self.history: list[tuple[int, str, str, Object]] = []
        """Version, plural, event type, object."""
        self.compacted = 0
        self.served: dict[str, tuple[str, ...]] = {
            kind.plural: kind.versions[:1] for kind in self._kinds.values()
        }
        """The versions of each kind; a kind without any is a CRD that is not installed."""
        self.leases: dict[str, Object] = {}
        self.definitions: dict[str, Object] = {}
        """CustomResourceDefinitions by name; returned on request, without effect."""
        self.events: list[Object] = []
        """Events (events.k8s.io) that were created."""
        self.webhooks: dict[str, Object] = {}
        """ValidatingWebhookConfigurations by name; without effect."""
        self.daemon_sets: list[Object] = []
        """DaemonSets (apps/v1); only listed, by labels."""
        self.deployments: dict[str, Object] = {}
        """Deployments (apps/v1) by name; only read."""
        self.config_maps: dict[tuple[str, str], dict[str, str]] = {}
        """The data of ConfigMaps, by namespace and name."""
        self.token: str | None = None
        self.bookmark_every: float | None = None
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        """Verb, plural and query of each request."""
        self.paths: list[tuple[str, str]] = []
        """Verb and path of each request."""
        self._scripts: dict[tuple[str, str], deque[Answer]] = {}
        self._always: dict[tuple[str, str], Answer] = {}
        self._changed = asyncio.Event()
        self._runner: web.AppRunner | None = None
        self._ssl: ssl.SSLContext | None = None
        self.port = free_port("127.0.0.1")

    # Its state

    def put(self, obj: Object) -> Object:
        """Create or change an object; gives it a resource version."""
        kind = self._kinds[obj["kind"]]
        metadata = obj["metadata"]
        key = (metadata.get("namespace", ""), metadata["name"])
        self.version += 1
        stored = {**obj, "metadata": {**metadata, "resourceVersion": str(self.version)}}
        what = "MODIFIED" if key in self.objects[kind.plural] else "ADDED"
        self.objects[kind.plural][key] = stored
        self._record(kind.plural, what, stored)
        return stored

    def delete(self, kind: str, name: str, namespace: str = "") -> None:
        """Delete an object."""
        plural = self._kinds[kind].plural
        obj = self.objects[plural].pop((namespace, name))
        self.version += 1
        gone = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self.version)}}
        self._record(plural, "DELETED", gone)

    def compact(self) -> None:
        """Drop the history: a watch from an older version has to list again."""
        self.compacted = self.version

    def _record(self, plural: str, what: str, obj: Object) -> None:
        self.history.append((self.version, plural, what, obj))
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    # The script

    def once(self, verb: str, plural: str, *answers: Answer) -> None:
        """Answer the next requests for ``list``, ``watch``, ``patch`` ... of a kind so, in turn."""
        self._scripts.setdefault((verb, plural), deque()).extend(answers)

    def always(self, verb: str, plural: str, answer: Answer | None) -> None:
        """Answer every request so from now on; None: as usual again."""
        if answer is None:
            self._always.pop((verb, plural), None)
        else:
            self._always[(verb, plural)] = answer

    def queries(self, verb: str, plural: str) -> list[dict[str, str]]:
        """Return the query of each request with this verb and plural."""
        return [query for v, p, query in self.requests if (v, p) == (verb, plural)]

    # Its life

    async def start(self, tls: ssl.SSLContext | None = None) -> None:
        """Listen, on the port of last time."""
        app = web.Application()
        app.router.add_get("/{path:.*}", self._handle)
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            app.router.add_route(method, "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.01)
        await self._runner.setup()
        self._ssl = tls
        site = web.TCPSite(
            self._runner, "127.0.0.1", self.port, ssl_context=tls, reuse_address=True
        )
        await site.start()

    async def stop(self) -> None:
        """Stop listening, and break every connection."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def __aenter__(self) -> Self:
        """Start."""
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop."""
        await self.stop()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http{'s' if self._ssl else ''}://127.0.0.1:{self.port}"

    def kubeconfig(
        self, path: Path, *, token: str | None = None, token_file: Path | None = None, ca: str = ""
    ) -> Path:
        """Write a kubeconfig that leads here."""
        user = {"token": token} if token else {"tokenFile": str(token_file)} if token_file else {}
        return write_kubeconfig(path, self.url, user, ca=ca)

    # Requests

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        parts = [part for part in request.path.split("/") if part]
        plural = _plural(parts)
        query = dict(request.query)
        verb = _verb(request.method, parts, query)
        self.requests.append((verb, plural, query))
        self.paths.append((verb, request.path))
        if self.token is not None:
            given = request.headers.get("Authorization", "")
            if given != f"Bearer {self.token}":
                return await status(401, "Unauthorized", "Unauthorized")(request)
        scripts = self._scripts.get((verb, plural))
        answer = scripts.popleft() if scripts else self._always.get((verb, plural))
        return await (answer or self.usual)(request)

    async def usual(self, request: web.Request) -> web.StreamResponse:
        """Answer as a healthy API server does."""
        parts = [part for part in request.path.split("/") if part]
        plural, query = _plural(parts), dict(request.query)
        namespace = parts[parts.index("namespaces") + 1] if "namespaces" in parts[:-1] else ""
        if plural == "leases":
            return await self._lease(request, parts)
        if plural == "events" and request.method in ("POST", "PATCH"):
            return self._event(request.method, _name(parts), await request.json())
        if plural == "customresourcedefinitions":
            return await self._definition(request, _name(parts))
        if plural == "validatingwebhookconfigurations":
            if request.method == "PATCH":
                given = await request.json()
                self.webhooks[_name(parts)] = merged(self.webhooks[_name(parts)], given)
            return web.json_response(self.webhooks[_name(parts)])
        if plural == "daemonsets":
            items = [one for one in self.daemon_sets if _selected(one, namespace, query)]
            found = items[: int(query.get("limit", len(items)))]
            return web.json_response({"kind": "DaemonSetList", "metadata": {}, "items": found})
        if plural == "deployments" and _name(parts) in self.deployments:
            return web.json_response(self.deployments[_name(parts)])
        if plural == "configmaps" and (namespace, _name(parts)) in self.config_maps:
            data = self.config_maps[namespace, _name(parts)]
            return web.json_response({"kind": "ConfigMap", "data": data})
        if parts == ["apis"]:
            return web.json_response(self._groups())
        if parts[0] == "apis" and len(parts) == 3:
            return web.json_response(self._resources(parts[1], parts[2]))
        kind = self._by_plural.get(plural)
        version = parts[2] if parts[0] == "apis" else parts[1]
        group = parts[1] if parts[0] == "apis" else ""
        if kind is None or version not in self.served[plural] or group != kind.group:
            return web.Response(status=404, text="404 page not found\n")
        name = _name(parts)
        if name or request.method != "GET":
            return await self._single(request, kind, (namespace, name), parts)
        if query.get("watch"):
            return await self._watch(request, kind, namespace, query)
        partial = "as=PartialObjectMetadata" in request.headers.get("Accept", "")
        return self._list(kind, namespace, query, version, partial=partial)

    def _event(self, method: str, name: str, given: Object) -> web.Response:
        if method == "POST":
            self.events.append(given)
            return web.json_response(given, status=201)
        (patched,) = (one for one in self.events if one["metadata"]["name"] == name)
        patched.update(given)
        return web.json_response(patched)

    def _groups(self) -> Object:
        """Give the discovery document of the kinds that are served."""
        groups: dict[str, set[str]] = {}
        for plural, versions in self.served.items():
            groups.setdefault(self._by_plural[plural].group, set()).update(versions)
        return {
            "kind": "APIGroupList",
            "groups": [
                {
                    "name": name,
                    "versions": [{"groupVersion": f"{name}/{v}", "version": v} for v in vs],
                }
                for name, vs in sorted(groups.items())
                if name
            ],
        }

    def _resources(self, group: str, version: str) -> Object:
        """Give the discovery document of one version of a group."""
        found = [
            {"name": plural}
            for plural, versions in self.served.items()
            if self._by_plural[plural].group == group and version in versions
        ]
        return {"kind": "APIResourceList", "resources": found}

    async def _single(
        self, request: web.Request, kind: Kind[Any], key: tuple[str, str], parts: list[str]
    ) -> web.StreamResponse:
        """Do something with one object: get, apply (also its status), or delete."""
        there = self.objects[kind.plural].get(key)
        if request.method == "GET" or (there is None and request.method == "DELETE"):
            if there is None:
                return await status(404, "NotFound", f"{kind.plural} {key[1]} not found")(request)
            return web.json_response(there)
        given = await request.json()
        if request.content_type == MERGE:
            if there is None:
                return await status(404, "NotFound", f"{kind.plural} {key[1]} not found")(request)
            is_status = parts[-1] == "status"
            patch = {k: v for k, v in given.items() if (k == "status") == is_status}
            # What is written is stored in the version that it is written in.
            version = {"apiVersion": f"{kind.group}/{parts[2]}"}
            return web.json_response(self.put({**merged(there, patch), **version}))
        if request.method == "DELETE":
            uid = given.get("preconditions", {}).get("uid")
            if uid and uid != there["metadata"].get("uid"):  # type: ignore[index]
                return await status(409, "Conflict", "the UID differs")(request)
            self.delete(kind.name, key[1], key[0])
            return web.json_response({"kind": "Status", "status": "Success"})
        if parts[-1] == "status":
            if there is None:
                return await status(404, "NotFound", f"{kind.plural} {key[1]} not found")(request)
            return web.json_response(self.put({**there, "status": given["status"]}))
        if request.method == "POST":
            return await self._create(request, kind, key[0], given)
        if there is not None and kind.name == "Node":
            # Most fields of a Node belong to other managers.
            given = merged(there, given)
        kept = {"status": there["status"]} if there and "status" in there else {}
        uid = there["metadata"]["uid"] if there else f"uid-{self.version + 1}"
        metadata = {**given["metadata"], "uid": uid}
        return web.json_response(self.put({**given, "metadata": metadata, **kept}))

    async def _create(
        self, request: web.Request, kind: Kind[Any], namespace: str, given: Object
    ) -> web.StreamResponse:
        """Create an object, without its status."""
        metadata = dict(given["metadata"])
        made = f"{metadata.pop('generateName', '')}{self.version + 1:05d}"
        name = metadata.setdefault("name", made)
        if (namespace, name) in self.objects[kind.plural]:
            return await status(409, "AlreadyExists", f"{name} already exists")(request)
        metadata |= {"uid": f"uid-{self.version + 1}"} | (
            {"namespace": namespace} if namespace else {}
        )
        spec = {k: v for k, v in given.items() if k != "status"}
        return web.json_response(self.put({**spec, "metadata": metadata}), status=201)

    async def _definition(self, request: web.Request, name: str) -> web.StreamResponse:
        """Return a definition, or set the stored versions in its status."""
        there = self.definitions.get(name)
        if there is None:
            return await status(404, "NotFound", f"{name} not found")(request)
        if request.method == "PATCH":
            given = await request.json()
            if given["metadata"]["resourceVersion"] != there["metadata"]["resourceVersion"]:
                return await status(409, "Conflict", "the object has been modified")(request)
            self.version += 1
            metadata = {**there["metadata"], "resourceVersion": str(self.version)}
            there = {**there, "metadata": metadata, "status": given["status"]}
            self.definitions[name] = there
        return web.json_response(there)

    async def _lease(self, request: web.Request, parts: list[str]) -> web.StreamResponse:
        """Store Leases; a write with an old resource version is a conflict."""
        if request.method == "POST":
            given = await request.json()
            name = given["metadata"]["name"]
            if name in self.leases:
                return await status(409, "AlreadyExists", f"leases {name} already exists")(request)
        else:
            name = _name(parts)
            if name not in self.leases:
                return await status(404, "NotFound", f"leases {name} not found")(request)
            if request.method == "GET":
                return web.json_response(self.leases[name])
            given = await request.json()
            version = self.leases[name]["metadata"]["resourceVersion"]
            if given["metadata"].get("resourceVersion") != version:
                return await status(409, "Conflict", "the object has been modified")(request)
        self.version += 1
        metadata = {**given["metadata"], "resourceVersion": str(self.version)}
        self.leases[name] = {**given, "metadata": metadata}
        return web.json_response(self.leases[name], status=201 if request.method == "POST" else 200)

    def _list(
        self,
        kind: Kind[Any],
        namespace: str,
        query: dict[str, str],
        served: str,
        *,
        partial: bool = False,
    ) -> web.Response:
        found = [o for o in self.objects[kind.plural].values() if _selected(o, namespace, query)]
        version, start = self.version, 0
        token = query.get("continue")
        if token:
            version, start = (int(part) for part in token.split("/"))
        limit = int(query.get("limit") or len(found) or 1)
        page = found[start : start + limit]
        metadata: Object = {"resourceVersion": str(version)}
        if start + limit < len(found):
            metadata["continue"] = f"{version}/{start + limit}"
            if "labelSelector" not in query and "fieldSelector" not in query:
                metadata["remainingItemCount"] = len(found) - start - limit
        items = [{k: v for k, v in o.items() if k not in ("kind", "apiVersion")} for o in page]
        body = {
            "kind": f"{kind.name}List",
            "apiVersion": kind.api_version(served),
            "metadata": metadata,
            "items": items or None,
        }
        if partial:
            named = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1"}
            body |= {**named, "items": [{"metadata": one["metadata"]} for one in items] or None}
        return web.json_response(body)

    async def _watch(
        self, request: web.Request, kind: Kind[Any], namespace: str, query: dict[str, str]
    ) -> web.StreamResponse:
        since = int(query["resourceVersion"])
        partial = "as=PartialObjectMetadata" in request.headers.get("Accept", "")
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        if since < self.compacted:
            gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
            await response.write(event("ERROR", gone).encode())
            return response
        loop = asyncio.get_running_loop()
        end = loop.time() + float(query["timeoutSeconds"])
        position = 0
        with suppress(ConnectionError):
            while loop.time() < end:
                changed = self._changed
                for version, plural, what, obj in self.history[position:]:
                    position += 1
                    wanted = plural == kind.plural and version > since
                    if wanted and _selected(obj, namespace, query):
                        sent = {"metadata": obj["metadata"]} if partial else obj
                        await response.write(event(what, sent).encode())
                wait = min(self.bookmark_every or 3600.0, end - loop.time())
                try:
                    async with asyncio.timeout(max(0.0, wait)):
                        await changed.wait()
                except TimeoutError:
                    if self.bookmark_every is not None:
                        mark = {"metadata": {"resourceVersion": str(self.version)}}
                        await response.write(event("BOOKMARK", mark).encode())
        return response


class BackgroundApiServer:
    """The same for tests without a loop: a context manager with a thread of its own."""

    def __init__(self, kinds: Iterable[Kind[Any]] = KINDS) -> None:
        self._loop = BackgroundLoop("api")
        self._server = ApiServer(kinds)

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._server.port

    def put(self, *objects: Object) -> None:
        """Create or change objects."""
        for obj in objects:
            self._call(self._server.put, obj)

    def delete(self, kind: str, name: str, namespace: str = "") -> None:
        """Delete an object."""
        self._call(self._server.delete, kind, name, namespace)

    def always(self, verb: str, plural: str, answer: Answer) -> None:
        """Answer every request so from now on."""
        self._call(self._server.always, verb, plural, answer)

    @property
    def paths(self) -> list[tuple[str, str]]:
        """Verb and path of each request."""
        return self._server.paths.copy()

    def require(self, token: str) -> None:
        """Refuse requests without this bearer token from now on."""
        self._server.token = token

    def kubeconfig(self, path: Path, *, token: str | None = None) -> Path:
        """Write a kubeconfig that leads here."""
        return self._server.kubeconfig(path, token=token)

    @property
    def holders(self) -> dict[str, str]:
        """Return the holder of each Lease; none of a released one."""
        specs = {name: lease["spec"] for name, lease in self._server.leases.copy().items()}
        return {name: spec.get("holderIdentity") or "" for name, spec in specs.items()}

    def __enter__(self) -> Self:
        """Start."""
        self._loop.__enter__()
        self._loop.do(self._server.start())
        return self

    def __exit__(self, *_: object) -> None:
        """Stop, and end the thread."""
        try:
            self._loop.do(self._server.stop())
        finally:
            self._loop.__exit__()

    def _call(self, function: Callable[..., object], *arguments: object) -> None:
        async def call() -> None:
            function(*arguments)

        self._loop.do(call())


def merged(value: Object, patch: Object) -> Object:
    """Apply a JSON merge patch (RFC 7386)."""
    found = dict(value)
    for name, one in patch.items():
        before = found.get(name)
        if one is None:
            found.pop(name, None)
        elif isinstance(one, dict):
            found[name] = merged(before if isinstance(before, dict) else {}, one)
        else:
            found[name] = one
    return found


_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


def _place(parts: list[str]) -> int:
    """Where the plural is: behind the version, or behind the namespace."""
    root = 3 if parts[:1] == ["apis"] else 2
    return root + 2 if parts[root : root + 1] == ["namespaces"] and len(parts) > root + 2 else root


def _plural(parts: list[str]) -> str:
    place = _place(parts)
    return parts[place] if len(parts) > place else ""


def _name(parts: list[str]) -> str:
    place = _place(parts)
    return parts[place + 1] if len(parts) > place + 1 else ""


def _verb(method: str, parts: list[str], query: dict[str, str]) -> str:
    if method != "GET":
        return _VERBS[method]
    return "watch" if query.get("watch") else "get" if _name(parts) else "list"


def _selected(obj: Object, namespace: str, query: dict[str, str]) -> bool:
    metadata = obj["metadata"]
    if namespace and metadata.get("namespace", "") != namespace:
        return False
    for selector in query.get("fieldSelector", "").split(","):
        name, _, value = selector.partition("=")
        if name == "metadata.name" and metadata["name"] != value:
            return False
    labels = metadata.get("labels", {})
    for selector in query.get("labelSelector", "").split(","):
        name, _, value = selector.partition("=")
        if name and labels.get(name) != value:
            return False
    return True
