// Single requests instead of averages: the slowest and most expensive of the last minutes.

import { Problem, html, link, useHeld, useRepeated, useState } from "../shared/parts.js";
import { look } from "../shared/api.js";
import { shown } from "../shared/values.js";

const EVERY_MS = 2000;
const EXPRESSIONS = ["Statement", "KeyConditionExpression", "FilterExpression", "UpdateExpression", "ConditionExpression"];

const key = (item) => Object.entries(item).map(([name, value]) => `${name} = ${shown(value, 40)}`).join(", ");
const descriptionOf = (one) => [one.IndexName && `index ${one.IndexName}`, one.Key && key(one.Key), ...EXPRESSIONS.map((name) => one[name])].filter(Boolean).join(" · ");

export function Requests() {
  const [found, setFound] = useState(null);
  const [error, setError] = useState(null);
  useRepeated((state) => look("requests").then((answer) => { if (!state.isGone) { setFound(answer); setError(null); } }, (failed) => !state.isGone && setError(failed)), EVERY_MS, []);
  return html`<section class="card" aria-label="Slow and expensive"><h2>Slow and expensive requests</h2>
    ${error?.code === "NotMonitored" ? html`<p class="quiet">This endpoint does not list single requests.</p>` : html`<${Problem} error=${error} />`}
    ${found && html`<p class="quiet">Of the last ${found.Minutes} minutes. Keys and expressions are shown, items are not. The lists do not move while you use them.</p>
      <h3>Slowest</h3><${Ranked} id="slowest" list=${found.Slowest} label="Slowest requests" />
      <h3>Most expensive</h3>${found.CountsUnits ? html`<${Ranked} id="costliest" list=${found.Costliest} label="Most expensive requests" />` : html`<p class="quiet">Units are not counted: start the server with --capacity observe or enforce.</p>`}`}</section>`;
}

function Ranked({ id, list: latest, label }) {
  const [list, box] = useHeld(latest);
  if (!list.length) return html`<p class="quiet">No requests yet.</p>`;
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${label} ref=${box}><table id=${id}><thead><tr><th scope="col">When</th><th scope="col">Operation</th><th scope="col">Table</th><th scope="col">What</th><th scope="col" class="number">ms</th><th scope="col" class="number">Units</th><th scope="col" class="number">Status</th></tr></thead><tbody>
    ${list.map((one, n) => html`<tr key=${`${one.At} ${n}`}><td>${new Date(one.At * 1000).toLocaleTimeString()}</td><td>${one.Operation}</td><td>${(one.Tables || []).map((name, at) => html`${at ? ", " : ""}<a href=${link("heat", [], { table: name })}>${name}</a>`)}</td><td class="clip mono" title=${descriptionOf(one)}>${descriptionOf(one)}</td><td class="number">${one.Milliseconds.toFixed(2)}</td><td class="number">${one.Units || ""}</td><td class="number">${one.Status}</td></tr>`)}</tbody></table></div>`;
}
