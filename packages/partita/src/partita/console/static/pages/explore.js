// Explorer: find items by key, index and filter, page through them, change them.

import { Call, Field, Input, NoTable, Over, Problem, Select, TableHead, count, html, items as counted, link, route, say, units, useEffect, useRef, useState, visit } from "../shared/parts.js";
import { allTables, call, session } from "../shared/api.js";
import { Editor } from "../shared/item.js";
import { Cell, Type } from "../shared/cells.js";
import { TYPES, attributeOf, keyOf, shown } from "../shared/values.js";
import { BulkDelete, Export, Import } from "../explorer/bulk.js";
import { FILTER, RANGE, UNARY, formOf, indexesOf, parsedParameter, queryOf, requestOf } from "../explorer/request.js";

const COLUMNS_MAX = 12;

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

// The address contains the query, its start key, the visible columns and the open item.
function Table({ name, query }) {
  const [table, setTable] = useState(null);
  const [form, setForm] = useState(formOf(query));
  const [answer, setAnswer] = useState(null);
  const [starts, setStarts] = useState([null]);
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const [picked, setPicked] = useState(new Set());
  const [editing, setEditing] = useState(null);
  const [over, setOver] = useState(null);
  const running = useRef(null);
  const after = query.get("after"), key = query.get("item"), columns = parsedParameter(query, "columns", null);
  const go = (values) => visit(link("explore", [name], { ...Object.fromEntries(route().query), ...values }));

  const run = async (described, from) => {
    running.current?.abort();
    const control = (running.current = new AbortController());
    setBusy(true);
    setError(null);
    try {
      const [operation, request] = requestOf(described, from);
      const start = parsedParameter(query, "after", null);
      const page = await call(operation, start ? { ...request, ExclusiveStartKey: start } : request, control.signal);
      setAnswer({ ...page, operation, request });
      setStarts((before) => (before.includes(after) ? before.slice(0, before.indexOf(after) + 1) : [...before, after]));
      setPicked(new Set());
    } catch (failed) {
      if (failed.name !== "AbortError") setError(failed);
    }
    if (running.current === control) setBusy(false);
  };
  useEffect(() => {
    if (!table) call("DescribeTable", { TableName: name }).then(({ Table: described }) => setTable(described), setError);
  }, [name, session.state === "gone"]);
  const queryKey = JSON.stringify(formOf(query));
  useEffect(() => {
    setForm(formOf(query));
    if (table) run(table, formOf(query));
  }, [queryKey, after, table]);
  useEffect(() => {
    if (!key) setEditing((before) => (before?.item ? null : before));
    else if (table) open(key);
  }, [key, table]);
  const open = async (text) => {
    try {
      const { Item, ConsumedCapacity } = await call("GetItem", { TableName: name, Key: JSON.parse(text), ConsistentRead: true, ReturnConsumedCapacity: "TOTAL" });
      if (Item) { setEditing({ item: Item, cost: ConsumedCapacity?.CapacityUnits }); return; }
      say("This item no longer exists.", { bad: true });
      again();
    } catch (failed) { setError(failed); }
    close();
  };
  const close = () => { setEditing(null); if (key) go({ item: undefined }); };
  const again = () => run(table, formOf(query));

  if (!table) return html`<${NoTable} name=${name} error=${error} />`;
  const set = (field) => (value) => setForm({ ...form, [field]: value });
  const schema = (form.index ? indexesOf(table).find((one) => one.IndexName === form.index)?.KeySchema : table.KeySchema) || table.KeySchema;
  const submit = (event) => {
    event.preventDefault();
    const target = link("explore", [name], { ...queryOf(form), columns: query.get("columns") || undefined });
    setStarts([null]);
    if (target === location.hash) run(table, form);
    else location.hash = target;
  };
  let planned = null, wrong = null;
  try { planned = requestOf(table, form); } catch (failed) { wrong = failed; }
  const items = answer?.Items || [];
  const keys = table.KeySchema.map((key) => key.AttributeName);
  const attributes = [...new Set([...keys, ...schema.map((key) => key.AttributeName), ...items.flatMap((item) => Object.keys(item))])];
  const visible = columns ? attributes.filter((one) => columns.includes(one)) : attributes.slice(0, COLUMNS_MAX);
  const on = session.Mode === "on";
  return html`
    <${TableHead} name=${name} at="explore" actions=${html`
        ${on && html`<button class="primary" id="add" onClick=${() => setEditing({ draft: Object.fromEntries(keys.map((key) => [key, { [table.AttributeDefinitions.find((one) => one.AttributeName === key).AttributeType]: "" }])) })}>Add item</button><button onClick=${() => setOver("import")}>Import</button>`}
        <button onClick=${() => setOver("export")}>Export</button>`} />
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
          <${Select} value=${one.type} onChange=${(type) => change({ type })} options=${Object.entries(TYPES)} aria-label=${`Filter ${n + 1}: type`} disabled=${one.op === "size" || one.op.endsWith("exists")} />
          <span class="values"><${Input} value=${one.text} onInput=${(value) => change({ text: value })} aria-label=${`Filter ${n + 1}: value`} disabled=${UNARY.includes(one.op)} placeholder=${one.op === "in" ? "values, with commas" : one.type === "BOOL" ? "true or false" : "value"} />
          ${one.op === "between" && html`<${Input} value=${one.text2 || ""} onInput=${(value) => change({ text2: value })} aria-label=${`Filter ${n + 1}: upper value`} placeholder="and" />`}</span>
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
        ${form.filters.length > 1 && html`<${Select} class="narrow" value=${form.any ? "any" : "all"} onChange=${(value) => set("any")(value === "any")} options=${[["all", "All filters hold"], ["any", "Any filter holds"]]} aria-label="How filters are joined" />`}
        <label class="tick"><input type="checkbox" checked=${form.consistent} onChange=${(event) => set("consistent")(event.target.checked)} />Consistent read</label>
      </div>
      <${Problem} error=${wrong} />
      ${planned && html`<${Call} operation=${planned[0]} request=${planned[1]} />`}
    </form>
    <${Problem} error=${error} />
    ${answer && html`
      <div class="bar" style=${{ marginBottom: "10px" }} id="summary" role="status">
        <strong>${counted(items.length)}</strong>
        <span class="quiet">${count(answer.ScannedCount)} read · ${units(answer.ConsumedCapacity?.CapacityUnits, "R")} · page ${starts.length}</span>
        <span class="spacer"></span>
        ${picked.size > 0 && on && html`<button class="danger small" id="delete-picked" onClick=${() => setOver("delete")}>Delete ${counted(picked.size)}</button>`}
        ${attributes.length > 1 && html`<button class="small" onClick=${() => setOver("columns")}>Columns: ${visible.length} of ${attributes.length}</button>`}
        <span class="pages"><button class="small" disabled=${starts.length < 2 || busy} onClick=${() => go({ after: starts[starts.length - 2] || undefined })}>Previous</button>
        <button class="small" id="next" disabled=${!answer.LastEvaluatedKey || busy} onClick=${() => go({ after: JSON.stringify(answer.LastEvaluatedKey) })}>Next</button></span>
      </div>
      ${items.length ? html`<${Grid} items=${items} keys=${keys} visible=${visible} picked=${picked} setPicked=${on ? setPicked : null} open=${(item) => go({ item: JSON.stringify(keyOf(item, table.KeySchema)) })} />`
      : html`<div class="card empty"><h2>Nothing here</h2><p>${answer.LastEvaluatedKey ? "No item on this page passed the filter; there are more pages." : answer.ScannedCount ? "No item passed the filter." : form.pk ? "No item has this key." : "The table is empty."}</p></div>`}`}
    ${editing && html`<${Editor} key=${editing.item ? JSON.stringify(keyOf(editing.item, table.KeySchema)) : `new ${editing.round || 0}`} table=${table} item=${editing.item} cost=${editing.cost} draft=${editing.draft} onClose=${close} onSaved=${again} onDuplicate=${(draft) => { setEditing({ draft, round: Date.now() }); go({ item: undefined }); }} />`}
    ${over === "columns" && html`<${Columns} attributes=${attributes} visible=${visible} onChange=${(names) => go({ columns: JSON.stringify(names) })} onClose=${() => setOver(null)} />`}
    ${over === "delete" && html`<${BulkDelete} table=${table} answer=${answer} items=${[...picked].map((n) => items[n])} onClose=${() => setOver(null)} onDone=${again} />`}
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
      ${visible.map((name) => html`<td key=${name} dir="auto">${name === keys[0] && attributeOf(item, name) ? html`<${Type} value=${item[name]} /><button class="cell" onClick=${() => open(item)}>${shown(item[name]) || "(empty)"}</button>` : html`<${Cell} value=${attributeOf(item, name)} />`}</td>`)}
    </tr>`)}</tbody></table></div>`;
}

function Columns({ attributes, visible, onChange, onClose }) {
  const flip = (name) => onChange(visible.includes(name) ? visible.filter((one) => one !== name) : [...visible, name]);
  return html`<${Over} label="Columns" onClose=${onClose}><div class="head"><h1>Columns</h1><div class="actions"><button onClick=${() => onChange(attributes)}>All</button><button onClick=${onClose}>Done</button></div></div>
    <div class="row">${attributes.map((name) => html`<label class="tick" key=${name}><input type="checkbox" checked=${visible.includes(name)} onChange=${() => flip(name)} /><span class="mono">${name}</span></label>`)}</div><//>`;
}
