// Heat: the figures of `partita top`, and the heat map of a table's partitions, every two seconds.

import { Call, Problem, Select, TableHead, count, html, link, say, useEffect, useRef, useRepeated, useState, useSteadyOrder } from "../shared/parts.js";
import { allTables, call, look, session } from "../shared/api.js";
import { between } from "../page_parts/heat.js";
import { Partitions } from "../page_parts/partitions.js";
import { Requests } from "../page_parts/requests.js";
import { shown as readable } from "../shared/values.js";

const EVERY_MS = 2000;
const POINTS = 60;
const ROWS_MAX = 100;
const KEY_MAX = 60;
const FIGURES = [
  ["rate", "Requests a second", (n) => fixed(n)],
  ["p99", "99 % answered within", (n) => (n === null || n === undefined ? "–" : `${n * 1000} ms`)],
  ["used", "Units consumed a second", (n) => fixed(n)],
  ["throttled", "Throttled a second", (n) => fixed(n)],
];

const fixed = (number, digits = 1) => (number === null || number === undefined ? "" : number.toFixed(digits));

export default function Heat({ query }) {
  const [shown, setShown] = useState(null);
  const [points, setPoints] = useState([]);
  const [error, setError] = useState(null);
  const [partitions, setPartitions] = useState(null);
  const [tables, setTables] = useState([]);
  const table = query.get("table") || "";
  const before = useRef(null);
  useEffect(() => { allTables().then(setTables, () => {}); }, []);
  useRepeated(async (state) => {
    try {
      const now = await look("heat");
      if (state.isGone) return;
      const difference = between(before.current, now);
      if (before.current) setPoints((past) => [...past.slice(1 - POINTS), difference]);
      before.current = now;
      setShown({ now, ...difference });
      const found = table ? await look(`partitions/${encodeURIComponent(table)}`) : null;
      if (!state.isGone) { setPartitions(found); setError(null); }
    } catch (failed) { if (!state.isGone) setError(failed); }
  }, EVERY_MS, [table]);
  const choose = (name) => { location.hash = link("heat", [], { table: name }); };
  const since = shown && html`<span class="quiet">up ${age(shown.now.UptimeSeconds)} · capacity ${shown.now.CapacityMode} · every 2 s</span>`;
  const chooser = html`<label class="bar close"><span class="quiet">Table</span><${Select} class="narrow" value=${table} onChange=${choose} options=${[["", "Choose a table"], ...tables]} /></label>`;
  const head = table ? html`<${TableHead} name=${table} at="heat" actions=${chooser}>${since}<//>` : html`<div class="head"><h1>Heat</h1>${since}<div class="actions">${chooser}</div></div>`;
  if (error?.code === "NotMonitored" && !shown) return html`${head}<div class="card empty"><h2>This endpoint has no heat map</h2><p>${error.message}</p></div>`;
  return html`${head}<${Problem} error=${error} />
    ${shown && html`
      <section class="tiles" aria-label="Now">${FIGURES.map(([name, title, text]) => html`<${Tile} key=${name} title=${title} value=${text(shown.figures[name])} points=${points.map((one) => one.figures[name] || 0)} isOff=${shown.now.CapacityMode === "off" && ["used", "throttled"].includes(name)} />`)}</section>
      ${table && html`<section class="card" aria-label="Partitions"><h2>Partitions</h2>
        ${partitions && partitions.Resources.map((one) => html`<${Partitions} key=${`${table} ${one.IndexName || ""}`} resource=${one} />`)}
        ${partitions && !partitions.Resources.length && html`<p class="quiet">${partitions.Capacity === "off" ? "Partitions are not measured: start the server with --capacity observe or enforce." : "This table has not been used yet."}</p>`}
      </section><${Contributors} key=${table} table=${table} />`}
      <${Capacity} owners=${shown.owners} mode=${shown.now.CapacityMode} />
      <${Operations} operations=${shown.operations} points=${points} />
      <${Requests} />`}`;
}

const age = (seconds) => (seconds < 120 ? `${Math.round(seconds)} s` : seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`);

function Tile({ title, value, points, isOff }) {
  return html`<div class="tile"><span class="title">${title}</span><strong>${isOff ? "not counted" : value}</strong>${!isOff && html`<${Line} points=${points} title=${title} />`}</div>`;
}

function Line({ points, title }) {
  const most = Math.max(...points, 0), x = (n) => (n / (POINTS - 1)) * 240, y = (value) => 38 - (value / (most || 1)) * 36;
  const path = points.map((value, n) => `${n ? "L" : "M"}${x(n + POINTS - points.length).toFixed(1)},${y(value).toFixed(1)}`).join("");
  return html`<svg class="line" viewBox="0 0 240 40" preserveAspectRatio="none" role="img" aria-label=${`${title} over the last two minutes, at most ${most.toFixed(3)}`}><path d=${points.length > 1 ? path : ""} /></svg>`;
}

// Only operations that were called since the page was opened have anything to show.
function Operations({ operations, points }) {
  const recent = new Set(points.flatMap((one) => one.operations.filter((each) => each.requests).map((each) => each.name)));
  const used = operations.filter((one) => recent.has(one.name) || one.requests), idle = operations.length - used.length;
  const [rows, box] = useSteadyOrder(used, (one) => one.name);
  return html`<section class="card" aria-label="Operations"><h2>Operations</h2>
    ${rows.length > 0 && html`<div class="scroll" tabindex="0" role="region" aria-label="Operations" ref=${box}><table id="operations"><thead><tr><th scope="col">Operation</th><th scope="col" class="number">per second</th><th scope="col" class="number">4xx/s</th><th scope="col" class="number">5xx/s</th><th scope="col" class="number">mean ms</th><th scope="col" class="number">99 % within ms</th></tr></thead><tbody>
      ${rows.map((one) => html`<tr key=${one.name}><td>${one.name}</td><td class="number">${fixed(one.rate)}</td><td class="number">${fixed(one.refused)}</td><td class="number">${fixed(one.failed)}</td><td class="number">${fixed(one.mean, 2)}</td><td class="number">${one.p99 === null || one.p99 === undefined ? "" : one.p99 * 1000}</td></tr>`)}
    </tbody></table></div>`}
    ${idle > 0 && html`<p class="quiet">${rows.length ? `${count(idle)} other operations were not called in the last two minutes.` : "No requests since this page was opened."}</p>`}</section>`;
}

function Capacity({ owners, mode }) {
  const [ordered, box] = useSteadyOrder(owners, (one) => one.name), rows = ordered.slice(0, ROWS_MAX);
  return html`<section class="card" aria-label="Capacity"><h2>Consumed and provisioned</h2>
    ${rows.length ? html`<div class="scroll" tabindex="0" role="region" aria-label="Capacity" ref=${box}><table id="capacity"><thead><tr><th scope="col">Table or index</th>${["read", "write"].map((kind) => html`<th scope="col" class="number">${kind} units/s</th><th scope="col" class="number">of</th><th scope="col"><span class="hidden-label">Share</span></th><th scope="col" class="number">throttled/s</th>`)}</tr></thead><tbody>
      ${rows.map((one) => html`<tr key=${one.name}><td><a href=${link("heat", [], { table: one.table })}>${one.name}</a></td>${["read", "write"].map((kind) => html`<${Share} kind=${kind} of=${one[kind]} />`)}</tr>`)}
    </tbody></table></div>` : html`<p class="quiet">${mode === "off" ? "Units are not counted: start the server with --capacity observe or enforce." : "No table was used yet."}</p>`}
    ${owners.length > ROWS_MAX && html`<p class="quiet">The ${ROWS_MAX} busiest of ${count(owners.length)}.</p>`}</section>`;
}

function Share({ kind, of: { used, of: entitled, lost } = {} }) {
  return html`<td class="number">${fixed(used)}</td><td class="number">${count(Math.round(entitled || 0))}</td><td>${entitled > 0 && html`<progress max=${entitled} value=${Math.min(used || 0, entitled)} aria-label=${`${kind} units of those provisioned`}></progress>`}</td><td class="number">${lost > 0 ? html`<span class="badge warn">${fixed(lost)}</span>` : fixed(lost)}</td>`;
}

// The most requested keys, as counted by Contributor Insights.
function Contributors({ table }) {
  const [found, setFound] = useState(null);
  const [error, setError] = useState(null);
  const [round, setRound] = useState(0);
  useRepeated((state) => look(`insights/${encodeURIComponent(table)}`).then((answer) => { if (!state.isGone) { setFound(answer); setError(null); } }, (failed) => !state.isGone && setError(failed)), EVERY_MS, [table, round]);
  const isOn = found?.Resources.length > 0;
  const request = { TableName: table, ContributorInsightsAction: isOn ? "DISABLE" : "ENABLE" };
  const flip = async () => { try { await call("UpdateContributorInsights", request); say(`Contributor Insights are ${isOn ? "off" : "on"}.`); setRound(round + 1); } catch (failed) { setError(failed); } };
  return html`<section class="card" aria-label="Hottest keys"><div class="bar"><h2>Hottest keys of ${table}</h2><span class="spacer"></span>${found && session.Mode === "on" && html`<button class="small" onClick=${flip}>Switch Contributor Insights ${isOn ? "off" : "on"}</button>`}</div><${Problem} error=${error} />
    ${found && !isOn && html`<p class="quiet">Contributor Insights are off for this table.</p>`}
    ${found?.Resources.map((one) => html`<div key=${one.IndexName || ""} class="insights">${one.Rules.map((rule) => html`<div key=${rule.RuleName}><p title=${rule.RuleName}><strong>${one.IndexName ? `${one.IndexName}: ` : ""}${rule.Counts}</strong> <span class="quiet">by ${/-SK[CT]-/.test(rule.RuleName) ? "item" : "partition key"} · ${count(Math.round(rule.Total))} in all</span></p>
      ${rule.Contributors.length ? html`<ol class="ranking">${rule.Contributors.map((each, at) => html`<li key=${at}><span class="mono">${each.Keys.map((key) => readable({ S: String(key) }, KEY_MAX)).join(" · ")}</span><progress max=${rule.Contributors[0].Value} value=${each.Value} aria-label="share"></progress><span class="number">${count(Math.round(each.Value * 10) / 10)}</span></li>`)}</ol>` : html`<p class="quiet">Nothing was counted yet.</p>`}</div>`)}</div>`)}
    ${found && session.Mode === "on" && html`<${Call} operation="UpdateContributorInsights" request=${request} />`}</section>`;
}
