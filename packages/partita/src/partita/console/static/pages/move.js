// Move: the cockpit of a migration. Commands run as processes of the console, and everything shown
// here is read from the folder of the migration.

import { Field, Input, Over, Problem, count, html, link, say, useEffect, useRef, useRepeated, useState } from "../shared/parts.js";
import { look, session, tell } from "../shared/api.js";

const EVERY_MS = 1500;
const SHOWN_MAX = 50;
const PHASES = { forward: ["The source is authoritative", ""], backward: ["The target is authoritative", "good"], finished: ["Finished", "good"] };
const TITLES = { plan: "Understood", analyze: "Measured", model: "Designed", test: "Proven", load: "Loaded", follow: "Followed", verify: "Verified", cutover: "Cut over", finish: "Finished" };
const COMMANDS = [
  ["load", ["IsFollowed"], "Load", "Copies every row of the source to the target as items. Continues where it stopped."],
  ["follow", [], "Follow", "Copies every committed change, until you stop it."],
  ["follow", ["Once"], "Follow up to now", "Copies every change up to now."],
  ["verify", [], "Verify", "Compares both sides at one position of the log, in both directions."],
];
const TURNS = {
  cutover: { title: "Cut over", text: "The source refuses writes from then on, and the target becomes authoritative. Everything written until then is copied and compared first." },
  rollback: { title: "Roll back", text: "The source becomes authoritative again, with all that was written at the target since the cutover." },
  finish: { title: "Finish", text: "The move is over: nothing of it stays in the source, and there is no way back." },
  repair: { title: "Repair differences", command: "verify", options: ["Repair"], text: "Items that are missing or differ are written again, and items of the move that no row makes are removed." },
};

export default function Moves({ parts }) {
  const [names, setNames] = useState(null);
  const [error, setError] = useState(null);
  useEffect(() => { look("moves").then(({ Moves: found }) => setNames(found), setError); }, []);
  const name = parts[0] || (names?.length === 1 ? names[0] : "");
  if (name) return html`<${One} key=${name} name=${name} />`;
  return html`<div class="head"><h1>Move</h1></div><${Problem} error=${error} />
    ${names && (names.length ? html`<ul class="card plain-list">${names.map((one) => html`<li key=${one}><a href=${link("move", [one])}>${one}</a></li>`)}</ul>`
    : html`<div class="card empty"><h2>No migration is shown here</h2><p>Give its folder to the server, or to a console beside it:</p><pre>partita serve --move FOLDER</pre><pre>partita console --endpoint ${session.Endpoint} --move FOLDER</pre></div>`)}`;
}

function One({ name }) {
  const [folderState, setFolderState] = useState(null);
  const [error, setError] = useState(null);
  const [refused, setRefused] = useState(null);
  const [requestedRun, setRequestedRun] = useState(null);
  const [turn, setTurn] = useState(null);
  const newest = useRef({ requested: 0, shown: 0 });
  const path = `moves/${encodeURIComponent(name)}`;
  // The response to an earlier request never replaces that of a later one.
  const refresh = async () => {
    const number = ++newest.current.requested;
    const found = await look(path);
    if (number < newest.current.shown) return;
    newest.current.shown = number;
    setFolderState(found);
    setError(null);
  };
  useRepeated((state) => refresh().catch((failed) => !state.isGone && setError(failed)), EVERY_MS, [name]);
  const start = async (Command, Options, more = {}) => {
    setRefused(null);
    setRequestedRun({ Number: 0, Command, DryRun: Boolean(more.DryRun), Ended: null, Progress: {}, Said: [] });
    try {
      const { Number: number } = await tell(`${path}/start`, { Command, Options, ...more });
      await refresh();
      return number;
    } finally { setRequestedRun(null); }
  };
  const stop = async () => { try { await tell(`${path}/stop`, {}); say("The command is stopping."); } catch (failed) { setRefused(failed); } };
  if (!folderState) return html`<div class="head"><h1>${name}</h1></div><${Problem} error=${error} />`;
  const { status, commands, lag } = folderState, run = requestedRun || folderState.run;
  const [phase, kind] = PHASES[status.phase] || ["Nothing is moved yet", ""];
  return html`<div class="head"><h1>${name}</h1><span class=${`badge ${kind}`} id="phase">${phase}</span><div class="actions"><a class="button" href=${link("model", [], { move: name })}>Open its designs</a></div></div>
    ${session.Mode === "on" && html`<${Actions} run=${run} holder=${status.holder} commands=${commands} phase=${status.phase} refusal=${status.refusal} different=${left(status.verified)} onStart=${(...given) => start(...given).catch(setRefused)} onTurn=${setTurn} />`}
    <${Problem} error=${refused} /><${Problem} error=${error} />
    <${AtWork} run=${run} holder=${status.holder} onStop=${stop} />
    <section class="card" aria-label="Overview"><dl class="facts"><div><dt>Source</dt><dd>${status.source || "–"}</dd></div><div><dt>Target</dt><dd>${status.endpoint || session.Endpoint}</dd></div><div><dt>Design</dt><dd>${status.model || "–"}</dd></div><div><dt>Position in the log</dt><dd>${count(status.position)}</dd></div><div><dt>Behind</dt><dd id="lag">${behind(run, lag)}</dd></div></dl>
      <${Stages} stages=${status.stages} running=${run && !run.Ended ? run.Command : ""} /></section>
    ${status.refusal && !status.holder && html`<p class="note" role="alert">${status.refusal}</p>`}
    <${Tables} tables=${status.tables} />
    <${Differences} verified=${status.verified} />
    <${Rejects} count=${status.rejected} rejects=${status.rejects} />
    ${status.turns.length > 0 && html`<section class="card" aria-label="History"><h2>History</h2><ol>${status.turns.map((one, n) => html`<li key=${n}>${new Date(one.at * 1000).toLocaleString()}: ${one.step}, writes were refused for ${one.refused_seconds.toFixed(1)} s</li>`)}</ol></section>`}
    ${turn && html`<${Turn} name=${name} turn=${turn} run=${run} folder=${status.folder} endpoint=${session.Endpoint} onStart=${start} onClose=${() => setTurn(null)} />`}`;
}

const left = (verified) => (verified ? (verified.different || 0) - (verified.repaired || 0) : 0);

// A running command reports its own lag; after its end, the last report is shown.
function behind(run, last) {
  const seconds = /([\d.]+) s behind/.exec(run?.Progress?.What || "")?.[1];
  if (seconds !== undefined) return `${seconds} s`;
  return last ? `${last.Seconds.toFixed(1)} s${last.Bytes ? `, ${count(last.Bytes)} bytes` : ""}, at ${new Date(last.At * 1000).toLocaleTimeString()}` : "unknown until changes are followed";
}

function Stages({ stages, running }) {
  return html`<ol class="stages" aria-label="Stages">${stages.map((one) => html`<li key=${one.name} class=${one.name === running ? "running" : one.is_done ? "done" : ""}><strong>${TITLES[one.name] || one.name}</strong><span class="hidden-label">: </span><span class="state">${one.name === running ? "running" : one.is_done ? "done" : "not yet"}</span>${one.said && html`<span class="said">${one.said}</span>`}</li>`)}</ol>`;
}

function AtWork({ run, holder, onStop }) {
  if (!run) return holder ? html`<p class="note">${holder} is working in this folder; it was started elsewhere.</p>` : null;
  const { Progress: at, Said: said } = run, title = `${run.Command}${run.DryRun ? ", as a rehearsal" : ""}`;
  if (!run.Ended) return html`<section class="card" aria-label="Running"><div class="bar"><h2>${title}</h2><span class="spacer"></span>${session.Mode === "on" && html`<button onClick=${onStop}>Stop</button>`}</div>
    <p role="status">${at.What || "Starting"}${at.Done ? `: ${count(at.Done)}${at.Total ? ` of ${count(at.Total)}` : ""}` : ""}</p><progress class="wide" max=${at.Total || 1} value=${at.Total ? at.Done : undefined} aria-label="Progress"></progress></section>`;
  const isRight = run.Code === 0;
  return html`<section class="card" aria-label="Last command"><div class="bar"><h2>${title}</h2><span class=${`badge ${isRight ? "good" : "warn"}`} id="outcome">${outcome(run)}</span><span class="quiet">${new Date(run.Ended * 1000).toLocaleTimeString()}, after ${(run.Ended - run.Began).toFixed(1)} s</span></div>
    ${said.map((line, n) => html`<p class=${isRight ? "quiet" : "problem"} key=${n}>${line.replace(/^Error: /, "")}</p>`)}${run.Result && html`<details class="call"><summary>Output</summary><pre tabindex="0" aria-label="Result">${JSON.stringify(run.Result, null, 2)}</pre></details>`}</section>`;
}

// Commands exit with 1 when they found problems, which their output lists.
function outcome({ Command, Code, Result }) {
  if (Code === 0) return "done";
  if (Code < 0 || Code === 130) return "stopped";
  return Command === "verify" && Code === 1 && Result ? "differences found" : `failed with ${Code}`;
}

// Placed above everything that appears and disappears, so that buttons do not move under the pointer.
function Actions({ run, holder, commands, phase, refusal, different, onStart, onTurn }) {
  const busy = Boolean((run && !run.Ended) || holder);
  const has = (command) => commands.includes(command);
  const turns = [...(different > 0 ? ["repair"] : []), ...(refusal ? ["cutover", "rollback"] : [phase === "backward" ? "rollback" : "cutover"]), "finish"];
  const missing = turns.filter((one) => !has(TURNS[one].command || one)).map((one) => TURNS[one].title.toLowerCase());
  return html`<section class="card" aria-label="Actions"><h2>Actions</h2><div class="bar">
      ${COMMANDS.map(([command, options, title, text]) => html`<button key=${title} disabled=${busy || !has(command)} title=${text} onClick=${() => onStart(command, options)}>${title}</button>`)}
      <span class="spacer"></span>${turns.map((one) => html`<button key=${one} class="danger" disabled=${busy || !has(TURNS[one].command || one)} onClick=${() => onTurn(one)}>${TURNS[one].title}…</button>`)}</div>
    ${missing.length > 0 && html`<p class="quiet">This version of partita cannot ${missing.join(", ")} yet.</p>`}</section>`;
}

// A dangerous command needs a rehearsal first, and then the typed name of the move.
function Turn({ name, turn, run, folder, endpoint, onStart, onClose }) {
  const { title, text, command = turn, options = [] } = TURNS[turn];
  const [typed, setTyped] = useState("");
  const [error, setError] = useState(null);
  const [number, setNumber] = useState(null);
  const rehearsal = run?.DryRun && run.Number === number ? run : null;
  const isRehearsed = rehearsal?.Ended && rehearsal.Code === 0;
  const act = (more) => async (event) => {
    event.preventDefault();
    setError(null);
    if (more.DryRun) setNumber(0);
    try { const started = await onStart(command, options, more); if (more.DryRun) setNumber(started); else onClose(); } catch (failed) { setError(failed); }
  };
  return html`<${Over} label=${title} onClose=${onClose}><h1>${title}</h1><p class="note">${text}</p>
    <p class="mono">partita migrate ${command} ${folder} --endpoint ${endpoint}${command === "verify" ? " --repair" : ""}</p>
    <h2>1. Rehearse</h2><p class="quiet">Shows what would be done, and changes nothing.</p>
    <div class="bar"><button data-focus disabled=${rehearsal && !rehearsal.Ended} onClick=${act({ DryRun: true })}>Rehearse</button>${rehearsal && html`<span role="status">${rehearsal.Ended ? (isRehearsed ? "This would succeed." : "This would fail.") : "Running"}</span>`}</div>
    ${rehearsal?.Ended && html`${rehearsal.Said.map((line, n) => html`<p key=${n} class=${isRehearsed ? "quiet" : "problem"}>${line.replace(/^Error: /, "")}</p>`)}${rehearsal.Result && html`<pre class="code" tabindex="0" aria-label="What would be done">${JSON.stringify(rehearsal.Result, null, 2)}</pre>`}`}
    <form onSubmit=${act({ Name: typed })}><h2>2. Confirm</h2><${Field} label=${`Type ${name} to confirm`}><${Input} value=${typed} onInput=${setTyped} name="confirm" disabled=${!isRehearsed} /><//><${Problem} error=${error} />
      <div class="bar" style=${{ marginTop: "14px" }}><button class="danger primary" disabled=${!isRehearsed || typed !== name}>${title}</button><button type="button" onClick=${onClose}>Cancel</button></div></form><//>`;
}

function Tables({ tables }) {
  if (!tables.length) return null;
  return html`<section class="card" aria-label="Tables"><h2>Tables</h2><div class="scroll" tabindex="0" role="region" aria-label="Tables of the source"><table id="moved"><thead><tr><th scope="col">Table</th><th scope="col">Read</th><th scope="col" class="number">Rows</th><th scope="col" class="number">Imported</th><th scope="col" class="number">Skipped</th><th scope="col" class="number">Failed</th><th scope="col" class="number">Items</th></tr></thead><tbody>
    ${tables.map((one) => html`<tr key=${one.table}><td>${one.table}</td><td><progress max=${Math.max(one.expected || 0, one.rows || 0, 1)} value=${one.rows || 0} aria-label=${`Rows of ${one.table}`}></progress></td><td class="number">${count(one.rows || 0)}</td><td class="number">${count(one.imported || 0)}</td><td class="number" title=${one.skipped_why || ""}>${count(one.skipped || 0)}</td><td class="number">${count(one.failed || 0)}</td><td class="number">${count(one.items || 0)}</td></tr>`)}</tbody></table></div></section>`;
}

function Differences({ verified }) {
  if (!verified) return null;
  const open = left(verified);
  return html`<section class="card" aria-label="Differences"><h2>Differences</h2><p id="compared">${count(verified.rows || 0)} rows and ${count(verified.items || 0)} items were compared${verified.is_sample ? ", a sample," : ""} at position ${count(verified.position)}: <strong>${open ? `${count(open)} ${open === 1 ? "difference" : "differences"}` : "nothing differs"}</strong>${verified.repaired ? `, ${count(verified.repaired)} were repaired` : ""}.</p>
    ${verified.differences?.length > 0 && html`<div class="scroll" tabindex="0" role="region" aria-label="Differences"><table id="different"><thead><tr><th scope="col">Side</th><th scope="col">Table</th><th scope="col">Key</th><th scope="col">What</th></tr></thead><tbody>${verified.differences.slice(0, SHOWN_MAX).map((one, n) => html`<tr key=${n}><td>${one.side}</td><td>${one.table}</td><td class="mono clip">${one.key}</td><td>${one.what}${one.is_repaired ? html` <span class="badge good">repaired</span>` : ""}</td></tr>`)}</tbody></table></div>`}</section>`;
}

function Rejects({ count: number, rejects }) {
  if (!number) return null;
  return html`<section class="card" aria-label="Rejects"><h2>${count(number)} ${number === 1 ? "row was" : "rows were"} rejected</h2><p class="quiet">Correct them in the source; following then copies them.</p><div class="scroll" tabindex="0" role="region" aria-label="Rejected rows"><table id="rejects"><thead><tr><th scope="col">Table</th><th scope="col">Key</th><th scope="col">Why</th></tr></thead><tbody>${rejects.slice(0, SHOWN_MAX).map((one, n) => html`<tr key=${n}><td>${one.table}</td><td class="mono clip">${one.key}</td><td>${one.reason}</td></tr>`)}</tbody></table></div></section>`;
}
