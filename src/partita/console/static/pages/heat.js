// Heat: what `partita top` shows, and the partitions of a table, every two seconds.

import { Field, Problem, Select, count, html, link, useEffect, useRef, useState } from "../parts.js";
import { allTables, call, look, session } from "../api.js";
import { Partitions } from "../partitions.js";
import { Requests } from "../requests.js";

const EVERY_MS = 2000;
const POINTS = 60;

// A counter that has become smaller began anew, with its server or its table.
const growth = (before, now) => (now >= (before || 0) ? now - (before || 0) : now);
const by = (list, key) => Object.fromEntries((list || []).map((one) => [key(one), one]));

function within(before, now, percent) {
  const then = Object.fromEntries(before?.Latencies || []);
  const counts = now.Latencies.map(([bound, n]) => [bound, growth(then[bound], n)]);
  const total = growth(before?.Requests, now.Requests);
  return counts.find(([, n]) => n >= (total * percent) / 100)?.[0];
}

function between(before, now) {
  const restarted = !before || now.UptimeSeconds < before.UptimeSeconds;
  const seconds = Math.max(now.UptimeSeconds - (restarted ? 0 : before.UptimeSeconds), 0.001);
  const old = restarted ? {} : by(before.Operations, (one) => one.Name);
  const units = restarted ? {} : by(before.Units, (one) => `${one.Table}/${one.Index}/${one.Kind}`);
  const operations = now.Operations.map((one) => {
    const was = old[one.Name], requests = growth(was?.Requests, one.Requests);
    return {
      name: one.Name, rate: requests / seconds, refused: growth(was?.Refused, one.Refused) / seconds, failed: growth(was?.Failed, one.Failed) / seconds,
      mean: requests ? (growth(was?.Seconds, one.Seconds) / requests) * 1000 : null, p99: requests ? within(was, one, 99) : null,
    };
  }).sort((a, b) => b.rate - a.rate);
  const owners = {};
  for (const one of now.Units) {
    const was = units[`${one.Table}/${one.Index}/${one.Kind}`], name = one.Index ? `${one.Table}/${one.Index}` : one.Table;
    owners[name] ||= { name, table: one.Table };
    owners[name][one.Kind] = { used: growth(was?.Consumed, one.Consumed) / seconds, lost: growth(was?.Throttled, one.Throttled) / seconds, of: one.Entitled };
  }
  return { operations, owners: Object.values(owners).sort((a, b) => used(b) - used(a)), rate: operations.reduce((sum, one) => sum + one.rate, 0) };
}

const fixed = (number, digits = 1) => (number === null || number === undefined ? "" : number.toFixed(digits));

export default function Heat({ query }) {
  const [shown, setShown] = useState(null);
  const [rates, setRates] = useState([]);
  const [error, setError] = useState(null);
  const [partitions, setPartitions] = useState(null);
  const [tables, setTables] = useState([]);
  const table = query.get("table") || "";
  const before = useRef(null);
  useEffect(() => { allTables().then(setTables, () => {}); }, []);
  useEffect(() => {
    let gone = false, timer;
    const tick = async () => {
      if (!document.hidden) {
        try {
          const now = await look("heat");
          if (gone) return;
          const difference = between(before.current, now);
          if (before.current) setRates((points) => [...points.slice(1 - POINTS), difference.rate]);
          before.current = now;
          setShown({ now, ...difference });
          setPartitions(table ? await look(`partitions/${encodeURIComponent(table)}`) : null);
          setError(null);
        } catch (failed) { if (!gone) setError(failed); }
      }
      if (!gone) timer = setTimeout(tick, EVERY_MS);
    };
    tick();
    return () => { gone = true; clearTimeout(timer); };
  }, [table]);
  if (error?.code === "NotMonitored" && !shown) return html`<div class="head"><h1>Heat</h1></div><div class="card empty"><h2>This endpoint does not tell its heat</h2><p>${error.message}</p></div>`;
  return html`<div class="head"><h1>Heat</h1>${shown && html`<span class="quiet">up ${Math.round(shown.now.UptimeSeconds)} s · capacity ${shown.now.CapacityMode} · every 2 s</span>`}</div>
    <${Problem} error=${error} />
    ${shown && html`
      <section class="card" aria-label="Requests"><h2>${fixed(shown.rate)} requests a second</h2><${Line} points=${rates} /></section>
      <section class="card" aria-label="Operations"><h2>Operations</h2><div class="scroll" tabindex="0" role="region" aria-label="Operations"><table id="operations"><thead><tr><th scope="col">Operation</th><th scope="col" class="number">per second</th><th scope="col" class="number">4xx/s</th><th scope="col" class="number">5xx/s</th><th scope="col" class="number">mean ms</th><th scope="col" class="number">99 % within ms</th></tr></thead><tbody>
        ${shown.operations.map((one) => html`<tr key=${one.name}><td>${one.name}</td><td class="number">${fixed(one.rate)}</td><td class="number">${fixed(one.refused)}</td><td class="number">${fixed(one.failed)}</td><td class="number">${fixed(one.mean, 2)}</td><td class="number">${one.p99 === null || one.p99 === undefined ? "" : one.p99 * 1000}</td></tr>`)}
      </tbody></table></div></section>
      <section class="card" aria-label="Capacity"><h2>Capacity</h2>
        ${shown.owners.length ? html`<div class="scroll" tabindex="0" role="region" aria-label="Capacity"><table id="capacity"><thead><tr><th scope="col">Table or index</th><th scope="col" class="number">RCU/s</th><th scope="col" class="number">of</th><th scope="col" class="number">throttled/s</th><th scope="col" class="number">WCU/s</th><th scope="col" class="number">of</th><th scope="col" class="number">throttled/s</th></tr></thead><tbody>
          ${shown.owners.map((one) => html`<tr key=${one.name}><td><a href=${link("heat", [], { table: one.table })}>${one.name}</a></td>${["read", "write"].map((kind) => html`<td class="number">${fixed(one[kind]?.used)}</td><td class="number">${count(Math.round(one[kind]?.of || 0))}</td><td class="number">${fixed(one[kind]?.lost)}</td>`)}</tr>`)}
        </tbody></table></div>` : html`<p class="quiet">${shown.now.CapacityMode === "off" ? "Units are not counted: start the server with --capacity observe or enforce." : "No table was used yet."}</p>`}
      </section>
      <section class="card" aria-label="Partitions"><h2>Partitions</h2>
        <div class="row narrow"><${Field} label="Table"><${Select} value=${table} onChange=${(name) => { location.hash = link("heat", [], { table: name }); }} options=${[["", "Choose a table"], ...tables]} /><//></div>
        ${partitions && partitions.Resources.map((one) => html`<${Partitions} key=${`${table} ${one.IndexName || ""}`} resource=${one} />`)}
        ${partitions && !partitions.Resources.length && html`<p class="quiet">${partitions.Capacity === "off" ? "Partitions are not measured: start the server with --capacity observe or enforce." : "This table has not been used yet."}</p>`}
      </section>
      ${table && html`<${Contributors} key=${table} table=${table} />`}
      <${Requests} />`}`;
}

const used = (one) => (one.read?.used || 0) + (one.write?.used || 0);

// The keys that are asked for most, as Contributor Insights counts them.
function Contributors({ table }) {
  const [found, setFound] = useState(null);
  const [error, setError] = useState(null);
  const [round, setRound] = useState(0);
  useEffect(() => {
    let gone = false;
    const refresh = () => !document.hidden && look(`insights/${encodeURIComponent(table)}`).then((answer) => { if (!gone) { setFound(answer); setError(null); } }, (failed) => !gone && setError(failed));
    refresh();
    const timer = setInterval(refresh, EVERY_MS);
    return () => { gone = true; clearInterval(timer); };
  }, [table, round]);
  const request = { TableName: table, ContributorInsightsAction: "ENABLE" };
  const enable = async () => { try { await call("UpdateContributorInsights", request); setRound(round + 1); } catch (failed) { setError(failed); } };
  return html`<section class="card" aria-label="Hottest keys"><h2>Hottest keys of ${table}</h2><${Problem} error=${error} />
    ${found && !found.Resources.length && html`<p class="quiet">Contributor Insights are off for this table.</p>${session.Mode === "on" && html`<button class="small" onClick=${enable}>Switch Contributor Insights on</button>`}`}
    ${found?.Resources.map((one) => html`<div key=${one.IndexName || ""} class="insights">${one.Rules.map((rule) => html`<div key=${rule.RuleName}><p><strong>${one.IndexName ? `${one.IndexName}: ` : ""}${rule.Counts}</strong> <span class="quiet">${rule.RuleName.replace(/^.*?-(?=[PS]K|PKC|SKC|PKT|SKT)/, "")} · ${count(Math.round(rule.Total))} in all</span></p>
      ${rule.Contributors.length ? html`<ol class="ranking">${rule.Contributors.map((each, at) => html`<li key=${at}><span class="mono">${each.Keys.map((key) => (typeof key === "object" && key ? Object.values(key)[0] : String(key))).join(" · ")}</span><progress max=${rule.Contributors[0].Value} value=${each.Value} aria-label="share"></progress><span class="number">${count(Math.round(each.Value * 10) / 10)}</span></li>`)}</ol>` : html`<p class="quiet">Nothing was counted yet.</p>`}</div>`)}</div>`)}</section>`;
}

function Line({ points }) {
  if (points.length < 2) return html`<p class="quiet">Two looks make a line.</p>`;
  const most = Math.max(...points, 1), x = (n) => (n / (POINTS - 1)) * 600, y = (value) => 76 - (value / most) * 72;
  const path = points.map((value, n) => `${n ? "L" : "M"}${x(n + POINTS - points.length).toFixed(1)},${y(value).toFixed(1)}`).join("");
  return html`<svg class="line" viewBox="0 0 600 80" preserveAspectRatio="none" role="img" aria-label=${`Requests a second over the last two minutes, at most ${most.toFixed(1)}`}><path d=${path} /></svg><p class="quiet">The last two minutes; the top is ${fixed(most)} a second.</p>`;
}
