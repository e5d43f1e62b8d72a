// PartiQL: statements with parameters, their plans, results and costs.

import { Call, Field, Over, Problem, count, html, items as counted, link, useEffect, useRef, useState } from "../shared/parts.js";
import { allTables, call, session } from "../shared/api.js";
import { Plan, usePlan } from "../page_parts/plan.js";
import { Cell } from "../shared/cells.js";
import { attributeOf, checked } from "../shared/values.js";

const HISTORY = "partiql-history";
const HISTORY_MAX = 50;
const WORDS = ["SELECT", "FROM", "WHERE", "INSERT INTO", "VALUE", "UPDATE", "SET", "REMOVE", "DELETE FROM", "AND", "OR", "NOT", "BETWEEN", "IN", "begins_with(", "contains(", "attribute_type(", "MISSING", "ORDER BY", "DESC", "RETURNING ALL OLD *"];
const SUGGESTED_MAX = 8;
const COLUMNS_MAX = 30;

const history = () => { try { return JSON.parse(localStorage.getItem(HISTORY)) || []; } catch { return []; } };

function remember(statement) {
  const kept = [statement, ...history().filter((one) => one !== statement)].slice(0, HISTORY_MAX);
  try { localStorage.setItem(HISTORY, JSON.stringify(kept)); } catch { /* A full or forbidden store: there is no history then. */ }
}

const tableIn = (statement) => /\b(?:from|into|update)\s+"?([\w.-]+)"?/i.exec(statement)?.[1];

export default function PartiQL({ query }) {
  const [statement, setStatement] = useState(query.get("statement") || "");
  const [parameters, setParameters] = useState(query.get("parameters") || "");
  const given = query.toString();
  useEffect(() => { if (query.has("statement")) { setStatement(query.get("statement")); setParameters(query.get("parameters") || ""); } }, [given]);
  const [answer, setAnswer] = useState(null);
  const [error, setError] = useState(null);
  const [tables, setTables] = useState([]);
  const [table, setTable] = useState(null);
  const [attributes, setAttributes] = useState([]);
  const [busy, setBusy] = useState(false);
  const [past, setPast] = useState(false);
  const [suggesting, setSuggesting] = useState(-1);
  const editor = useRef(null);
  const running = useRef(null);
  useEffect(() => { allTables().then(setTables, setError); }, [session.state === "connected"]);
  const named = tableIn(statement);
  useEffect(() => {
    setTable(null);
    if (!named || !tables.includes(named)) return;
    call("DescribeTable", { TableName: named }).then((found) => setTable(found.Table), () => {});
    call("Scan", { TableName: named, Limit: 10 }).then(({ Items }) => setAttributes([...new Set(Items.flatMap((item) => Object.keys(item)))]), () => {});
  }, [named, tables]);

  let request = null, wrong = null;
  try {
    const given = parameters.trim() ? JSON.parse(parameters) : [];
    if (!Array.isArray(given)) throw new Error('Parameters are a list: [{"S": "text"}, {"N": "1"}].');
    given.forEach((one, at) => checked(one, `parameter ${at + 1}`));
    request = { Statement: statement.trim(), ...(given.length ? { Parameters: given } : {}), ReturnConsumedCapacity: "TOTAL" };
  } catch (failed) { wrong = failed instanceof SyntaxError ? new Error(`The parameters are not JSON: ${failed.message}.`) : failed; }

  const run = async (event, next) => {
    event?.preventDefault();
    if (!request?.Statement) return;
    running.current?.abort();
    const control = (running.current = new AbortController());
    setBusy(true);
    setError(null);
    location.hash = link("partiql", [], { statement, parameters });
    try {
      setAnswer(await call("ExecuteStatement", next ? { ...request, NextToken: next } : request, control.signal));
      remember(request.Statement);
    } catch (failed) { if (failed.name !== "AbortError") { setAnswer(null); setError(failed); } }
    setBusy(false);
  };

  // Completion of the word before the cursor.
  const cursor = editor.current?.selectionStart ?? statement.length;
  const word = /["\w.-]*$/.exec(statement.slice(0, cursor))[0];
  const bare = word.replace(/^"/, "").toLowerCase();
  const quoted = (name) => (/^[A-Za-z_]\w*$/.test(name) ? name : `"${name}"`);
  const known = [...attributes.map(quoted), ...tables.map((name) => `"${name}"`), ...[...(table?.GlobalSecondaryIndexes || []), ...(table?.LocalSecondaryIndexes || [])].map((one) => `"${named}"."${one.IndexName}"`), ...WORDS];
  const suggestions = bare ? known.filter((one) => one.toLowerCase().replace(/^"/, "").startsWith(bare) && one !== word).slice(0, SUGGESTED_MAX) : [];
  const accept = (text) => {
    const next = statement.slice(0, cursor - word.length) + text + statement.slice(cursor);
    setStatement(next);
    setSuggesting(-1);
    requestAnimationFrame(() => { editor.current.focus(); const at = cursor - word.length + text.length; editor.current.setSelectionRange(at, at); });
  };
  const onKeyDown = (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { run(event); return; }
    if (suggesting >= 0 && suggestions.length) {
      if (event.key === "ArrowDown") { event.preventDefault(); setSuggesting((suggesting + 1) % suggestions.length); }
      else if (event.key === "ArrowUp") { event.preventDefault(); setSuggesting((suggesting + suggestions.length - 1) % suggestions.length); }
      else if (event.key === "Enter") { event.preventDefault(); accept(suggestions[suggesting]); }
      else if (event.key === "Escape") setSuggesting(-1);
    } else if (event.key === " " && event.ctrlKey) { event.preventDefault(); setSuggesting(0); }
  };
  const explained = usePlan(request, table);
  const found = answer?.Items || [];
  const names = [...new Set(found.flatMap((item) => Object.keys(item)))], columns = names.slice(0, COLUMNS_MAX);
  return html`
    <div class="head"><h1>PartiQL</h1><div class="actions"><button onClick=${() => setPast(true)}>History</button></div></div>
    <form class="card" onSubmit=${run} aria-label="Statement">
      <label class="field"><span>Statement</span><textarea class="code" rows="5" ref=${editor} spellcheck=${false} placeholder=${'SELECT * FROM "Orders" WHERE customer = \'ann\''} value=${statement} onKeyDown=${onKeyDown} onInput=${(event) => { setStatement(event.target.value); setSuggesting(0); }} aria-describedby="editor-keys"></textarea></label>
      <p class="quiet" id="editor-keys">Ctrl Enter runs it. Ctrl Space completes tables, indexes and attributes.</p>
      ${suggesting >= 0 && suggestions.length > 0 && html`<div class="bar suggestions" role="group" aria-label="Completions">${suggestions.map((one, at) => html`<button type="button" key=${one} class=${`small ${at === suggesting ? "chosen" : ""}`} onClick=${() => accept(one)}><code>${one}</code></button>`)}</div>`}
      <label class="field"><span>Parameters for ?, a list in DynamoDB's JSON</span><input class="mono" value=${parameters} onInput=${(event) => setParameters(event.target.value)} placeholder=${'[{"S": "ann"}]'} spellcheck=${false} autocomplete="off" /></label>
      <${Plan} plan=${explained} />
      <${Problem} error=${wrong} />
      <div class="bar" style=${{ marginTop: "10px" }}><button class="primary" disabled=${!request?.Statement || busy}>Run</button>${busy && html`<button type="button" onClick=${() => running.current?.abort()}>Cancel</button>`}</div>
      ${request?.Statement && html`<${Call} operation="ExecuteStatement" request=${request} />`}
    </form>
    <${Problem} error=${error} />
    ${answer && html`<div class="bar" id="summary" role="status" style=${{ marginBottom: "10px" }}><strong>${counted(found.length)}</strong><span class="quiet">${answer.ConsumedCapacity ? `${answer.ConsumedCapacity.CapacityUnits} units` : "cost unknown"}</span>${names.length > columns.length && html`<span class="quiet">the first ${columns.length} of ${count(names.length)} attributes</span>`}<span class="spacer"></span>${answer.NextToken && html`<button class="small" onClick=${(event) => run(event, answer.NextToken)}>Next</button>`}</div>
      ${found.length ? html`<div class="scroll" tabindex="0" role="region" aria-label="Results"><table class="grid" id="items"><thead><tr>${columns.map((name) => html`<th scope="col" key=${name}>${name}</th>`)}</tr></thead><tbody>
        ${found.map((item, n) => html`<tr key=${n}>${columns.map((name) => html`<td key=${name} dir="auto"><${Cell} value=${attributeOf(item, name)} /></td>`)}</tr>`)}
      </tbody></table></div>` : html`<div class="card empty"><h2>Done</h2><p>The statement returned no items.</p></div>`}`}
    ${past && html`<${Over} label="History" onClose=${() => setPast(false)}><h1>History</h1><p class="quiet">Kept in this browser only.</p>
      ${history().map((one) => html`<p key=${one}><button class="plain mono" onClick=${() => { setStatement(one); setPast(false); }}>${one}</button></p>`)}
      ${!history().length && html`<p class="empty">Nothing was run yet.</p>`}<button onClick=${() => setPast(false)}>Close</button><//>`}`;
}
