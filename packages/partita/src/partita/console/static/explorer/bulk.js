// Many items at once: deleting, exporting, importing.

import { Call, Confirm, Field, Over, Problem, Select, count, html, items as counted, save, say, units, useEffect, useRef, useState } from "../shared/parts.js";
import { call } from "../shared/api.js";
import { additionOf, keyOf } from "../shared/values.js";
import { Progress, consumed, eachPage, isCancelled, writeBatches } from "../shared/work.js";
import { csvOf, itemsOf, jsonOf } from "./files.js";
import { indexesOf } from "./request.js";

// Closing the dialog cancels the work.
function useControl() {
  const control = useRef(new AbortController());
  useEffect(() => () => control.current.abort(), []);
  return control.current;
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

// True when a request returns all attributes of its items: only then can a deletion be undone.
const isOfWholeItems = (table, { IndexName, ProjectionExpression }) => !ProjectionExpression && (!IndexName || indexesOf(table).find((one) => one.IndexName === IndexName)?.Projection.ProjectionType === "ALL");

// Returns the most items that a request may find, if DescribeTable has the number.
const expected = (table, { operation, request }) => (operation === "Scan" && !request.FilterExpression && !request.IndexName ? table.ItemCount : undefined);

const ended = (signal, done, total, verb, cost) => `${signal.aborted ? "Cancelled: " : ""}${signal.aborted && total ? `${count(done)} of ${counted(total)}` : counted(done)} ${verb}. ${cost}`;

export function BulkDelete({ table, answer, items, onClose, onDone }) {
  const [progress, setProgress] = useState(null);
  const [whole, setWhole] = useState(false);
  const control = useControl(), { signal } = control;
  const requests = deletions(table, items), canUndo = isOfWholeItems(table, answer.request);
  const deleteChosen = async () => {
    const made = await writeBatches(table.TableName, requests, setProgress, signal);
    say(ended(signal, made.done, items.length, "deleted", units(made.units, "W")), canUndo && made.done ? { label: "Undo", action: () => putBack(table, items.slice(0, made.sent), onDone) } : {});
  };
  const deleteFound = async () => {
    const all = { done: 0, units: 0 };
    try {
      await eachPage(answer, async (page) => {
        const before = { ...all };
        const made = await writeBatches(table.TableName, deletions(table, page.Items), (now) => setProgress({ done: before.done + now.done, units: before.units + now.units }), signal);
        all.done += made.done;
        all.units += made.units;
      }, signal);
    } catch (failed) { if (!isCancelled(failed)) throw failed; }
    say(ended(signal, all.done, undefined, "deleted", units(all.units, "W")));
  };
  const act = async () => {
    setProgress({ done: 0, units: 0 });
    try { await (whole ? deleteFound() : deleteChosen()); } finally { onDone(); }
  };
  const verb = whole ? "Delete all that match" : `Delete ${counted(items.length)}`;
  return html`<${Confirm} title=${verb} name=${whole ? table.TableName : String(items.length)} verb=${verb} operation="BatchWriteItem" request=${{ RequestItems: { [table.TableName]: requests } }}
    onClose=${() => { control.abort(); onClose(); }} onDone=${act}>
    ${answer.LastEvaluatedKey && html`<${Field} label="Which"><${Select} value=${whole ? "all" : ""} onChange=${(value) => setWhole(value === "all")} options=${[["", `The chosen ${counted(items.length)}`], ["all", `Everything that this ${answer.operation} finds`]]} disabled=${progress !== null} /><//>`}
    <p>From ${table.TableName}, even if they have changed since they were read.${whole || !canUndo ? " This cannot be undone." : ""}</p>
    <${Progress} of=${progress} total=${whole ? expected(table, answer) : items.length} isAbout=${whole} verb="deleted" /><//>`;
}

const FORMATS = { json: ["DynamoDB JSON, one item per line", "application/json"], csv: ["CSV", "text/csv"] };

export function Export({ table, answer, items, onClose }) {
  const [format, setFormat] = useState("json");
  const [all, setAll] = useState(false);
  const [progress, setProgress] = useState(null);
  const [error, setError] = useState(null);
  const control = useControl(), { signal } = control;
  const act = async (event) => {
    event.preventDefault();
    setError(null);
    // JSON can be written as it is read; the columns of CSV are known only at the end.
    const lines = [], found = [], read = { done: 0, units: 0 };
    const take = (page) => { if (format === "json") lines.push(jsonOf(page)); else for (const one of page) found.push(one); read.done += page.length; };
    try {
      if (all) await eachPage(answer, (page) => { take(page.Items); read.units += consumed(page); setProgress({ ...read }); }, signal);
      else take(items);
    } catch (failed) { if (!isCancelled(failed)) { setError(failed); setProgress(null); return; } }
    if (signal.aborted) { say(`Cancelled: nothing was exported. ${units(read.units, "R")}`); return; }
    save(`${table.TableName}.${format}`, format === "json" ? lines : [csvOf(found)], FORMATS[format][1]);
    say(`${counted(read.done)} exported.${all ? ` ${units(read.units, "R")}` : ""}`);
    onClose();
  };
  const leave = () => { control.abort(); onClose(); };
  return html`<${Over} label="Export" onClose=${leave}><h1>Export</h1><form onSubmit=${act} style=${{ marginTop: "14px" }}>
    <div class="row"><${Field} label="Format"><${Select} value=${format} onChange=${setFormat} options=${Object.entries(FORMATS).map(([name, [title]]) => [name, title])} data-focus /><//>
      <${Field} label="Items"><${Select} value=${all ? "all" : "page"} onChange=${(value) => setAll(value === "all")} options=${[["page", `This page (${items.length})`], ["all", "All items that this request finds"]]} /><//></div>
    <${Progress} of=${progress} total=${answer && expected(table, answer)} isAbout verb="read" kind="R" /><${Problem} error=${error} />
    ${all && answer && html`<${Call} operation=${answer.operation} request=${answer.request} />`}
    <div class="bar"><button class="primary" disabled=${progress && !error}>Export</button><button type="button" onClick=${leave}>Cancel</button></div></form><//>`;
}

export function Import({ table, onClose, onDone }) {
  const [found, setFound] = useState(null);
  const [error, setError] = useState(null);
  const [progress, setProgress] = useState(null);
  const [busy, setBusy] = useState(false);
  const control = useControl(), { signal } = control;
  const choose = async (event) => {
    const [file] = event.target.files;
    if (!file) return;
    setProgress(null);
    try { setFound(itemsOf(file.name, await file.text(), table)); setError(null); } catch (failed) { setFound(null); setError(failed); }
  };
  const act = async (event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    setProgress({ done: 0, units: 0 });
    try {
      const made = await writeBatches(table.TableName, found.map((Item) => ({ PutRequest: { Item } })), setProgress, signal);
      say(ended(signal, made.done, found.length, "imported", units(made.units, "W")));
      if (!signal.aborted) onClose();
    } catch (failed) { setError(failed); setBusy(false); }
    onDone();
  };
  const leave = () => { control.abort(); onClose(); };
  return html`<${Over} label="Import" onClose=${leave}><h1>Import into ${table.TableName}</h1><form onSubmit=${act} style=${{ marginTop: "14px" }}>
    <p class="quiet">DynamoDB JSON (one item per line, or a list) or CSV. Existing items with the same keys are replaced.</p>
    <input type="file" accept=".json,.jsonl,.csv" onChange=${choose} aria-label="File" data-focus disabled=${busy} />
    ${found && html`<p role="status" id="found">${counted(found.length)} found.</p><${Call} operation="BatchWriteItem" request=${{ RequestItems: { [table.TableName]: found.slice(0, 2).map((Item) => ({ PutRequest: { Item } })) } }} />`}
    <${Progress} of=${progress} total=${found?.length} verb="written" /><${Problem} error=${error} />
    <div class="bar" style=${{ marginTop: "14px" }}><button class="primary" disabled=${!found?.length || busy}>Import</button><button type="button" onClick=${leave}>Cancel</button></div></form><//>`;
}
