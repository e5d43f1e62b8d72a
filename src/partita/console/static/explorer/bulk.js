// Many items at once: deleting, exporting, importing. Each says how far it is, and can be cancelled.

import { Call, Confirm, Field, Over, Problem, Select, count, html, items as counted, save, say, units, useRef, useState } from "../parts.js";
import { call } from "../api.js";
import { additionOf, keyOf } from "../values.js";
import { csvOf, itemsOf, jsonOf } from "./files.js";
import { indexesOf } from "./request.js";

const BATCH = 25;
const PAUSE_MS_MAX = 5000;

const consumed = (answer) => [answer.ConsumedCapacity || []].flat().reduce((sum, one) => sum + one.CapacityUnits, 0);

// A batch may be taken in part: what was not is sent again, later each time.
async function writeBatches(TableName, requests, onProgress, signal) {
  const made = { done: 0, units: 0 };
  for (let from = 0; from < requests.length; from += BATCH) {
    let waiting = requests.slice(from, from + BATCH), pause = 50;
    while (waiting.length && !signal.aborted) {
      const answer = await call("BatchWriteItem", { RequestItems: { [TableName]: waiting }, ReturnConsumedCapacity: "TOTAL" });
      const left = answer.UnprocessedItems?.[TableName] || [];
      made.done += waiting.length - left.length;
      made.units += consumed(answer);
      onProgress({ ...made });
      waiting = left;
      if (left.length) { await new Promise((next) => setTimeout(next, pause)); pause = Math.min(pause * 2, PAUSE_MS_MAX); }
    }
  }
  return made;
}

// All that a request finds, a page at a time.
async function eachPage({ operation, request: { Limit, ...request } }, act, signal) {
  let start;
  do {
    const page = await call(operation, start ? { ...request, ExclusiveStartKey: start } : request, signal);
    await act(page);
    start = page.LastEvaluatedKey;
  } while (start && !signal.aborted);
}

const deletions = (table, items) => items.map((item) => ({ DeleteRequest: { Key: keyOf(item, table.KeySchema) } }));

async function putBack(table, items, onDone) {
  let kept = 0;
  for (const item of items) {
    try { await call("PutItem", additionOf(table.TableName, table.KeySchema, item)); kept += 1; } catch (failed) { if (failed.code !== "ConditionalCheckFailedException") { say(failed.message, { bad: true }); break; } }
  }
  say(`${counted(kept)} restored.`);
  onDone();
}

// Whether a request answers with all attributes of its items: only such items can be put back.
const isOfWholeItems = (table, { IndexName, ProjectionExpression }) => !ProjectionExpression && (!IndexName || indexesOf(table).find((one) => one.IndexName === IndexName)?.Projection.ProjectionType === "ALL");

export function BulkDelete({ table, answer, items, onClose, onDone }) {
  const [progress, setProgress] = useState(null);
  const [whole, setWhole] = useState(false);
  const control = useRef(new AbortController());
  const requests = deletions(table, items), canUndo = isOfWholeItems(table, answer.request);
  const deleteChosen = async (signal) => {
    const made = await writeBatches(table.TableName, requests, setProgress, signal);
    say(`${counted(made.done)} deleted. ${units(made.units, "W")}`, canUndo ? { label: "Undo", action: () => putBack(table, items.slice(0, made.done), onDone) } : {});
  };
  const deleteFound = async (signal) => {
    const all = { done: 0, units: 0 };
    await eachPage(answer, async (page) => {
      const before = { ...all };
      const made = await writeBatches(table.TableName, deletions(table, page.Items), (now) => setProgress({ done: before.done + now.done, units: before.units + now.units }), signal);
      all.done += made.done;
      all.units += made.units;
    }, signal);
    say(`${counted(all.done)} deleted. ${units(all.units, "W")}`);
  };
  const act = async () => {
    const { signal } = control.current;
    try { await (whole ? deleteFound(signal) : deleteChosen(signal)); } finally { onDone(); }
  };
  const verb = whole ? "Delete all that is found" : `Delete ${counted(items.length)}`;
  return html`<${Confirm} title=${verb} name=${whole ? table.TableName : String(items.length)} verb=${verb} operation="BatchWriteItem" request=${{ RequestItems: { [table.TableName]: requests } }}
    onClose=${() => { control.current.abort(); onClose(); }} onDone=${act}>
    ${answer.LastEvaluatedKey && html`<${Field} label="Which"><${Select} value=${whole ? "all" : ""} onChange=${(value) => setWhole(value === "all")} options=${[["", `The chosen ${counted(items.length)}`], ["all", `Everything that this ${answer.operation} finds`]]} disabled=${progress !== null} /><//>`}
    <p>From ${table.TableName}, whatever has become of them since they were read.${whole || !canUndo ? " This cannot be undone." : ""}</p>
    <${Progress} of=${progress} total=${whole ? undefined : items.length} verb="deleted" /><//>`;
}

function Progress({ of, total, verb, kind = "W" }) {
  if (!of) return null;
  return html`<p role="status">${count(of.done)}${total === undefined ? "" : ` of ${count(total)}`} ${verb}, ${units(of.units, kind)}</p><progress class="wide" max=${total || 1} value=${total === undefined ? undefined : of.done} aria-label="Progress"></progress>`;
}

export function Export({ table, answer, items, onClose }) {
  const [format, setFormat] = useState("json");
  const [all, setAll] = useState(false);
  const [progress, setProgress] = useState(null);
  const [error, setError] = useState(null);
  const control = useRef(new AbortController());
  const act = async (event) => {
    event.preventDefault();
    const found = all ? [] : items, { signal } = control.current;
    let read = 0;
    try {
      if (all) await eachPage(answer, (page) => { for (const one of page.Items) found.push(one); read += consumed(page); setProgress({ done: found.length, units: read }); }, signal);
    } catch (failed) { if (failed.name !== "AbortError") setError(failed); return; }
    if (format === "json") save(`${table.TableName}.json`, jsonOf(found));
    else save(`${table.TableName}.csv`, csvOf(found), "text/csv");
    say(`${counted(found.length)} exported.${all ? ` ${units(read, "R")}` : ""}`);
    onClose();
  };
  const leave = () => { control.current.abort(); onClose(); };
  return html`<${Over} label="Export" onClose=${leave}><h1>Export</h1><form onSubmit=${act} style=${{ marginTop: "14px" }}>
    <div class="row"><${Field} label="Format"><${Select} value=${format} onChange=${setFormat} options=${[["json", "DynamoDB JSON, an item a line"], ["csv", "CSV"]]} data-focus /><//>
      <${Field} label="Items"><${Select} value=${all ? "all" : "page"} onChange=${(value) => setAll(value === "all")} options=${[["page", `This page (${items.length})`], ["all", "Everything that this request finds"]]} /><//></div>
    <${Progress} of=${progress} verb="read" kind="R" /><${Problem} error=${error} />
    ${all && answer && html`<${Call} operation=${answer.operation} request=${answer.request} />`}
    <div class="bar"><button class="primary" disabled=${progress && !error}>Export</button><button type="button" onClick=${leave}>Cancel</button></div></form><//>`;
}

export function Import({ table, onClose, onDone }) {
  const [found, setFound] = useState(null);
  const [error, setError] = useState(null);
  const [progress, setProgress] = useState(null);
  const control = useRef(new AbortController());
  const choose = async (event) => {
    const [file] = event.target.files;
    if (!file) return;
    try { setFound(itemsOf(file.name, await file.text(), table.AttributeDefinitions)); setError(null); } catch (failed) { setFound(null); setError(failed); }
  };
  const act = async (event) => {
    event.preventDefault();
    setProgress({ done: 0, units: 0 });
    try {
      const made = await writeBatches(table.TableName, found.map((Item) => ({ PutRequest: { Item } })), setProgress, control.current.signal);
      say(`${counted(made.done)} imported. ${units(made.units, "W")}`);
      onClose();
    } catch (failed) { setError(failed); setProgress(null); }
    onDone();
  };
  const leave = () => { control.current.abort(); onClose(); };
  return html`<${Over} label="Import" onClose=${leave}><h1>Import into ${table.TableName}</h1><form onSubmit=${act} style=${{ marginTop: "14px" }}>
    <p class="quiet">DynamoDB JSON (an item a line, or a list) or CSV. Items that have the key of one in the file are replaced.</p>
    <input type="file" accept=".json,.jsonl,.csv" onChange=${choose} aria-label="File" data-focus />
    ${found && html`<p role="status" id="found">${counted(found.length)} found.</p><${Call} operation="BatchWriteItem" request=${{ RequestItems: { [table.TableName]: found.slice(0, 2).map((Item) => ({ PutRequest: { Item } })) } }} />`}
    <${Progress} of=${progress} total=${found?.length} verb="written" /><${Problem} error=${error} />
    <div class="bar" style=${{ marginTop: "14px" }}><button class="primary" disabled=${!found?.length || progress}>Import</button><button type="button" onClick=${leave}>Cancel</button></div></form><//>`;
}
