"""The catalogue on Oracle's MySQL: served, migrated, cut over and rolled back."""

from __future__ import annotations

from testkit.servers import processes
from testkit.servers.database_servers import MYSQL

from .conftest import Api, Catalogue, PrivateMariaDB


class PrivateMySQL(PrivateMariaDB):
    make = MYSQL


def test_a_catalogue_leaves_mysql_and_returns(partita: processes.Server) -> None:
    PrivateMySQL.require()
    with PrivateMySQL() as mysql, processes.starting() as start:
        catalogue = Catalogue(mysql, partita)
        environment = catalogue.environment
        serving = start(*catalogue.arguments("serve", "--port", "0"), env=environment, stderr=None)
        api = Api(serving.url)
        assert api.add_primitive("visits", "country").status == 201
        for command in ("migrate", "cutover"):
            done = processes.run(*catalogue.arguments(command), env=environment)
            assert done.returncode == 0, done.stderr
        assert api.add_primitive("orders", "country").status == 201
        done = processes.run(*catalogue.arguments("rollback"), env=environment)
        assert done.returncode == 0, done.stderr
        assert api("GET", "/metrics/orders").status == 200
        api.close()
        connection = mysql.connect(catalogue.name)
        cursor = connection.cursor()
        cursor.execute("SELECT name FROM metrics ORDER BY name")
        assert cursor.fetchall() == (("orders",), ("visits",))
        connection.close()
