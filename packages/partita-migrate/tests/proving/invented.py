"""Three databases that no design was made for: a hospital, a festival and a warehouse.

Each uses the oddities of its server, and statements as object-relational mappers write them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta


@dataclass(frozen=True)
class Invented:
    dialect: str
    script: Callable[[], str]
    patterns: dict[str, str]
    unserved: dict[str, str]
    """With a word of the reason."""


def literal(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | float):
        return repr(value)
    text = str(value).replace("'", "''")
    return f"'{text}'"


def rows_of(table: str, rows: Sequence[tuple[object, ...]]) -> str:
    values = ",\n".join(f"({', '.join(map(literal, row))})" for row in rows)
    return f"INSERT INTO {table} VALUES\n{values};\n"


# A hospital on PostgreSQL.

HOSPITAL = """
CREATE TYPE triage AS ENUM ('red', 'orange', 'yellow', 'green');
CREATE TABLE ward (
    id SMALLINT PRIMARY KEY, name TEXT NOT NULL, parent_id SMALLINT REFERENCES ward (id),
    beds INT NOT NULL CHECK (beds > 0)
);
CREATE TABLE patient (
    id UUID PRIMARY KEY, mrn VARCHAR(12) NOT NULL UNIQUE, family_name TEXT NOT NULL,
    given_name TEXT NOT NULL, email TEXT, born DATE NOT NULL, is_organ_donor BOOLEAN,
    allergies TEXT[] NOT NULL DEFAULT '{}', contact JSONB,
    initials TEXT GENERATED ALWAYS AS (left(given_name, 1) || left(family_name, 1)) STORED
);
CREATE TABLE staff (
    badge INT PRIMARY KEY, login TEXT NOT NULL UNIQUE, full_name TEXT NOT NULL,
    reports_to INT REFERENCES staff (badge) ON DELETE SET NULL, hired TIMESTAMPTZ NOT NULL
);
CREATE TABLE admission (
    patient_id UUID NOT NULL REFERENCES patient (id) ON DELETE RESTRICT,
    seq SMALLINT NOT NULL, ward_id SMALLINT NOT NULL REFERENCES ward (id),
    urgency triage NOT NULL, admitted_at TIMESTAMPTZ NOT NULL, discharged_at TIMESTAMPTZ,
    attending INT REFERENCES staff (badge), deposit NUMERIC(9, 2) NOT NULL DEFAULT 0,
    PRIMARY KEY (patient_id, seq)
);
CREATE TABLE treatment (
    patient_id UUID NOT NULL, seq SMALLINT NOT NULL, staff_badge INT NOT NULL,
    performed_at TIMESTAMPTZ NOT NULL, minutes INT NOT NULL, note TEXT,
    PRIMARY KEY (patient_id, seq, staff_badge, performed_at),
    FOREIGN KEY (patient_id, seq) REFERENCES admission (patient_id, seq) ON DELETE CASCADE,
    FOREIGN KEY (staff_badge) REFERENCES staff (badge)
);
CREATE TABLE stock (
    ward_id SMALLINT NOT NULL REFERENCES ward (id), drug TEXT NOT NULL, doses INT NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL, PRIMARY KEY (ward_id, drug)
);
CREATE VIEW occupied AS
    SELECT ward_id, count(*) AS patients FROM admission WHERE discharged_at IS NULL
    GROUP BY ward_id;
"""


def hospital() -> str:
    chance = random.Random(21)
    wards = [(1, "Surgery", None, 20), (2, "Heart", 1, 8), (3, "Knee & Hip", 1, 6),
             (4, "Children's", None, 12)]  # fmt: skip
    names = ["Ávila", "Brown", "brown", "O'Hara", "Ünal", "Zhang", "Çelik", "Nguyễn"]
    patients = []
    for number in range(40):
        name = names[number % len(names)]
        mail = None if number % 5 == 0 else f"{name[0]}{number}@Mail.Example"
        allergies = "{}" if number % 3 else '{nuts,"cat hair"}'
        contact = None if number % 4 else '{"phone": "+49 30 12", "ok": true}'
        patients.append((
            f"00000000-0000-4000-8000-{number:012}", f"MRN-{number:05}", name, f"Given {number}",
            mail, date(1940, 1, 1) + timedelta(days=700 * number),
            (None, True, False)[number % 3], allergies, contact,
        ))  # fmt: skip
    start = datetime(2026, 3, 28, 22, 30, tzinfo=UTC)
    staff = [
        (7 + n, f"Login{n}" if n % 2 else f"login{n}", f"Dr {names[n % 8]}",
         None if n == 0 else 7 + n // 3, start - timedelta(days=90 * n))
        for n in range(12)
    ]  # fmt: skip
    admissions, treatments = [], []
    for number, patient in enumerate(patients):
        for seq in range(1, 2 + number % 4):
            at = start + timedelta(hours=7 * number, minutes=seq)
            left = None if (number + seq) % 3 == 0 else at + timedelta(days=seq)
            doctor = None if number % 6 == 0 else 7 + number % 12
            admissions.append((
                patient[0], seq, 1 + number % 4, ("red", "orange", "yellow", "green")[number % 4],
                at, left, doctor, round(chance.uniform(0, 900), 2),
            ))  # fmt: skip
            for step in range(number % 3):
                treatments.append((
                    patient[0], seq, 7 + (number + step) % 12, at + timedelta(hours=step),
                    15 * (step + 1), None if step else "first # look",
                ))  # fmt: skip
    stock = [
        (ward, drug, chance.randint(0, 99), start)
        for ward in (1, 2, 3, 4)
        for drug in ("Aspirin", "aspirin", "Ibuprofen 400 mg", "µ-Opioid")
    ]
    columns = "(id, mrn, family_name, given_name, email, born, is_organ_donor, allergies, contact)"
    return HOSPITAL + "".join((
        rows_of("ward", wards), rows_of(f"patient {columns}", patients), rows_of("staff", staff),
        rows_of("admission", admissions), rows_of("treatment", treatments),
        rows_of("stock", stock),
    ))  # fmt: skip


HOSPITAL_PATTERNS = {
    "patient by id": 'SELECT "patient"."id", "patient"."mrn", "patient"."family_name", '
    '"patient"."born" FROM "patient" WHERE "patient"."id" = %s LIMIT 21',
    "patient by record": "select p1_0.id, p1_0.family_name from patient p1_0 where p1_0.mrn = $1",
    "patient by mail, any case": 'SELECT "id", "email" FROM "patient" WHERE LOWER("email") = '
    "LOWER(%(email_1)s)",
    "patient by mail or record": "SELECT id, mrn FROM patient WHERE email = $1 OR mrn = $2",
    "is there a record": 'SELECT 1 AS "a" FROM "patient" WHERE "patient"."mrn" = %s LIMIT 1',
    "stays of a patient": "SELECT a.seq, a.ward_id, a.urgency, a.admitted_at FROM admission AS a "
    "WHERE a.patient_id = $1 ORDER BY a.admitted_at DESC LIMIT $2",
    "first stays": "SELECT seq, ward_id FROM admission WHERE patient_id = $1 ORDER BY seq "
    "FETCH FIRST 2 ROWS ONLY",
    "in a ward now": "SELECT patient_id, seq FROM admission WHERE ward_id = $1 AND discharged_at "
    "IS NULL ORDER BY admitted_at",
    "of an urgency": "SELECT patient_id, seq FROM admission WHERE ward_id = $1 AND urgency = $2",
    "urgent first": "SELECT patient_id, seq, urgency FROM admission WHERE ward_id = $1 "
    "ORDER BY urgency",
    "stays with the doctor": "SELECT a.seq, s.full_name FROM admission a LEFT JOIN staff s ON "
    "s.badge = a.attending WHERE a.patient_id = $1 ORDER BY a.seq",
    "next page of a ward": "SELECT patient_id, seq, admitted_at FROM admission WHERE ward_id = $1 "
    "AND (admitted_at < $2 OR (admitted_at = $3 AND seq < $4)) "
    "ORDER BY admitted_at DESC, seq DESC LIMIT 5",
    "treatments of a doctor": "SELECT patient_id, seq, performed_at, minutes FROM treatment WHERE "
    "staff_badge = $1 AND performed_at BETWEEN $2 AND $3 ORDER BY performed_at",
    "who reports to": "SELECT badge, full_name FROM staff WHERE reports_to = $1 ORDER BY badge",
    "wards above": "SELECT id, name FROM ward WHERE parent_id IS NULL ORDER BY id",
    "minutes of a stay": "SELECT sum(minutes) FROM treatment WHERE patient_id = $1 AND seq = $2",
    "patients of a doctor": "SELECT id FROM patient WHERE id IN (SELECT patient_id FROM admission "
    "WHERE attending = $1)",
    "admit": "INSERT INTO admission (patient_id, seq, ward_id, urgency, admitted_at, attending, "
    "deposit) VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING seq",
    "discharge": "UPDATE admission SET discharged_at = $1 WHERE patient_id = $2 AND seq = $3 "
    "AND discharged_at IS NULL",
    "register": "INSERT INTO patient (id, mrn, family_name, given_name, email, born) VALUES "
    "($1, $2, $3, $4, $5, $6)",
    "register again": "INSERT INTO patient (id, mrn, family_name, given_name, born, allergies, "
    "contact) VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (mrn) DO UPDATE SET allergies = "
    "EXCLUDED.allergies, contact = EXCLUDED.contact",
    "refill": "INSERT INTO stock (ward_id, drug, doses, updated_at) VALUES ($1, $2, $3, $4) ON "
    "CONFLICT (ward_id, drug) DO UPDATE SET doses = stock.doses + EXCLUDED.doses, "
    "updated_at = EXCLUDED.updated_at",
    "stock once": "INSERT INTO stock (ward_id, drug, doses, updated_at) VALUES ($1, $2, $3, $4) "
    "ON CONFLICT DO NOTHING",
    "use a dose": "UPDATE stock SET doses = doses - 1, updated_at = $1 WHERE ward_id = $2 AND "
    "drug = $3 AND doses > 0",
    "remove a patient": "DELETE FROM patient WHERE id = $1",
    "cancel a stay": "DELETE FROM admission WHERE patient_id = $1 AND seq = $2",
    "new boss": "UPDATE staff SET reports_to = $1 WHERE badge = $2",
    "rename a ward": "UPDATE ward SET name = $1 WHERE id = $2",
}

# A festival on MariaDB.

FESTIVAL = """
CREATE TABLE stage (
    code CHAR(3) CHARACTER SET ascii COLLATE ascii_bin PRIMARY KEY,
    title VARCHAR(80) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci NOT NULL,
    capacity INT UNSIGNED NOT NULL
);
CREATE TABLE band (
    id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY,
    name VARCHAR(120) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci NOT NULL,
    country CHAR(2) NOT NULL, fee DECIMAL(12, 2) NOT NULL,
    genre SET('rock', 'folk', 'jazz', 'noise'),
    biography MEDIUMTEXT, UNIQUE KEY band_name (name)
);
CREATE TABLE gig (
    stage_code CHAR(3) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, begins DATETIME(3) NOT NULL,
    band_id BIGINT UNSIGNED NOT NULL, length TIME NOT NULL,
    status ENUM('planned', 'confirmed', 'played', 'cancelled') NOT NULL DEFAULT 'planned',
    PRIMARY KEY (stage_code, begins),
    CONSTRAINT gig_stage FOREIGN KEY (stage_code) REFERENCES stage (code),
    CONSTRAINT gig_band FOREIGN KEY (band_id) REFERENCES band (id) ON DELETE CASCADE
);
CREATE TABLE visitor (
    id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY,
    email VARCHAR(190) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci NOT NULL UNIQUE,
    nick VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, born YEAR,
    invited_by INT UNSIGNED, joined TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    FOREIGN KEY (invited_by) REFERENCES visitor (id) ON DELETE SET NULL
);
CREATE TABLE favourite (
    visitor_id INT UNSIGNED NOT NULL, band_id BIGINT UNSIGNED NOT NULL, stars TINYINT NOT NULL,
    remark VARCHAR(200), PRIMARY KEY (visitor_id, band_id),
    FOREIGN KEY (visitor_id) REFERENCES visitor (id) ON DELETE CASCADE,
    FOREIGN KEY (band_id) REFERENCES band (id)
);
CREATE TABLE ticket (
    serial BINARY(8) PRIMARY KEY, visitor_id INT UNSIGNED, price DECIMAL(7, 2) NOT NULL,
    kind ENUM('day', 'weekend', 'crew') NOT NULL, sold_at DATETIME NOT NULL,
    scanned BIT(1) NOT NULL,
    FOREIGN KEY (visitor_id) REFERENCES visitor (id)
);
"""

BANDS = ["Mötley Cröw", "ABBA'", "Sigur", "Ĳsbreker", "The %s", "Zoë", "élan", "Ok Go"]


def festival() -> str:
    chance = random.Random(22)
    stages = [("MAI", "Große Bühne", 20000), ("TEN", "Zelt", 3000), ("cav", "Höhle", 150)]
    bands = [
        (n, f"{name} {n}" if n > 8 else name, ("DE", "SE", "MX")[n % 3],
         round(chance.uniform(100, 90000), 2), (None, "rock", "rock,noise", "folk")[n % 4],
         None if n % 2 else "Long # story ...")
        for n, name in enumerate([*BANDS, *["X"] * 22], 1)
    ]  # fmt: skip
    start = datetime(2026, 7, 3, 12)
    gigs = [
        (stages[n % 3][0], f"{start + timedelta(minutes=45 * n)}.250", 1 + n % 29, "01:15:00",
         ("planned", "confirmed", "played", "cancelled")[n % 4])
        for n in range(70)
    ]  # fmt: skip
    visitors = [
        (n, f"Vi{'É' if n % 7 == 0 else 'e'}w{n}@Fest.example", None if n % 4 == 0 else f"nick{n}",
         None if n % 9 == 0 else 1970 + n % 40, None if n < 4 else 1 + n // 4,
         start - timedelta(days=n))
        for n in range(1, 61)
    ]  # fmt: skip
    favourites = [
        (v, b, 1 + (v + b) % 5, None if (v + b) % 2 else "so good")
        for v in range(1, 61)
        for b in {1 + v % 30, 1 + (v * 7) % 30, 3}
    ]
    tickets = "".join(
        f"INSERT INTO ticket VALUES (UNHEX('{n:016X}'),"
        f" {literal(None if n % 8 == 0 else 1 + n % 60)},"
        f" {20 + n % 7}.50, '{('day', 'weekend', 'crew')[n % 3]}',"
        f" '{start - timedelta(hours=n)}', b'{n % 2}');\n"
        for n in range(1, 121)
    )
    return FESTIVAL + "".join((
        rows_of("stage", stages), rows_of("band", bands), rows_of("gig", gigs),
        rows_of("visitor", visitors), rows_of("favourite", favourites), tickets,
    ))  # fmt: skip


FESTIVAL_PATTERNS = {
    "band by id": "SELECT `bands`.* FROM `band` AS `bands` WHERE `bands`.`id` = ? LIMIT 1",
    "band by name": "SELECT b.id, b.name FROM band b WHERE b.name = ?",
    "band by lower name": "SELECT id, name FROM band WHERE LOWER(name) = LOWER(?)",
    "nick in upper case": "SELECT id, nick FROM visitor WHERE UPPER(nick) = ?",
    "visitor by mail": "SELECT `visitor`.`id`, `visitor`.`email` FROM `visitor` WHERE "
    "`visitor`.`email` = ? ORDER BY `visitor`.`id` ASC LIMIT 1",
    "visitor by mail or nick": "SELECT id FROM visitor WHERE email = ? OR nick = ?",
    "programme of a stage": "SELECT begins, band_id, status FROM gig WHERE stage_code = ? AND "
    "begins >= ? AND begins < ? ORDER BY begins",
    "programme with names": "SELECT g.begins, g.length, b.name FROM gig g INNER JOIN band b ON "
    "b.id = g.band_id WHERE g.stage_code = ? ORDER BY g.begins LIMIT 10",
    "gigs of a band": "SELECT stage_code, begins FROM gig WHERE band_id = ? ORDER BY begins DESC",
    "confirmed gigs": "SELECT stage_code, begins, band_id FROM gig WHERE status = 'confirmed' "
    "ORDER BY begins",
    "gigs by status": "SELECT stage_code, begins, status FROM gig WHERE band_id = ? "
    "ORDER BY status",
    "favourites of a visitor": "SELECT f.band_id, f.stars, b.name FROM favourite f JOIN band b ON "
    "f.band_id = b.id WHERE f.visitor_id = ? ORDER BY f.stars DESC",
    "fans of a band": "SELECT v.id, v.nick, f.stars FROM favourite f JOIN visitor v ON "
    "v.id = f.visitor_id WHERE f.band_id = ? AND f.stars >= ?",
    "invited by": "SELECT id, email FROM visitor WHERE invited_by = ? ORDER BY joined DESC LIMIT 3",
    "ticket": "SELECT visitor_id, price, kind FROM ticket WHERE serial = ?",
    "tickets of a visitor": "SELECT serial, price FROM ticket WHERE visitor_id = ? "
    "ORDER BY sold_at",
    "stars of a band": "SELECT AVG(stars), COUNT(*) FROM favourite WHERE band_id = ?",
    "fans who came": "SELECT v.id FROM visitor v WHERE EXISTS (SELECT 1 FROM ticket t WHERE "
    "t.visitor_id = v.id) AND v.invited_by = ?",
    "countries": "SELECT DISTINCT country FROM band",
    "like": "INSERT INTO favourite (visitor_id, band_id, stars, remark) VALUES (?, ?, ?, ?) "
    "ON DUPLICATE KEY UPDATE stars = VALUES(stars), remark = VALUES(remark)",
    "like once": "INSERT IGNORE INTO favourite (visitor_id, band_id, stars) VALUES (?, ?, ?)",
    "reschedule": "REPLACE INTO gig (stage_code, begins, band_id, length, status) "
    "VALUES (?, ?, ?, ?, ?)",
    "join": "INSERT INTO `visitor` (`email`, `nick`, `born`, `invited_by`) VALUES (?, ?, ?, ?)",
    "genres": "UPDATE band SET genre = ? WHERE id = ?",
    "cancel": "UPDATE gig SET status = 'cancelled' WHERE stage_code = ? AND begins = ?",
    "rename a band": "UPDATE band SET name = ? WHERE id = ?",
    "raise": "UPDATE band SET fee = fee + ? WHERE id = ?",
    "drop a stage": "DELETE FROM stage WHERE code = ?",
    "unlike": "DELETE FROM favourite WHERE visitor_id = ? AND band_id = ?",
    "scan": "UPDATE ticket SET scanned = b'1' WHERE serial = ?",
}

# A warehouse on SQLite.

WAREHOUSE = """
CREATE TABLE category (
    id INTEGER PRIMARY KEY, name TEXT COLLATE NOCASE NOT NULL UNIQUE,
    parent REFERENCES category (id)
);
CREATE TABLE article (
    sku TEXT PRIMARY KEY, title NOT NULL, category_id INTEGER REFERENCES category (id),
    weight_kg REAL, price MONEY NOT NULL, discontinued BOOLEAN NOT NULL DEFAULT 0, photo BLOB,
    attributes JSON
) WITHOUT ROWID;
CREATE TABLE bin (
    aisle TEXT NOT NULL, shelf INTEGER NOT NULL, slot INTEGER NOT NULL, sku TEXT REFERENCES article,
    quantity INTEGER NOT NULL DEFAULT 0, counted_on DATE, PRIMARY KEY (aisle, shelf, slot)
);
CREATE TABLE movement (
    id INTEGER PRIMARY KEY AUTOINCREMENT, sku TEXT NOT NULL REFERENCES article (sku),
    from_aisle TEXT, from_shelf INTEGER, from_slot INTEGER, to_aisle TEXT, to_shelf INTEGER,
    to_slot INTEGER, quantity INTEGER NOT NULL, moved_at TIMESTAMP NOT NULL, by_user TEXT,
    FOREIGN KEY (from_aisle, from_shelf, from_slot) REFERENCES bin (aisle, shelf, slot),
    FOREIGN KEY (to_aisle, to_shelf, to_slot) REFERENCES bin (aisle, shelf, slot)
);
CREATE TABLE supplier (id INTEGER PRIMARY KEY, name TEXT NOT NULL, vat TEXT UNIQUE);
CREATE TABLE offer (
    supplier_id INTEGER NOT NULL REFERENCES supplier (id) ON DELETE CASCADE,
    sku TEXT NOT NULL REFERENCES article (sku), cents INTEGER NOT NULL, days INTEGER,
    PRIMARY KEY (supplier_id, sku)
);
CREATE VIEW cheap AS SELECT sku, min(cents) AS cents FROM offer GROUP BY sku;
"""


def warehouse() -> str:
    chance = random.Random(23)
    categories = [(1, "Tools", None), (2, "hammers", 1), (3, "Saws", 1), (4, "Ölfarben", None)]
    articles = [
        (f"{'A' if n % 2 else 'a'}-{n}", f"Thing {n} ½" if n % 5 == 0 else f"Thing {n}",
         None if n % 6 == 0 else 1 + n % 4, None if n % 4 == 0 else n * 0.125,
         round(chance.uniform(1, 500), 2), n % 7 == 0, None, '{"colour": "red"}' if n % 3 else None)
        for n in range(1, 51)
    ]  # fmt: skip
    bins = [
        (aisle, shelf, slot,
         None if (shelf + slot) % 5 == 0 else articles[(shelf * 7 + slot) % 50][0],
         chance.randint(0, 40), None if slot % 3 else date(2026, 1, 1 + shelf))
        for aisle in ("A", "B", "Z#1")
        for shelf in range(1, 11)
        for slot in range(1, 4)
    ]  # fmt: skip
    moved = datetime(2026, 2, 27, 23, 58)
    movements = []
    for n in range(1, 201):
        source = bins[n % len(bins)][:3] if n % 5 else (None, None, None)
        target = bins[(n * 3) % len(bins)][:3] if n % 7 else (None, None, None)
        at = moved + timedelta(minutes=37 * (n // 2))
        user = None if n % 9 == 0 else f"user{n % 4}"
        movements.append((n, articles[n % 50][0], *source, *target, n % 13 - 3, at, user))
    suppliers = [(n, f"Firma {n}", None if n % 3 == 0 else f"DE{n:09}") for n in range(1, 9)]
    offers = [
        (s, articles[(s * 5 + n) % 50][0], 100 * n + s, None if n % 2 else n)
        for s in range(1, 9)
        for n in range(12)
    ]
    return WAREHOUSE + "".join((
        rows_of("category", categories), rows_of("article", articles), rows_of("bin", bins),
        rows_of("movement", movements), rows_of("supplier", suppliers), rows_of("offer", offers),
    ))  # fmt: skip


WAREHOUSE_PATTERNS = {
    "article": "SELECT article.sku AS article_sku, article.title AS article_title, article.price "
    "AS article_price FROM article WHERE article.sku = :sku_1",
    "article, any case": "SELECT sku, title FROM article WHERE lower(sku) = ?",
    "category by name": "SELECT id FROM category WHERE name = ?",
    "articles of a category": "SELECT sku, price FROM article WHERE category_id = ? AND NOT "
    "discontinued ORDER BY price DESC LIMIT 10",
    "below a category": "SELECT id, name FROM category WHERE parent = ? ORDER BY name",
    "uncategorised": "SELECT sku FROM article WHERE category_id IS NULL",
    "bin": "SELECT sku, quantity FROM bin WHERE aisle = ? AND shelf = ? AND slot = ?",
    "shelf": "SELECT slot, sku, quantity FROM bin WHERE aisle = ? AND shelf = ? ORDER BY slot",
    "empty bins": "SELECT aisle, shelf, slot FROM bin WHERE sku IS NULL AND aisle = ?",
    "where is it": "SELECT aisle, shelf, slot, quantity FROM bin WHERE sku = ? AND quantity > 0",
    "movements of an article": "SELECT id, quantity, moved_at FROM movement WHERE sku = ? AND "
    "moved_at >= ? ORDER BY moved_at, id",
    "in or out of a bin": "SELECT id, quantity FROM movement WHERE (from_aisle = ? AND from_shelf "
    "= ? AND from_slot = ?) OR (to_aisle = ? AND to_shelf = ? AND to_slot = ?) "
    "ORDER BY moved_at DESC LIMIT 5",
    "latest movements": "SELECT id, sku, moved_at FROM movement ORDER BY moved_at DESC LIMIT 20",
    "moved by": "SELECT id FROM movement WHERE by_user = ? OR by_user IS NULL",
    "offers for an article": "SELECT s.name, o.cents, o.days FROM offer o JOIN supplier s ON "
    "s.id = o.supplier_id WHERE o.sku = ? ORDER BY o.cents LIMIT 3",
    "supplier by number": "SELECT id, name FROM supplier WHERE vat = ?",
    "never offered": "SELECT sku FROM article a WHERE NOT EXISTS (SELECT 1 FROM offer o WHERE "
    "o.sku = a.sku)",
    "stock of an article": "SELECT SUM(quantity) FROM bin WHERE sku = ?",
    "describe": "UPDATE article SET attributes = ? WHERE sku = ?",
    "put away": "INSERT INTO bin (aisle, shelf, slot, sku, quantity) VALUES (?, ?, ?, ?, ?) ON "
    "CONFLICT (aisle, shelf, slot) DO UPDATE SET sku = excluded.sku, quantity = quantity + "
    "excluded.quantity",
    "offer": "INSERT OR REPLACE INTO offer (supplier_id, sku, cents, days) VALUES (?, ?, ?, ?)",
    "known supplier": "INSERT OR IGNORE INTO supplier (id, name, vat) VALUES (?, ?, ?)",
    "move": "INSERT INTO movement (sku, from_aisle, from_shelf, from_slot, quantity, moved_at) "
    "VALUES (?, ?, ?, ?, ?, ?)",
    "take": "UPDATE bin SET quantity = quantity - ? WHERE aisle = ? AND shelf = ? AND slot = ?",
    "count": "UPDATE bin SET counted_on = ? WHERE aisle = ? AND shelf = ?",
    "reprice": "UPDATE article SET price = ? WHERE sku = ?",
    "retire": "UPDATE article SET discontinued = 1 WHERE category_id = ?",
    "drop a supplier": "DELETE FROM supplier WHERE id = ?",
    "empty a bin": "UPDATE bin SET sku = NULL, quantity = 0 WHERE aisle = ? AND shelf = ? AND "
    "slot = ?",
}

INVENTED = {
    "hospital": Invented(
        "postgresql",
        hospital,
        HOSPITAL_PATTERNS,
        {"urgent first": "that its type declares", "patients of a doctor": "a SELECT inside"},
    ),
    "festival": Invented(
        "mariadb",
        festival,
        FESTIVAL_PATTERNS,
        {"gigs by status": "that its type declares", "fans who came": "rows of another table"},
    ),
    "warehouse": Invented(
        "sqlite",
        warehouse,
        WAREHOUSE_PATTERNS,
        {},
    ),
}
