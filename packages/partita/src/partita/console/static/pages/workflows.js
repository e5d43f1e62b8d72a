// Workflows: drawings of state machines, their executions with the path that they took, and redrives.

import { Call, Field, Input, Over, Problem, Select, clipped, count, html, link, say, useEffect, useState } from "../shared/parts.js";
import { call as ask, isUnknown, session } from "../shared/api.js";
import { Drawing, pathOf } from "../page_parts/machine.js";

const call = (operation, request = {}) => ask(operation, request, undefined, "states");
const BADGES = { SUCCEEDED: "good", RUNNING: "", FAILED: "warn", TIMED_OUT: "warn", ABORTED: "warn" };
const STATUSES = ["RUNNING", "SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED"];
const EVENTS_MAX = 5000;
const when = (seconds) => (seconds ? new Date(seconds * 1000).toLocaleString() : "");
const nameOf = (arn) => arn.split(":").pop();
const Status = ({ status }) => html`<span class=${`badge ${BADGES[status] ?? ""}`}>${status}</span>`;

export default function Workflows({ parts, query }) {
  if (parts[1]) return html`<${Execution} key=${parts[1]} machine=${parts[0]} arn=${parts[1]} />`;
  if (parts[0]) return html`<${Machine} key=${parts[0]} arn=${parts[0]} query=${query} />`;
  return html`<${All} />`;
}

function Missing({ error }) {
  if (isUnknown(error)) return html`<div class="card empty"><h2>No workflows on this endpoint</h2><p>It does not support the API of AWS Step Functions.</p></div>`;
  return html`<${Problem} error=${error} />`;
}

async function allOf(operation, member, request = {}, most = 1000) {
  const found = [];
  let token;
  do {
    const page = await call(operation, { ...request, ...(token ? { nextToken: token } : {}) });
    found.push(...page[member]);
    token = page.nextToken;
  } while (token && found.length < most);
  return found;
}

function All() {
  const [machines, setMachines] = useState(null);
  const [error, setError] = useState(null);
  useEffect(() => { allOf("ListStateMachines", "stateMachines").then(setMachines, setError); }, [session.state === "connected"]);
  return html`<div class="head"><h1>Workflows</h1>${machines && html`<span class="quiet">${count(machines.length)}</span>`}</div><${Missing} error=${error} />
    ${machines && (machines.length ? html`<div class="scroll" tabindex="0" role="region" aria-label="State machines"><table id="machines"><thead><tr><th scope="col">State machine</th><th scope="col">Type</th><th scope="col">Since</th></tr></thead><tbody>
      ${machines.map((one) => html`<tr key=${one.stateMachineArn}><td><a href=${link("workflows", [one.stateMachineArn])}>${one.name}</a></td><td>${one.type}</td><td>${when(one.creationDate)}</td></tr>`)}</tbody></table></div>`
    : html`<div class="card empty"><h2>No state machines</h2><p>Create one with CreateStateMachine of AWS Step Functions.</p></div>`)}`;
}

function Machine({ arn, query }) {
  const [machine, setMachine] = useState(null);
  const [executions, setExecutions] = useState(null);
  const [error, setError] = useState(null);
  const [starting, setStarting] = useState(false);
  const status = query.get("status") || "";
  useEffect(() => { call("DescribeStateMachine", { stateMachineArn: arn }).then(setMachine, setError); }, [arn]);
  useEffect(() => {
    let gone = false, timer;
    const look = async () => {
      if (!document.hidden) try { const page = await call("ListExecutions", { stateMachineArn: arn, maxResults: 100, ...(status ? { statusFilter: status } : {}) }); if (!gone) setExecutions(page.executions); } catch (failed) { if (!gone) setError(failed); }
      if (!gone) timer = setTimeout(look, 2000);
    };
    look();
    return () => { gone = true; clearTimeout(timer); };
  }, [arn, status]);
  const definition = machine && JSON.parse(machine.definition);
  return html`<div class="head"><h1>${nameOf(arn)}</h1>${machine && html`<span class="badge">${machine.type}</span>`}<div class="actions">${session.Mode === "on" && html`<button class="primary" onClick=${() => setStarting(true)}>Start execution</button>`}</div></div>
    <${Missing} error=${error} />
    ${definition && html`<section class="card" aria-label="Machine"><${Drawing} machine=${definition} label=${`The machine ${nameOf(arn)}`} /><details class="more"><summary>Definition</summary><pre class="code" tabindex="0" aria-label="Definition">${clipped(JSON.stringify(definition, null, 2))}</pre></details></section>`}
    <section class="card" aria-label="Executions"><h2>Executions</h2>
      <div class="row narrow"><${Field} label="Status"><${Select} value=${status} onChange=${(next) => { location.hash = link("workflows", [arn], { status: next }); }} options=${[["", "all"], ...STATUSES]} /><//></div>
      ${executions && (executions.length ? html`<div class="scroll" tabindex="0" role="region" aria-label="Executions"><table id="executions"><thead><tr><th scope="col">Execution</th><th scope="col">Status</th><th scope="col">Began</th><th scope="col">Ended</th></tr></thead><tbody>
        ${executions.map((one) => html`<tr key=${one.executionArn}><td><a href=${link("workflows", [arn, one.executionArn])}>${one.name}</a></td><td><${Status} status=${one.status} /></td><td>${when(one.startDate)}</td><td>${when(one.stopDate)}</td></tr>`)}</tbody></table></div>` : html`<p class="quiet">None${status && ` that is ${status}`}.</p>`)}
    </section>
    ${starting && html`<${Start} arn=${arn} onClose=${() => setStarting(false)} />`}`;
}

function Start({ arn, onClose }) {
  const [name, setName] = useState("");
  const [input, setInput] = useState("{}");
  const [error, setError] = useState(null);
  let wrong = null;
  try { JSON.parse(input); } catch (failed) { wrong = `This is not JSON: ${failed.message}.`; }
  const request = { stateMachineArn: arn, input, ...(name ? { name } : {}) };
  const act = async (event) => {
    event.preventDefault();
    try { const { executionArn } = await call("StartExecution", request); say("Execution started."); location.hash = link("workflows", [arn, executionArn]); } catch (failed) { setError(failed); }
  };
  return html`<${Over} label="Start execution" onClose=${onClose}><h1>Start ${nameOf(arn)}</h1><form onSubmit=${act}>
    <${Field} label="Name (optional)"><${Input} value=${name} onInput=${setName} data-focus /><//>
    <label class="field stacked"><span>Input</span><textarea class="code" rows="8" spellcheck=${false} value=${input} onInput=${(event) => setInput(event.target.value)} aria-invalid=${wrong ? "true" : "false"}></textarea></label>
    ${wrong && html`<div class="problem" role="alert">${wrong}</div>`}<${Call} operation="StartExecution" request=${request} /><${Problem} error=${error} />
    <div class="bar"><button class="primary" disabled=${Boolean(wrong)}>Start</button><button type="button" onClick=${onClose}>Cancel</button></div></form><//>`;
}

function Execution({ machine, arn }) {
  const [execution, setExecution] = useState(null);
  const [definition, setDefinition] = useState(null);
  const [events, setEvents] = useState([]);
  const [error, setError] = useState(null);
  const [round, setRound] = useState(0);
  useEffect(() => {
    let gone = false, timer;
    const look = async () => {
      try {
        const found = await call("DescribeExecution", { executionArn: arn });
        const history = await allOf("GetExecutionHistory", "events", { executionArn: arn, maxResults: 1000 }, EVENTS_MAX);
        if (gone) return;
        setExecution(found);
        setEvents(history);
        setError(null);
        if (found.status === "RUNNING") timer = setTimeout(look, 1000);
      } catch (failed) { if (!gone) { setError(failed); timer = setTimeout(look, 2000); } }
    };
    look();
    return () => { gone = true; clearTimeout(timer); };
  }, [arn, round]);
  useEffect(() => { call("DescribeStateMachineForExecution", { executionArn: arn }).then((found) => setDefinition(JSON.parse(found.definition)), setError); }, [arn]);
  const act = async (operation, said) => { try { await call(operation, { executionArn: arn }); say(said); setRound((n) => n + 1); } catch (failed) { setError(failed); } };
  const on = session.Mode === "on";
  const mayRedrive = execution && ["FAILED", "TIMED_OUT", "ABORTED"].includes(execution.status);
  return html`<div class="head"><h1>${nameOf(arn)}</h1>${execution && html`<${Status} status=${execution.status} />${execution.redriveCount > 0 && html`<span class="badge" id="redrives">redriven ${execution.redriveCount}×</span>`}`}<a href=${link("workflows", [machine])}>${nameOf(machine)}</a>
      <div class="actions">${on && mayRedrive && html`<button class="primary" onClick=${() => act("RedriveExecution", "It goes on from where it failed.")}>Redrive</button>`}${on && execution?.status === "RUNNING" && html`<button class="danger" onClick=${() => act("StopExecution", "The execution was stopped.")}>Stop ${nameOf(arn)}</button>`}</div></div>
    <${Missing} error=${error} />
    ${execution?.error && html`<div class="problem" role="alert">${execution.error}: ${execution.cause || ""}</div>`}
    ${definition && execution && html`<section class="card" aria-label="Path"><${Drawing} machine=${definition} path=${pathOf(events, execution.status)} label=${`The path of ${nameOf(arn)}`} /></section>`}
    ${execution && html`<section class="card" aria-label="Data"><dl class="facts"><div><dt>Began</dt><dd>${when(execution.startDate)}</dd></div><div><dt>Ended</dt><dd>${when(execution.stopDate) || "–"}</dd></div></dl>
      <details class="more"><summary>Input</summary><pre class="code" tabindex="0" aria-label="Input">${clipped(execution.input || "")}</pre></details>
      ${execution.output && html`<details class="more" open><summary>Output</summary><pre class="code" tabindex="0" id="output" aria-label="Output">${clipped(execution.output)}</pre></details>`}</section>
    ${on && mayRedrive && html`<${Call} operation="RedriveExecution" request=${{ executionArn: arn }} />`}${on && execution.status === "RUNNING" && html`<${Call} operation="StopExecution" request=${{ executionArn: arn }} />`}
    <section class="card" aria-label="History"><h2>History</h2><div class="scroll" tabindex="0" role="region" aria-label="History"><table id="history"><thead><tr><th scope="col" class="number">No.</th><th scope="col">Event</th><th scope="col">State</th><th scope="col">When</th><th scope="col">Details</th></tr></thead><tbody>
      ${events.slice(-500).map((one) => html`<${Event} key=${one.id} event=${one} began=${execution.startDate} />`)}</tbody></table></div>${events.length > 500 && html`<p class="quiet">The last 500 of ${count(events.length)} events.</p>`}</section>`}`;
}

function Event({ event, began }) {
  const [, details] = Object.entries(event).find(([name]) => name.endsWith("EventDetails")) || [];
  const { name, ...others } = details || {};
  const text = Object.entries(others).filter(([, value]) => typeof value !== "object" || Object.keys(value).some((one) => one !== "truncated" || value.truncated)).map(([key, value]) => `${key}: ${typeof value === "string" ? value : JSON.stringify(value)}`).join(" · ");
  return html`<tr><td class="number">${event.id}</td><td>${event.type}</td><td>${name || ""}</td><td class="number">+${(event.timestamp - began).toFixed(3)} s</td><td class="mono clip" title=${text.slice(0, 2000)}>${text.slice(0, 160)}</td></tr>`;
}
