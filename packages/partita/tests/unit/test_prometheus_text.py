"""Metrics in Prometheus's text format."""

from __future__ import annotations

from partita.foundation.prometheus_text import MetricFamily, PrometheusSample, counter, gauge, text


def test_a_family_has_its_help_and_type_before_its_samples() -> None:
    assert text([gauge("connections", "Open connections.", 3)]) == (
        "# HELP connections Open connections.\n# TYPE connections gauge\nconnections 3\n"
    )


def test_a_counter_above_a_million_keeps_its_last_digits() -> None:
    assert text([counter("units_total", "Units.", 12_345_678.5)]).endswith(" 12345678.5\n")


def test_a_large_whole_number_is_written_with_all_its_digits() -> None:
    assert text([gauge("bytes", "Bytes.", 10**15 + 1)]).endswith(" 1000000000000001\n")


def test_quotes_backslashes_and_line_ends_in_labels_are_escaped() -> None:
    sample = PrometheusSample(True, {"table": 'a"b\\c\nd', "index": ""}, "_sum")
    lines = text([MetricFamily("seconds", "histogram", "Seconds.", [sample])]).splitlines()
    assert lines[-1] == r'seconds_sum{table="a\"b\\c\nd",index=""} 1'
