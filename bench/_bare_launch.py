"""The least there could be: an HTTP server that starts the process of each POST, and answers when it has started."""
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Launch(BaseHTTPRequestHandler):
    """Starts the command in the body, word by word, with its output where the first line says."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        output, *command = self.rfile.read(int(self.headers["Content-Length"])).decode().split("\n")
        with open(output, "wb") as file:  # noqa: PTH123
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
        process.wait()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Launch)
    server.serve_forever()
