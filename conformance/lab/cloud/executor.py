"""The server inside each instance: commands, files and processes over HTTP.

It knows the standard library alone, and behaves as the provider's own does, its defects
included: a client has to live with them.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import threading
from contextlib import suppress
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, cast
from urllib.parse import parse_qs, urlsplit

Json = dict[str, Any]

EXECUTOR_PORT, PUBLIC_PORT = 3030, 3031
_SECRET = "SANDBOX_SECRET"  # noqa: S105 - the name of a variable
_CHUNK = 65536
_NEW_ID = Path("/proc/sys/kernel/random/uuid")


class Process:
    """A command that was started and left to run.

    Args:
        body: the request: `cmd`, `cwd` and `env`.
    """

    def __init__(self, body: Json) -> None:
        self.identifier = _NEW_ID.read_text(encoding="ascii").strip()
        self.command = str(body["cmd"])
        self.lines: list[Json] = []
        self.child = spawn(body)
        for pipe, name in ((self.child.stdout, "stdout"), (self.child.stderr, "stderr")):
            threading.Thread(target=self._drain, args=(pipe, name), daemon=True).start()

    def _drain(self, pipe: BinaryIO, name: str) -> None:
        for line in pipe:
            moment = datetime.now(tz=UTC).isoformat().replace("+00:00", "Z")
            self.lines.append({"timestamp": moment, "stream": name, "data": _text(line)})

    @property
    def status(self) -> str:
        """What has become of it."""
        code = self.child.poll()
        if code is None:
            return "running"
        if code < 0:
            return "killed"
        return "failed" if code else "completed"


def spawn(body: Json) -> subprocess.Popen[bytes]:
    """Start a command; it inherits all that this server has, the secret included."""
    return subprocess.Popen(
        ["/bin/sh", "-c", str(body["cmd"])],
        cwd=body.get("cwd") or None,
        env={**os.environ, **(body.get("env") or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace").rstrip("\r\n")


def _code(child: subprocess.Popen[bytes]) -> int:
    return max(child.wait(), -1)


class Executor:
    """What all requests share.

    Args:
        secret: what callers have to know.
    """

    def __init__(self, secret: str) -> None:
        self._secret = secret
        self.processes: dict[str, Process] = {}
        self.bound = ""

    def knows(self, header: str) -> bool:
        """Whether a caller's header has the secret."""
        return header == f"Bearer {self._secret}"


class Calls(BaseHTTPRequestHandler):
    """Answers one connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = False  # it is a unix socket, more often than not
    executor: ClassVar[Executor]

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """Answer what only asks."""
        self._answer({"health": self._health, "list_processes": self._list_processes,
                      "process_logs_streaming": self._process_logs})  # fmt: skip

    def do_POST(self) -> None:
        """Answer what does something."""
        names = ("run", "run_streaming", "write_file", "read_file", "delete_file", "make_dir",
                 "delete_dir", "list_dir", "start_process", "kill_process", "bind_port",
                 "unbind_port")  # fmt: skip
        self._answer({name: getattr(self, f"_{name}") for name in names})

    def _answer(self, calls: dict[str, Any]) -> None:
        parts = urlsplit(self.path)
        self._query = parse_qs(parts.query)
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        call = calls.get(parts.path.strip("/"))
        if call is None:
            self._say(404, "404 page not found\n")
        elif call != self._health and not self.executor.knows(
            self.headers.get("Authorization") or ""
        ):
            self._say(401, "Unauthorized\n")
        else:
            try:
                body = json.loads(raw) if raw else {}
            except ValueError:
                self._say(400, "Invalid request\n")
                return
            with suppress(BrokenPipeError, ConnectionResetError):
                call(body)

    # -- answers

    def _say(self, status: int, text: str) -> None:
        self._send(status, "text/plain; charset=utf-8", text.encode())

    def _tell(self, number: int, /, **fields: object) -> None:
        self._send(number, "application/json", json.dumps(fields).encode())

    def _send(self, status: int, kind: str, data: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _begin_events(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-cache")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def _event(self, kind: str, /, **fields: object) -> None:
        data = f"event: {kind}\ndata: {json.dumps(fields)}\n\n".encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def _end_events(self) -> None:
        self.wfile.write(b"0\r\n\r\n")

    # -- commands

    def _health(self, _: Json) -> None:
        self._tell(200, status="ok")

    def _is_refused(self, body: Json) -> bool:
        cwd = body.get("cwd")
        if not isinstance(body.get("cmd"), str) or not body["cmd"]:
            self._say(400, "Invalid request\n")
        elif cwd and not Path(cwd).is_dir():
            self._say(400, f"Invalid working directory: {cwd}\n")
        else:
            return False
        return True

    def _run(self, body: Json) -> None:
        """Read one pipe to its end and then the other, without a limit of time."""
        if self._is_refused(body):
            return
        child = spawn(body)
        out, err = cast("BinaryIO", child.stdout).read(), cast("BinaryIO", child.stderr).read()
        code = _code(child)
        error = {"error": "Non-zero exit code"} if code else {}
        texts = (out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))
        self._tell(200, stdout=texts[0], stderr=texts[1], code=code, **error)

    def _run_streaming(self, body: Json) -> None:
        """Stream line by line; when the caller goes, the shell is killed and nothing below it."""
        if self._is_refused(body):
            return
        self._begin_events()
        child = spawn(body)
        turn = threading.Lock()

        def pump(pipe: BinaryIO, name: str) -> None:
            for line in pipe:
                with turn:
                    try:
                        self._event("output", stream=name, data=_text(line))
                    except OSError:
                        child.kill()

        pipes = ((child.stdout, "stdout"), (child.stderr, "stderr"))
        threads = [threading.Thread(target=pump, args=pipe, daemon=True) for pipe in pipes]
        watch = threading.Thread(target=self._kill_when_alone, args=(child,), daemon=True)
        for thread in (*threads, watch):
            thread.start()
        for thread in threads:
            thread.join()
        code = _code(child)
        self._event("complete", code=code, error=code != 0)
        self._end_events()

    def _kill_when_alone(self, child: subprocess.Popen[bytes]) -> None:
        while child.poll() is None:
            if select.select([self.connection], [], [], 0.1)[0]:
                with suppress(OSError):
                    if not self.connection.recv(1, socket.MSG_PEEK):
                        child.kill()
                        child.wait()
                return

    # -- files

    def _done(self, action: Any, *arguments: object) -> None:  # noqa: ANN401 - any call
        try:
            action(*arguments)
        except OSError as refused:
            self._tell(200, success=False, error=_as_go_says(refused))
        else:
            self._tell(200, success=True)

    def _write_file(self, body: Json) -> None:
        content = str(body.get("content") or "").encode("utf-8", "replace")
        self._done(Path(body["path"]).write_bytes, content)

    def _read_file(self, body: Json) -> None:
        try:
            content = Path(body["path"]).read_bytes().decode("utf-8", "replace")
        except OSError as refused:
            self._tell(200, error=_as_go_says(refused))
        else:
            self._tell(200, **({"content": content} if content else {}))

    def _delete_file(self, body: Json) -> None:
        self._done(os.remove, body["path"])

    def _make_dir(self, body: Json) -> None:
        self._done(lambda: Path(body["path"]).mkdir(parents=True, exist_ok=True))

    def _delete_dir(self, body: Json) -> None:
        place = Path(body["path"])
        self._done(lambda: shutil.rmtree(place) if place.exists() else None)

    def _list_dir(self, body: Json) -> None:
        try:
            entries = sorted(os.listdir(body["path"]))
        except OSError as refused:
            self._tell(200, error=_as_go_says(refused))
        else:
            self._tell(200, **({"entries": entries} if entries else {}))

    # -- processes

    def _start_process(self, body: Json) -> None:
        if self._is_refused(body):
            return
        try:
            process = Process(body)
        except OSError as refused:
            self._tell(500, error=_as_go_says(refused))
            return
        self.executor.processes[process.identifier] = process
        self._tell(201, id=process.identifier, pid=process.child.pid, status="running")

    def _list_processes(self, _: Json) -> None:
        every = self.executor.processes.values()
        rows = [
            {
                "id": process.identifier,
                "pid": process.child.pid,
                "status": process.status,
                "command": process.command,
            }
            for process in every
        ]
        self._tell(200, processes=rows)

    def _kill_process(self, body: Json) -> None:
        process = self.executor.processes.get(str(body.get("id")))
        if process is None:
            self._tell(400, success=False, error=f"process not found: {body.get('id')}")
        elif process.status != "running":
            fact = f"process is not running (status: {process.status})"
            self._tell(400, success=False, error=fact)
        else:
            process.child.kill()  # the shell alone: what it started lives on
            process.child.wait()
            self._tell(200, success=True, message="Process killed successfully")

    def _process_logs(self, _: Json) -> None:
        process = self.executor.processes.get(self._query.get("id", [""])[0])
        if process is None:
            self._say(404, "process not found\n")
            return
        self._begin_events()
        told = 0
        while True:
            ended = process.status != "running"
            for line in process.lines[told:]:
                self._event("log", **line)
                told += 1
            if ended and told >= len(process.lines):
                break
            with suppress(subprocess.TimeoutExpired):
                process.child.wait(0.05)
        self._event("complete", message="stream ended")
        self._end_events()

    # -- the public port

    def _bind_port(self, body: Json) -> None:
        executor = self.executor
        if executor.bound:
            fact = "Port already bound"
            self._tell(409, success=False, error=fact, current_port=executor.bound)
            return
        executor.bound = str(body.get("port") or "")
        self._tell(200, success=True, message="Port binding configured", port=executor.bound)

    def _unbind_port(self, _: Json) -> None:
        self.executor.bound = ""
        self._tell(200, success=True, message="Port binding removed")


def _as_go_says(refused: OSError) -> str:
    return f"open {refused.filename}: {(refused.strerror or 'error').lower()}"


class _Server(ThreadingHTTPServer):
    """Serves on a socket that is open already."""

    daemon_threads = True
    address_family: int = socket.AF_UNIX

    def __init__(self, listener: socket.socket) -> None:
        super().__init__(("", 0), Calls, bind_and_activate=False)
        self.socket.close()
        self.socket = listener

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as inherited
        """Say nothing of callers that went away."""


def _forward_public(executor: Executor, listener: socket.socket) -> None:
    """Hand each connection to the port inside that somebody bound."""
    while True:
        caller, _ = listener.accept()
        threading.Thread(target=_forward, args=(executor, caller), daemon=True).start()


def _forward(executor: Executor, caller: socket.socket) -> None:
    with caller, suppress(OSError, ValueError):
        if not executor.bound:
            return
        with socket.create_connection(("127.0.0.1", int(executor.bound)), 10) as inside:
            back = threading.Thread(target=_pump, args=(inside, caller), daemon=True)
            back.start()
            _pump(caller, inside)
            back.join()


def _pump(source: socket.socket, aim: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(_CHUNK):
            aim.sendall(data)
        aim.shutdown(socket.SHUT_WR)


def _serve(calls: int, public: int) -> None:
    executor = Calls.executor = Executor(os.environ.get(_SECRET, ""))
    inside = [socket.create_server(("", port)) for port in (EXECUTOR_PORT, PUBLIC_PORT)]
    publics = (socket.socket(fileno=public), inside[1])
    listeners = (inside[0], socket.socket(fileno=calls))
    for listener in publics:
        arguments = (executor, listener)
        threading.Thread(target=_forward_public, args=arguments, daemon=True).start()
    servers = [_Server(listener) for listener in listeners]
    threading.Thread(target=servers[0].serve_forever, daemon=True).start()
    servers[1].serve_forever(poll_interval=60)


def run(calls: int, public: int) -> None:
    """Serve in a child, and wait for all that is left to the first process of an instance.

    Args:
        calls: descriptor of a socket that listens for callers.
        public: of one that leads to the port that somebody inside bound.
    """
    server = os.fork()
    if server == 0:
        _serve(calls, public)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while os.wait()[0] != server:
        pass
