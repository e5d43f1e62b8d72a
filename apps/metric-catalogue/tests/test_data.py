"""GetMetricData over HTTP: the same values in every mode.

Each test has metrics of its own names, because definitions are cached for some seconds and the
fixture clears the databases behind the server's back.
"""

from __future__ import annotations

from typing import Any

from .conftest import Api, Catalogue, Serve, hybrid, scalar

DAY1, DAY2, DAY3 = (f"2026-01-0{day}T00:00:00.000Z" for day in (1, 2, 3))


def at(day: str) -> str:
    return f"time={day}"


def test_a_stored_value_is_answered_digit_by_digit(api: Api) -> None:
    api.add_primitive("exact", "country")
    exact = "0.1000000000000000000000000000000000001"
    assert api.put_values("exact", {DAY1: exact, DAY2: 12}).body == {"stored": 2}
    answer = api("GET", f"/metrics/exact/data?{at(DAY1)}")
    assert answer.body == {
        "metric": "exact",
        "dimensions": {},
        "points": [{"time": DAY1, "value": exact, "version": 1}],
    }
    assert api.points("exact", at("2026-01-02")) == [(DAY2, "12")]


def test_a_value_that_is_missing_is_null_with_its_reason(api: Api) -> None:
    api.add_primitive("missing", "country")
    (point,) = api("GET", f"/metrics/missing/data?{at(DAY1)}").body["points"]
    assert point == {
        "time": DAY1,
        "value": None,
        "version": 1,
        "reason": "missing has no value at this time.",
    }
    assert api.points("missing", "start=2026-01-01&end=2026-02-01") == []


def test_dimensions_have_values_of_their_own(api: Api) -> None:
    api.add_primitive("by_country", "country", "carrier")
    api.put_values("by_country", {DAY1: 10})
    api.put_values("by_country", {DAY1: 4}, country="IT")
    api.put_values("by_country", {DAY1: 3}, country="IT", carrier="a|b,c=d é")
    assert api.points("by_country", at(DAY1)) == [(DAY1, "10")]
    assert api.points("by_country", f"{at(DAY1)}&dimension.country=IT") == [(DAY1, "4")]
    both = "dimension.carrier=a%7Cb%2Cc%3Dd%20%C3%A9&dimension.country=IT"
    assert api.points("by_country", f"{at(DAY1)}&{both}") == [(DAY1, "3")]
    answer = api("GET", f"/metrics/by_country/data?{at(DAY1)}&dimension.colour=red")
    assert (answer.status, answer.body["detail"]) == (400, "by_country has no dimension colour.")


def test_a_hybrid_metric_is_its_formula_over_exact_decimals(api: Api) -> None:
    for name, value in (("f1", "0.1"), ("f2", "0.2"), ("f3", "3")):
        api.add_primitive(name, "country")
        api.put_values(name, {DAY1: value})
    formulas = {
        "f1 + f2": "0.3",
        "f1 / f3 * f3": "0.1",
        "-(f1 - -f2) * 1e2": "-30",
        "f3 / f1 / f2": "150",
        "f3 - f2 - f1": "2.7",
        "1 / f3": "0." + "3" * 38,
        "2 / f3 - 0 * f1": "0." + "6" * 37 + "7",
    }
    for number, (formula, value) in enumerate(formulas.items()):
        api.add_hybrid(f"formula{number}", formula)
        assert api.points(f"formula{number}", at(DAY1)) == [(DAY1, value)], formula


def test_a_hybrid_metric_of_hybrid_metrics_is_computed_from_primitives(api: Api) -> None:
    api.add_primitive("leaf", "country")
    api.put_values("leaf", {DAY1: 7})
    api.add_hybrid("level0", "leaf + 1")
    for level in range(1, 30):
        api.add_hybrid(f"level{level}", f"level{level - 1} + leaf - level{level - 1} + 1")
    assert api.points("level29", at(DAY1)) == [(DAY1, "8")]


def test_no_value_and_division_by_zero_have_different_reasons(api: Api) -> None:
    api.add_primitive("late", "country")
    api.add_primitive("all", "country")
    api.add_hybrid("share", "100 * late / all")
    api.put_values("late", {DAY1: 5, DAY2: 5, DAY3: 5})
    api.put_values("all", {DAY1: 0, DAY2: 40})
    answer = api("GET", "/metrics/share/data?start=2026-01-01&end=2026-01-09")
    assert answer.body["points"] == [
        {
            "time": DAY1,
            "value": None,
            "version": 1,
            "reason": "The formula of share divides by zero.",
        },
        {"time": DAY2, "value": "12.5", "version": 1},
        {"time": DAY3, "value": None, "version": 1, "reason": "all has no value at this time."},
    ]


def test_the_formula_is_that_of_the_version_valid_at_the_time(api: Api) -> None:
    api.add_primitive("base", "country")
    future = "2999-01-01T00:00:00.000Z"
    api.put_values("base", {DAY1: 10, future: 10})
    api.add_hybrid("revised", "base * 2")
    api("PUT", "/metrics/revised", hybrid("base * 3"))
    answer = api("GET", "/metrics/revised/data?start=2026-01-01&end=3000-01-01").body["points"]
    assert [(p["time"], p["value"], p["version"]) for p in answer] == [
        (DAY1, "20", 1),
        (future, "30", 2),
    ]
    assert api.points("revised", at(DAY1)) == [(DAY1, "20")]
    assert api.points("revised", at(future)) == [(future, "30")]


def test_before_the_cutoff_date_values_are_those_of_the_chained_metric(api: Api) -> None:
    chain = {"chainedMetric": "old", "chainCutoffDate": "2026-01-02"}
    api.add_primitive("old", "country")
    api.add_primitive("new", "country", **chain)
    api.put_values("old", {DAY1: 1, DAY2: 2, DAY3: 3})
    api.put_values("new", {DAY1: 10, DAY2: 20, DAY3: 30})
    answer = api("GET", "/metrics/new/data?start=2026-01-01&end=2026-01-09").body["points"]
    assert answer == [
        {"time": DAY1, "value": "1", "version": 1, "metric": "old"},
        {"time": DAY2, "value": "20", "version": 1},
        {"time": DAY3, "value": "30", "version": 1},
    ]
    api.add_hybrid("doubled", "new * 2")
    assert [value for _, value in api.points("doubled", "start=2026-01-01&end=2026-01-09")] == [
        "2",
        "40",
        "60",
    ]
    # A period that includes the cutoff date has values of both metrics.
    assert api.points("new", "start=2026-01-01&end=2026-02-01&period=MONTH") == [(DAY1, "51")]


def test_a_period_is_aggregated_in_the_style_of_the_metric(api: Api) -> None:
    values = {DAY1: 10, DAY2: 20, "2026-01-03T12:00:00Z": 60, "2026-02-10": 5}
    month = "start=2026-01-01&end=2026-03-01&period=MONTH"
    feb = "2026-02-01T00:00:00.000Z"
    styles: dict[str, tuple[dict[str, Any], str]] = {
        "summed": ({}, "90"),
        "last": ({"aggregationStyle": "LAST_DAY_OF_PERIOD"}, "60"),
        "median": ({"aggregationStyle": "PERCENTILE"}, "20"),
        "p75": ({"aggregationStyle": "PERCENTILE", "aggregationParam": 75}, "40"),
    }
    for name, (attributes, expected) in styles.items():
        api.add_primitive(name, "country", **attributes)
        api.put_values(name, values)
        assert api.points(name, month) == [(DAY1, expected), (feb, "5")], name
    api.add_primitive("weighted", "country", valueType="WEIGHTED_AVERAGE")
    rows = [
        {"metric": "weighted", "time": DAY1, "value": "10", "weight": "3"},
        {"metric": "weighted", "time": DAY2, "value": "20", "weight": "1"},
    ]
    assert api("POST", "/metric-data", {"values": rows}).status == 201
    assert api.points("weighted", month) == [(DAY1, "12.5")]
    # The ratio of the sums, not a sum of ratios.
    api.add_hybrid("ratio", "summed / last")
    assert api.points("ratio", month) == [(DAY1, "1.5"), (feb, "1")]
    days = api.points("summed", "start=2026-01-01&end=2026-01-04&period=DAY")
    assert days == [(DAY1, "10"), (DAY2, "20"), (DAY3, "60")]
    assert api.points("summed", "start=2026-01-01&end=2027-01-01&period=ALL") == [(DAY1, "95")]


def test_a_batch_answers_each_query_in_its_place(api: Api) -> None:
    api.add_primitive("first", "country")
    api.put_values("first", {DAY1: 1})
    queries = [{"metric": name, "time": DAY1} for name in ("first", "nobody", "first")]
    queries.append({"metric": "first"})
    results = api("POST", "/metric-data/queries", {"queries": queries}).body["results"]
    assert results[0] == results[2]
    assert results[0]["points"] == [{"time": DAY1, "value": "1", "version": 1}]
    assert results[1] == {
        "metric": "nobody",
        "status": 404,
        "reason": "NotFound",
        "detail": "There is no metric nobody.",
    }
    assert results[3]["status"] == 400


def test_what_a_server_writes_it_answers_at_once(api: Api) -> None:
    api.add_primitive("fresh", "country")
    for value in range(5):
        api.put_values("fresh", {DAY1: value})
        assert api.points("fresh", at(DAY1)) == [(DAY1, str(value))]
    api.add_hybrid("fresh_twice", "fresh * 2")
    future = "2999-01-01T00:00:00.000Z"
    api.put_values("fresh", {future: 4})
    assert api.points("fresh_twice", at(future)) == [(future, "8")]
    api("PUT", "/metrics/fresh_twice", hybrid("fresh * 5"))
    assert api.points("fresh_twice", at(future)) == [(future, "20")]


def test_bad_requests_are_refused_in_a_sentence(api: Api) -> None:
    api.add_primitive("plain", "country")
    api.add_hybrid("mixed", "plain * 2")
    bad = (
        "",
        "time=yesterday",
        "time=2026-01-01&end=2026-01-02",
        "start=2026-01-02&end=2026-01-01",
        "start=2026-01-01&end=2026-01-02&period=DECADE",
        "time=2026-01-01&time=2026-01-02",
        "time=2026-01-01&colour=red",
    )
    for query in bad:
        answer = api("GET", f"/metrics/plain/data?{query}")
        assert answer.status == 400 and answer.body["detail"].endswith("."), query
    assert api("GET", f"/metrics/nobody/data?{at(DAY1)}").status == 404
    value = {"metric": "plain", "time": DAY1, "value": 1}
    for rows in (
        [{**value, "metric": "mixed"}],
        [{**value, "value": "NaN"}],
        [{**value, "value": "1e200"}],
        [{**value, "value": "1." + "1" * 40}],
        [{**value, "weight": 0}],
        [{**value, "dimensions": {"colour": "red"}}],
        [value, value],
        [],
        [value] * 501,
    ):
        assert api("POST", "/metric-data", {"values": rows}).status == 400, rows[:1]
    assert api("POST", "/metric-data", {"values": [{**value, "metric": "nobody"}]}).status == 404
    assert api.points("plain", at(DAY1)) == [(DAY1, None)]


def test_a_formula_with_a_number_beyond_all_bounds_is_refused(api: Api) -> None:
    api.add_primitive("bounded", "country")
    assert api.add_hybrid("huge", "bounded * 1e99999999999").status == 400
    assert api.add_hybrid("large", "bounded * 1e200").status == 201
    api.put_values("bounded", {DAY1: 1})
    (point,) = api("GET", f"/metrics/large/data?{at(DAY1)}").body["points"]
    assert point["reason"] == "The value of large is beyond the range of numbers."


def test_a_request_for_too_many_values_is_refused(serve: Serve) -> None:
    api = serve("dynamodb")
    api.add_primitive("dense", "country")
    for minute in range(0, 10_001, 500):
        times = (
            f"{one // 1440 + 1:02}T{one // 60 % 24:02}:{one % 60:02}"
            for one in range(minute, minute + 500)
        )
        assert api.put_values("dense", {f"2026-01-{time}": 1 for time in times}).status == 201
    assert len(api.points("dense", "start=2026-01-01&end=2026-01-07")) == 6 * 1440
    answer = api("GET", "/metrics/dense/data?start=2026-01-01&end=2026-01-09")
    assert (answer.status, "10,000 values" in answer.body["detail"]) == (400, True)


def test_a_value_carries_the_version_that_was_valid(serve: Serve, catalogue: Catalogue) -> None:
    api = serve("dynamodb")
    api.add_primitive("kept", "country")
    api("PUT", "/metrics/kept", scalar())
    api.put_values("kept", {DAY1: 1, "2999-01-01": 2}, country="IT")
    items = catalogue.partita.client().scan(TableName=f"{catalogue.name}-values")["Items"]
    assert sorted((item["place"]["S"], item["version"]["N"]) for item in items) == [
        (f"country=IT|{DAY1}", "1"),
        ("country=IT|2999-01-01T00:00:00.000Z", "2"),
    ]


def test_without_an_endpoint_values_are_unavailable(serve: Serve, catalogue: Catalogue) -> None:
    del catalogue.options["--endpoint"]
    api = serve("legacy")
    api.add_primitive("alone", "country")
    answer = api("GET", f"/metrics/alone/data?{at(DAY1)}")
    assert (answer.status, "--endpoint" in answer.body["detail"]) == (503, True)
