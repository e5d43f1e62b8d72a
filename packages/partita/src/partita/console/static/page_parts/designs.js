// Designs of `partita migrate`: each with the verdicts of its tests, and its price.

import { Over, Problem, count, html, useEffect, useState } from "../shared/parts.js";
import { look } from "../shared/api.js";

const VERDICTS = { proven: "good", differs: "warn", unproven: "", unserved: "warn" };
const ORDER = ["differs", "unserved", "unproven", "proven"];

const money = (price) => `${price.monthly.toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 })} ${price.currency} a month`;
const summed = (proofs) => ["proven", "differs", "unproven", "unserved"].map((verdict) => [verdict, proofs.filter((one) => one.verdict === verdict).length]).filter(([, number]) => number);

export function Designs({ move, onOpen, onClose }) {
  const [found, setFound] = useState(null);
  const [error, setError] = useState(null);
  useEffect(() => { look(`moves/${encodeURIComponent(move)}/designs`).then(({ designs }) => setFound(designs), setError); }, [move]);
  return html`<${Over} label="Designs" onClose=${onClose}><h1>Designs of ${move}</h1><${Problem} error=${error} />
    ${!found && !error && html`<p role="status">Reading the folder.</p>`}
    ${found && !found.length && html`<p class="empty">There is no design yet: run <code>partita migrate model</code>.</p>`}
    ${found?.map((one) => html`<article class="nested" key=${one.file}><div class="bar"><strong>${one.file}</strong><span class="badge">${one.kind}</span><span class="spacer"></span><button onClick=${() => onOpen({ ...one.workbench, partita: { file: one.file, proofs: one.proofs, price: one.price } })} aria-label=${`Open ${one.file}`}>Open</button></div>
      <p>${one.price ? money(one.price) : html`<span class="quiet">This version is not priced: run <code>partita migrate estimate</code>.</span>`}</p><${Counts} proofs=${one.proofs} /></article>`)}
    <button onClick=${onClose}>Close</button><//>`;
}

const Counts = ({ proofs }) => html`<p class="bar">${summed(proofs).map(([verdict, number]) => html`<span key=${verdict} class=${`badge ${VERDICTS[verdict]}`}>${count(number)} ${verdict}</span>`)}</p>`;

export function ProofAndPrice({ about }) {
  const { file, proofs, price } = about;
  const sorted = [...proofs].sort((a, b) => ORDER.indexOf(a.verdict) - ORDER.indexOf(b.verdict));
  return html`<section class="card" id="proof" aria-label="Proof and price"><h2>Proof and price of ${file}</h2><p class="quiet">For the design as it was opened: your changes here are neither tested nor priced.</p>
    <dl class="facts"><div><dt>Price</dt><dd>${price ? money(price) : "not estimated"}</dd></div>${price && html`<div><dt>Paid</dt><dd>${price.way}</dd></div><div><dt>Prices of</dt><dd>${price.prices_of}</dd></div>`}</dl>
    <details class="more" style=${{ marginTop: "12px" }}><summary>Access patterns: ${summed(proofs).map(([verdict, number]) => `${count(number)} ${verdict}`).join(", ")}</summary><div class="scroll" tabindex="0" role="region" aria-label="Access patterns"><table id="proofs"><thead><tr><th scope="col">Pattern</th><th scope="col">Verdict</th><th scope="col">Why</th></tr></thead><tbody>${sorted.map((one) => html`<tr key=${one.pattern}><td>${one.pattern}</td><td><span class=${`badge ${VERDICTS[one.verdict]}`}>${one.verdict}</span></td><td class="clip" title=${one.why || ""}>${one.why || (one.at ? `tested ${one.at}` : "")}</td></tr>`)}</tbody></table></div></details></section>`;
}
