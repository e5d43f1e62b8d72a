"""Well-known schemas, written anew with generated rows, and typical statements.

TPC-C's warehouses, a question-and-answer site, a human resources sample and an airline's bookings.
Each has a schema, rows from a seed, and patterns: a name, the statement, calls per second.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from testkit.data.shop import KINDS, literal

Rows = Iterator[tuple[str, tuple[Any, ...]]]


@dataclass(frozen=True)
class PublicSchema:
    schema: str
    rows: Callable[[], Rows]
    patterns: dict[str, str]

    def script(self, kind: str) -> str:
        lines = [self.schema.format(**KINDS[kind])]
        for table, values in self.rows():
            lines.append(f"INSERT INTO {table} VALUES ({', '.join(map(literal, values))});")
        return "\n".join(lines)


# TPC-C.

TPCC_SCHEMA = """
CREATE TABLE warehouse (w_id INT PRIMARY KEY, w_name {text} NOT NULL, w_ytd {money} NOT NULL);
CREATE TABLE district (
    d_w_id INT NOT NULL, d_id INT NOT NULL, d_name {text} NOT NULL, d_tax DECIMAL(4, 4) NOT NULL,
    d_next_o_id INT NOT NULL, PRIMARY KEY (d_w_id, d_id),
    FOREIGN KEY (d_w_id) REFERENCES warehouse (w_id)
);
CREATE TABLE customer (
    c_w_id INT NOT NULL, c_d_id INT NOT NULL, c_id INT NOT NULL, c_first {text} NOT NULL,
    c_last {text} NOT NULL, c_balance {money} NOT NULL, c_payment_cnt INT NOT NULL,
    PRIMARY KEY (c_w_id, c_d_id, c_id),
    FOREIGN KEY (c_w_id, c_d_id) REFERENCES district (d_w_id, d_id)
);
CREATE TABLE history (
    h_id {id}, h_c_id INT NOT NULL, h_c_d_id INT NOT NULL, h_c_w_id INT NOT NULL,
    h_date {moment} NOT NULL, h_amount {money} NOT NULL,
    FOREIGN KEY (h_c_w_id, h_c_d_id, h_c_id) REFERENCES customer (c_w_id, c_d_id, c_id)
);
CREATE TABLE orders (
    o_w_id INT NOT NULL, o_d_id INT NOT NULL, o_id INT NOT NULL, o_c_id INT NOT NULL,
    o_entry_d {moment} NOT NULL, o_carrier_id INT, o_ol_cnt INT NOT NULL,
    PRIMARY KEY (o_w_id, o_d_id, o_id),
    FOREIGN KEY (o_w_id, o_d_id, o_c_id) REFERENCES customer (c_w_id, c_d_id, c_id)
);
CREATE TABLE new_order (
    no_w_id INT NOT NULL, no_d_id INT NOT NULL, no_o_id INT NOT NULL,
    PRIMARY KEY (no_w_id, no_d_id, no_o_id),
    FOREIGN KEY (no_w_id, no_d_id, no_o_id) REFERENCES orders (o_w_id, o_d_id, o_id)
);
CREATE TABLE item (i_id INT PRIMARY KEY, i_name {text} NOT NULL, i_price {money} NOT NULL);
CREATE TABLE stock (
    s_w_id INT NOT NULL, s_i_id INT NOT NULL, s_quantity INT NOT NULL, s_ytd INT NOT NULL,
    PRIMARY KEY (s_w_id, s_i_id),
    FOREIGN KEY (s_w_id) REFERENCES warehouse (w_id), FOREIGN KEY (s_i_id) REFERENCES item (i_id)
);
CREATE TABLE order_line (
    ol_w_id INT NOT NULL, ol_d_id INT NOT NULL, ol_o_id INT NOT NULL, ol_number INT NOT NULL,
    ol_i_id INT NOT NULL, ol_delivery_d {moment}, ol_quantity INT NOT NULL,
    ol_amount {money} NOT NULL, PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number),
    FOREIGN KEY (ol_w_id, ol_d_id, ol_o_id) REFERENCES orders (o_w_id, o_d_id, o_id),
    FOREIGN KEY (ol_i_id) REFERENCES item (i_id)
);
"""
LAST_NAMES = ["BARBAR", "OUGHTPRI", "ABLECALLY", "ESEEING", "Ääkköset"]


def tpcc_rows() -> Rows:
    chance = random.Random(11)
    start = datetime(2026, 2, 26, 22)
    for warehouse in (1, 2, 10):
        yield "warehouse", (warehouse, f"W{warehouse}", round(chance.uniform(0, 9e4), 2))
    for item in range(1, 31):
        yield "item", (item, f"Item {item}", round(chance.uniform(1, 100), 2))
    for warehouse in (1, 2, 10):
        for item in range(1, 31):
            yield "stock", (warehouse, item, chance.randint(1, 99), 0)
        for district in range(1, 4):
            yield (
                "district",
                (warehouse, district, f"D{district}", chance.randint(0, 2000) / 10000, 31),
            )
            for customer in range(1, 13):
                name = LAST_NAMES[customer % 5]
                paid = (chance.randint(-5000, 5000) / 100, chance.randint(0, 9))
                yield (
                    "customer",
                    (warehouse, district, customer, f"F{customer:03}", name, *paid),
                )
                for _ in range(chance.randint(0, 2)):
                    at = start + timedelta(hours=chance.randint(0, 60))
                    number = len(HISTORY) + 1
                    HISTORY.append(number)
                    yield "history", (number, customer, district, warehouse, at, 10)
            for order in range(1, 31):
                at = start + timedelta(hours=order, minutes=chance.randint(0, 2))
                carrier = None if order > 24 else chance.randint(1, 10)
                count = chance.randint(1, 5)
                owner = chance.randint(1, 12)
                yield "orders", (warehouse, district, order, owner, at, carrier, count)
                if carrier is None:
                    yield "new_order", (warehouse, district, order)
                for line in range(1, count + 1):
                    sold = (chance.randint(1, 30), None if carrier is None else at)
                    amount = (chance.randint(1, 10), chance.randint(1, 99999) / 100)
                    yield "order_line", (warehouse, district, order, line, *sold, *amount)
    HISTORY.clear()


HISTORY: list[int] = []

TPCC_PATTERNS = {
    "customer by id": ("SELECT * FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?"),
    "customers by last name": (
        "SELECT * FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? ORDER BY c_first"
    ),
    "last order of a customer": (
        "SELECT o_id, o_carrier_id, o_entry_d FROM orders WHERE o_w_id = ? AND o_d_id = ?"
        " AND o_c_id = ? ORDER BY o_id DESC LIMIT 1"
    ),
    "lines of an order": (
        "SELECT * FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?"
    ),
    "oldest new order": (
        "SELECT no_o_id FROM new_order WHERE no_w_id = ? AND no_d_id = ? ORDER BY no_o_id LIMIT 1"
    ),
    "orders without a carrier": (
        "SELECT * FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_carrier_id IS NULL"
        " ORDER BY o_id"
    ),
    "all that wait": "SELECT * FROM orders WHERE o_carrier_id IS NULL ORDER BY o_entry_d",
    "stock level": ("SELECT COUNT(DISTINCT s_i_id) FROM stock WHERE s_w_id = ? AND s_quantity < ?"),
    "recent lines": (
        "SELECT ol_i_id, ol_quantity FROM order_line WHERE ol_w_id = ? AND ol_d_id = ?"
        " AND ol_o_id BETWEEN ? AND ?"
    ),
    "stock of items": (
        "SELECT s.s_quantity, i.i_name, i.i_price FROM stock s JOIN item i ON i.i_id = s.s_i_id"
        " WHERE s.s_w_id = ? AND s.s_i_id = ?"
    ),
    "warehouses": "SELECT * FROM warehouse ORDER BY w_id",
    "latest orders": "SELECT * FROM orders ORDER BY o_entry_d DESC LIMIT 10",
    "next order number": (
        "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = ? AND d_id = ?"
    ),
    "new order": (
        "INSERT INTO orders (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_ol_cnt)"
        " VALUES (?, ?, ?, ?, ?, ?)"
    ),
    "queue an order": "INSERT INTO new_order (no_w_id, no_d_id, no_o_id) VALUES (?, ?, ?)",
    "deliver": ("DELETE FROM new_order WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = ?"),
    "carrier": ("UPDATE orders SET o_carrier_id = ? WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?"),
    "take from stock": (
        "UPDATE stock SET s_quantity = s_quantity - ?, s_ytd = s_ytd + ?"
        " WHERE s_w_id = ? AND s_i_id = ?"
    ),
    "pay": (
        "UPDATE customer SET c_balance = c_balance - ?, c_payment_cnt = c_payment_cnt + 1"
        " WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?"
    ),
}

# Questions and answers.

QA_SCHEMA = """
CREATE TABLE users (
    id {id}, display_name {text} NOT NULL, email {insensitive} NOT NULL UNIQUE,
    reputation INT NOT NULL, created_at {moment} NOT NULL, about {text}
);
CREATE TABLE tags (id {id}, name {text} NOT NULL UNIQUE, uses INT NOT NULL);
CREATE TABLE posts (
    id {id}, kind {text} NOT NULL, parent_id INT, accepted_id INT, owner_id INT,
    title {text}, body {text} NOT NULL, score INT NOT NULL, created_at {moment} NOT NULL,
    closed_at {moment},
    FOREIGN KEY (owner_id) REFERENCES users (id) ON DELETE SET NULL
);
CREATE TABLE post_tags (
    post_id INT NOT NULL, tag_id INT NOT NULL, PRIMARY KEY (post_id, tag_id),
    FOREIGN KEY (post_id) REFERENCES posts (id) ON DELETE CASCADE,
    FOREIGN KEY (tag_id) REFERENCES tags (id)
);
CREATE TABLE comments (
    id {id}, post_id INT NOT NULL, user_id INT, score INT NOT NULL, body {text} NOT NULL,
    created_at {moment} NOT NULL,
    FOREIGN KEY (post_id) REFERENCES posts (id) ON DELETE CASCADE,
    FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE SET NULL
);
CREATE TABLE votes (
    id {id}, post_id INT NOT NULL, user_id INT NOT NULL, value INT NOT NULL, day DATE NOT NULL,
    UNIQUE (post_id, user_id),
    FOREIGN KEY (post_id) REFERENCES posts (id) ON DELETE CASCADE,
    FOREIGN KEY (user_id) REFERENCES users (id)
);
CREATE TABLE badges (
    id {id}, user_id INT NOT NULL, name {text} NOT NULL, day DATE NOT NULL,
    FOREIGN KEY (user_id) REFERENCES users (id)
);
"""


def qa_rows() -> Rows:
    chance = random.Random(23)
    start = datetime(2026, 1, 1)
    for user in range(1, 31):
        about = None if user % 3 else f"about # {user}"
        name = ["Ann", "ann", "Bo", "Çe", "Ōe"][user % 5]
        mail = f"{'U' if user % 2 else 'u'}{user}@example.org"
        created = start + timedelta(days=user)
        yield "users", (user, name, mail, chance.choice([1, 11, 101, -5]), created, about)
    for tag in range(1, 9):
        yield "tags", (tag, ["sql", "c#", "c++", "Go", "go", "r", "rust", "ö"][tag - 1], tag)
    for post in range(1, 121):
        is_question = post <= 40
        parent = None if is_question else chance.randint(1, 35)
        accepted = post + 40 if is_question and post % 2 else None
        owner = None if post % 11 == 0 else chance.randint(1, 28)
        title = f"Question {post}" if is_question else None
        created = start + timedelta(hours=5 * post, minutes=post % 3)
        closed = created + timedelta(days=3) if is_question and post % 4 == 0 else None
        kind = "question" if is_question else "answer"
        score = chance.randint(-3, 12)
        head = (post, kind, parent, accepted, owner, title)
        yield "posts", (*head, f"Body of {post}", score, created, closed)
    for post in range(1, 41):
        for tag in chance.sample(range(1, 8), chance.randint(0, 3)):
            yield "post_tags", (post, tag)
    for comment in range(1, 91):
        writer = None if comment % 9 == 0 else chance.randint(1, 28)
        at = start + timedelta(hours=7 * (comment % 50))
        post = 5 if comment % 3 == 0 else chance.randint(1, 110)
        yield "comments", (comment, post, writer, comment % 4, f"Comment {comment}", at)
    cast = {(chance.randint(1, 110), chance.randint(1, 28)) for _ in range(150)}
    for number, (post, user) in enumerate(sorted(cast), 1):
        day = date(2026, 2, 20) + timedelta(days=number % 15)
        yield "votes", (number, post, user, chance.choice([1, 1, -1]), day)
    for badge in range(1, 51):
        day = date(2026, 1, 1) + timedelta(days=badge % 20)
        yield "badges", (badge, chance.randint(1, 25), f"Badge {badge % 6}", day)


QA_PATTERNS = {
    "question": "SELECT * FROM posts WHERE id = ?",
    "answers": ("SELECT * FROM posts WHERE parent_id = ? ORDER BY score DESC, created_at"),
    "newest questions": (
        "SELECT id, title, score FROM posts WHERE kind = 'question'"
        " ORDER BY created_at DESC LIMIT 15"
    ),
    "open questions": (
        "SELECT id, title FROM posts WHERE kind = 'question' AND closed_at IS NULL"
        " ORDER BY created_at DESC LIMIT 10"
    ),
    "without an accepted answer": (
        "SELECT id FROM posts WHERE kind = 'question' AND accepted_id IS NULL"
    ),
    "questions of a tag": (
        "SELECT p.id, p.title FROM posts p JOIN post_tags pt ON pt.post_id = p.id"
        " JOIN tags t ON t.id = pt.tag_id WHERE t.name = ? ORDER BY p.created_at DESC LIMIT 10"
    ),
    "tags of a post": (
        "SELECT t.name FROM tags t JOIN post_tags pt ON pt.tag_id = t.id WHERE pt.post_id = ?"
    ),
    "tags": "SELECT * FROM tags ORDER BY name",
    "comments of a post": (
        "SELECT c.*, u.display_name FROM comments c LEFT JOIN users u ON u.id = c.user_id"
        " WHERE c.post_id = ? ORDER BY c.created_at, c.id"
    ),
    "log in": "SELECT id, display_name FROM users WHERE email = ?",
    "posts of a user": (
        "SELECT id, title, score FROM posts WHERE owner_id = ? ORDER BY created_at DESC LIMIT 20"
    ),
    "best posts of a user": (
        "SELECT id, score FROM posts WHERE owner_id = ? ORDER BY score DESC LIMIT 5"
    ),
    "vote of a user": "SELECT value FROM votes WHERE post_id = ? AND user_id = ?",
    "score": "SELECT SUM(value), COUNT(*) FROM votes WHERE post_id = ?",
    "votes of a day": "SELECT COUNT(*) FROM votes WHERE day = ?",
    "badges of a user": "SELECT name, day FROM badges WHERE user_id = ? ORDER BY day DESC, name",
    "top users": "SELECT id, display_name FROM users ORDER BY reputation DESC LIMIT 10",
    "by id or parent": "SELECT * FROM posts WHERE id = ? OR parent_id = ?",
    "user by lower mail": "SELECT id FROM users WHERE lower(display_name) = ?",
    "users who asked": (
        "SELECT id, display_name FROM users WHERE id IN"
        " (SELECT owner_id FROM posts WHERE kind = 'question')"
    ),
    "search": "SELECT id FROM posts WHERE body LIKE ?",
    "ask": (
        "INSERT INTO posts (kind, owner_id, title, body, score, created_at)"
        " VALUES ('question', ?, ?, ?, 0, ?)"
    ),
    "comment": (
        "INSERT INTO comments (post_id, user_id, score, body, created_at) VALUES (?, ?, 0, ?, ?)"
    ),
    "vote": "INSERT INTO votes (post_id, user_id, value, day) VALUES (?, ?, ?, ?)",
    "vote up": "UPDATE posts SET score = score + 1 WHERE id = ?",
    "close": "UPDATE posts SET closed_at = ? WHERE id = ?",
    "rename": "UPDATE users SET display_name = ? WHERE id = ?",
    "edit": "UPDATE posts SET title = ?, body = ? WHERE id = ?",
    "delete a post": "DELETE FROM posts WHERE id = ?",
    "delete a user": "DELETE FROM users WHERE id = ?",
    "tag": "INSERT INTO post_tags (post_id, tag_id) VALUES (?, ?)",
    "untag": "DELETE FROM post_tags WHERE post_id = ? AND tag_id = ?",
}

# Human resources.

HR_SCHEMA = """
CREATE TABLE regions (region_id INT PRIMARY KEY, region_name {text} NOT NULL);
CREATE TABLE countries (
    country_id CHAR(2) PRIMARY KEY, country_name {text} NOT NULL, region_id INT NOT NULL,
    FOREIGN KEY (region_id) REFERENCES regions (region_id)
);
CREATE TABLE locations (
    location_id INT PRIMARY KEY, street_address {text}, postal_code {text}, city {text} NOT NULL,
    country_id CHAR(2) NOT NULL,
    FOREIGN KEY (country_id) REFERENCES countries (country_id)
);
CREATE TABLE jobs (
    job_id {text} NOT NULL PRIMARY KEY, job_title {text} NOT NULL, min_salary INT, max_salary INT
);
CREATE TABLE departments (
    department_id INT PRIMARY KEY, department_name {text} NOT NULL, location_id INT,
    FOREIGN KEY (location_id) REFERENCES locations (location_id)
);
CREATE TABLE employees (
    employee_id INT PRIMARY KEY, first_name {text}, last_name {text} NOT NULL,
    email {insensitive} NOT NULL UNIQUE, hire_date DATE NOT NULL, left_on DATE,
    job_id {job} NOT NULL, salary {money} NOT NULL, commission_pct DECIMAL(2, 2),
    manager_id INT, department_id INT,
    FOREIGN KEY (job_id) REFERENCES jobs (job_id),
    FOREIGN KEY (manager_id) REFERENCES employees (employee_id),
    FOREIGN KEY (department_id) REFERENCES departments (department_id)
);
CREATE TABLE job_history (
    employee_id INT NOT NULL, start_date DATE NOT NULL, end_date DATE NOT NULL,
    job_id {job} NOT NULL, department_id INT,
    PRIMARY KEY (employee_id, start_date),
    FOREIGN KEY (employee_id) REFERENCES employees (employee_id),
    FOREIGN KEY (job_id) REFERENCES jobs (job_id),
    FOREIGN KEY (department_id) REFERENCES departments (department_id)
);
"""
HR_SCHEMA = HR_SCHEMA.replace("{job}", "{text}")


def hr_rows() -> Rows:
    chance = random.Random(31)
    for region, name in enumerate(["Europe", "Americas", "Asia", "Africa"], 1):
        yield "regions", (region, name)
    countries = [("DE", "Germany", 1), ("US", "United States", 2), ("JP", "Japan", 3)]
    for country in countries:
        yield "countries", country
    for number in range(1000, 2200, 100):
        code = None if number % 300 == 0 else f"{number:05}"
        city = ["Köln", "Seattle", "Tokyo"][number // 100 % 3]
        yield (
            "locations",
            (number, f"{number} Main St", code, city, countries[number // 100 % 3][0]),
        )
    jobs = ["AD_VP", "IT_PROG", "SA_REP", "ST_CLERK"]
    for number, job in enumerate(jobs):
        yield "jobs", (job, f"Title {job}", number * 1000 or None, 10000)
    for department in range(10, 120, 10):
        place = None if department == 50 else 1000 + department * 10
        yield "departments", (department, f"Department {department}", place)
    for number in range(100, 180):
        hired = date(2020, 12, 20) + timedelta(days=chance.randint(0, 900))
        left = None if number % 4 else hired + timedelta(days=200)
        first = None if number % 10 == 0 else f"First{number % 9}"
        salary = chance.choice([999.5, 24000, 10000, 800])
        bonus = None if number % 3 else chance.randint(1, 40) / 100
        boss = None if number == 100 else chance.randint(100, min(number - 1, 110))
        home = None if number == 178 else chance.randrange(10, 100, 10)
        mail = f"{'E' if number % 2 else 'e'}MP{number}"
        head = (number, first, f"Last{number % 13}", mail, hired, left)
        yield "employees", (*head, jobs[number % 4], salary, bonus, boss, home)
        for turn in range(number % 3):
            begin = date(2015, 1, 1) + timedelta(days=400 * turn + number % 7)
            past = (begin, begin + timedelta(days=300), jobs[turn], chance.randrange(10, 100, 10))
            yield "job_history", (number, *past)


HR_PATTERNS = {
    "employee": "SELECT * FROM employees WHERE employee_id = ?",
    "by mail": "SELECT employee_id, last_name FROM employees WHERE email = ?",
    "of a department": (
        "SELECT * FROM employees WHERE department_id = ? ORDER BY last_name, first_name"
    ),
    "best paid of a department": (
        "SELECT employee_id, salary FROM employees WHERE department_id = ?"
        " ORDER BY salary DESC LIMIT 3"
    ),
    "reports": "SELECT employee_id, last_name FROM employees WHERE manager_id = ?",
    "with department and job": (
        "SELECT e.last_name, d.department_name, j.job_title FROM employees e"
        " JOIN departments d ON d.department_id = e.department_id"
        " JOIN jobs j ON j.job_id = e.job_id WHERE e.employee_id = ?"
    ),
    "who has left": "SELECT * FROM employees WHERE left_on IS NOT NULL ORDER BY left_on",
    "who is here in a job": (
        "SELECT employee_id FROM employees WHERE job_id = ? AND left_on IS NULL"
    ),
    "history": "SELECT * FROM job_history WHERE employee_id = ? ORDER BY start_date DESC",
    "history of a department": (
        "SELECT employee_id, start_date FROM job_history WHERE department_id = ?"
        " AND start_date >= ?"
    ),
    "departments of a country": (
        "SELECT d.department_id, d.department_name, l.city FROM departments d"
        " JOIN locations l ON l.location_id = d.location_id WHERE l.country_id = ?"
    ),
    "regions": "SELECT region_id, region_name FROM regions ORDER BY region_name",
    "countries of a region": "SELECT * FROM countries WHERE region_id = ?",
    "payroll": (
        "SELECT department_id, SUM(salary), COUNT(*) FROM employees GROUP BY department_id"
    ),
    "newest": "SELECT employee_id, hire_date FROM employees ORDER BY hire_date DESC LIMIT 5",
    "by names": "SELECT employee_id FROM employees WHERE last_name = ? AND first_name = ?",
    "name begins": "SELECT employee_id FROM employees WHERE last_name LIKE 'Last1%'",
    "number of employees": "SELECT COUNT(*) FROM employees WHERE job_id = ?",
    "hire": (
        "INSERT INTO employees (employee_id, last_name, email, hire_date, job_id, salary,"
        " department_id) VALUES (?, ?, ?, ?, ?, ?, ?)"
    ),
    "raise": "UPDATE employees SET salary = salary + ? WHERE employee_id = ?",
    "move": "UPDATE employees SET department_id = ?, manager_id = ? WHERE employee_id = ?",
    "leave": "UPDATE employees SET left_on = ? WHERE employee_id = ?",
    "rename a department": "UPDATE departments SET department_name = ? WHERE department_id = ?",
    "close a department": "DELETE FROM departments WHERE department_id = ?",
    "change the mail": "UPDATE employees SET email = ? WHERE employee_id = ?",
}

# An airline.

AIRLINE_SCHEMA = """
CREATE TABLE airports (code CHAR(3) PRIMARY KEY, city {text} NOT NULL, zone {text} NOT NULL);
CREATE TABLE aircrafts (code CHAR(3) PRIMARY KEY, model {text} NOT NULL, reach INT NOT NULL);
CREATE TABLE seats (
    aircraft_code CHAR(3) NOT NULL, seat_no {text} NOT NULL, fare {text} NOT NULL,
    PRIMARY KEY (aircraft_code, seat_no),
    FOREIGN KEY (aircraft_code) REFERENCES aircrafts (code) ON DELETE CASCADE
);
CREATE TABLE flights (
    flight_id {id}, flight_no {text} NOT NULL, departs_at {moment} NOT NULL,
    departure CHAR(3) NOT NULL, arrival CHAR(3) NOT NULL, status {text} NOT NULL,
    aircraft_code CHAR(3) NOT NULL, left_at {moment},
    UNIQUE (flight_no, departs_at),
    FOREIGN KEY (departure) REFERENCES airports (code),
    FOREIGN KEY (arrival) REFERENCES airports (code),
    FOREIGN KEY (aircraft_code) REFERENCES aircrafts (code)
);
CREATE TABLE bookings (
    book_ref CHAR(6) PRIMARY KEY, booked_at {moment} NOT NULL, total {money} NOT NULL
);
CREATE TABLE tickets (
    ticket_no CHAR(13) PRIMARY KEY, book_ref CHAR(6) NOT NULL, passenger_id {text} NOT NULL,
    passenger_name {text} NOT NULL,
    FOREIGN KEY (book_ref) REFERENCES bookings (book_ref)
);
CREATE TABLE ticket_flights (
    ticket_no CHAR(13) NOT NULL, flight_id INT NOT NULL, fare {text} NOT NULL,
    amount {money} NOT NULL, PRIMARY KEY (ticket_no, flight_id),
    FOREIGN KEY (ticket_no) REFERENCES tickets (ticket_no),
    FOREIGN KEY (flight_id) REFERENCES flights (flight_id)
);
CREATE TABLE boarding_passes (
    ticket_no CHAR(13) NOT NULL, flight_id INT NOT NULL, boarding_no INT NOT NULL,
    seat_no {text} NOT NULL, PRIMARY KEY (ticket_no, flight_id),
    UNIQUE (flight_id, boarding_no), UNIQUE (flight_id, seat_no),
    FOREIGN KEY (ticket_no, flight_id) REFERENCES ticket_flights (ticket_no, flight_id)
);
"""
AIRLINE_SCHEMA = AIRLINE_SCHEMA.replace("seat_no {text} NOT NULL", "seat_no VARCHAR(4) NOT NULL")
AIRLINE_SCHEMA = AIRLINE_SCHEMA.replace("flight_no {text}", "flight_no CHAR(6)")
AIRPORTS = [("SVO", "Moscow"), ("LED", "Saint Petersburg"), ("KJA", "Красноярск"), ("OVB", "Obь")]


def airline_rows() -> Rows:
    chance = random.Random(43)
    start = datetime(2026, 7, 30, 20)
    for code, city in AIRPORTS:
        yield "airports", (code, city, "Europe/Moscow")
    for code in ("773", "SU9", "CN1"):
        yield "aircrafts", (code, f"Model {code}", chance.randint(1000, 11000))
        for row in range(1, 13):
            for letter in "AC":
                yield "seats", (code, f"{row}{letter}", "Business" if row < 3 else "Economy")
    for number in range(1, 61):
        departs = start + timedelta(hours=3 * number)
        left = departs + timedelta(minutes=number % 9) if number < 40 else None
        ends = chance.sample([code for code, _ in AIRPORTS], 2)
        status = "Arrived" if number < 40 else ["Scheduled", "On Time", "Delayed"][number % 3]
        plane = chance.choice(["773", "SU9"])
        yield (
            "flights",
            (number, f"PG{number % 12:04}", departs, *ends, status, plane, left),
        )
    boarded: dict[int, int] = {}
    for number in range(1, 51):
        at = start - timedelta(days=number % 9, minutes=number)
        yield "bookings", (f"{number * 7919:06X}", at, chance.randint(3000, 99999))
        for place in range(1 + number % 2):
            ticket = f"{5432000000 + number * 10 + place:013}"
            who = (f"{number % 17:04} {number:06}", f"PERSON {number % 17}")
            yield "tickets", (ticket, f"{number * 7919:06X}", *who)
            for flight in chance.sample(range(1, 56), 2):
                yield "ticket_flights", (ticket, flight, "Economy", chance.randint(30, 900) * 100)
                if flight < 40:
                    boarded[flight] = turn = boarded.get(flight, 0) + 1
                    yield "boarding_passes", (ticket, flight, turn, f"{turn}A")


AIRLINE_PATTERNS = {
    "booking": "SELECT * FROM bookings WHERE book_ref = ?",
    "tickets of a booking": "SELECT * FROM tickets WHERE book_ref = ?",
    "flights of a ticket": (
        "SELECT f.flight_no, f.departs_at, f.departure, f.arrival, t.fare FROM ticket_flights t"
        " JOIN flights f ON f.flight_id = t.flight_id WHERE t.ticket_no = ? ORDER BY f.departs_at"
    ),
    "departures": (
        "SELECT * FROM flights WHERE departure = ? AND departs_at >= ? ORDER BY departs_at LIMIT 5"
    ),
    "arrivals of a day": (
        "SELECT flight_no, departs_at FROM flights WHERE arrival = ? AND departs_at BETWEEN ? AND ?"
    ),
    "flight of a day": "SELECT * FROM flights WHERE flight_no = ? AND departs_at = ?",
    "delayed": "SELECT flight_id, flight_no FROM flights WHERE status = 'Delayed'",
    "not yet gone": "SELECT flight_id FROM flights WHERE left_at IS NULL ORDER BY departs_at",
    "passengers": (
        "SELECT p.seat_no, t.passenger_name FROM boarding_passes p"
        " JOIN tickets t ON t.ticket_no = p.ticket_no WHERE p.flight_id = ? ORDER BY p.boarding_no"
    ),
    "seats of a plane": "SELECT seat_no, fare FROM seats WHERE aircraft_code = ?",
    "seat taken": ("SELECT ticket_no FROM boarding_passes WHERE flight_id = ? AND seat_no = ?"),
    "airports": "SELECT * FROM airports",
    "income of a flight": "SELECT SUM(amount) FROM ticket_flights WHERE flight_id = ?",
    "latest bookings": "SELECT * FROM bookings ORDER BY booked_at DESC LIMIT 10",
    "between cities": (
        "SELECT f.flight_no, f.departs_at FROM flights f JOIN airports a ON a.code = f.departure"
        " WHERE a.city = ? AND f.departs_at > ? ORDER BY f.departs_at LIMIT 3"
    ),
    "book": "INSERT INTO bookings (book_ref, booked_at, total) VALUES (?, ?, ?)",
    "board": (
        "INSERT INTO boarding_passes (ticket_no, flight_id, boarding_no, seat_no)"
        " VALUES (?, ?, ?, ?)"
    ),
    "delay": "UPDATE flights SET status = 'Delayed', departs_at = ? WHERE flight_id = ?",
    "take off": "UPDATE flights SET status = 'Departed', left_at = ? WHERE flight_id = ?",
    "retire a plane": "DELETE FROM aircrafts WHERE code = ?",
    "cancel a ticket": "DELETE FROM ticket_flights WHERE ticket_no = ? AND flight_id = ?",
}

SCHEMAS = {
    "tpcc": PublicSchema(TPCC_SCHEMA, tpcc_rows, TPCC_PATTERNS),
    "questions": PublicSchema(QA_SCHEMA, qa_rows, QA_PATTERNS),
    "human resources": PublicSchema(HR_SCHEMA, hr_rows, HR_PATTERNS),
    "airline": PublicSchema(AIRLINE_SCHEMA, airline_rows, AIRLINE_PATTERNS),
}
