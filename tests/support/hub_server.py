"""A server on this machine that speaks the Hugging Face Hub's protocol."""

import contextlib
import hashlib
import http.server
import json
import pathlib
import re
import threading

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class HubServer(http.server.ThreadingHTTPServer):
    """Serves the model directories OWNER/NAME in a directory.

    Attributes:
        requests: (method, path) of all requests.
        sent: Number of bytes of content sent.
        cut_after: If set, the next file ends after this many bytes.
        restricted: Repositories that need permission.
    """

    daemon_threads = True

    def __init__(self, root):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.root = pathlib.Path(root)
        self.requests = []
        self.sent = 0
        self.cut_after = None
        self.restricted = ()

    @property
    def address(self):
        """The value of HF_ENDPOINT."""
        return f"http://127.0.0.1:{self.server_port}"


@contextlib.contextmanager
def serving(root):
    """Yields a running `HubServer`."""
    with HubServer(root) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_HEAD(self):
        self.answer()

    def do_GET(self):
        self.answer()

    def log_message(self, *arguments):
        """Writes nothing."""

    def answer(self):
        path = self.path.partition("?")[0]
        self.server.requests.append((self.command, path))
        if match := re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/(.+))?", path):
            repository, what = match[1], match[2] or ""
            if self.is_accessible(repository):
                self.answer_api(repository, what)
        elif match := re.fullmatch(
            r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path
        ):
            if self.is_accessible(match[1]):
                self.send_file(self.server.root / match[1] / match[3])
        else:
            self.send_error_code(404, "EntryNotFound")

    def is_accessible(self, repository):
        if repository in self.server.restricted:
            self.send_error_code(403, "GatedRepo")
        elif not (self.server.root / repository).is_dir():
            self.send_error_code(404, "RepoNotFound")
        else:
            return True
        return False

    def answer_api(self, repository, what):
        root = self.server.root / repository
        paths = sorted(path for path in root.rglob("*") if path.is_file())
        names = [path.relative_to(root).as_posix() for path in paths]
        if what.startswith("tree/"):
            found = [
                {
                    "type": "file",
                    "path": name,
                    "size": path.stat().st_size,
                    "oid": hashlib.sha1(path.read_bytes()).hexdigest(),
                }
                for name, path in zip(names, paths, strict=True)
            ]
        elif what in ("", "revision/main", f"revision/{COMMIT}"):
            siblings = [{"rfilename": name} for name in names]
            found = {"id": repository, "sha": COMMIT, "siblings": siblings}
        else:
            self.send_error_code(404, "RevisionNotFound")
            return
        content = json.dumps(found).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def send_file(self, path):
        if not path.is_file():
            self.send_error_code(404, "EntryNotFound")
            return
        content = path.read_bytes()
        start = 0
        if match := re.match(r"bytes=(\d+)-", self.headers.get("Range", "")):
            start = int(match[1])
        self.send_response(206 if start else 200)
        self.send_header("ETag", f'"{hashlib.sha1(content).hexdigest()}"')
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("Accept-Ranges", "bytes")
        if start:
            end = len(content) - 1
            self.send_header(
                "Content-Range", f"bytes {start}-{end}/{len(content)}"
            )
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        if self.command == "HEAD":
            return
        content = content[start:]
        if self.server.cut_after is not None and path.suffix != ".json":
            content = content[: self.server.cut_after]
            self.close_connection = True
        self.wfile.write(content)
        self.server.sent += len(content)

    def send_error_code(self, status, code):
        self.send_response(status)
        self.send_header("X-Error-Code", code)
        self.send_header("X-Error-Message", code)
        self.send_header("Content-Length", "0")
        self.end_headers()
