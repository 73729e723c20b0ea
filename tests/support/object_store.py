"""A small object store of the S3 kind on the loopback: it lists and serves a folder, and misbehaves as it is told."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

BUCKET = "fleet"


@dataclass
class Trouble:
    """What happens to requests for objects, in turn: a status, `cut` (half of the body), `slow`, or None."""

    turns: tuple[str | int | None, ...] = (None,)
    listing: tuple[str | int | None, ...] = (None,)
    """The same for requests that list."""
    answered: dict[str, int] = field(default_factory=dict)
    """How often each kind of trouble was met."""
    _counts: dict[str, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def next(self, kind: str) -> str | int | None:
        """What happens to the next request of a kind."""
        turns = self.turns if kind == "object" else self.listing
        with self._lock:
            number = self._counts[kind] = self._counts.get(kind, -1) + 1
            trouble = turns[number % len(turns)]
            if trouble is not None:
                self.answered[str(trouble)] = self.answered.get(str(trouble), 0) + 1
        return trouble


@contextmanager
def object_store(folder: Path, trouble: Trouble) -> Iterator[str]:
    """Serve a folder as the bucket `fleet`; its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"folder": folder, "trouble": trouble}))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    folder: Path
    trouble: Trouble
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        key = unquote(parts.path).removeprefix(f"/{BUCKET}").strip("/")
        query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        if "list-type" in query or not key:
            trouble = self.trouble.next("listing")
            if isinstance(trouble, int):
                self._answer(trouble, _error("SlowDown"), "application/xml")
                return
            self._answer(200, self._listed(query), "application/xml")
            return
        path = self.folder / key
        if not path.is_file():
            self._answer(404, _error("NoSuchKey"), "application/xml")
            return
        trouble = self.trouble.next("object") if self.command == "GET" else None
        if isinstance(trouble, int):
            self._answer(trouble, _error("SlowDown" if trouble == 503 else "TooManyRequests"), "application/xml")
            return
        self._object(path.read_bytes(), trouble)

    def _object(self, body: bytes, trouble: str | int | None) -> None:
        status, headers = 200, {"ETag": '"1"', "Last-Modified": "Sat, 21 Nov 2026 08:00:00 GMT"}
        asked = self.headers.get("Range", "")
        if asked.startswith("bytes="):
            first, _, last = asked.removeprefix("bytes=").partition("-")
            end = min(int(last) + 1 if last else len(body), len(body))
            headers["Content-Range"] = f"bytes {first}-{end - 1}/{len(body)}"
            status, body = 206, body[int(first) : end]
        self._answer(status, body, "application/octet-stream", headers, trouble)

    def _answer(
        self,
        status: int,
        body: bytes,
        kind: str,
        headers: dict[str, str] | None = None,
        trouble: str | int | None = None,
    ) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        if trouble == "cut":
            self.wfile.write(body[: len(body) // 2])
            self.close_connection = True
            return
        step = max(1, len(body) // 4) if trouble == "slow" else max(1, len(body))
        for at in range(0, len(body), step):
            if trouble == "slow":
                threading.Event().wait(0.02)
            self.wfile.write(body[at : at + step])
            self.wfile.flush()

    def _listed(self, query: dict[str, str]) -> bytes:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        contents, folders = [], set()
        for path in sorted(self.folder.rglob("*")):
            key = path.relative_to(self.folder).as_posix()
            if not path.is_file() or not key.startswith(prefix):
                continue
            rest = key.removeprefix(prefix)
            if delimiter and delimiter in rest:
                folders.add(prefix + rest.partition(delimiter)[0] + delimiter)
                continue
            contents.append(
                f"<Contents><Key>{escape(key)}</Key><Size>{path.stat().st_size}</Size><ETag>&quot;1&quot;</ETag>"
                "<LastModified>2026-11-21T08:00:00.000Z</LastModified><StorageClass>STANDARD</StorageClass></Contents>"
            )
        prefixes = "".join(f"<CommonPrefixes><Prefix>{escape(each)}</Prefix></CommonPrefixes>" for each in folders)
        return (
            '<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<Name>{BUCKET}</Name><Prefix>{escape(prefix)}</Prefix><KeyCount>{len(contents) + len(folders)}</KeyCount>"
            f"<MaxKeys>1000</MaxKeys><IsTruncated>false</IsTruncated>{''.join(contents)}{prefixes}</ListBucketResult>"
        ).encode()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _error(code: str) -> bytes:
    return f'<?xml version="1.0"?><Error><Code>{code}</Code><Message>{code}</Message></Error>'.encode()
