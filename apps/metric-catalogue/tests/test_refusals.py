"""Errors name what clients need, and no details of the databases."""

from __future__ import annotations

from testkit.servers import processes

from .conftest import Api, Catalogue, Serve


def test_a_cutoff_date_without_a_chained_metric_cuts_nothing_off(
    catalogue: Catalogue, serve: Serve
) -> None:
    api = serve("legacy")
    api.add_primitive("m", "country")
    catalogue.mariadb.execute(
        "UPDATE metric_versions SET chain_cutoff_date = '2020-01-01'", catalogue.name
    )
    before = api("GET", "/metrics/m?date=2019-06-01")
    assert (before.status, before.body["name"]) == (200, "m")
    api.put_values("m", {"2019-06-01": "1", "2020-02-01": "2"})
    assert api.points("m", "time=2019-06-01") == [("2019-06-01T00:00:00.000Z", "1")]
    (all_of_it,) = api.points("m", "start=2019-01-01&end=2021-01-01&period=ALL")
    assert all_of_it[1] == "3"


def test_clients_do_not_learn_where_the_database_is(catalogue: Catalogue) -> None:
    mariadb = catalogue.mariadb
    grant = f"CREATE USER secret IDENTIFIED BY '{mariadb.password}'; GRANT ALL ON *.* TO secret"
    mariadb.execute(grant, catalogue.name)
    catalogue.options["--mysql"] = mariadb.url(catalogue.name, "secret")
    with processes.starting() as start:
        arguments = catalogue.arguments("serve", "--port", "0")
        server = start(*arguments, env=catalogue.environment)
        api = Api(server.url)
        mariadb.execute("DROP USER secret; KILL USER secret", catalogue.name)
        for method, path in (("GET", "/metrics/m"), ("GET", "/migration")):
            answer = api(method, path)
            assert (answer.status, answer.headers["retry-after"]) == (503, "1")
            assert answer.body["detail"] == (
                "A database of the catalogue does not answer: try again in a moment."
            )
            for hidden in ("secret", "mysql", str(mariadb.port), catalogue.name):
                assert hidden not in str(answer.body)
        api.close()
        _, said = server.terminate()
    assert f"mysql://secret@127.0.0.1:{mariadb.port}/{catalogue.name}" in said
