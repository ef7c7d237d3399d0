"""A server on this machine that speaks the Hugging Face Hub's protocol."""

import contextlib
import hashlib
import http.server
import json
import pathlib
import re
import threading

from support import ROOT

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class HubServer(http.server.ThreadingHTTPServer):
    """Serves the model directories OWNER/NAME in a directory.

    Attributes:
        requests: (method, path) of all requests.
        cut_after: If set, files end after this many bytes.
        at_cut: Called there, before the connection is closed.
        restricted: Repositories that need permission.
    """

    daemon_threads = True

    def __init__(self, root):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.root = pathlib.Path(root)
        self.requests = []
        self.cut_after = None
        self.at_cut = lambda: None
        self.restricted = ()

    def environment(self, folder):
        """Returns the variables of processes that use it, with a new cache."""
        return {
            "PYTHONPATH": str(ROOT),
            "HF_ENDPOINT": f"http://127.0.0.1:{self.server_port}",
            "HF_HOME": str(folder / "hub"),
            "XDG_CACHE_HOME": str(folder / "cache"),
        }


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

    def log_message(self, *arguments):
        """Writes nothing."""

    def do_GET(self):
        path = self.path.partition("?")[0]
        self.server.requests.append((self.command, path))
        pattern = r"(/api/models)?/([^/]+/[^/]+)(?:/resolve/[^/]+)?(?:/(.+))?"
        is_api, repository, what = re.fullmatch(pattern, path).groups()
        if repository in self.server.restricted:
            self.reply(403, X_Error_Code="GatedRepo")
        elif not (self.server.root / repository).is_dir():
            self.reply(404, X_Error_Code="RepoNotFound")
        elif is_api:
            self.answer_api(repository, what or "")
        else:
            self.send_file(self.server.root / repository / what)

    do_HEAD = do_GET  # noqa: N815 - `http.server` calls it.

    def reply(self, status, content=b"", cut_after=None, **headers):
        """Sends headers, whose names have `_` for `-`, and content."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content[:cut_after])
            if cut_after and cut_after < len(content):
                self.server.at_cut()
            self.close_connection |= cut_after is not None

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
            self.reply(404, X_Error_Code="RevisionNotFound")
            return
        content = json.dumps(found).encode()
        self.reply(200, content, Content_Type="application/json")

    def send_file(self, path):
        if not path.is_file():
            self.reply(404, X_Error_Code="EntryNotFound")
            return
        content = path.read_bytes()
        headers = {
            "ETag": f'"{hashlib.sha1(content).hexdigest()}"',
            "X_Repo_Commit": COMMIT,
            "Accept_Ranges": "bytes",
        }
        cut_after = None if path.suffix == ".json" else self.server.cut_after
        if match := re.match(r"bytes=(\d+)-", self.headers.get("Range", "")):
            start, size = int(match[1]), len(content)
            headers["Content_Range"] = f"bytes {start}-{size - 1}/{size}"
            self.reply(206, content[start:], cut_after, **headers)
        else:
            self.reply(200, content, cut_after, **headers)
