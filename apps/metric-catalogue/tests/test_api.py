"""The HTTP API: the same answers in every mode."""

from __future__ import annotations

from .conftest import Api, hybrid, scalar


def test_a_primitive_metric_has_the_dimensions_of_its_group(api: Api) -> None:
    answer = api.add_primitive("deliveries", "country", "carrier", aggregationParam=95)
    assert (answer.status, answer.headers["etag"]) == (201, '"1"')
    assert answer.headers["location"] == "/metrics/deliveries"
    metric = api("GET", "/metrics/deliveries").body
    assert metric == answer.body
    times = {name: metric.pop(name) for name in ("createdAt", "updatedAt")}
    assert times["createdAt"] == times["updatedAt"]
    assert metric == {
        "name": "deliveries",
        "version": 1,
        "latestVersion": 1,
        "createdBy": "mrcandre",
        "updatedBy": "mrcandre",
        "valueType": "SCALAR",
        "aggregationStyle": "SUM",
        "aggregationParam": 95,
        "relatedDimensions": ["carrier", "country"],
    }


def test_a_hybrid_metric_consumes_what_its_formula_names(api: Api) -> None:
    api.add_primitive("late", "country")
    api.add_primitive("all", "country")
    answer = api.add_hybrid("share.late", "100 * late / (all + 0.5) - late")
    assert answer.status == 201
    metric = api("GET", "/metrics/share.late").body
    assert metric["consumedMetrics"] == ["all", "late"]
    assert "relatedDimensions" not in metric
    assert api("GET", "/metrics/late/consumers").body == {"consumers": ["share.late"]}
    assert api("GET", "/metrics/share.late/consumers").body == {"consumers": []}


def test_an_update_makes_a_version_and_keeps_the_others(api: Api) -> None:
    first = api.add_primitive("m", "country").body
    changed = api(
        "PUT",
        "/metrics/m",
        {"valueType": "PERCENTILE", "aggregationStyle": "PERCENTILE"},
        X_User="somebody",
    )
    assert (changed.status, changed.headers["etag"]) == (200, '"2"')
    metric = api("GET", "/metrics/m").body
    assert metric == changed.body
    assert (metric["version"], metric["latestVersion"]) == (2, 2)
    assert (metric["createdAt"], metric["createdBy"]) == (first["createdAt"], "mrcandre")
    assert (metric["updatedBy"], metric["valueType"]) == ("somebody", "PERCENTILE")
    assert metric["relatedDimensions"] == ["country"]
    versions = api("GET", "/metrics/m/versions").body["versions"]
    assert [version["valueType"] for version in versions] == ["SCALAR", "PERCENTILE"]
    assert api("GET", "/metrics/m/versions/1").body == versions[0]
    assert "createdAt" not in versions[0]


def test_versions_are_listed_in_their_order_beyond_nine(api: Api) -> None:
    api.add_primitive("m", "country")
    for number in range(2, 13):
        assert api("PUT", "/metrics/m", scalar()).body["version"] == number
    versions = api("GET", "/metrics/m/versions").body["versions"]
    assert [version["version"] for version in versions] == list(range(1, 13))
    assert api("GET", "/metrics/m").body["latestVersion"] == 12


def test_related_dimensions_and_formulas_can_change(api: Api) -> None:
    api.add_primitive("a", "country", "carrier")
    api.add_primitive("b", "country")
    api.add_hybrid("h", "a / b")
    api("PUT", "/metrics/a", scalar(relatedDimensions=["carrier"]))
    assert api("GET", "/metrics/a").body["relatedDimensions"] == ["carrier"]
    api("PUT", "/metrics/h", hybrid("a + 1"))
    assert api("GET", "/metrics/h").body["consumedMetrics"] == ["a"]
    assert api("GET", "/metrics/b/consumers").body == {"consumers": []}
    assert api("GET", "/metrics/a/consumers").body == {"consumers": ["h"]}


def test_an_update_on_an_old_version_is_refused(api: Api) -> None:
    api.add_primitive("m", "country")
    assert api("PUT", "/metrics/m", scalar(), If_Match='"1"').status == 200
    refused = api("PUT", "/metrics/m", scalar(), If_Match='"1"')
    assert (refused.status, refused.body["reason"]) == (412, "Changed")
    assert refused.body["detail"] == (
        "The latest version of m is 2, not 1: read it again, then update."
    )
    assert api("PUT", "/metrics/m", scalar(), If_Match='"nonsense"').status == 412
    assert api("PUT", "/metrics/m", scalar(), If_Match="*").status == 200
    assert api("GET", "/metrics/m").headers["etag"] == '"3"'
    assert api("GET", "/metrics/m", If_None_Match='"3"').status == 304


def test_a_deprecated_metric_says_so_and_stays_so(api: Api) -> None:
    api.add_primitive("m", "country")
    answer = api("POST", "/metrics/m/deprecation", {"reason": "n is better"}, If_Match='"1"')
    assert (answer.status, answer.body["version"]) == (200, 2)
    metric = api("GET", "/metrics/m").body
    assert (metric["deprecatedBy"], metric["deprecatedReason"]) == ("mrcandre", "n is better")
    assert metric["deprecatedAt"] == metric["updatedAt"]
    assert metric["relatedDimensions"] == ["country"]
    assert api("PUT", "/metrics/m", scalar()).status == 409
    assert api("POST", "/metrics/m/deprecation", {"reason": "again"}).status == 409


def test_before_its_cutoff_date_a_metric_is_its_chained_one(api: Api) -> None:
    api.add_primitive("oldest", "country")
    api.add_primitive("older", "country", chainedMetric="oldest", chainCutoffDate="2018-01-01")
    api.add_primitive(
        "new", "country", chainedMetric="older", chainCutoffDate="2019-01-01T12:00:00+01:00"
    )
    assert api("GET", "/metrics/new").body["chainCutoffDate"] == "2019-01-01T11:00:00.000Z"
    for date, name in (
        ("2019-01-02", "new"),
        ("2019-01-01T11:00:00Z", "new"),
        ("2019-01-01", "older"),
        ("2018-01-01", "older"),
        ("2017-12-31", "oldest"),
    ):
        assert api("GET", f"/metrics/new?date={date}").body["name"] == name
    tag = api("GET", "/metrics/new?date=2019-01-01").headers["etag"]
    assert api("GET", "/metrics/new?date=2019-01-01", If_None_Match=tag).status == 304
    assert api("GET", "/metrics/new?date=2017-12-31", If_None_Match=tag).status == 200
    assert api("GET", "/metrics/new?date=yesterday").status == 400


def test_lists_come_in_pages_in_the_order_of_names(api: Api) -> None:
    names = sorted(f"m{number}" for number in range(7))
    for name in names:
        api.add_primitive(name, "country", f"d.{name}")
    found: list[str] = []
    page: dict[str, object] = {"after": ""}
    while "after" in page:
        page = api("GET", f"/metrics?limit=3&after={page['after']}").body
        found += [metric["name"] for metric in page["metrics"]]  # type: ignore[attr-defined]
    assert found == names
    page = api("GET", "/dimensions?limit=2").body
    assert page == {"dimensions": ["country", "d.m0"], "after": "d.m0"}
    assert len(api("GET", "/dimensions").body["dimensions"]) == 8
    assert api("GET", "/metrics?limit=0").status == 400


REFUSALS = [
    ("POST", "/metrics", {**scalar(), "name": "nogroup"}, 400, "add the group nogroup first"),
    ("POST", "/metrics", {**scalar(), "name": "m"}, 409, "The metric m already exists."),
    ("POST", "/metrics", {"name": "x"}, 400, "missing required field `valueType`"),
    ("POST", "/metrics", {**scalar(valueType="ODD"), "name": "x"}, 400, "is one of SCALAR, WEIGH"),
    ("POST", "/metrics", {**scalar(), "name": "a b"}, 400, "Expected a letter or _, then letters"),
    ("POST", "/metrics", {**scalar(), "name": "x", "more": 1}, 400, "unknown field `more`"),
    ("POST", "/metrics", {**hybrid("m"), "name": "m"}, 400, "m cannot be used in its own"),
    ("POST", "/metrics", {**hybrid("m / missing"), "name": "x"}, 400, "no metric missing"),
    ("POST", "/metrics", {**hybrid("1 + 2"), "name": "x"}, 400, "uses no metric"),
    ("POST", "/metrics", {**hybrid("m + / m"), "name": "x"}, 400, "has '/' at position 5"),
    ("POST", "/metrics", {**scalar(valueType="HYBRID"), "name": "x"}, 400, "needs a hybridFormula"),
    ("PUT", "/metrics/m", scalar(hybridFormula="m"), 400, "Only a metric with the value type HYBR"),
    ("PUT", "/metrics/m", hybrid("h"), 409, "cannot become a hybrid one"),
    ("PUT", "/metrics/h", scalar(), 409, "or vice versa"),
    ("PUT", "/metrics/h", {**hybrid("m"), "relatedDimensions": ["country"]}, 400, "no related"),
    ("PUT", "/metrics/h", hybrid("m + top"), 400, "h would be computed from itself"),
    ("PUT", "/metrics/m", scalar(relatedDimensions=["nowhere"]), 400, "no dimension nowhere"),
    ("PUT", "/metrics/m", scalar(relatedDimensions=[]), 400, "length >= 1"),
    ("PUT", "/metrics/m", scalar(aggregationParam=0.00001), 400, "4 decimals"),
    ("PUT", "/metrics/m", scalar(chainedMetric="h"), 400, "given together"),
    ("PUT", "/metrics/m", scalar(chainedMetric="m", chainCutoffDate="2020-01-01"), 400, "its own"),
    ("PUT", "/metrics/m", scalar(chainedMetric="h", chainCutoffDate="2020-01-01"), 400, "itself"),
    ("PUT", "/metrics/m", scalar(chainedMetric="h", chainCutoffDate="soon"), 400, "2019-01-01"),
    ("PUT", "/metrics/nothing", scalar(), 404, "There is no metric nothing."),
    ("GET", "/metrics/nothing", None, 404, "There is no metric nothing."),
    ("GET", "/metrics/m/versions/2", None, 404, "The metric m has no version 2."),
    ("GET", "/metrics/m/versions/0", None, 400, "versions are numbers from 1"),
    ("GET", "/metrics/nothing/versions", None, 404, "There is no metric nothing."),
    ("GET", "/metrics/nothing/consumers", None, 404, "There is no metric nothing."),
    ("POST", "/dimensions", {"name": "country"}, 409, "The dimension country already exists."),
    ("POST", "/metric-groups", {"name": "m", "relatedDimensions": ["country"]}, 409, "already"),
    ("POST", "/metric-groups", {"name": "g", "relatedDimensions": ["x"]}, 400, "no dimension x"),
    (
        "POST",
        "/metric-groups",
        {"name": "h", "relatedDimensions": ["country"]},
        409,
        "metric h already",
    ),
    ("POST", "/metrics", {**hybrid("m * \u0663"), "name": "x"}, 400, "has '\u0663' at position 5"),
    ("POST", "/metrics", {**hybrid("m\u00a0"), "name": "x"}, 400, "at position 2, where an op"),
    ("POST", "/metrics", b"", 400, "The body is empty"),
    ("POST", "/metrics", b"{", 400, "The body is not valid"),
    ("POST", "/metrics", b"\xff", 400, "The body is not valid"),
]


def test_what_breaks_a_rule_is_refused_in_words_and_changes_nothing(api: Api) -> None:
    api.add_primitive("m", "country")
    api.add_hybrid("h", "m * 2")
    api.add_hybrid("top", "h + m")
    before = [api("GET", f"/metrics/{name}").body for name in ("m", "h", "top")]
    for method, path, body, status, words in REFUSALS:
        answer = api(method, path, body)
        assert (answer.status, words in answer.body["detail"]) == (status, True), (body, answer)
        assert answer.headers["content-type"] == "application/problem+json"
    assert [api("GET", f"/metrics/{name}").body for name in ("m", "h", "top")] == before


def test_times_long_ago_are_kept_and_compared_as_others_are(api: Api) -> None:
    api.add_primitive("old", "country")
    chain = {"chainedMetric": "old", "chainCutoffDate": "0800-12-25"}
    metric = api.add_primitive("m", "country", **chain).body
    assert metric["chainCutoffDate"] == "0800-12-25T00:00:00.000Z"
    assert api("GET", "/metrics/m").body == metric
    for date, name in (("0800-12-24", "old"), ("0800-12-25", "m"), ("2020-01-01", "m")):
        assert api("GET", f"/metrics/m?date={date}").body["name"] == name


def test_an_etag_can_come_weak_and_with_others(api: Api) -> None:
    api.add_primitive("m", "country")
    for known, status in (
        ('"1"', 304),
        ('W/"1"', 304),
        ('"7", "1"', 304),
        ("*", 304),
        ('"2"', 200),
        ("1", 200),
    ):
        assert api("GET", "/metrics/m", If_None_Match=known).status == status, known
    for match in ('"one"', "1", '"1", "2"'):
        refused = api("PUT", "/metrics/m", scalar(), If_Match=match)
        assert (refused.status, refused.body["reason"]) == (412, "Changed")
        assert f"not {match}." in refused.body["detail"]


def test_a_write_says_who_makes_it(api: Api) -> None:
    api.add_primitive("m", "country")
    for user in ("", "x" * 51, "two words"):
        assert api("PUT", "/metrics/m", scalar(), X_User=user).status == 400


def test_the_api_describes_itself(api: Api) -> None:
    description = api("GET", "/openapi.json").body
    assert description["openapi"] == "3.1.0"
    assert "/metrics/{name}" in description["paths"]


def test_a_page_of_another_site_changes_nothing(api: Api) -> None:
    for content_type in ("text/plain", "application/json"):
        answer = api(
            "POST",
            "/dimensions",
            {"name": "stolen"},
            Origin="http://evil.example",
            Content_Type=content_type,
        )
        assert answer.status == 403
        assert answer.body["detail"] == (
            "Pages of http://evil.example may not use this server; PARTITA_ALLOW_ORIGIN lets them."
        )
    assert api("GET", "/dimensions", Origin="http://evil.example").status == 403
    assert "stolen" not in api("GET", "/dimensions").body["dimensions"]
