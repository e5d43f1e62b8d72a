"""A function neither outlives its end, nor exceeds its limits, nor stops those of others."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from testkit.packaging.function_packages import children, companion, create, wait_for, zipped
from testkit.servers import processes
from testkit.servers.processes import Server

CALM = "def handler(event, context): return 'calm'"
BROOD = """
import json, os, signal, subprocess, time

def handler(event, context):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    pids = [os.getpid(), subprocess.Popen(["sleep", "1000"]).pid]
    pids.append(subprocess.Popen(["sleep", "1000"], start_new_session=True).pid)
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            os.write(writing, str(os.getpid()).encode())
            os.execvp("sleep", ["sleep", "1000"])
        os._exit(0)
    pids.append(int(os.read(reading, 20)))
    with open(event["path"] + ".part", "w") as out:
        json.dump(pids, out)
    os.rename(event["path"] + ".part", event["path"])
    if event["hangs"]:
        time.sleep(1000)
"""


def is_running(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(") ")[2][0] != "Z"


def payload(answer: Any) -> Any:
    return json.load(answer["Payload"])


def calls(client: Any, name: str, event: Any = None) -> Any:
    return payload(client.invoke(FunctionName=name, Payload=json.dumps(event)))


@pytest.fixture(scope="module")
def neighbour(functions: Any) -> str:
    """A function that must go on, whatever another one does."""
    create(functions, "neighbour", CALM)
    return "neighbour"


def let_time_out(server: Server, name: str) -> None:
    """The call that hangs is ended by its timeout."""


def update(server: Server, name: str) -> None:
    client = server.client("lambda")
    client.update_function_code(FunctionName=name, ZipFile=zipped(app=CALM))
    assert calls(client, name) == "calm"


def delete(server: Server, name: str) -> None:
    server.client("lambda").delete_function(FunctionName=name)


def stop(server: Server, name: str) -> None:
    server.terminate()


def kill_companion(server: Server, name: str) -> None:
    os.kill(companion(server), signal.SIGKILL)


def kill_server(server: Server, name: str) -> None:
    server.kill()


@pytest.mark.parametrize(
    ("end", "hangs"),
    [
        (let_time_out, True),
        (update, False),
        (delete, False),
        (stop, True),
        (stop, False),
        (kill_companion, True),
        (kill_server, True),
        (kill_server, False),
    ],
)
def test_a_function_leaves_no_process_behind(
    serve: Callable[..., Server],
    tmp_path: Path,
    end: Callable[[Server, str], None],
    *,
    hangs: bool,
) -> None:
    server = serve("serve", "--port", "0", "--in-memory")
    client = server.client("lambda")
    create(client, "brood", BROOD, Timeout=2 if end is let_time_out else 60)
    event = json.dumps({"path": str(tmp_path / "pids"), "hangs": hangs})
    kind = "Event" if hangs and end is not let_time_out else "RequestResponse"
    client.invoke(FunctionName="brood", Payload=event, InvocationType=kind)
    wait_for((tmp_path / "pids").exists)
    pids = json.loads((tmp_path / "pids").read_text())
    assert len(pids) == 4
    if end is not let_time_out:
        assert all(map(is_running, pids))
    end(server, "brood")
    wait_for(lambda: [pid for pid in pids if is_running(pid)], lambda left: not left)


def test_a_function_that_forks_without_end_is_ended(
    server: Server, functions: Any, name: str, neighbour: str
) -> None:
    source = """
import os, time

def handler(event, context):
    while True:
        if os.fork() == 0:
            os.setsid()
            time.sleep(1000)
"""
    create(functions, name, source, Timeout=60, MemorySize=10_240)
    answer = functions.invoke(FunctionName=name)
    assert answer["FunctionError"] == "Unhandled"
    assert "1024 processes" in payload(answer)["errorMessage"]
    assert calls(functions, neighbour) == "calm"
    assert len(list(Path("/proc").glob("[0-9]*"))) < 1000


# Limits


@pytest.mark.parametrize(
    "source",
    [
        "def handler(event, context): return len(b'x' * (300 << 20))",
        "import subprocess, sys\ndef handler(event, context):\n"
        "    code = 'import time; x = b\"x\" * (300 << 20); time.sleep(60)'\n"
        "    subprocess.run([sys.executable, '-c', code])",
        "kept = []\ndef handler(event, context):\n"
        "    while True: kept.append(bytearray(b'x' * 4096))",
        "kept = b'x' * (300 << 20)\ndef handler(event, context): pass",
    ],
    ids=["at once", "in a child", "piece by piece", "while it is imported"],
)
def test_a_function_that_exceeds_its_memory_is_ended(
    functions: Any, name: str, source: str, neighbour: str
) -> None:
    create(functions, name, source)
    answer = functions.invoke(FunctionName=name)
    assert (answer["StatusCode"], answer["FunctionError"]) == (200, "Unhandled")
    error = payload(answer)
    assert error["errorType"] == "Runtime.OutOfMemory"
    assert error["errorMessage"].endswith("Error: Runtime exited with error: signal: killed")
    assert calls(functions, neighbour) == "calm"


def test_a_function_within_its_memory_runs(functions: Any, name: str) -> None:
    source = "import time\nkept = b'x' * (300 << 20)\ndef handler(event, context): time.sleep(1)"
    create(functions, name, source, MemorySize=512)
    assert calls(functions, name) is None


def test_the_smallest_memory_is_enough_for_boto3_and_processes_that_share_theirs(
    functions: Any, name: str
) -> None:
    source = """
import os, time, boto3

client = boto3.client("dynamodb")

def handler(event, context):
    for _ in range(6):
        if os.fork() == 0:
            time.sleep(1)
            os._exit(0)
    time.sleep(1)
    return len(client.list_tables()["TableNames"]) > 0
"""
    create(functions, name, source, MemorySize=128)
    assert calls(functions, name) is True


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("""
import tempfile, time
def handler(event, context):
    for number in range(6):
        with tempfile.NamedTemporaryFile(delete=False) as file:
            file.write(b'x' * (100 << 20))
    time.sleep(60)""", "EphemeralStorage"),
        ("""
import tempfile
def handler(event, context):
    with tempfile.TemporaryFile() as file:
        for number in range(6): file.write(b'x' * (100 << 20))""", "File too large"),
        ("""
def handler(event, context):
    kept = [open('/dev/null') for _ in range(2000)]""", "Too many open files"),
    ],
    ids=["files", "a file", "descriptors"],
)  # fmt: skip
def test_what_else_a_function_may_use_is_limited(
    functions: Any, name: str, source: str, words: str
) -> None:
    create(functions, name, source, Timeout=60, MemorySize=512)
    assert words in calls(functions, name)["errorMessage"]


def test_temporary_files_of_a_function_are_its_own_and_go_with_it(
    functions: Any, name: str
) -> None:
    source = """
import tempfile
def handler(event, context):
    with tempfile.NamedTemporaryFile(delete=False) as file:
        return file.name
"""
    create(functions, name, source)
    path = Path(calls(functions, name))
    assert path.exists()
    assert path.parent.stat().st_mode & 0o777 == 0o700
    functions.delete_function(FunctionName=name)
    wait_for(path.parent.exists, lambda is_there: not is_there)


# Nuisances

NUISANCES = {
    "endless output": "while True: print('x' * 1000)",
    "an endless line": "while True: os.write(1, b'x' * 65536)",
    "closed descriptors": "os.closerange(0, 1000); time.sleep(60)",
    "a stopped supervisor": "os.kill(os.getppid(), signal.SIGSTOP); time.sleep(60)",
    "a killed supervisor": "os.kill(os.getppid(), signal.SIGKILL); time.sleep(60)",
    "a pipe full of garbage": "while True:\n"
    "        for number in range(3, 30):\n"
    "            with suppress(OSError): os.write(number, b'x' * 65536)",
    "signals ignored": "[signal.signal(number, signal.SIG_IGN) for number in (1, 2, 15)]\n"
    "    time.sleep(60)",
    "a process that computes": "while True: pass",
    "a huge result": "return 'x' * (7 << 20)",
    "a huge error": "raise ValueError('x' * (30 << 20))",
    "a copy that answers": "return os.fork()",
    "a child that reads stdin": "return subprocess.run(['cat'], timeout=30).returncode or 'done'",
}


@pytest.fixture(scope="module")
def unread(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A server whose stderr nobody reads."""
    with processes.starting() as start:
        server = start("serve", "--port", "0", "--in-memory")
        client = server.client("lambda")
        create(client, "neighbour", CALM)
        yield client


@pytest.mark.parametrize("nuisance", NUISANCES)
def test_others_go_on_whatever_a_function_does(unread: Any, name: str, nuisance: str) -> None:
    source = (
        "import os, signal, subprocess, time\nfrom contextlib import suppress\n"
        f"def handler(event, context):\n    {NUISANCES[nuisance]}\n"
    )
    create(unread, name, source, Timeout=4, MemorySize=512)
    answers: list[Any] = []
    wild = threading.Thread(target=lambda: answers.append(calls(unread, name)))
    wild.start()
    slowest = 0.0
    while wild.is_alive():
        began = time.monotonic()
        assert calls(unread, "neighbour") == "calm"
        slowest = max(slowest, time.monotonic() - began)
        time.sleep(0.05)
    wild.join()
    assert len(answers) == 1
    assert slowest < 3, "a second is what it takes on a busy machine"
    unread.delete_function(FunctionName=name)
    assert calls(unread, "neighbour") == "calm"


def test_a_function_has_no_descriptors_of_the_server(serve: Any, tmp_path: Path) -> None:
    source = """
import os
def handler(event, context):
    found = {}
    for number in os.listdir("/proc/self/fd"):
        try:
            found[number] = os.readlink("/proc/self/fd/" + number)
        except OSError:
            pass
    return found
"""
    server = serve("serve", "--port", "0", "--data", tmp_path / "data")
    client = server.client("lambda")
    create(client, "lists", source)
    found = calls(client, "lists")
    files = [target for target in found.values() if target.startswith("/")]
    assert files == ["/dev/null"]
    assert len(found) <= 6, "stdin, stdout, stderr, calls and answers"
    passed_on = Path(f"/proc/{companion(server)}/fd").iterdir()
    files = [str(file.readlink()) for file in passed_on if file.is_symlink()]
    assert not [file for file in files if str(tmp_path) in file]


def test_variables_do_not_run_code_before_its_turn(unread: Any, name: str) -> None:
    """An interpreter starts while others wait for theirs."""
    package = zipped(app="import other\ndef handler(event, context): return other.__file__",
                     sitecustomize="import time; time.sleep(20)")  # fmt: skip
    create(
        unread,
        name,
        "",
        Code={"ZipFile": package},
        Environment={"Variables": {"PYTHONPATH": ".", "LD_PRELOAD": "./evil.so"}},
    )
    began = time.monotonic()
    assert "other" in calls(unread, name)["errorMessage"]
    create(unread, f"{name}-2", CALM)
    assert calls(unread, f"{name}-2") == "calm"
    assert time.monotonic() - began < 15


def test_what_a_supervisor_costs_is_little(server: Server, functions: Any, name: str) -> None:
    source = "import os\ndef handler(event, context): return os.getppid()"
    create(functions, name, source)
    supervisor = calls(functions, name)
    assert supervisor in children(companion(server))

    def spent() -> int:
        fields = Path(f"/proc/{supervisor}/stat").read_text().rpartition(") ")[2].split()
        return int(fields[11]) + int(fields[12])

    before = spent()
    time.sleep(3)
    assert spent() - before <= 6, "hundredths of a second in three seconds"


def test_functions_that_are_called_once_do_not_pile_up(serve: Callable[..., Server]) -> None:
    server = serve("serve", "--port", "0", "--in-memory")
    client = server.client("lambda")
    for number in range(72):
        create(client, f"once-{number}", CALM)
        assert calls(client, f"once-{number}") == "calm"
    wait_for(lambda: len(children(companion(server))), lambda running: running <= 64)
    assert calls(client, "once-0") == "calm"
