"""A container process for the fleet's own tests, standard library only. STANDIN says how it behaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BEHAVIOUR = os.environ.get("STANDIN", "")


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.answer(503 if BEHAVIOUR == "never ready" else 200, dict(os.environ))

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(200, {"served_by": os.environ["STICKY_INSTANCE"]})

    def answer(self, status: int, body: object) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments: object) -> None:
        pass


if __name__ == "__main__":
    print("loading the model", flush=True)
    if BEHAVIOUR == "dies":
        sys.exit("no model here")
    if BEHAVIOUR == "ignores SIGTERM":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if BEHAVIOUR == "has a child":
        child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
        print(f"child {child.pid}", flush=True)
    ThreadingHTTPServer((os.environ["STICKY_HOST"], int(os.environ["SAGEMAKER_BIND_TO_PORT"])), Handler).serve_forever()
