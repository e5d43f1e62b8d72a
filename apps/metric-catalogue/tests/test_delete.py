"""A metric can be deleted when no other depends on it, and leaves nothing behind."""

from __future__ import annotations

import subprocess
import threading

import pytest

from testkit.servers import processes

from .conftest import Api, Catalogue, Serve, hybrid, scalar

TIME = "time=2026-01-01"


@pytest.fixture(params=["legacy", "dynamodb"])
def deletable(request: pytest.FixtureRequest, serve: Serve) -> Api:
    return serve(request.param)


def test_nothing_is_left_of_a_deleted_metric(deletable: Api) -> None:
    api = deletable
    api.add_primitive("gone", "country")
    api("PUT", "/metrics/gone", scalar())
    api.put_values("gone", {"2026-01-01": 5})
    answer = api("DELETE", "/metrics/gone")
    assert (answer.status, answer.body) == (204, None)
    for path in ("", "/versions", "/versions/1", "/consumers", f"/data?{TIME}"):
        assert api("GET", f"/metrics/gone{path}").status == 404, path
    assert api("GET", "/metrics").body == {"metrics": []}
    assert api("DELETE", "/metrics/gone").status == 404
    # Its group is gone too, so a metric of the same name starts like any other.
    assert api("POST", "/metrics", {"name": "gone", **scalar()}).status == 400
    assert api.add_primitive("gone", "carrier").body["version"] == 1
    assert api.points("gone", TIME) == [("2026-01-01T00:00:00.000Z", None)]


def test_a_metric_that_others_depend_on_stays(deletable: Api) -> None:
    api = deletable
    for name in ("consumed", "chained"):
        api.add_primitive(name, "country")
    api.add_hybrid("consumer", "consumed * 2")
    chain = {"chainedMetric": "chained", "chainCutoffDate": "2026-01-01"}
    api.add_primitive("successor", "country", **chain)
    for name, reason in (
        ("consumed", "consumed is consumed by consumer: change or delete those first."),
        ("chained", "chained is chained by successor: change or delete those first."),
    ):
        api.put_values(name, {"2026-01-01": 5})
        answer = api("DELETE", f"/metrics/{name}")
        assert (answer.status, answer.body["detail"]) == (409, reason)
        assert api("GET", f"/metrics/{name}").status == 200
        assert api.points(name, TIME) == [("2026-01-01T00:00:00.000Z", "5")]
    assert api("DELETE", "/metrics/consumer").status == 204
    assert api("DELETE", "/metrics/successor").status == 204
    assert api("DELETE", "/metrics/consumed").status == 204
    assert api("DELETE", "/metrics/chained").status == 204


def test_a_deletion_can_depend_on_the_version(deletable: Api) -> None:
    api = deletable
    api.add_primitive("versioned", "country")
    api("PUT", "/metrics/versioned", scalar())
    assert api("DELETE", "/metrics/versioned", If_Match='"1"').status == 412
    assert api("DELETE", "/metrics/versioned", X_User="").status == 400
    assert api("DELETE", "/metrics/versioned", If_Match='"2"').status == 204


def test_a_metric_with_many_versions_is_deleted_whole(serve: Serve, catalogue: Catalogue) -> None:
    api = serve("dynamodb")
    api.add_primitive("many", "country")
    for _ in range(120):
        assert api("PUT", "/metrics/many", scalar()).status == 200
    assert api("DELETE", "/metrics/many").status == 204
    assert catalogue.partita.client().scan(TableName=catalogue.name)["Items"] == []


def test_of_a_deletion_and_a_new_reference_one_is_refused(deletable: Api) -> None:
    for number in range(8):
        base, consumer = f"base{number}", f"consumer{number}"
        deletable.add_primitive(base, "country")
        statuses: dict[str, int] = {}

        def send(method: str, path: str, body: object, statuses: dict[str, int] = statuses) -> None:
            api = Api(deletable.url)
            statuses[method] = api(method, path, body).status
            api.close()

        requests = (
            ("DELETE", f"/metrics/{base}", None),
            ("POST", "/metrics", {"name": consumer, **hybrid(f"{base} + 1")}),
        )
        threads = [threading.Thread(target=send, args=one) for one in requests]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        is_deleted = statuses["DELETE"] == 204
        assert (statuses["POST"] == 201) != is_deleted, statuses
        assert (deletable("GET", f"/metrics/{base}").status == 404) == is_deleted
        assert (deletable("GET", f"/metrics/{consumer}").status == 200) != is_deleted


def test_nothing_is_deleted_during_a_migration(serve: Serve) -> None:
    api = serve("migrating")
    api.add_primitive("moving", "country")
    assert api("DELETE", "/metrics/moving").status == 423
    assert api("GET", "/metrics/moving").status == 200


def test_a_rollback_does_not_bring_a_deleted_metric_back(
    serve: Serve, catalogue: Catalogue
) -> None:
    api = serve("legacy")
    for name in ("kept", "dropped"):
        api.add_primitive(name, "country")
    api.add_hybrid("sum", "kept + dropped")
    for command in ("migrate", "cutover"):
        assert run(catalogue, command).returncode == 0
    assert api("PUT", "/metrics/sum", hybrid("kept * 2")).status == 200
    assert api("DELETE", "/metrics/dropped").status == 204
    done = run(catalogue, "rollback")
    assert done.returncode == 0, done.stdout
    assert [one["name"] for one in api("GET", "/metrics").body["metrics"]] == ["kept", "sum"]


def run(catalogue: Catalogue, command: str) -> subprocess.CompletedProcess[str]:
    return processes.run(*catalogue.arguments(command), env=catalogue.environment)
