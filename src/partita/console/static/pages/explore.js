// Explorer: find items by key, index and filter, page through them, change them.

import { Call, Confirm, Field, Input, Over, Problem, Select, count, html, items as counted, link, save, say, useEffect, useRef, useState } from "../parts.js";
import { allTables, call, session } from "../api.js";
import { Editor } from "../item.js";
import { TYPES, checkedItem, hexOf, keyOf, shown, textOf, typeOf, valueOf } from "../values.js";

const COLUMNS_MAX = 12;
const BATCH = 25;
const RANGE = [["", "any"], ["=", "="], ["<", "<"], ["<=", "≤"], [">", ">"], [">=", "≥"], ["between", "between"], ["begins_with", "begins with"]];
const FILTER = [["=", "="], ["<>", "≠"], ["<", "<"], ["<=", "≤"], [">", ">"], [">=", "≥"], ["begins_with", "begins with"], ["contains", "contains"], ["attribute_exists", "exists"], ["attribute_not_exists", "does not exist"]];
const UNARY = ["attribute_exists", "attribute_not_exists"];

export default function Explorer({ parts, query }) {
  return parts[0] ? html`<${Table} key=${parts[0]} name=${parts[0]} query=${query} />` : html`<${Choose} />`;
}

function Choose() {
  const [names, setNames] = useState(null);
  const [error, setError] = useState(null);
  const [text, setText] = useState("");
  useEffect(() => { allTables().then(setNames, setError); }, [session.state === "connected"]);
  const found = (names || []).filter((name) => name.toLowerCase().includes(text.toLowerCase())).slice(0, 200);
  return html`<div class="head"><h1>Explorer</h1></div><${Problem} error=${error} />
    ${names && (names.length ? html`<div class="card"><${Field} label="Which table?"><${Input} value=${text} onInput=${setText} type="search" /><//>
      <ul>${found.map((name) => html`<li key=${name}><a href=${link("explore", [name])}>${name}</a></li>`)}</ul></div>`
    : html`<div class="card empty"><h2>No tables yet</h2><p><a href=${link("tables", [], { create: 1 })}>Create one</a> to have something to explore.</p></div>`)}`;
}

// What the address says; filters are a list in JSON.
function formOf(query) {
  let filters = [];
  try { filters = JSON.parse(query.get("filters") || "[]"); } catch { filters = []; }
  return { index: query.get("index") || "", pk: query.get("pk") ?? null, op: query.get("op") || "", sk: query.get("sk") || "", sk2: query.get("sk2") || "", filters, order: query.get("order") || "", limit: query.get("limit") || "50", show: query.get("show") || "", consistent: query.get("consistent") === "1" };
}
const queryOf = (form) => ({ ...form, pk: form.pk || undefined, filters: form.filters.length ? JSON.stringify(form.filters) : undefined, limit: form.limit === "50" ? undefined : form.limit, consistent: form.consistent ? 1 : undefined });

// The request that a form stands for: a query when it has a partition key, else a scan.
function requestOf(table, form) {
  const schema = form.index ? indexesOf(table).find((one) => one.IndexName === form.index)?.KeySchema : table.KeySchema;
  if (!schema) throw new Error(`There is no index ${form.index}.`);
  const typeOfKey = (name) => table.AttributeDefinitions.find((one) => one.AttributeName === name)?.AttributeType || "S";
  const names = {}, values = {};
  const request = { TableName: table.TableName, ...(form.index ? { IndexName: form.index } : {}), Limit: Number(form.limit), ReturnConsumedCapacity: "TOTAL", ...(form.consistent ? { ConsistentRead: true } : {}) };
  const isQuery = Boolean(form.pk);
  if (isQuery) {
    const [hash, range] = schema.map((key) => key.AttributeName);
    names["#pk"] = hash;
    values[":pk"] = valueOf(typeOfKey(hash), form.pk);
    const conditions = ["#pk = :pk"];
    if (range && form.op && form.sk !== "") {
      names["#sk"] = range;
      values[":sk"] = valueOf(typeOfKey(range), form.sk);
      if (form.op === "between") { values[":sk2"] = valueOf(typeOfKey(range), form.sk2); conditions.push("#sk BETWEEN :sk AND :sk2"); }
      else if (form.op === "begins_with") conditions.push("begins_with(#sk, :sk)");
      else conditions.push(`#sk ${form.op} :sk`);
    }
    request.KeyConditionExpression = conditions.join(" AND ");
    if (form.order === "descending") request.ScanIndexForward = false;
  }
  const filters = form.filters.filter((one) => one.name).map((one, at) => {
    names[`#f${at}`] = one.name;
    if (UNARY.includes(one.op)) return `${one.op}(#f${at})`;
    values[`:f${at}`] = valueOf(one.type, one.text);
    return ["begins_with", "contains"].includes(one.op) ? `${one.op}(#f${at}, :f${at})` : `#f${at} ${one.op} :f${at}`;
  });
  if (filters.length) request.FilterExpression = filters.join(" AND ");
  const wanted = form.show.split(",").map((text) => text.trim()).filter(Boolean);
  if (wanted.length) {
    const all = [...new Set([...table.KeySchema.map((key) => key.AttributeName), ...wanted])];
    request.ProjectionExpression = all.map((name, at) => { names[`#p${at}`] = name; return `#p${at}`; }).join(", ");
  }
  if (Object.keys(names).length) request.ExpressionAttributeNames = names;
  if (Object.keys(values).length) request.ExpressionAttributeValues = values;
  return [isQuery ? "Query" : "Scan", request];
}

const indexesOf = (table) => [...(table.GlobalSecondaryIndexes || []), ...(table.LocalSecondaryIndexes || [])];

function Table({ name, query }) {
  const [table, setTable] = useState(null);
  const [form, setForm] = useState(formOf(query));
  const [answer, setAnswer] = useState(null);
  const [starts, setStarts] = useState([undefined]);
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const [columns, setColumns] = useState(null);
  const [picked, setPicked] = useState(new Set());
  const [editing, setEditing] = useState(null);
  const [over, setOver] = useState(null);
  const running = useRef(null);

  const run = async (described, from, before = [undefined]) => {
    running.current?.abort();
    const control = (running.current = new AbortController());
    setBusy(true);
    setError(null);
    try {
      const [operation, request] = requestOf(described, from);
      const start = before[before.length - 1];
      const page = await call(operation, start ? { ...request, ExclusiveStartKey: start } : request, control.signal);
      setAnswer({ ...page, operation, request });
      setStarts(before);
      setPicked(new Set());
    } catch (failed) {
      if (failed.name !== "AbortError") setError(failed);
    }
    if (running.current === control) setBusy(false);
  };
  useEffect(() => {
    if (table) return;
    call("DescribeTable", { TableName: name }).then(({ Table: described }) => { setTable(described); run(described, form); }, setError);
  }, [name, session.state === "gone"]);
  const at = query.toString();
  useEffect(() => {
    const asked = formOf(query);
    setForm(asked);
    if (table) run(table, asked);
  }, [at]);

  if (!table) return html`<div class="head"><h1>${name}</h1></div><${Problem} error=${error} />`;
  const set = (field) => (value) => setForm({ ...form, [field]: value });
  const schema = (form.index ? indexesOf(table).find((one) => one.IndexName === form.index)?.KeySchema : table.KeySchema) || table.KeySchema;
  const submit = (event) => {
    event.preventDefault();
    const target = link("explore", [name], queryOf(form));
    if (target === location.hash) run(table, form);
    else location.hash = target;
  };
  let planned = null, wrong = null;
  try { planned = requestOf(table, form); } catch (failed) { wrong = failed; }
  const again = () => run(table, formOf(query), starts);
  const items = answer?.Items || [];
  const keys = table.KeySchema.map((key) => key.AttributeName);
  const attributes = [...new Set([...keys, ...schema.map((key) => key.AttributeName), ...items.flatMap((item) => Object.keys(item))])];
  const visible = columns ? attributes.filter((one) => columns.has(one)) : attributes.slice(0, COLUMNS_MAX);
  const open = async (item) => {
    try {
      const { Item } = await call("GetItem", { TableName: name, Key: keyOf(item, table.KeySchema), ConsistentRead: true });
      if (Item) setEditing({ item: Item });
      else { say("This item is gone.", { bad: true }); again(); }
    } catch (failed) { setError(failed); }
  };
  const on = session.Mode === "on";
  return html`
    <div class="head"><h1>${name}</h1><a href=${link("tables", [name])}>Settings</a>
      <div class="actions">
        ${on && html`<button class="primary" id="add" onClick=${() => setEditing({ draft: Object.fromEntries(keys.map((key) => [key, { [table.AttributeDefinitions.find((one) => one.AttributeName === key).AttributeType]: "" }])) })}>Add item</button><button onClick=${() => setOver("import")}>Import</button>`}
        <button onClick=${() => setOver("export")}>Export</button>
      </div></div>
    <form class="card" onSubmit=${submit} aria-label="Query">
      <div class="row">
        <${Field} label="From"><${Select} value=${form.index} onChange=${set("index")} options=${[["", "Table"], ...indexesOf(table).map((one) => [one.IndexName, `Index ${one.IndexName}`])]} name="index" /><//>
        <${Field} label=${`${schema[0].AttributeName} (partition key)`}><${Input} value=${form.pk || ""} onInput=${set("pk")} name="pk" placeholder="any: scan" /><//>
        ${schema[1] && html`
          <${Field} label=${`${schema[1].AttributeName} (sort key)`}><${Select} value=${form.op} onChange=${set("op")} options=${RANGE} name="op" disabled=${!form.pk} /><//>
          <${Field} label="Value"><${Input} value=${form.sk} onInput=${set("sk")} name="sk" disabled=${!form.pk || !form.op} /><//>
          ${form.op === "between" && html`<${Field} label="and"><${Input} value=${form.sk2} onInput=${set("sk2")} name="sk2" /><//>`}`}
      </div>
      ${form.filters.map((one, n) => {
        const change = (values) => setForm({ ...form, filters: form.filters.map((each, m) => (m === n ? { ...each, ...values } : each)) });
        return html`<div class="filter" key=${n}>
          <${Input} value=${one.name} onInput=${(value) => change({ name: value })} aria-label=${`Filter ${n + 1}: attribute`} placeholder="attribute" list="attributes" />
          <${Select} value=${one.op} onChange=${(op) => change({ op })} options=${FILTER} aria-label=${`Filter ${n + 1}: comparison`} />
          <${Select} value=${one.type} onChange=${(type) => change({ type })} options=${Object.entries(TYPES).slice(0, 5)} aria-label=${`Filter ${n + 1}: type`} disabled=${UNARY.includes(one.op)} />
          <${Input} value=${one.text} onInput=${(value) => change({ text: value })} aria-label=${`Filter ${n + 1}: value`} disabled=${UNARY.includes(one.op)} placeholder=${one.type === "BOOL" ? "true or false" : "value"} />
          <button type="button" class="plain" aria-label=${`Remove filter ${n + 1}`} onClick=${() => setForm({ ...form, filters: form.filters.filter((_, m) => m !== n) })}>✕</button>
        </div>`;
      })}
      <datalist id="attributes">${attributes.slice(0, 200).map((one) => html`<option value=${one} />`)}</datalist>
      <div class="row">
        <${Field} label="Order"><${Select} value=${form.order} onChange=${set("order")} options=${[["", "Ascending"], ["descending", "Descending"]]} disabled=${!form.pk} name="order" /><//>
        <${Field} label="Items a page"><${Select} value=${form.limit} onChange=${set("limit")} options=${["10", "25", "50", "100", "300"]} name="limit" /><//>
        <${Field} label="Attributes, with commas (empty: all)"><${Input} value=${form.show} onInput=${set("show")} name="show" /><//>
      </div>
      <div class="bar">
        <button class="primary" disabled=${Boolean(wrong)} id="run">${form.pk ? "Query" : "Scan"}</button>
        ${busy && html`<button type="button" onClick=${() => { running.current?.abort(); setBusy(false); }}>Cancel</button>`}
        <button type="button" id="add-filter" onClick=${() => setForm({ ...form, filters: [...form.filters, { name: "", op: "=", type: "S", text: "" }] })}>Add filter</button>
        <label class="tick"><input type="checkbox" checked=${form.consistent} onChange=${(event) => set("consistent")(event.target.checked)} />Consistent read</label>
      </div>
      <${Problem} error=${wrong} />
      ${planned && html`<${Call} operation=${planned[0]} request=${planned[1]} />`}
    </form>
    <${Problem} error=${error} />
    ${answer && html`
      <div class="bar" style=${{ marginBottom: "10px" }} id="summary" role="status">
        <strong>${counted(items.length)}</strong>
        <span class="quiet">${count(answer.ScannedCount)} read · ${answer.ConsumedCapacity?.CapacityUnits ?? 0} RCU · page ${starts.length}</span>
        <span class="spacer"></span>
        ${picked.size > 0 && on && html`<button class="danger small" id="delete-picked" onClick=${() => setOver("delete")}>Delete ${counted(picked.size)}</button>`}
        ${attributes.length > 1 && html`<button class="small" onClick=${() => setOver("columns")}>Columns: ${visible.length} of ${attributes.length}</button>`}
        <button class="small" disabled=${starts.length < 2 || busy} onClick=${() => run(table, formOf(query), starts.slice(0, -1))}>Previous</button>
        <button class="small" id="next" disabled=${!answer.LastEvaluatedKey || busy} onClick=${() => run(table, formOf(query), [...starts, answer.LastEvaluatedKey])}>Next</button>
      </div>
      ${items.length ? html`<${Grid} items=${items} keys=${keys} visible=${visible} picked=${picked} setPicked=${on ? setPicked : null} open=${open} />`
      : html`<div class="card empty"><h2>Nothing here</h2><p>${answer.LastEvaluatedKey ? "No item on this page passed the filter; there are more pages." : answer.ScannedCount ? "No item passed the filter." : form.pk ? "No item has this key." : "The table is empty."}</p></div>`}`}
    ${editing && html`<${Editor} key=${editing.item ? JSON.stringify(keyOf(editing.item, table.KeySchema)) : `new ${editing.round || 0}`} table=${table} item=${editing.item} draft=${editing.draft} onClose=${() => setEditing(null)} onSaved=${again} onDuplicate=${(draft) => setEditing({ draft, round: Date.now() })} />`}
    ${over === "columns" && html`<${Columns} attributes=${attributes} visible=${visible} onChange=${setColumns} onClose=${() => setOver(null)} />`}
    ${over === "delete" && html`<${BulkDelete} table=${table} items=${[...picked].map((n) => items[n])} onClose=${() => setOver(null)} onDone=${again} />`}
    ${over === "export" && html`<${Export} table=${table} answer=${answer} items=${items} onClose=${() => setOver(null)} />`}
    ${over === "import" && html`<${Import} table=${table} onClose=${() => setOver(null)} onDone=${again} />`}`;
}

function Grid({ items, keys, visible, picked, setPicked, open }) {
  const pick = (n) => { const next = new Set(picked); if (!next.delete(n)) next.add(n); setPicked(next); };
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Items"><table class="grid" id="items">
    <thead><tr>${setPicked && html`<th scope="col"><input type="checkbox" aria-label="Choose all" checked=${picked.size === items.length} onChange=${() => setPicked(picked.size === items.length ? new Set() : new Set(items.keys()))} /></th>`}
      ${visible.map((name) => html`<th scope="col" key=${name}>${name}</th>`)}</tr></thead>
    <tbody>${items.map((item, n) => html`<tr key=${n}>
      ${setPicked && html`<td><input type="checkbox" aria-label=${`Choose item ${n + 1}`} checked=${picked.has(n)} onChange=${() => pick(n)} /></td>`}
      ${visible.map((name) => html`<td key=${name} dir="auto">${item[name] === undefined ? html`<span class="none">·</span>` : name === keys[0] ? html`<${Type} value=${item[name]} /><button class="cell" onClick=${() => open(item)}>${shown(item[name]) || "(empty)"}</button>` : html`<${Cell} value=${item[name]} />`}</td>`)}
    </tr>`)}</tbody></table></div>`;
}

const Type = ({ value }) => html`<span class="type" title=${TYPES[typeOf(value)]}>${typeOf(value)}</span>${" "}`;

function Cell({ value }) {
  if ("B" in value) return html`<${Type} value=${value} /><span title=${`Text: ${textOf(value.B, 200)}`}>${hexOf(value.B, 12)} <span class="quiet">${textOf(value.B, 12)}</span></span>`;
  if (value.S === "") return html`<${Type} value=${value} /><span class="quiet">(empty)</span>`;
  return html`<${Type} value=${value} />${shown(value)}`;
}

function Columns({ attributes, visible, onChange, onClose }) {
  const flip = (name) => { const next = new Set(visible); if (!next.delete(name)) next.add(name); onChange(next); };
  return html`<${Over} label="Columns" onClose=${onClose}><div class="head"><h1>Columns</h1><div class="actions"><button onClick=${() => onChange(new Set(attributes))}>All</button><button onClick=${onClose}>Done</button></div></div>
    <div class="row">${attributes.map((name) => html`<label class="tick" key=${name}><input type="checkbox" checked=${visible.includes(name)} onChange=${() => flip(name)} /><span class="mono">${name}</span></label>`)}</div><//>`;
}

// Batches

async function writeBatches(TableName, requests, onProgress, signal) {
  let done = 0, units = 0;
  for (let from = 0; from < requests.length; from += BATCH) {
    let waiting = requests.slice(from, from + BATCH), pause = 50;
    while (waiting.length) {
      if (signal.aborted) return done;
      const answer = await call("BatchWriteItem", { RequestItems: { [TableName]: waiting }, ReturnConsumedCapacity: "TOTAL" });
      const left = answer.UnprocessedItems?.[TableName] || [];
      done += waiting.length - left.length;
      units += (answer.ConsumedCapacity || []).reduce((sum, one) => sum + one.CapacityUnits, 0);
      onProgress(done, units);
      waiting = left;
      if (left.length) { await new Promise((next) => setTimeout(next, pause)); pause = Math.min(pause * 2, 5000); }
    }
  }
  return done;
}

function BulkDelete({ table, items, onClose, onDone }) {
  const [progress, setProgress] = useState(null);
  const control = useRef(new AbortController());
  const requests = items.map((item) => ({ DeleteRequest: { Key: keyOf(item, table.KeySchema) } }));
  const act = async () => {
    const done = await writeBatches(table.TableName, requests, (n) => setProgress(n), control.current.signal);
    say(`${counted(done)} deleted.`, { label: "Undo", action: async () => {
      const back = items.slice(0, done).map((item) => additionOfItem(table, item));
      let kept = 0;
      for (const [operation, request] of back) try { await call(operation, request); kept += 1; } catch (failed) { if (failed.code !== "ConditionalCheckFailedException") { say(failed.message, { bad: true }); break; } }
      say(`${counted(kept)} restored.`);
      onDone();
    } });
    onDone();
  };
  return html`<${Confirm} title=${`Delete ${counted(items.length)}`} name=${String(items.length)} verb=${`Delete ${counted(items.length)}`} operation="BatchWriteItem" request=${{ RequestItems: { [table.TableName]: requests } }}
    onClose=${() => { control.current.abort(); onClose(); }} onDone=${act}>
    <p>From ${table.TableName}, whatever has become of them since they were read.</p>
    ${progress !== null && html`<p>${count(progress)} of ${count(items.length)} deleted</p>`}<//>`;
}
const additionOfItem = (table, Item) => ["PutItem", { TableName: table.TableName, Item, ConditionExpression: "attribute_not_exists(#k)", ExpressionAttributeNames: { "#k": table.KeySchema[0].AttributeName } }];

// Files. CSV has a column for each attribute: texts as they are, other types as DynamoDB's JSON.

const cell = (value) => { const text = value === undefined ? "" : "S" in value && value.S !== "" && !value.S.startsWith("{") ? value.S : JSON.stringify(value); return /[",\n\r]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text; };
function csvOf(items) {
  const names = [...new Set(items.flatMap((item) => Object.keys(item)))];
  return [names.map((name) => cell({ S: name })).join(","), ...items.map((item) => names.map((name) => cell(item[name])).join(","))].join("\r\n") + "\r\n";
}

function csvRows(text) {
  const rows = [[]];
  let field = "", quoted = false;
  for (let at = 0; at < text.length; at += 1) {
    const c = text[at];
    if (quoted) { if (c !== '"') field += c; else if (text[at + 1] === '"') { field += '"'; at += 1; } else quoted = false; }
    else if (c === '"') quoted = true;
    else if (c === ",") { rows[rows.length - 1].push(field); field = ""; }
    else if (c === "\n") { rows[rows.length - 1].push(field); field = ""; rows.push([]); }
    else if (c !== "\r") field += c;
  }
  if (field || rows[rows.length - 1].length) rows[rows.length - 1].push(field); else rows.pop();
  return rows;
}

function itemsOf(name, text, definitions) {
  if (!/\.csv$/i.test(name)) {
    const trimmed = text.trim();
    const found = trimmed.startsWith("[") ? JSON.parse(trimmed) : trimmed.split("\n").filter((line) => line.trim()).map((line) => JSON.parse(line));
    return found.map((one) => checkedItem(one.Item || one));
  }
  const [names, ...rows] = csvRows(text);
  const types = Object.fromEntries(definitions.map((one) => [one.AttributeName, one.AttributeType]));
  return rows.map((row) => checkedItem(Object.fromEntries(names.map((column, n) => [column, row[n]]).filter(([, value]) => value !== undefined && value !== "").map(([column, value]) => [column, /^\{"(S|N|B|BOOL|NULL|M|L|SS|NS|BS)":/.test(value) ? JSON.parse(value) : valueOf(types[column] || "S", value)]))));
}

function Export({ table, answer, items, onClose }) {
  const [format, setFormat] = useState("json");
  const [all, setAll] = useState(false);
  const [progress, setProgress] = useState(null);
  const [error, setError] = useState(null);
  const control = useRef(new AbortController());
  const act = async (event) => {
    event.preventDefault();
    let found = items;
    try {
      if (all) {
        found = [];
        let start;
        do {
          const { Limit, ...request } = answer.request;
          const page = await call(answer.operation, start ? { ...request, ExclusiveStartKey: start } : request, control.current.signal);
          found.push(...page.Items);
          start = page.LastEvaluatedKey;
          setProgress(found.length);
        } while (start);
      }
    } catch (failed) { setError(failed); return; }
    if (format === "json") save(`${table.TableName}.json`, found.map((Item) => JSON.stringify({ Item })).join("\n") + "\n");
    else save(`${table.TableName}.csv`, csvOf(found), "text/csv");
    say(`${counted(found.length)} exported.`);
    onClose();
  };
  return html`<${Over} label="Export" onClose=${() => { control.current.abort(); onClose(); }}><h1>Export</h1><form onSubmit=${act} style=${{ marginTop: "14px" }}>
    <div class="row"><${Field} label="Format"><${Select} value=${format} onChange=${setFormat} options=${[["json", "DynamoDB JSON, an item a line"], ["csv", "CSV"]]} data-focus /><//>
      <${Field} label="Items"><${Select} value=${all ? "all" : "page"} onChange=${(value) => setAll(value === "all")} options=${[["page", `This page (${items.length})`], ["all", "Everything that this request finds"]]} /><//></div>
    ${progress !== null && html`<p role="status">${counted(progress)} read</p>`}<${Problem} error=${error} />
    <div class="bar"><button class="primary">Export</button><button type="button" onClick=${() => { control.current.abort(); onClose(); }}>Cancel</button></div></form><//>`;
}

function Import({ table, onClose, onDone }) {
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
    try {
      const done = await writeBatches(table.TableName, found.map((Item) => ({ PutRequest: { Item } })), (n) => setProgress(n), control.current.signal);
      say(`${counted(done)} imported.`);
      onDone();
      onClose();
    } catch (failed) { setError(failed); }
  };
  return html`<${Over} label="Import" onClose=${() => { control.current.abort(); onClose(); }}><h1>Import into ${table.TableName}</h1><form onSubmit=${act} style=${{ marginTop: "14px" }}>
    <p class="quiet">DynamoDB JSON (an item a line, or a list) or CSV. Items that have the key of one in the file are replaced.</p>
    <input type="file" accept=".json,.jsonl,.csv" onChange=${choose} aria-label="File" data-focus />
    ${found && html`<p role="status" id="found">${counted(found.length)} found.</p><${Call} operation="BatchWriteItem" request=${{ RequestItems: { [table.TableName]: found.slice(0, 2).map((Item) => ({ PutRequest: { Item } })) } }} />`}
    ${progress !== null && html`<p role="status">${count(progress)} of ${count(found.length)} written</p>`}<${Problem} error=${error} />
    <div class="bar" style=${{ marginTop: "14px" }}><button class="primary" disabled=${!found?.length}>Import</button><button type="button" onClick=${() => { control.current.abort(); onClose(); }}>Cancel</button></div></form><//>`;
}
