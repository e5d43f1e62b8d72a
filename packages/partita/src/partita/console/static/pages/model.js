// The data modeler: opens, draws, edits and exports models of NoSQL Workbench, and creates tables.

import { Call, Field, Input, Over, Problem, Select, html, items as counted, link, save, say, useEffect, useRef, useState } from "../shared/parts.js";
import { allTables, call, look, session } from "../shared/api.js";
import { Designs, ProofAndPrice } from "../page_parts/designs.js";
import { checkedItem, shown, typeOf } from "../shared/values.js";
import { Progress, isCancelled, untilActive, writeBatches } from "../shared/work.js";
import { changed, collections, creationOf, indexesOf, keysOf, newModel, newTable, projected, readModel, rowsOf, rowsOfFacet, tableOf, withRows, written } from "../page_parts/model.js";

const KEPT = "model";
const ROWS_MAX = 200;
const SAMPLE = 50;
const KEY_TYPES = [["S", "String"], ["N", "Number"], ["B", "Binary"]];

const stored = () => { try { return readModel(localStorage.getItem(KEPT)); } catch { return newModel(); } };
function keep(model) { try { localStorage.setItem(KEPT, JSON.stringify(model)); return true; } catch { return false; } }

export default function Modeler({ parts, query }) {
  const [model, setModel] = useState(stored);
  const [past, setPast] = useState([]);
  const [error, setError] = useState(null);
  const [over, setOver] = useState(null);
  const file = useRef(null);
  const [moves, setMoves] = useState([]);
  useEffect(() => { look("moves").then(({ Moves }) => setMoves(Moves), () => {}); }, []);
  const show = (next) => {
    setPast([...past.slice(-49), model]);
    setModel(next);
    if (!keep(next)) setError(new Error("This model is too large to be kept in the browser: export it before you leave."));
  };
  const change = (next) => show(changed(next));
  const undo = () => { const before = past[past.length - 1]; setPast(past.slice(0, -1)); setModel(before); keep(before); };
  const open = async (event) => {
    const [chosen] = event.target.files;
    if (!chosen) return;
    try { show(readModel(await chosen.text())); setError(null); location.hash = link("model"); } catch (failed) { setError(failed); }
    event.target.value = "";
  };
  const at = model.DataModel.findIndex((one) => one.TableName === parts[0]);
  const table = model.DataModel[at] || model.DataModel[0];
  const setTable = (next) => { change({ ...model, DataModel: model.DataModel.map((one) => (one === table ? next : one)) }); if (next.TableName !== table.TableName) location.hash = link("model", [next.TableName]); };
  return html`<div class="head"><h1>Modeler</h1><div class="actions">
      ${past.length > 0 && html`<button onClick=${undo}>Undo</button>`}
      <button onClick=${() => change(newModel())}>New</button>
      <button onClick=${() => file.current.click()}>Open file</button><input type="file" accept=".json" class="hidden-label" tabindex="-1" aria-label="Model file" ref=${file} onChange=${open} />
      <button onClick=${() => setOver("take")}>From this server</button>
      ${moves.map((one) => html`<a class="button" key=${one} href=${link("model", [], { move: one })}>Designs of ${one}</a>`)}
      <button onClick=${() => save(`${model.ModelName}.json`, [written(model)])}>Export</button>
      ${session.Mode === "on" && html`<button class="primary" disabled=${!model.DataModel.length} onClick=${() => setOver("commit")}>Commit to this server</button>`}</div></div>
    <${Problem} error=${error} />
    <div class="card"><${Field} label="Model"><${Input} value=${model.ModelName || ""} onInput=${(ModelName) => change({ ...model, ModelName })} /><//>
      ${model.ModelMetadata?.Description && html`<details class="more" open><summary>Description of the design</summary>${model.ModelMetadata.Description.split("\n").map((line, n) => html`<p key=${n}>${line}</p>`)}</details>`}
      <div class="bar" style=${{ marginTop: "10px" }}>${model.DataModel.map((one) => html`<a key=${one.TableName} class=${`button ${one === table ? "chosen" : ""}`} href=${link("model", [one.TableName])} aria-current=${one === table ? "page" : undefined}>${one.TableName}</a>`)}
        <button onClick=${() => { let n = model.DataModel.length + 1; while (model.DataModel.some((one) => one.TableName === `Table${n}`)) n += 1; change({ ...model, DataModel: [...model.DataModel, newTable(`Table${n}`)] }); location.hash = link("model", [`Table${n}`]); }}>Add table</button></div></div>
    ${model.partita && html`<${ProofAndPrice} about=${model.partita} />`}
    ${table ? html`<${Table} key=${at < 0 ? 0 : at} table=${table} onChange=${setTable} query=${query} onDelete=${() => change({ ...model, DataModel: model.DataModel.filter((one) => one !== table) })} />`
    : html`<div class="card empty"><h2>Nothing is modeled yet</h2><p>Open a file of NoSQL Workbench or of <code>partita migrate model --workbench</code>, take tables of this server, or add one.</p></div>`}
    ${query.get("move") && html`<${Designs} move=${query.get("move")} onClose=${() => { location.hash = link("model"); }} onOpen=${(opened) => { show(opened); location.hash = link("model"); }} />`}
    ${over === "commit" && html`<${Commit} model=${model} onClose=${() => setOver(null)} />`}
    ${over === "take" && html`<${Take} onClose=${() => setOver(null)} onTake=${(taken) => { change({ ...model, DataModel: [...model.DataModel.filter((one) => one.TableName !== taken.TableName), taken] }); location.hash = link("model", [taken.TableName]); }} />`}`;
}

function Table({ table, onChange, onDelete, query }) {
  const views = [["", "Table"], ...indexesOf(table).map((one) => [`index:${one.IndexName}`, `Index ${one.IndexName}`]), ...(table.TableFacets || []).map((one) => [`facet:${one.FacetName}`, `Facet ${one.FacetName}`]), ["edit", "Edit"]];
  const view = query.get("view") || "";
  const [kind, name] = view.split(/:(.*)/s);
  const index = kind === "index" && indexesOf(table).find((one) => one.IndexName === name);
  const facet = kind === "facet" && (table.TableFacets || []).find((one) => one.FacetName === name);
  return html`<nav class="tabs wrap" aria-label="Views">${views.map(([id, title]) => html`<a key=${id} class="tab" href=${link("model", [table.TableName], { view: id })} aria-current=${id === view ? "page" : undefined}>${title}</a>`)}</nav>
    ${view === "edit" ? html`<${Edit} table=${table} onChange=${onChange} onDelete=${onDelete} />`
    : index ? html`<${Aggregate} items=${projected(table, index)} keys=${keysOf(index)} label=${`Index ${name}`} />`
    : facet ? html`<p class="quiet">Keys: <code>${facet.KeyAttributeAlias?.PartitionKeyAlias || keysOf(table)[0]}</code>${keysOf(table)[1] && html` · <code>${facet.KeyAttributeAlias?.SortKeyAlias || keysOf(table)[1]}</code>`}</p><${Aggregate} items=${rowsOfFacet(table, facet)} keys=${keysOf(table)} only=${facet.NonKeyAttributes} label=${`Facet ${name}`} />`
    : html`<${Aggregate} items=${rowsOf(table)} keys=${keysOf(table)} label=${table.TableName} />`}`;
}

// As AWS draws it: an item collection shares one cell for the partition key. Each attribute has its
// name above it, because items have different attributes.
function Aggregate({ items, keys, only, label }) {
  const groups = collections(items.slice(0, ROWS_MAX), keys);
  const others = (item) => Object.entries(item).filter(([name]) => !keys.includes(name) && (!only || only.includes(name)));
  const most = Math.max(1, ...items.slice(0, ROWS_MAX).map((item) => others(item).length));
  if (!groups.length) return html`<div class="card empty"><h2>No rows</h2><p>Rows that have ${keys.join(" and ")} appear here.</p></div>`;
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${`Rows of ${label}`}><table class="aggregate" id="aggregate"><thead><tr><th scope="col">Partition key: ${keys[0]}</th>${keys[1] && html`<th scope="col">Sort key: ${keys[1]}</th>`}<th scope="col" colspan=${most}>Attributes</th></tr></thead>
    <tbody>${groups.map((rows, group) => rows.map((item, n) => html`<tr key=${`${group} ${n}`} class=${n === 0 ? "first" : ""}>
      ${n === 0 && html`<th scope="rowgroup" rowspan=${rows.length} class="mono">${shown(item[keys[0]], 60)}</th>`}
      ${keys[1] && html`<td class="mono key">${shown(item[keys[1]], 60)}</td>`}
      ${others(item).map(([name, value]) => html`<td key=${name}><span class="attribute-name">${name}</span><span class="mono" title=${typeOf(value)}>${shown(value, 40)}</span></td>`)}${others(item).length < most && html`<td colspan=${most - others(item).length}></td>`}</tr>`))}</tbody></table></div>
    <p class="quiet" id="rows">${counted(items.length)} in ${groups.length} item ${groups.length === 1 ? "collection" : "collections"}${items.length > ROWS_MAX ? `; the first ${ROWS_MAX} are drawn` : ""}</p>`;
}

function Keys({ given, onChange, of }) {
  const { PartitionKey, SortKey } = given;
  const set = (key, values) => { const next = { ...given, [key]: { AttributeName: "", AttributeType: "S", ...given[key], ...values } }; if (!next.SortKey?.AttributeName) delete next.SortKey; onChange(next); };
  return html`<div class="row"><${Field} label=${`Partition key of ${of}`}><${Input} value=${PartitionKey.AttributeName} onInput=${(AttributeName) => set("PartitionKey", { AttributeName })} required /><//>
    <${Field} label="Its type"><${Select} value=${PartitionKey.AttributeType} onChange=${(AttributeType) => set("PartitionKey", { AttributeType })} options=${KEY_TYPES} /><//>
    <${Field} label=${`Sort key of ${of}`}><${Input} value=${SortKey?.AttributeName || ""} onInput=${(AttributeName) => set("SortKey", { AttributeName })} /><//>
    <${Field} label="Its type"><${Select} value=${SortKey?.AttributeType || "S"} onChange=${(AttributeType) => set("SortKey", { AttributeType })} options=${KEY_TYPES} disabled=${!SortKey} /><//></div>`;
}

function Edit({ table, onChange, onDelete }) {
  const set = (values) => onChange({ ...table, ...values });
  const indexes = indexesOf(table), facets = table.TableFacets || [];
  const [rows, setRows] = useState(() => rowsOf(table).map((item) => JSON.stringify(item)).join("\n"));
  const [wrong, setWrong] = useState(null);
  const setData = (text) => {
    setRows(text);
    try {
      const found = text.split("\n").filter((line) => line.trim()).map((line, at) => { try { return checkedItem(JSON.parse(line)); } catch (failed) { throw new Error(`Line ${at + 1}: ${failed.message}`); } });
      setWrong(null);
      onChange(withRows(table, found));
    } catch (failed) { setWrong(failed); }
  };
  const names = (text) => text.split(",").map((one) => one.trim()).filter(Boolean);
  return html`<section class="card" aria-label="Keys"><h2>Table</h2><div class="row"><${Field} label="Name"><${Input} value=${table.TableName} onInput=${(TableName) => TableName && set({ TableName })} required /><//></div>
      <${Keys} given=${table.KeyAttributes} of="the table" onChange=${(KeyAttributes) => set({ KeyAttributes })} /></section>
    <section class="card" aria-label="Indexes"><h2>Global indexes</h2>
      ${indexes.map((index, at) => { const put = (values) => set({ GlobalSecondaryIndexes: indexes.map((one, n) => (n === at ? { ...one, ...values } : one)) });
        return html`<div class="nested" key=${at}><div class="row"><${Field} label=${`Name of index ${at + 1}`}><${Input} value=${index.IndexName} onInput=${(IndexName) => put({ IndexName })} required /><//>
            <${Field} label="Projection"><${Select} value=${index.Projection?.ProjectionType || "ALL"} onChange=${(ProjectionType) => put({ Projection: { ProjectionType, ...(ProjectionType === "INCLUDE" ? { NonKeyAttributes: [] } : {}) } })} options=${[["ALL", "All attributes"], ["KEYS_ONLY", "Keys only"], ["INCLUDE", "Some attributes"]]} /><//>
            ${index.Projection?.ProjectionType === "INCLUDE" && html`<${Field} label="Attributes, with commas"><${Input} value=${(index.Projection.NonKeyAttributes || []).join(", ")} onInput=${(text) => put({ Projection: { ProjectionType: "INCLUDE", NonKeyAttributes: names(text) } })} /><//>`}</div>
          <${Keys} given=${index.KeyAttributes} of=${`index ${at + 1}`} onChange=${(KeyAttributes) => put({ KeyAttributes })} />
          <button class="small" onClick=${() => set({ GlobalSecondaryIndexes: indexes.filter((_, n) => n !== at) })}>Remove index ${at + 1}</button></div>`; })}
      <button class="small" onClick=${() => set({ GlobalSecondaryIndexes: [...indexes, { IndexName: `GSI${indexes.length + 1}`, KeyAttributes: { PartitionKey: { AttributeName: `GSI${indexes.length + 1}PK`, AttributeType: "S" } }, Projection: { ProjectionType: "ALL" } }] })}>Add index</button></section>
    <section class="card" aria-label="Facets"><h2>Facets</h2><p class="quiet">A facet is one kind of item: the attributes that it has, and how its keys are built.</p>
      ${facets.map((facet, at) => { const put = (values) => set({ TableFacets: facets.map((one, n) => (n === at ? { ...one, ...values } : one)) });
        const alias = (key) => (text) => put({ KeyAttributeAlias: { ...facet.KeyAttributeAlias, [key]: text } });
        return html`<div class="nested" key=${at}><div class="row"><${Field} label=${`Name of facet ${at + 1}`}><${Input} value=${facet.FacetName} onInput=${(FacetName) => put({ FacetName })} /><//>
          <${Field} label="Partition key looks like"><${Input} value=${facet.KeyAttributeAlias?.PartitionKeyAlias || ""} onInput=${alias("PartitionKeyAlias")} placeholder="CUSTOMER#{id}" /><//>
          ${keysOf(table)[1] && html`<${Field} label="Sort key looks like"><${Input} value=${facet.KeyAttributeAlias?.SortKeyAlias || ""} onInput=${alias("SortKeyAlias")} /><//>`}</div>
          <${Field} label=${`Attributes of facet ${at + 1}, with commas`}><${Input} value=${(facet.NonKeyAttributes || []).join(", ")} onInput=${(text) => put({ NonKeyAttributes: names(text) })} /><//>
          <button class="small" style=${{ marginTop: "8px" }} onClick=${() => set({ TableFacets: facets.filter((_, n) => n !== at) })}>Remove facet ${at + 1}</button></div>`; })}
      <button class="small" onClick=${() => set({ TableFacets: [...facets, { FacetName: `Facet${facets.length + 1}`, KeyAttributeAlias: { PartitionKeyAlias: keysOf(table)[0], ...(keysOf(table)[1] ? { SortKeyAlias: keysOf(table)[1] } : {}) }, TableData: [], NonKeyAttributes: [] }] })}>Add facet</button></section>
    <section class="card" aria-label="Rows"><h2>Sample rows</h2><label class="field"><span>Items in DynamoDB's JSON, one a line</span><textarea class="code" rows="8" spellcheck=${false} value=${rows} onInput=${(event) => setData(event.target.value)} aria-invalid=${wrong ? "true" : "false"}></textarea></label><${Problem} error=${wrong} /></section>
    <button class="danger" onClick=${onDelete}>Remove ${table.TableName} from the model</button>`;
}

function Take({ onClose, onTake }) {
  const [tables, setTables] = useState([]);
  const [name, setName] = useState("");
  const [error, setError] = useState(null);
  useEffect(() => { allTables().then((found) => { setTables(found); setName(found[0] || ""); }, setError); }, []);
  const act = async (event) => {
    event.preventDefault();
    try {
      const [{ Table: described }, { Items }] = await Promise.all([call("DescribeTable", { TableName: name }), call("Scan", { TableName: name, Limit: SAMPLE })]);
      onTake(tableOf(described, Items));
      onClose();
    } catch (failed) { setError(failed); }
  };
  return html`<${Over} label="From this server" onClose=${onClose}><h1>Take a table of this server</h1><form onSubmit=${act}><p class="quiet">With its keys, its global indexes, and its first ${SAMPLE} items as rows.</p>
    <${Field} label="Table"><${Select} value=${name} onChange=${setName} options=${tables} data-focus /><//><${Problem} error=${error} />
    <div class="bar" style=${{ marginTop: "12px" }}><button class="primary" disabled=${!name}>Take it</button><button type="button" onClick=${onClose}>Cancel</button></div></form><//>`;
}

function Commit({ model, onClose }) {
  const [hasRows, setHasRows] = useState(true);
  const control = useRef(new AbortController());
  const [step, setStep] = useState(null);
  const [error, setError] = useState(null);
  useEffect(() => () => control.current.abort(), []);
  const commit = async (table, signal) => {
    const rows = hasRows ? rowsOf(table) : [];
    setStep({ text: `Creating ${table.TableName}` });
    await call("CreateTable", creationOf(table));
    await untilActive(table.TableName, () => {}, signal);
    setStep({ text: `Writing rows of ${table.TableName}`, of: { done: 0, units: 0 }, total: rows.length });
    await writeBatches(table.TableName, rows.map((Item) => ({ PutRequest: { Item } })), (of) => setStep({ text: `Writing rows of ${table.TableName}`, of, total: rows.length }), signal);
  };
  const act = async (event) => {
    event.preventDefault();
    setError(null);
    const { signal } = control.current, made = [];
    try {
      for (const table of model.DataModel) {
        if (signal.aborted) break;
        made.push(table.TableName);
        await commit(table, signal);
      }
    } catch (failed) { if (!isCancelled(failed)) { setError(failed); setStep(null); return; } }
    if (signal.aborted) { say(`Cancelled after ${made.join(", ")}: what was created stays.`); return; }
    say(`${model.ModelName} is on this server.`);
    onClose();
  };
  const leave = () => { control.current.abort(); onClose(); };
  return html`<${Over} label="Commit" onClose=${leave}><h1>Commit ${model.ModelName}</h1><form onSubmit=${act}>
    <p>An existing table is never changed: the commit stops there.</p>
    ${model.DataModel.map((table) => html`<${Call} key=${table.TableName} operation="CreateTable" request=${creationOf(table)} />`)}
    <p><label class="tick"><input type="checkbox" checked=${hasRows} onChange=${(event) => setHasRows(event.target.checked)} />Write the sample rows too</label></p>
    ${step && html`<p role="status">${step.text}</p><${Progress} of=${step.of} total=${step.total} verb="written" />`}<${Problem} error=${error} />
    <div class="bar"><button class="primary" disabled=${Boolean(step)} data-focus>Create ${model.DataModel.length} ${model.DataModel.length === 1 ? "table" : "tables"}</button><button type="button" onClick=${leave}>Cancel</button></div></form><//>`;
}
