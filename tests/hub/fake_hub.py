"""A server on 127.0.0.1 that plays the Hugging Face Hub: listing, files with ranges, large files at a second address.

It can be told to misbehave: cut a connection after some bytes, answer with a status, send other bytes than it lists.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

REPOSITORY = "someone/tiny"
REVISION = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]


@dataclass
class FakeHub:
    """What it serves, how it fails, and what it was asked."""

    files: dict[str, bytes] = field(default_factory=dict)
    large: set[str] = field(default_factory=set)
    """Stored outside git: listed with a SHA-256, served by a redirect to another origin, as LFS files are."""
    repository: str = REPOSITORY
    revision: str = REVISION
    others: dict[tuple[str, str], dict[str, bytes]] = field(default_factory=dict)
    """(repository, commit) → files of other repositories, all of them kept in git."""
    branches: dict[tuple[str, str], str] = field(default_factory=dict)
    """(repository, branch) → the commit at its head."""
    listed: dict[str, bytes] = field(default_factory=dict)
    """Listed (size, digests) with this content instead of what is sent."""
    statuses: dict[str, tuple[int, dict[str, str]]] = field(default_factory=dict)
    """File, or `api` for the listing → status and headers of the answer."""
    cuts: dict[str, list[int]] = field(default_factory=dict)
    """File → after how many bytes each next answer is cut; answers beyond the list are whole."""
    answer: bytes | None = None
    """Instead of the listing."""
    ranges: bool = True
    requests: list[Request] = field(default_factory=list)
    endpoint: str = ""
    store: str = ""

    def asked(self, path: str) -> list[Request]:
        """The requests for the bytes of a file, in order."""
        key = hashlib.sha256(path.encode()).hexdigest()
        endings = (f"/resolve/{self.revision}/{path}", f"/store/{key}")
        return [r for r in self.requests if r.path.endswith(endings) and r.method == "GET"]

    def listing(self) -> bytes:
        siblings = [self._sibling(path, self.listed.get(path, raw)) for path, raw in self.files.items()]
        return json.dumps({"id": self.repository, "sha": self.revision, "siblings": siblings}).encode()

    def _sibling(self, path: str, raw: bytes) -> dict[str, Any]:
        blob = hashlib.sha1(b"blob %d\0" % len(raw) + raw).hexdigest()
        out: dict[str, Any] = {"rfilename": path, "size": len(raw), "blobId": blob}
        if path in self.large:
            out["blobId"] = "0" * 40  # of the pointer
            out["lfs"] = {"sha256": hashlib.sha256(raw).hexdigest(), "size": len(raw), "pointerSize": 134}
        return out

    @contextmanager
    def running(self) -> Iterator[FakeHub]:
        servers = [ThreadingHTTPServer(("127.0.0.1", 0), _handler(self, kind)) for kind in ("hub", "store")]
        self.endpoint, self.store = (f"http://127.0.0.1:{server.server_port}" for server in servers)
        threads = [threading.Thread(target=server.serve_forever, args=(0.01,)) for server in servers]
        for thread in threads:
            thread.start()
        try:
            yield self
        finally:
            for server, thread in zip(servers, threads, strict=True):
                server.shutdown()
                thread.join()
                server.server_close()


def _handler(hub: FakeHub, kind: str) -> type[BaseHTTPRequestHandler]:
    return type("BoundHandler", (Handler,), {"hub": hub, "kind": kind})


class Handler(BaseHTTPRequestHandler):
    """One request; `hub` and `kind` (hub, or the store of large files) are set by a subclass."""

    hub: FakeHub
    kind: str
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None: ...

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        self.hub.requests.append(Request(self.command, path, dict(self.headers)))
        prefix = f"/{self.hub.repository}/resolve/{self.hub.revision}/"
        if self.kind == "hub" and self.other(path):
            return
        if self.kind == "store":
            keys = {hashlib.sha256(name.encode()).hexdigest(): name for name in self.hub.files}
            self.file(keys[path.removeprefix("/store/")])
        elif path == f"/api/models/{self.hub.repository}/revision/{self.hub.revision}":
            self.reply(*self.hub.statuses.get("api", (200, {})), self.hub.answer or self.hub.listing())
        elif path.startswith(prefix):
            self.resolve(path.removeprefix(prefix))
        elif path.startswith("/api/models/"):
            code = "RevisionNotFound" if self.hub.repository in path else "RepoNotFound"
            self.reply(404, {"X-Error-Code": code}, b"{}")
        else:
            self.reply(404, {}, b"")

    def other(self, path: str) -> bool:
        """Answers for another repository, if it is asked."""
        for (repository, commit), files in self.hub.others.items():
            if path == f"/api/models/{repository}/auth-check":
                self.reply(*self.hub.statuses.get(f"{repository}/auth-check", (200, {})), b"{}")
                return True
            heads = [b for (name, b), head in self.hub.branches.items() if (name, head) == (repository, commit)]
            if path in [f"/api/models/{repository}/revision/{revision}" for revision in (commit, *heads)]:
                siblings = [self.hub._sibling(name, raw) for name, raw in files.items()]
                self.reply(200, {}, json.dumps({"id": repository, "sha": commit, "siblings": siblings}).encode())
                return True
            prefix = f"/{repository}/resolve/{commit}/"
            if path.startswith(prefix) and (name := path.removeprefix(prefix)) in files:
                status, headers = self.hub.statuses.get(f"{repository}/{name}", (200, {}))
                mark = {"ETag": f'"{hashlib.sha256(files[name]).hexdigest()}"', "X-Repo-Commit": commit}
                self.reply(status, {**mark, **headers}, files[name])
                return True
        return False

    def resolve(self, name: str) -> None:
        if name in self.hub.statuses:
            self.reply(*self.hub.statuses[name], b"{}")
        elif name not in self.hub.files:
            self.reply(404, {"X-Error-Code": "EntryNotFound"}, b"")
        elif name in self.hub.large:
            key = hashlib.sha256(name.encode()).hexdigest()
            self.reply(302, {"Location": f"{self.hub.store}/store/{key}", **self.marks(name)}, b"")
        else:
            self.file(name)

    def marks(self, name: str) -> dict[str, str]:
        raw = self.hub.files[name]
        marks = {"ETag": f'"{hashlib.sha256(raw).hexdigest()}"', "X-Repo-Commit": self.hub.revision}
        return {**marks, "X-Linked-Size": str(len(raw)), "Accept-Ranges": "bytes"}

    def file(self, name: str) -> None:
        raw, status, headers, start = self.hub.files[name], 200, self.marks(name), 0
        wanted = self.headers.get("Range", "")
        if self.hub.ranges and wanted.startswith("bytes="):
            start = int(wanted.removeprefix("bytes=").partition("-")[0])
            if start >= len(raw):
                self.reply(416, {}, b"")
                return
            status = 206
            headers["Content-Range"] = f"bytes {start}-{len(raw) - 1}/{len(raw)}"
        cuts = self.hub.cuts.get(name, [])
        self.reply(status, headers, raw[start:], cuts.pop(0) if cuts else None)

    def reply(self, status: int, headers: dict[str, str], raw: bytes, cut: int | None = None) -> None:
        self.send_response(status)
        for key, value in {**headers, "Content-Length": str(len(raw))}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(raw[:cut])
        if cut is not None:
            self.wfile.flush()
            self.close_connection = True
