"""Turns results into docs/explanation/benchmarks.md and docs/pictures/benchmarks.svg."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from benchmarks.reporting import chart, targets
from benchmarks.reporting.markdown import table
from benchmarks.reporting.targets import BARE_LOOP, RIVALS, TARGET_CONNECTIONS, Target
from benchmarks.run import SLOW_FACTOR
from benchmarks.servers.measured_servers import NAMES
from benchmarks.workload.operations import DESCRIPTIONS

TITLES = {
    "partita": "Partita",
    "bare-loop": "bare loop",
    "dynamodb-local": "DynamoDB Local",
    "dynoxide": "Dynoxide",
    "dynalite": "dynalite",
    "moto": "moto",
}
PEERS = tuple(name for name in NAMES if name not in ("partita", "bare-loop"))
QUIET_LOAD_MAX = 1.0
Row = dict[str, Any]


class Report:
    """The results of one run, looked up by what they measure, and sections of other runs."""

    def __init__(self, results: dict[str, Any], others: Sequence[str] = ()) -> None:
        self.results = results
        self.others = others
        self._rows: dict[tuple[str, str, str, int], Row] = {
            (row["server"], row["mode"], row["operation"], row["connections"]): row
            for row in results["measured"]
        }

    def rate(
        self, server: str, mode: str, operation: str, connections: int = TARGET_CONNECTIONS
    ) -> float | None:
        row = self._rows.get((server, mode, operation, connections))
        return row["requests_per_second"] if row else None

    def ours(self, target: Target) -> tuple[str, float] | None:
        for mode in target.ours:
            rate = self.rate("partita", mode, target.operation)
            if rate is not None:
                return mode, rate
        return None

    def peer_rates(self, target: Target, names: Iterable[str]) -> dict[str, float]:
        rates = {name: self.rate(name, target.theirs, target.operation) for name in names}
        return {name: rate for name, rate in rates.items() if rate}

    # The page

    def markdown(self) -> str:
        sections = [
            self._opening(),
            *self._targets("Reads: durable Partita, peers in memory", targets.READS),
            *self._targets("Writes: durable Partita, peers on disk", targets.DURABLE_WRITES),
            *self._targets("Writes: relaxed Partita, peers in memory", targets.RELAXED_WRITES),
            *self._bare_loop(),
            *self._start(),
            *self.others,
            *self._full(),
            *self._skipped(),
            REPEAT,
        ]
        return "\n\n".join(sections) + "\n"

    def _opening(self) -> str:
        machine = self.results["machine"]
        versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
        return "\n".join(
            [
                "# Benchmarks",
                "",
                "<!-- Written by `make bench`; changes by hand are lost. -->",
                "",
                f"{machine['date']}, commit {machine['commit']}. {machine['processor']}, "
                f"{machine['cores']} cores, {machine['memory_gb']} GB, {machine['system']}; "
                f"load {machine['load_at_start']:.2f} when it began.",
                f"Driver: {machine['driver']}, one thread; {machine['seconds']} s for each figure "
                f"after {machine['warm_up_seconds']} s of warm-up, {SLOW_FACTOR} times as long "
                "where a server is slow; 0 says that nothing was answered in that time.",
                *self._caution(),
                "",
                f"Versions: {versions}.",
                "",
                f"Requests per second with {TARGET_CONNECTIONS} connections. The ratio is that of "
                "Partita to the faster of DynamoDB Local and Dynoxide. Partita syncs every commit "
                "before it answers; the peers on disk run with their own defaults.",
                "",
                f"![Requests per second with {TARGET_CONNECTIONS} connections](benchmarks.svg)",
            ]
        )

    def _caution(self) -> list[str]:
        """Returns a warning if the machine had other load, which distorts single measurements."""
        load = self.results["machine"]["load_at_start"]
        if load < QUIET_LOAD_MAX:
            return []
        return [
            "",
            f"**Provisional: the machine had other work (load {load:.1f}), so single figures, "
            "ratios and verdicts below can be far off, in either direction. Repeat on a quiet "
            "machine.**",
        ]

    def _targets(self, title: str, wanted: Sequence[Target]) -> list[str]:
        lines = []
        for target in wanted:
            ours = self.ours(target)
            peers = self.peer_rates(target, PEERS)
            rivals = [rate for name, rate in peers.items() if name in RIVALS]
            if ours is None or not rivals:
                continue
            mode, rate = ours
            ratio = rate / max(rivals)
            shares = [_against(rate, peers.get(name)) for name in PEERS]
            lines.append(
                [
                    DESCRIPTIONS[target.operation],
                    f"{rate:,.0f} ({mode})",
                    *shares,
                    f"**{ratio:.1f}x**",
                    *_verdict(ratio, target.ratio),
                ]
            )
        if not lines:
            return []
        head = ["operation", "Partita/s", *(f"{TITLES[name]}/s (ratio)" for name in PEERS)]
        return [f"## {title}", table([*head, "ratio", "target", ""], lines)]

    def _bare_loop(self) -> list[str]:
        lines = []
        for operation, mode in BARE_LOOP:
            limit = self.rate("bare-loop", mode, operation)
            # If this Partita has no relaxed mode, the one in memory is used instead.
            modes = (mode, "memory") if mode == "relaxed" else (mode,)
            ours = [(m, r) for m in modes if (r := self.rate("partita", m, operation))]
            if not limit or not ours:
                continue
            share = ours[0][1] / limit
            verdict = "met" if share >= targets.BARE_LOOP_SHARE else "**below**"
            cells = [f"{operation} ({ours[0][0]})", f"{ours[0][1]:,.0f}", f"{limit:,.0f}"]
            wanted = f"{targets.BARE_LOOP_SHARE:.0%}"
            lines.append([*cells, f"**{share:.0%}**", wanted, verdict])
        if not lines:
            return []
        text = (
            "The limit is `benchmarks/servers/bare_loop.py`: uvloop, httptools, orjson and LMDB "
            "doing the same storage work with shared commits, and nothing else."
        )
        head = ["operation", "Partita/s", "bare loop/s", "share", "target", ""]
        return ["## Share of the bare loop", text, table(head, lines)]

    def _start(self) -> list[str]:
        lines = []
        for label, started in self.results["started"].items():
            name, mode = label.split("/")
            peaks = [
                row["resident_mb"]
                for row in self.results["measured"]
                if row["server"] == name and row["mode"] == mode and row["resident_mb"]
            ]
            lines.append(
                [
                    TITLES[name],
                    mode,
                    f"{started['ready_seconds']:.2f}",
                    _number(started["idle_mb"], 0),
                    _number(max(peaks, default=None), 0),
                ]
            )
        text = (
            f"Targets of Partita: ready within {targets.READY_SECONDS_MAX} s, less than "
            f"{targets.IDLE_MB_MAX} MB when idle. Memory is what is resident, mapped pages of the "
            "data file included; the largest is over all measurements."
        )
        head = ["server", "mode", "ready after (s)", "idle (MB)", "largest (MB)"]
        return ["## Start and memory", text, table(head, lines)] if lines else []

    def _full(self) -> list[str]:
        lines = [
            [
                DESCRIPTIONS[row["operation"]],
                str(row["connections"]),
                TITLES[row["server"]],
                row["mode"],
                f"{row['requests_per_second']:,.0f}",
                f"{row['p50_ms']:.2f}",
                f"{row['p99_ms']:.2f}",
                _number(row["resident_mb"], 0),
                str(row["refused"] + row["broken"]),
                self._ratio_to(row),
            ]
            for row in self.results["measured"]
        ]
        head = ["operation", "connections", "server", "mode", "requests/s", "p50 (ms)", "p99 (ms)"]
        text = (
            "The last column is the ratio of Partita to that line: for reads of durable Partita, "
            "for writes of Partita in the mode that compares (durable with disk, relaxed or in "
            "memory with memory)."
        )
        columns = [*head, "memory (MB)", "not 2xx", "Partita"]
        return ["## Every measurement", text, table(columns, lines)]

    def _ratio_to(self, row: Row) -> str:
        if row["server"] == "partita":
            return ""
        is_write = row["operation"] in targets.WRITES
        modes = ("relaxed", "memory") if is_write and row["mode"] != "disk" else ("disk",)
        for mode in modes:
            rate = self.rate("partita", mode, row["operation"], row["connections"])
            if rate and row["requests_per_second"]:
                return f"{rate / row['requests_per_second']:.2f}x"
        return ""

    def _skipped(self) -> list[str]:
        skipped = self.results["skipped"]
        if not skipped:
            return []
        lines = [f"- {what}: {reason}" for what, reason in skipped.items()]
        return ["## Not measured", "\n".join(lines)]

    # The plot

    def svg(self) -> str:
        groups = [
            group
            for target in (*targets.READS, *targets.DURABLE_WRITES)
            if (group := self._group(target)) is not None
        ]
        title = (
            f"Requests per second with {TARGET_CONNECTIONS} connections, "
            "as a ratio to the faster of DynamoDB Local and Dynoxide"
        )
        return chart.draw(title, groups)

    def _group(self, target: Target) -> chart.Group | None:
        ours = self.ours(target)
        peers = self.peer_rates(target, PEERS)
        rivals = [rate for name, rate in peers.items() if name in RIVALS]
        if ours is None or not rivals:
            return None
        rates = {"partita": ours[1], **peers}
        bars = [chart.Bar(TITLES[name], rate / max(rivals), rate) for name, rate in rates.items()]
        return chart.Group(DESCRIPTIONS[target.operation], bars, target.ratio)


def _against(ours: float, theirs: float | None) -> str:
    return "-" if theirs is None else f"{theirs:,.0f} ({ours / theirs:.1f}x)"


def _verdict(ratio: float, wanted: float | None) -> list[str]:
    if wanted is None:
        return ["-", ""]
    return [f"{wanted:g}x", "met" if ratio >= wanted else "**below**"]


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"


REPEAT = """\
## How to repeat

```
make bench                                    # everything, about half an hour
make bench BENCH="--quick"                    # 1 s each, 16 connections
python -m benchmarks --only partita,dynoxide --operations GetItem,PutItem
python -m benchmarks.suite                    # the test suite on every backend
python -m benchmarks.database.scaling                  # 10 thousand against 5 million items
python -m benchmarks.database.mixed                    # reads beside bulk writes
python -m benchmarks.database.large_requests           # others beside the largest requests
python -m benchmarks --report                 # this page again, from what was kept
```

`make bench` fetches the peers into `.peers/` (npm, Java 17 and a network are needed for that) and
names what it could not have. `benchmarks/results/` keeps the figures of the last run of each
command. Nothing else should run meanwhile: the driver has one core and the server the other. Every
operation is checked for the right answer in every server before it is measured;
`benchmarks/workload/operations.py` has the requests."""
