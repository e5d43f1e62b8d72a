"""`partita users`, `partita policies`, and servers that are started with and without --auth."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from partita.cli.command_groups import commands
from partita.errors import PartitaError
from partita.server.security.identities.access_control import WATCH_SECONDS
from partita.server.security.identities.access_file import FILE_NAME, AccessFile
from partita.server.security.identities.user_directory import ROOT_KEY_ID, ROOT_SECRET
from testkit.servers import processes
from testkit.servers.processes import ENVIRONMENT, run
from testkit.servers.users import client_for, policy, refusal, statement


def keys_of(output: str) -> tuple[str, str]:
    """Returns the key that a command printed."""
    lines = dict(line.split("=", 1) for line in output.splitlines() if line.startswith("AWS_"))
    return lines["AWS_ACCESS_KEY_ID"], lines["AWS_SECRET_ACCESS_KEY"]


def command(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Runs a command like `run`, but in this process, because starting one takes longer."""
    done = CliRunner().invoke(commands, [*map(str, arguments)])
    error = f"partita: {done.exception}" if isinstance(done.exception, PartitaError) else ""
    return subprocess.CompletedProcess(arguments, done.exit_code, done.stdout, done.stderr + error)


def users(data: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return command("users", *arguments, "--data", data)


def policies(data: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return command("policies", *arguments, "--data", data)


def test_a_user_from_first_to_last_key(tmp_path: Path) -> None:
    added = users(tmp_path, "add", "ann", "--policy", "AdministratorAccess")
    first = keys_of(added.stdout)
    assert "shown only once" in added.stderr and "not encrypted" in added.stderr
    mode = (tmp_path / FILE_NAME).stat().st_mode
    assert stat.S_IMODE(mode) == 0o600
    listed = users(tmp_path, "list").stdout
    assert first[0] in listed and first[1] not in listed
    with processes.starting() as start:
        server = start("serve", "--auth", "--port", "0", "--data", tmp_path)
        assert client_for(server.url, *first).list_tables()
        second = keys_of(users(tmp_path, "rotate", "ann").stdout)
        time.sleep(2 * WATCH_SECONDS)
        for key in (first, second):
            assert client_for(server.url, *key).list_tables()
        third = users(tmp_path, "rotate", "ann")
        assert third.returncode == 1 and "two active keys" in third.stderr
        users(tmp_path, "disable", "ann", "--key", first[0])
        time.sleep(2 * WATCH_SECONDS)
        gone = client_for(server.url, *first)
        assert refusal(gone.list_tables)[0] == "UnrecognizedClientException"
        assert client_for(server.url, *second).list_tables()
        assert server.terminate()[0] == 0
    for path in tmp_path.rglob("*"):
        assert not stat.S_IMODE(path.stat().st_mode) & 0o077, path
    # What was known stays known.
    with processes.starting() as start:
        server = start("serve", "--auth", "--port", "0", "--data", tmp_path)
        assert client_for(server.url, *second).list_tables()


def test_a_server_that_knows_nobody_does_not_start(tmp_path: Path) -> None:
    completed = run("serve", "--auth", "--port", "0", "--data", tmp_path)
    assert completed.returncode == 1
    assert f"partita users add NAME --data {tmp_path}" in completed.stderr
    completed = run("serve", "--auth", "--port", "0", "--in-memory")
    assert completed.returncode == 1 and ROOT_KEY_ID in completed.stderr


def test_a_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    users(tmp_path, "add", "ann")
    os.chmod(tmp_path / FILE_NAME, 0o644)
    completed = run("serve", "--auth", "--port", "0", "--data", tmp_path)
    assert completed.returncode == 1 and "chmod 600" in completed.stderr


def test_a_key_from_the_environment_may_do_everything() -> None:
    environment = {**ENVIRONMENT, ROOT_KEY_ID: "rootkey1", ROOT_SECRET: "s3cret"}
    environment["PARTITA_SERVE_AUTH"] = "1"
    with processes.starting() as start:
        server = start("serve", "--port", "0", "--in-memory", env=environment)
        assert client_for(server.url, "rootkey1", "s3cret").list_tables()
        identity = client_for(server.url, "rootkey1", "s3cret", "sts").get_caller_identity()
        assert identity["Arn"].endswith(":root")
        stranger = client_for(server.url, "test", "test")
        assert refusal(stranger.list_tables)[0] == "UnrecognizedClientException"


def test_users_from_a_file_and_auth_from_the_settings(tmp_path: Path) -> None:
    users(tmp_path / "made", "add", "ann", "--policy", "AdministratorAccess")
    file = tmp_path / "made" / FILE_NAME
    settings = tmp_path / "partita.toml"
    settings.write_text(f'[serve]\nauth = true\nin_memory = true\nport = 0\nusers = "{file}"\n')
    (user,) = AccessFile(file).load().users.values()
    with processes.starting() as start:
        server = start("serve", "--config", settings)
        assert client_for(server.url, user.keys[0].id, user.keys[0].secret).list_tables()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "db.example"])
def test_nobody_listens_to_the_world_by_accident(host: str) -> None:
    refused = processes.run("serve", "--host", host, "--port", "0", "--in-memory")
    assert refused.returncode == 1
    assert refused.stderr.startswith(
        f"partita: Other machines can reach a server that listens on {host}. Start it with --auth,"
    )


def test_auth_or_mutual_tls_is_enough_to_listen_to_the_world(tmp_path: Path) -> None:
    users(tmp_path, "add", "ann")
    everywhere = ("serve", "--host", "0.0.0.0", "--port", "0")
    with processes.starting() as start:
        assert "WARNING" not in start(*everywhere, "--auth", "--data", tmp_path).terminate()[1]
    # It goes on to the certificate, which is not there.
    mutual = ("--tls-self-signed", "--tls-client-ca", tmp_path / "missing.pem")
    said = processes.run(*everywhere, "--data", tmp_path / "other", *mutual).stderr
    assert "missing.pem" in said and "Others can reach" not in said


def test_listening_to_the_world_without_auth_is_warned_of() -> None:
    with processes.starting() as start:
        server = start("serve", "--host", "0.0.0.0", "--no-auth", "--port", "0", "--in-memory")
        assert "WARNING" in server.terminate()[1]
        server = start("serve", "--port", "0", "--in-memory")
        assert "WARNING" not in server.terminate()[1]


def test_policies_from_a_file_to_a_decision(tmp_path: Path) -> None:
    file = tmp_path / "readers.json"
    arn = "arn:aws:dynamodb:us-east-1:123456789012:table/Books"
    wanted = policy(
        statement(
            "dynamodb:GetItem",
            arn,
            Condition={"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": "${aws:username}"}},
            Sid="Own",
        ),
        statement("dynamodb:*", arn, "Deny", Condition={"Bool": {"aws:SecureTransport": "false"}}),
    )
    file.write_text(json.dumps(wanted, indent=2))
    data = tmp_path / "data"
    users(data, "add", "ann")
    assert policies(data, "put", "readers", file).returncode == 0
    assert policies(data, "attach", "readers", "--user", "ann").returncode == 0
    assert "readers (user ann)" in policies(data, "list").stdout
    assert json.loads(policies(data, "show", "readers").stdout) == wanted
    secure = ("--context", "aws:SecureTransport=true")
    explained = policies(
        data,
        *("explain", "ann", "dynamodb:GetItem", arn),
        *(*secure, "--context", "dynamodb:LeadingKeys=ann"),
    ).stdout
    assert f"user/ann may dynamodb:GetItem on {arn}." in explained
    assert "Allow, Sid Own (line 4) of readers" in explained
    explained = policies(
        data,
        "explain",
        "ann",
        "dynamodb:GetItem",
        arn,
        *secure,
        "--context",
        "dynamodb:LeadingKeys=x",
    ).stdout
    assert "may not" in explained
    assert "condition ForAllValues:StringEquals on dynamodb:leadingkeys does not hold" in explained
    simulated = json.loads(
        policies(
            data,
            *("simulate", "ann", "--action", "dynamodb:GetItem", "--action", "dynamodb:PutItem"),
            *("--resource", arn, "--context", "aws:SecureTransport=false"),
        ).stdout
    )
    assert [one["EvalDecision"] for one in simulated["EvaluationResults"]] == ["explicitDeny"] * 2
    assert simulated["EvaluationResults"][0]["MatchedStatements"] == [
        {
            "SourcePolicyId": "readers",
            "SourcePolicyType": "IAM Policy",
            "StartPosition": {"Line": 15},
        }
    ]
    in_use = policies(data, "delete", "readers")
    assert in_use.returncode == 1 and "user ann" in in_use.stderr
    assert policies(data, "detach", "readers", "--user", "ann").returncode == 0
    assert policies(data, "delete", "readers").returncode == 0


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "line 1: This is not JSON"),
        ('{"Statement": []}', "line 1: Statement is missing"),
        ('{\n"Statement": {\n"Effect": "Maybe"}}', "line 3: Effect is 'Allow' or 'Deny'"),
        (
            '{"Statement": [{"Effect": "Allow",\n"Action": ["dynamodb:GetItem",\n"GetItem"],\n'
            '"Resource": "*"}]}',
            "line 3: 'GetItem' is not an action",
        ),
    ],
)
def test_what_is_wrong_with_a_policy_is_told_with_its_line(
    tmp_path: Path, text: str, told: str
) -> None:
    file = tmp_path / "wrong.json"
    file.write_text(text)
    completed = policies(tmp_path, "put", "wrong", file)
    assert completed.returncode == 1
    assert told in completed.stderr and str(file) in completed.stderr
