"""Functions that clients create: their configuration, code, versions and aliases."""

from __future__ import annotations

import base64
import hashlib
import json
import sys
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest
from botocore.exceptions import ClientError

from testkit.packaging.function_packages import ROLE, create, zipped

ECHO = """
def handler(event, context):
    version, memory = context.function_version, context.memory_limit_in_mb
    return {"event": event, "version": version, "memory": memory}
"""


def refused(call: Any, code: str, status: int, **request: Any) -> str:
    with pytest.raises(ClientError) as caught:
        call(**request)
    assert caught.value.response["Error"]["Code"] == code
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == status
    return str(caught.value.response["Error"]["Message"])


def payload(answer: Any) -> Any:
    return json.load(answer["Payload"])


def test_a_function_is_created_described_listed_and_deleted(functions: Any, name: str) -> None:
    package = zipped(app=ECHO)
    created = create(
        functions,
        name,
        ECHO,
        MemorySize=256,
        Environment={"Variables": {"COLOUR": "red"}},
        Tags={"t": "1"},
    )
    assert (created["State"], created["Version"], created["MemorySize"]) == (
        "Pending",
        "$LATEST",
        256,
    )
    functions.get_waiter("function_active_v2").wait(FunctionName=name)
    assert created["CodeSha256"] == base64.b64encode(hashlib.sha256(package).digest()).decode()
    got = functions.get_function(FunctionName=name)
    assert got["Configuration"]["State"] == "Active"
    assert got["Configuration"]["Environment"] == {"Variables": {"COLOUR": "red"}}
    assert got["Tags"] == {"t": "1"}
    with urlopen(got["Code"]["Location"]) as download:
        assert download.read() == package
    by_arn = functions.get_function_configuration(FunctionName=created["FunctionArn"])
    assert by_arn["FunctionName"] == name
    pages = functions.get_paginator("list_functions").paginate(PaginationConfig={"PageSize": 1})
    listed = [one["FunctionName"] for page in pages for one in page["Functions"]]
    assert name in listed
    assert "of-settings" in listed
    functions.delete_function(FunctionName=name)
    text = refused(functions.get_function, "ResourceNotFoundException", 404, FunctionName=name)
    assert text == f"Function not found: {created['FunctionArn']}"


def test_invoking_gives_the_result_the_version_and_the_log(functions: Any, name: str) -> None:
    create(functions, name, ECHO.replace("return", "print('said', event)\n    return"))
    answer = functions.invoke(FunctionName=name, Payload=b'{"a":\n1}', LogType="Tail")
    assert (answer["StatusCode"], answer["ExecutedVersion"]) == (200, "$LATEST")
    assert payload(answer) == {"event": {"a": 1}, "version": "$LATEST", "memory": "128"}
    log = base64.b64decode(answer["LogResult"]).decode()
    assert "said {'a': 1}\n" in log
    assert log.startswith("START RequestId: ")
    assert "\nREPORT RequestId: " in log
    assert "LogResult" not in functions.invoke(FunctionName=name)


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("def handler(event, context): raise KeyError('no')", "KeyError"),
        ("import os\ndef handler(event, context): os._exit(1)", "Runtime.ExitError"),
        ("import time\ndef handler(event, context): time.sleep(30)", "Sandbox.Timedout"),
        ("import no_such_module", "Runtime.ImportModuleError"),
        ("", "Runtime.HandlerNotFound"),
    ],
)
def test_errors_of_a_function_are_its_answer(
    functions: Any, name: str, source: str, error: str
) -> None:
    create(functions, name, source, Timeout=1)
    answer = functions.invoke(FunctionName=name)
    assert (answer["StatusCode"], answer["FunctionError"]) == (200, "Unhandled")
    assert payload(answer)["errorType"] == error


@pytest.mark.parametrize(
    ("end", "words"),
    [
        ("os._exit(3)", "Runtime exited with error: exit status 3"),
        ("os.kill(os.getpid(), 9)", "Runtime exited with error: signal: killed"),
        ("os._exit(0)", "Runtime exited without providing a reason"),
    ],
)
def test_the_end_of_a_process_is_told_in_lambdas_words(
    functions: Any, name: str, end: str, words: str
) -> None:
    create(functions, name, f"import os\ndef handler(event, context): {end}")
    message = payload(functions.invoke(FunctionName=name))["errorMessage"]
    assert message.partition("Error: ")[2] == words


def test_a_dry_run_runs_nothing(functions: Any, name: str, tmp_path: Path) -> None:
    create(functions, name, f"def handler(event, context): open('{tmp_path}/ran', 'w')")
    assert functions.invoke(FunctionName=name, InvocationType="DryRun")["StatusCode"] == 204
    assert not (tmp_path / "ran").exists()


def test_new_code_and_settings_count_from_the_next_call(functions: Any, name: str) -> None:
    create(functions, name, "def handler(event, context): return 1")
    assert payload(functions.invoke(FunctionName=name)) == 1
    code = zipped(app="import os\ndef handler(event, context): return os.environ['COLOUR']")
    updated = functions.update_function_code(FunctionName=name, ZipFile=code)
    assert updated["LastUpdateStatus"] == "InProgress"
    functions.update_function_configuration(
        FunctionName=name, Environment={"Variables": {"COLOUR": "green"}}, Description="painted"
    )
    functions.get_waiter("function_updated_v2").wait(FunctionName=name)
    assert payload(functions.invoke(FunctionName=name)) == "green"
    assert functions.get_function_configuration(FunctionName=name)["Description"] == "painted"


def test_a_change_of_another_revision_is_refused(functions: Any, name: str) -> None:
    create(functions, name, ECHO)
    refused(
        functions.update_function_configuration, "PreconditionFailedException", 412,
        FunctionName=name, RevisionId="other",
    )  # fmt: skip


def test_versions_stay_as_they_were_and_aliases_lead_to_them(functions: Any, name: str) -> None:
    create(functions, name, "def handler(event, context): return 'old'")
    first = functions.publish_version(FunctionName=name)
    assert (first["Version"], first["FunctionArn"].rpartition(":")[2]) == ("1", "1")
    assert functions.publish_version(FunctionName=name)["Version"] == "1", "nothing has changed"
    letters = {"TargetArn": "arn:aws:sqs:us-east-1:123456789012:dead-letters"}
    functions.update_function_configuration(FunctionName=name, DeadLetterConfig=letters)
    second = functions.publish_version(FunctionName=name)
    assert (second["Version"], second["DeadLetterConfig"]) == ("2", letters)
    functions.create_alias(FunctionName=name, Name="live", FunctionVersion="1")
    code = zipped(app="def handler(event, context): return 'new'")
    published = functions.update_function_code(FunctionName=name, ZipFile=code, Publish=True)
    assert published["Version"] == "3"
    answers = {}
    for qualifier in ("1", "3", "live", "$LATEST"):
        answer = functions.invoke(FunctionName=name, Qualifier=qualifier)
        answers[qualifier] = (payload(answer), answer["ExecutedVersion"])
    assert answers == {
        "1": ("old", "1"),
        "3": ("new", "3"),
        "live": ("old", "1"),
        "$LATEST": ("new", "$LATEST"),
    }
    functions.update_alias(FunctionName=name, Name="live", FunctionVersion="3")
    assert payload(functions.invoke(FunctionName=f"{name}:live")) == "new"
    functions.update_alias(
        FunctionName=name, Name="live", RoutingConfig={"AdditionalVersionWeights": {"1": 0.5}}
    )
    both = {payload(functions.invoke(FunctionName=name, Qualifier="live")) for _ in range(40)}
    assert both == {"old", "new"}
    listed = functions.list_versions_by_function(FunctionName=name)["Versions"]
    assert [one["Version"] for one in listed] == ["$LATEST", "1", "2", "3"]
    (alias,) = functions.list_aliases(FunctionName=name)["Aliases"]
    assert alias["RoutingConfig"] == {"AdditionalVersionWeights": {"1": 0.5}}
    refused(
        functions.delete_function,
        "ResourceConflictException",
        409,
        FunctionName=name,
        Qualifier="1",
    )
    functions.delete_alias(FunctionName=name, Name="live")
    functions.delete_function(FunctionName=name, Qualifier="1")
    refused(functions.invoke, "ResourceNotFoundException", 404, FunctionName=name, Qualifier="1")


def test_reserved_concurrency_refuses_one_call_more(functions: Any, name: str) -> None:
    create(functions, name, ECHO)
    functions.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=0)
    refused(functions.invoke, "TooManyRequestsException", 429, FunctionName=name)
    before = functions.get_account_settings()["AccountLimit"]["UnreservedConcurrentExecutions"]
    refused(
        functions.put_function_concurrency,
        "InvalidParameterValueException",
        400,
        FunctionName=name,
        ReservedConcurrentExecutions=before - 99,
    )
    functions.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=50)
    after = functions.get_account_settings()["AccountLimit"]["UnreservedConcurrentExecutions"]
    assert after == before - 50
    functions.delete_function_concurrency(FunctionName=name)
    assert functions.invoke(FunctionName=name)["StatusCode"] == 200


def test_functions_of_the_settings_are_there_and_are_changed_there(functions: Any) -> None:
    answer = functions.invoke(FunctionName="of-settings", Payload=b'{"a": 1}')
    assert payload(answer) == {"got": {"a": 1}, "name": "of-settings"}
    assert functions.get_function(FunctionName="of-settings")["Configuration"]["State"] == "Active"
    text = refused(
        functions.delete_function, "ResourceConflictException", 409, FunctionName="of-settings"
    )
    assert "settings" in text


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        ({"Runtime": "nodejs22.x"}, "InvalidParameterValueException", "nodejs22.x"),
        ({"Runtime": "cobol"}, "ValidationException", "runtime"),
        ({"Code": {"ZipFile": b"no zip"}}, "InvalidParameterValueException", "Could not unzip"),
        ({"Code": {"S3Bucket": "abc", "S3Key": "k"}}, "InvalidParameterValueException", "S3"),
        ({"Layers": ["arn:aws:lambda:us-east-1:123456789012:layer:l:1"]},
         "InvalidParameterValueException", "Layers"),
        ({"Environment": {"Variables": {"AWS_REGION": "x"}}},
         "InvalidParameterValueException", "reserved keys"),
        ({"Environment": {"Variables": {"LONG": "x" * 5000}}},
         "InvalidParameterValueException", "4KB"),
        ({"Timeout": 901}, "ValidationException", "timeout"),
        ({"MemorySize": 50_000}, "ValidationException", "memorySize"),
        ({"DeadLetterConfig": {"TargetArn": "arn:aws:sqs:us-east-1:123456789012:nowhere"}},
         "InvalidParameterValueException", "nowhere"),
    ],
)  # fmt: skip
def test_what_cannot_be_run_is_refused(
    functions: Any, name: str, change: Any, code: str, words: str
) -> None:
    asked = {
        "FunctionName": name,
        "Runtime": "python3.12",
        "Handler": "app.handler",
        "Role": ROLE,
        "Code": {"ZipFile": zipped(app=ECHO)},
        **change,
    }
    assert words in refused(functions.create_function, code, 400, **asked)


def test_a_name_is_taken_once(functions: Any, name: str) -> None:
    create(functions, name, ECHO)
    with pytest.raises(functions.exceptions.ResourceConflictException, match="already exist"):
        create(functions, name, ECHO)


def test_a_payload_that_is_not_json_is_refused(functions: Any, name: str) -> None:
    create(functions, name, ECHO)
    refused(
        functions.invoke, "InvalidRequestContentException", 400, FunctionName=name, Payload=b"{"
    )


def test_what_is_not_built_is_an_unknown_operation(functions: Any) -> None:
    refused(functions.list_layers, "UnknownOperationException", 404)


def test_uploads_are_refused_where_others_can_reach_the_server(serve: Any, name: str) -> None:
    server = serve("serve", "--host", "0.0.0.0", "--no-auth", "--port", "0", "--in-memory")
    server.url = f"http://127.0.0.1:{server.port}"
    with pytest.raises(ClientError) as caught:
        create(server.client("lambda"), name, ECHO)
    assert caught.value.response["Error"]["Code"] == "AccessDeniedException"
    assert "--allow-function-uploads" in caught.value.response["Error"]["Message"]


def test_uploaded_code_does_not_see_the_environment_of_the_server(
    functions: Any, name: str
) -> None:
    create(functions, name, "import os\ndef handler(event, context): return dict(os.environ)")
    seen = payload(functions.invoke(FunctionName=name))
    assert seen["AWS_LAMBDA_FUNCTION_NAME"] == name
    assert "PYTHONPATH" not in seen
    assert "PYTEST_CURRENT_TEST" not in seen


def test_modules_of_the_servers_folder_are_not_taken_for_its_own(
    serve: Any, name: str, tmp_path: Path
) -> None:
    (tmp_path / "msgspec.py").write_text("raise SystemExit('another msgspec')")
    program = (sys.executable, "-P", "-m", "partita.cli")
    server = serve("serve", "--port", "0", "--in-memory", cwd=tmp_path, command=program)
    functions = server.client("lambda")
    create(functions, name, ECHO)
    assert functions.invoke(FunctionName=name)["StatusCode"] == 200


def test_a_function_reaches_the_server_with_boto3(functions: Any, name: str) -> None:
    source = """
import boto3

def handler(event, context):
    return boto3.client("dynamodb").list_tables()["TableNames"]
"""
    create(functions, name, source)
    assert "partita-functions" in payload(functions.invoke(FunctionName=name))


def test_functions_survive_restarts_and_kills(serve: Any, name: str, tmp_path: Path) -> None:
    arguments = ("serve", "--port", "0", "--data", tmp_path / "data")
    server = serve(*arguments)
    client = server.client("lambda")
    create(client, name, "def handler(event, context): return 'still here'")
    client.publish_version(FunctionName=name)
    client.create_alias(FunctionName=name, Name="live", FunctionVersion="1")
    server.kill()
    client = serve(*arguments).client("lambda")
    assert payload(client.invoke(FunctionName=f"{name}:live")) == "still here"


def test_bytes_that_are_line_ends_to_some_are_none_in_a_header(functions: Any) -> None:
    address = urlsplit(functions.meta.endpoint_url)
    connection = HTTPConnection(str(address.hostname), address.port, timeout=30)
    signature = "AWS4-HMAC-SHA256 Credential=a/b, SignedHeaders=host, Signature=0"
    connection.putrequest("GET", "/2015-03-31/functions")
    connection.putheader("Authorization", signature)
    connection.putheader("X-Amz-Date", "20260101T000000Z")
    connection.putheader("X-Amz-Other", b"a\x85b")
    connection.endheaders()
    assert connection.getresponse().status == 200
    connection.close()
