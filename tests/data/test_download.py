"""Downloads from a server that cuts off, stalls, lies and refuses."""

import hashlib
import io
import tarfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from sigmapca_cli.data import build, download
from sigmapca_cli.data.config import DataConfig
from sigmapca_cli.system.errors import InputError, RunFailed

CONTENT = np.random.default_rng(0).bytes(300_000)
MD5 = hashlib.md5(CONTENT).hexdigest()


class Server(ThreadingHTTPServer):
    """Serves `files`; one of `faults` a request: truncate, stall, corrupt, 503, whole (no ranges)."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = {"/file": CONTENT}
        self.faults = []
        self.ranges = []

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_GET(self):
        server = self.server
        fault = server.faults.pop(0) if server.faults else "none"
        content = server.files.get(self.path)
        asked = self.headers.get("Range")
        server.ranges.append(asked)
        if content is None or fault == "503":
            self.send_error(503 if fault == "503" else 404)
            return
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked and fault != "whole" else 0
        if start >= len(content):
            self.send_error(416)
            return
        body = content[start:]
        if fault == "corrupt":
            body = bytes(len(body))
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", "abc" if fault == "no length" else str(len(body)))
        if fault == "no length":
            self.close_connection = True
        self.end_headers()
        if fault in ("truncate", "stall"):
            self.wfile.write(body[: len(body) // 2])
            self.wfile.flush()
            time.sleep(1.5 if fault == "stall" else 0)
            self.close_connection = True
        else:
            self.wfile.write(body)


@pytest.fixture
def server():
    running = Server()
    threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
    yield running
    running.shutdown()
    running.server_close()


def fetch(server, target, **options):
    return download.download(f"{server.url}/file", target, MD5, **{"timeout": 0.3, **options})


@pytest.mark.parametrize(
    "faults",
    [
        [],
        ["truncate"],
        ["truncate", "truncate", "truncate"],
        ["stall"],
        ["503"],
        ["truncate", "whole"],
        ["no length"],
        ["truncate", "503", "stall"],
    ],
)
def test_the_file_arrives_whole_in_spite_of(server, tmp_path, faults):
    server.faults = list(faults)
    seen = []
    target = fetch(server, tmp_path / "f", progress=lambda done, total: seen.append((done, total)))
    assert target.read_bytes() == CONTENT
    assert seen[-1] == (len(CONTENT), None if faults == ["no length"] else len(CONTENT))
    assert [p.name for p in tmp_path.iterdir()] == ["f"]


def test_what_has_arrived_is_not_asked_for_again(server, tmp_path):
    server.faults = ["truncate"]
    fetch(server, tmp_path / "f")
    assert server.ranges == [None, f"bytes={len(CONTENT) // 2}-"]


def test_a_later_call_resumes(server, tmp_path):
    server.faults = ["truncate", "503"]
    with pytest.raises(RunFailed, match=r"failed 2 times .*503.*run it again to resume"):
        fetch(server, tmp_path / "f", attempts=2)
    assert not (tmp_path / "f").exists()
    assert fetch(server, tmp_path / "f").read_bytes() == CONTENT
    assert server.ranges[-1] == f"bytes={len(CONTENT) // 2}-"


def test_a_wrong_sum_names_both_and_touches_nothing(server, tmp_path):
    (tmp_path / "mine").write_text("kept")
    server.faults = ["corrupt"]
    wrong = hashlib.md5(bytes(len(CONTENT))).hexdigest()
    with pytest.raises(RunFailed, match=f"MD5 sum is {wrong}, must be {MD5}"):
        fetch(server, tmp_path / "f")
    assert [p.name for p in tmp_path.iterdir()] == ["mine"]


def test_a_spoilt_part_is_thrown_away_once(server, tmp_path):
    (tmp_path / "f.part").write_bytes(b"x" * 1000)
    assert fetch(server, tmp_path / "f").read_bytes() == CONTENT
    (tmp_path / "f").unlink()
    (tmp_path / "f.part").write_bytes(b"x" * (len(CONTENT) + 5))
    assert fetch(server, tmp_path / "f").read_bytes() == CONTENT


def test_a_file_that_is_there_is_not_fetched(server, tmp_path):
    (tmp_path / "f").write_text("mine")
    assert fetch(server, tmp_path / "f").read_text() == "mine"
    assert server.ranges == []


def test_missing_file_and_dead_server_fail_in_one_line(server, tmp_path):
    with pytest.raises(RunFailed, match=r"answers 404 .*data\.path"):
        download.download(f"{server.url}/none", tmp_path / "f", MD5, timeout=0.3)
    with pytest.raises(RunFailed, match="failed 2 times"):
        download.download("http://127.0.0.1:1/file", tmp_path / "f", MD5, timeout=0.05, attempts=2)
    with pytest.raises(InputError, match="must begin with http"):
        download.download("file:///etc/passwd", tmp_path / "f", MD5)


def test_several_threads_fetch_once(server, tmp_path):
    threads = [threading.Thread(target=fetch, args=(server, tmp_path / "f")) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (tmp_path / "f").read_bytes() == CONTENT and len(server.ranges) == 1


def test_a_data_set_is_downloaded_from_a_mirror_and_then_found(server, tmp_path, monkeypatch, shared_data):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as tar:
        tar.add(shared_data / "cifar-10-batches-py" / "test_batch", "cifar-10-batches-py/test_batch")
    server.files["/cifar-10-python.tar.gz"] = buffer.getvalue()
    base, folder, _ = download.DATASETS["cifar10"]
    sums = {"cifar-10-python.tar.gz": hashlib.md5(buffer.getvalue()).hexdigest()}
    monkeypatch.setitem(download.DATASETS, "cifar10", (base, folder, sums))
    monkeypatch.setenv("SIGMAPCA_MIRROR", server.url)
    monkeypatch.setenv("SIGMAPCA_DATA", str(tmp_path / "store"))
    monkeypatch.chdir(tmp_path)
    cfg = DataConfig(name="cifar10", split="test", images=5)
    source = build(cfg)
    assert (tmp_path / "store" / "cifar-10-python.tar.gz").is_file()
    asked = len(server.ranges)
    assert build(cfg).hash == source.hash and len(server.ranges) == asked
    assert source.n == 5 * 1024


def test_published_sums_are_those_of_the_real_files(shared_data):
    sums = download.DATASETS["mnist"][2]
    for path in (shared_data / "mnist").glob("*.gz"):
        assert download.file_md5(path) == sums[path.name]
