"""Tests that the report names what the statistics of a real server cannot tell."""

from __future__ import annotations

from partita_migrate.designing.model_stage import model
from partita_migrate.report.report_page import report
from partita_migrate.understanding.analyze_stage import analyze
from partita_migrate.understanding.plan_stage import plan
from partita_migrate.understanding.schema.inventory import read_inventory
from testkit.servers.database_servers import DatabaseServer

from ..conftest import MakeFolder

SCHEMA = """
CREATE EXTENSION pg_stat_statements;
CREATE TABLE customer (id INT PRIMARY KEY, name TEXT);
CREATE TABLE payment (id INT PRIMARY KEY, customer_id INT REFERENCES customer (id), paid DATE);
CREATE TABLE payment_old (LIKE payment INCLUDING ALL);
CREATE TABLE audit (id SERIAL PRIMARY KEY, payment_id INT);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN INSERT INTO audit (payment_id) VALUES (NEW.id); RETURN NEW; END $$;
CREATE TRIGGER noted AFTER UPDATE ON payment FOR EACH ROW EXECUTE FUNCTION note();
CREATE RULE old_payments AS ON INSERT TO payment WHERE NEW.paid < '2020-01-01'
    DO INSTEAD INSERT INTO payment_old VALUES (NEW.id, NEW.customer_id, NEW.paid);
SELECT pg_stat_statements_reset();
INSERT INTO customer SELECT n, 'x' FROM generate_series(1, 20) n;
"""


def test_what_mined_rates_do_not_tell(postgresql: DatabaseServer, make_folder: MakeFolder) -> None:
    url = postgresql.create("counted", SCHEMA)
    with postgresql.connect("counted") as connection:
        for n in range(1, 31):
            connection.execute(
                "INSERT INTO payment VALUES (%s, %s, %s)",
                (n, n % 20 + 1, f"20{10 + n % 15}-05-05"),
            )
        connection.execute("UPDATE payment SET paid = %s WHERE id = %s", ("2024-01-01", 11))
        connection.execute(
            "SELECT p.paid, c.name FROM payment p JOIN customer c ON c.id = p.customer_id"
            " WHERE p.id = %s", (11,),
        )  # fmt: skip
    folder = make_folder(url)
    plan(folder)
    (payment,) = (one for one in read_inventory(folder).tables if one.name == "payment")
    assert payment.rules == ["old_payments"]
    analyze(folder)
    model(folder)
    unknowns = report(folder).unknowns
    said = "\n".join(unknowns)
    assert "rules turn one statement into several" in said
    assert "This affects payment." in said
    assert "There are triggers on payment." in said
    assert "only read through joins" in said and "that join them): customer." in said
    assert "Inserts are estimated with a rate of 0" in said
    assert "filled the table: customer." in said
    assert "rules turn one statement into several" in (folder.path / "report.html").read_text()
