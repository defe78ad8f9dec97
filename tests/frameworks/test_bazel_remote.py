"""The example built through a remote cache, and by remote execution, both on this machine's loopback."""

from __future__ import annotations

import http.server
import json
import shutil
import socket
import subprocess
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.frameworks.bazel_workspace import NEEDS_BAZEL, Workspace, make_workspace

if TYPE_CHECKING:
    from collections.abc import Iterator

WORKER_SOURCES = Path("/usr/src/bazel-bootstrap/src/tools/remote/src/main/java")
BAZEL_CLASSES = Path("/usr/share/bazel/A-server.jar")
TARGETS = ("--config=python311", "//pjrt:pjrt_c_api_gpu_plugin.so", "//example:_example.so", "//:pjrt_wheel")
WHEEL = "jax_example_pjrt-0.12.0-py3-none-manylinux_2_5_x86_64.whl"
OUTPUTS = (WHEEL, "pjrt/pjrt_c_api_gpu_plugin.so", "example/_example.so")

pytestmark = [pytest.mark.slow, *NEEDS_BAZEL]


class CacheHandler(http.server.BaseHTTPRequestHandler):
    """Bazel's HTTP cache protocol: blobs by their paths, which are digests."""

    protocol_version = "HTTP/1.1"
    blobs: dict[str, bytes]

    def do_GET(self) -> None:
        """Give a blob."""
        blob = self.blobs.get(self.path)
        self._answer(404 if blob is None else 200, blob or b"")

    def do_PUT(self) -> None:
        """Take a blob."""
        self.blobs[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(200, b"")

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def http_cache() -> Iterator[str]:
    """Return the address of an empty cache."""
    handler = type("Handler", (CacheHandler,), {"blobs": {}})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def worker_classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile Bazel's own remote worker, so that it listens on the loopback alone."""
    if not WORKER_SOURCES.is_dir() or not BAZEL_CLASSES.is_file() or shutil.which("javac") is None:
        pytest.skip("no remote worker: install Debian's bazel-bootstrap-source and default-jdk-headless")
    folder = tmp_path_factory.mktemp("worker")
    shutil.copytree(WORKER_SOURCES, folder / "source")
    main = next((folder / "source").rglob("RemoteWorker.java"))
    everywhere, here = "NettyServerBuilder.forPort(", "NettyServerBuilder.forAddress(new java.net.InetSocketAddress("
    text = main.read_text()
    port = text.partition(everywhere)[2].partition(")")[0]
    main.write_text(text.replace(f"{everywhere}{port})", f'{here}"127.0.0.1", {port}))'))
    assert here in main.read_text()
    sources = map(str, (folder / "source").rglob("*.java"))
    compiler = ["javac", "-nowarn", "-proc:none", "-cp", f"{BAZEL_CLASSES}:/usr/share/java/*"]
    subprocess.run([*compiler, "-d", str(folder / "classes"), *sources], check=True, capture_output=True)
    return folder / "classes"


@pytest.fixture
def remote_worker(worker_classes: Path, tmp_path: Path) -> Iterator[str]:
    """Return the address of a worker that executes actions."""
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    for folder in ("work", "cas"):
        (tmp_path / folder).mkdir()
    program = [
        "java",
        "-cp",
        f"{worker_classes}:{BAZEL_CLASSES}",
        "com.google.devtools.build.remote.worker.RemoteWorker",
    ]
    options = [f"--work_path={tmp_path}/work", f"--cas_path={tmp_path}/cas", f"--listen_port={port}", "--jobs=2"]
    with (tmp_path / "worker.log").open("w") as log:
        worker = subprocess.Popen([*program, *options], stdout=log, stderr=subprocess.STDOUT)
    try:
        wait_for(port, worker)
        yield f"grpc://127.0.0.1:{port}"
    finally:
        worker.terminate()
        worker.wait()


def wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    while not is_listening(port):
        assert server.poll() is None, "the remote worker ended at once"
        time.sleep(0.1)


def is_listening(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def build(workspace: Workspace, *options: str) -> tuple[set[str], list[bytes]]:
    """Build everything, and return what ran or fetched the actions, and the outputs."""
    log = workspace.folder.parent / "executions.json"
    try:
        workspace.build(*options, f"--execution_log_json_file={log}", *TARGETS)
    finally:
        workspace.bazel("shutdown")
    outputs = [(workspace.folder / "bazel-bin" / name).read_bytes() for name in OUTPUTS]
    return {spawn["runner"] for spawn in read_objects(log.read_text())}, outputs


def read_objects(text: str) -> Iterator[dict[str, Any]]:
    """Read the JSON objects that follow one another."""
    decoder = json.JSONDecoder()
    while text := text.lstrip():
        value, end = decoder.raw_decode(text)
        text = text[end:]
        yield value


def test_a_clean_build_in_another_folder_gets_every_action_from_the_remote_cache(
    sample_dist: Path, rocm_path: Path, tmp_path: Path, http_cache: str
) -> None:
    cache = ("--config=rocm_build", f"--remote_cache={http_cache}")
    runners, built = build(make_workspace(tmp_path / "one", sample_dist, rocm_path), *cache)
    assert not {"remote", "remote cache hit"} & runners
    runners, fetched = build(make_workspace(tmp_path / "another", sample_dist, rocm_path), *cache)
    assert runners == {"remote cache hit"}
    assert fetched == built


@pytest.mark.corpus
def test_remote_execution_produces_the_same_wheels(
    sample_dist: Path, rocm_path: Path, tmp_path: Path, remote_worker: str
) -> None:
    remote = make_workspace(tmp_path / "remote", sample_dist, rocm_path)
    with (remote.folder / "rocm.toml").open("a") as settings:
        settings.write('remote-execution = "rbe.bazelrc"\n')
    assert remote.rocwheel("jax", "bazelrc", "--output", "rocm.bazelrc").returncode == 0
    hook = f"build:rocm_rbe --remote_executor={remote_worker} --spawn_strategy=remote\n"
    (remote.folder / "rbe.bazelrc").write_text(hook)
    runners, executed = build(remote, "--config=rocm_build_remote")
    assert runners == {"remote"}
    _, built = build(make_workspace(tmp_path / "local", sample_dist, rocm_path), "--config=rocm_build")
    assert executed == built
