// The operation builder: a form for any data operation, which can be run or copied as code.

import { Field, Input, Problem, Select, clipped, copy, html, link, useEffect, useRef, useState } from "../shared/parts.js";
import { allTables, call, session } from "../shared/api.js";
import { Attribute } from "../shared/item.js";
import { TYPES, pretty } from "../shared/values.js";
import { OPERATIONS, READS } from "../builder/shapes.js";
import { formOf, fresh, placeholders, requestOf } from "../builder/form.js";
import { client, resource } from "../builder/python.js";
import { javascript } from "../builder/javascript.js";
import { java } from "../builder/java.js";
import { go } from "../builder/go.js";
import { shell } from "../builder/shell.js";
import { NoStatement, partiql } from "../builder/partiql.js";

const LANGUAGES = {
  boto3: ["boto3", client], resource: ["boto3 resource", resource], javascript: ["JavaScript v3", javascript],
  java: ["Java v2", java], go: ["Go", go], cli: ["AWS CLI", shell], partiql: ["PartiQL", partiql],
};
const KEPT = "builder-language";
const MORE = new Set(["ReturnConsumedCapacity", "ReturnItemCollectionMetrics", "ReturnValuesOnConditionCheckFailure", "ReturnValues", "ClientRequestToken", "NextToken", "ExclusiveStartKey", "Segment", "TotalSegments", "Select", "Limit", "ConsistentRead", "ScanIndexForward"]);
const AMAZON = /^https:\/\/dynamodb\.([a-z0-9-]+)\.amazonaws\.com/;
const titled = (name) => name.replace(/(?<!^)([A-Z])/g, " $1").replace(/ ([A-Z])(?=[a-z])/g, (_, c) => ` ${c.toLowerCase()}`);

export default function Builder({ parts, query }) {
  const operation = parts[0] in OPERATIONS ? parts[0] : "PutItem";
  const given = query.get("request") || "";
  return html`<${Build} key=${`${operation} ${given}`} operation=${operation} given=${given} table=${query.get("table") || ""} />`;
}

function formFrom(shape, given, table) {
  let request = {};
  try { request = given ? JSON.parse(given) : {}; } catch { request = {}; }
  if (table && "TableName" in shape.members) request = { TableName: table, ...request };
  try { return formOf(shape, request); } catch { return formOf(shape, {}); }
}

const descriptions = new Map();
function described(name) {
  if (!descriptions.has(name)) descriptions.set(name, call("DescribeTable", { TableName: name }).then(({ Table }) => Table, () => { descriptions.delete(name); return null; }));
  return descriptions.get(name);
}
function useTable(name) {
  const [table, setTable] = useState(null);
  useEffect(() => {
    let gone = false;
    setTable(null);
    if (name?.length > 2) { const timer = setTimeout(() => described(name).then((found) => !gone && setTable(found)), 200); return () => { gone = true; clearTimeout(timer); }; }
    return () => { gone = true; };
  }, [name]);
  return table;
}
const schemaOf = (table, index) => [...(table?.GlobalSecondaryIndexes || []), ...(table?.LocalSecondaryIndexes || [])].find((one) => one.IndexName === index)?.KeySchema || table?.KeySchema || [];

function Build({ operation, given, table: named }) {
  const shape = OPERATIONS[operation];
  const [form, setForm] = useState(() => formFrom(shape, given, named));
  const [tables, setTables] = useState([]);
  const [language, setLanguage] = useState(() => (localStorage.getItem(KEPT) in LANGUAGES ? localStorage.getItem(KEPT) : "boto3"));
  const [answer, setAnswer] = useState(null);
  const [error, setError] = useState(null);
  const running = useRef(null);
  const [busy, setBusy] = useState(false);
  useEffect(() => { allTables().then(setTables, () => {}); }, [session.state === "connected"]);
  const table = useTable(form.TableName);

  const problems = [];
  const request = requestOf(shape, form, problems);
  const amazon = AMAZON.exec(session.Endpoint);
  const sortKey = schemaOf(table, form.IndexName)[1]?.AttributeName;
  const place = { endpoint: amazon ? "" : session.Endpoint, region: amazon ? amazon[1] : session.Region || "us-east-1", sortKey };
  const written = codeOf(language, shape, request, place);
  const choose = (next) => { setLanguage(next); try { localStorage.setItem(KEPT, next); } catch { /* Then it is chosen again next time. */ } };
  const run = async (event) => {
    event.preventDefault();
    const control = (running.current = new AbortController());
    setBusy(true);
    setError(null);
    setAnswer(null);
    try { setAnswer(await call(operation, request, control.signal)); } catch (failed) { if (failed.name !== "AbortError") setError(failed); }
    setBusy(false);
  };
  const may = session.Mode === "on" || READS.has(operation) || "Statement" in shape.members;
  return html`<div class="head"><h1>Builder</h1>
      <div class="actions"><a class="button" href=${link("build", [operation], { request: JSON.stringify(request) })}>Link to this request</a></div></div>
    <div class="builder">
      <form onSubmit=${run} aria-label="Request">
        <div class="card">
          <${Field} label="Operation"><${Select} value=${operation} options=${Object.keys(OPERATIONS)} name="operation"
            onChange=${(next) => { location.hash = link("build", [next], form.TableName ? { table: form.TableName } : {}); }} /><//>
        </div>
        <div class="card"><${Record} shape=${shape} form=${form} onChange=${setForm} tables=${tables} /></div>
        ${problems.length > 0 && html`<div class="note" role="status" id="problems">${problems.slice(0, 6).map((one) => html`<div key=${one}>${one}</div>`)}</div>`}
        <div class="bar">
          <button class="primary" disabled=${problems.length > 0 || busy || !may} id="run">Run ${operation}</button>
          ${busy && html`<button type="button" onClick=${() => running.current?.abort()}>Cancel</button>`}
          ${!may && html`<span class="quiet">This console is read-only.</span>`}
        </div>
        <${Problem} error=${error} />
        ${error?.body?.CancellationReasons && html`<${Reasons} reasons=${error.body.CancellationReasons} />`}
        ${answer && html`<${Answer} answer=${answer} />`}
      </form>
      <section class="card code-card" aria-label="Code">
        <div class="tabs wrap" role="tablist" aria-label="Language">${Object.entries(LANGUAGES).map(([name, [title]]) => html`<button key=${name} type="button" role="tab" aria-selected=${name === language ? "true" : "false"} onClick=${() => choose(name)}>${title}</button>`)}</div>
        ${written.error ? html`<p class="note" id="no-code">${written.error}</p>`
        : html`${written.note && html`<p class="quiet" id="code-note">${written.note}</p>`}
          <pre class="code" tabindex="0" id="code" aria-label=${`As ${LANGUAGES[language][0]}`}>${written.text}</pre>
          <div class="bar"><button type="button" onClick=${() => copy(written.text)}>Copy</button><span class="quiet">Credentials come from where you run it, never from here.</span></div>`}
      </section>
    </div>`;
}

function codeOf(language, shape, request, place) {
  try {
    const written = LANGUAGES[language][1](shape, request, place);
    return typeof written === "string" ? { text: written } : written;
  } catch (error) {
    if (error instanceof NoStatement) return { error: error.message };
    return { error: "The request is not complete yet." };
  }
}

function Answer({ answer }) {
  const units = [answer.ConsumedCapacity || []].flat().reduce((sum, one) => sum + one.CapacityUnits, 0);
  const found = answer.Items ? `${answer.Items.length} items` : answer.Item ? "1 item" : "";
  return html`<section class="card answer" aria-label="Answer"><div class="bar" role="status" id="summary"><strong>Done</strong><span class="quiet">${[found, answer.ConsumedCapacity && `${units} units`].filter(Boolean).join(" · ")}</span></div>
    <pre class="code" tabindex="0" id="answer" aria-label="The answer">${clipped(pretty(answer))}</pre></section>`;
}

const Reasons = ({ reasons }) => html`<ol class="problem" id="reasons">${reasons.map((one, at) => html`<li key=${at}>${one.Code === "None" ? "would have succeeded" : `${one.Code}: ${one.Message || ""}`}</li>`)}</ol>`;

// The parts of a form, by the shapes of the request

function Record({ shape, form, onChange, tables, table: outer, label = "" }) {
  const own = useTable("TableName" in shape.members ? form.TableName : "");
  const table = outer || own;
  const set = (name) => (value) => onChange({ ...form, [name]: value });
  const members = Object.entries(shape.members).filter(([, member]) => !(member.placeholder && "Statement" in shape.members));
  const shown = ([name, member]) => html`<${Member} key=${name} name=${name} shape=${member} form=${form[name]} onChange=${set(name)} record=${[shape, form]} tables=${tables} table=${table} label=${label} isRequired=${shape.required.includes(name)} />`;
  const more = members.filter(([name]) => MORE.has(name));
  const isUsed = more.some(([name]) => form[name] !== "" && (!Array.isArray(form[name]) || form[name].length));
  return html`${members.filter(([name]) => !MORE.has(name)).map(shown)}
    ${more.length > 0 && html`<details class="more" open=${isUsed}><summary>Options${label && html`<span class="hidden-label"> of ${label}</span>`}</summary><div class="row">${more.filter(([, member]) => member.kind !== "map").map(shown)}</div>${more.filter(([, member]) => member.kind === "map").map(shown)}</details>`}`;
}

function Member({ name, shape, form, onChange, record, tables, table, label, isRequired }) {
  const title = `${titled(name)}${isRequired ? "" : " (optional)"}${label ? ` of ${label}` : ""}`;
  const short = `${titled(name)}${label ? ` of ${label}` : ""}`;
  switch (shape.kind) {
    case "expression": return html`<label class="field stacked"><span>${title}</span><textarea class="code" rows=${Math.min(6, Math.max(1, form.split("\n").length, Math.ceil(form.length / 70)))} spellcheck=${false} value=${form} placeholder=${EXAMPLES[name] || ""} onInput=${(event) => onChange(event.target.value)}></textarea></label>`;
    case "choice": return html`<${Field} label=${short}><${Select} value=${form} onChange=${onChange} options=${[["", "default"], ...shape.values]} /><//>`;
    case "flag": return html`<${Field} label=${short}><${Select} value=${form} onChange=${onChange} options=${[["", "default"], ["true", "yes"], ["false", "no"]]} /><//>`;
    case "whole": return html`<${Field} label=${short}><${Input} value=${form} onInput=${onChange} inputmode="numeric" /><//>`;
    case "map":
      if (shape.placeholder) return html`<${Placeholders} shape=${shape} form=${form} onChange=${onChange} record=${record} label=${label} table=${table} />`;
      if (shape.of.kind === "value") return html`<${Attributes} title=${title} rows=${form} onChange=${onChange} schema=${name === "ExclusiveStartKey" ? [] : table?.KeySchema || []} definitions=${table?.AttributeDefinitions || []} isKey=${shape.isKey} />`;
      return html`<${ByTable} shape=${shape.of} form=${form} onChange=${onChange} tables=${tables} />`;
    case "list": return html`<${List} name=${name} shape=${shape.of} form=${form} onChange=${onChange} tables=${tables} table=${table} label=${label} />`;
    case "record": return html`<${Record} shape=${shape} form=${form} onChange=${onChange} tables=${tables} label=${label} />`;
    default: {
      const known = name === "TableName" ? tables : name === "IndexName" ? [...(table?.GlobalSecondaryIndexes || []), ...(table?.LocalSecondaryIndexes || [])].map((one) => one.IndexName) : null;
      return html`<div class="stacked"><${Field} label=${title}><${Input} value=${form} onInput=${onChange} list=${known ? `known-${name}` : undefined} /><//>
        ${known && html`<datalist id=${`known-${name}`}>${known.slice(0, 500).map((one) => html`<option value=${one} />`)}</datalist>`}</div>`;
    }
  }
}

const EXAMPLES = {
  KeyConditionExpression: "#k = :k AND begins_with(sk, :prefix)", FilterExpression: "price > :least", ProjectionExpression: "pk, #name, address.city",
  UpdateExpression: "SET #status = :new REMOVE draft", ConditionExpression: "attribute_exists(pk) AND #status = :old", Statement: 'SELECT * FROM "Orders" WHERE pk = ?',
};

// The attributes of an item or a key: rows can be added, and start with those of the table's key.
function Attributes({ title, rows, onChange, schema, definitions, isKey }) {
  const names = schema.map((one) => one.AttributeName);
  useEffect(() => {
    const missing = names.filter((name) => !rows.some((row) => row.name === name));
    if (!missing.length) return;
    const kept = rows.filter((row) => row.name || row.text);
    onChange([...missing.map((name) => fresh({ name, type: definitions.find((one) => one.AttributeName === name)?.AttributeType || "S", text: "" })), ...kept]);
  }, [names.join("\n")]);
  return html`<fieldset class="attributes"><legend>${title}</legend>
    ${rows.map((row) => html`<${Attribute} key=${row.id} row=${row} change=${(values) => onChange(rows.map((one) => (one.id === row.id ? { ...one, ...values } : one)))} remove=${() => onChange(rows.filter((one) => one.id !== row.id))} />`)}
    ${(!isKey || rows.length < 2) && html`<button type="button" class="small" onClick=${() => onChange([...rows, fresh({ name: "", type: "S", text: "" })])}>Add attribute</button>`}</fieldset>`;
}

// A row for every #name and :value that the expressions ask for.
function Placeholders({ shape, form, onChange, record, label, table }) {
  const usedNames = placeholders(record[0], record[1], shape.placeholder);
  if (!usedNames.length) return null;
  const of = label ? ` of ${label}` : "";
  return html`<fieldset class="attributes"><legend>${shape.placeholder === "#" ? "Names" : "Values"} in the expressions</legend>
    ${usedNames.map((name) => (shape.of.kind === "text"
      ? html`<div class="placeholder" key=${name}><code>${name}</code><${Input} value=${form[name] || ""} onInput=${(value) => onChange({ ...form, [name]: value })} aria-label=${`${name}${of}`} list="known-attributes" /></div>`
      : html`<div class="placeholder" key=${name}><code>${name}</code><${Typed} label=${`${name}${of}`} value=${form[name] || { type: "S", text: "" }} onChange=${(value) => onChange({ ...form, [name]: value })} /></div>`))}
    <datalist id="known-attributes">${(table?.AttributeDefinitions || []).map((one) => html`<option value=${one.AttributeName} />`)}</datalist></fieldset>`;
}

function Typed({ label, value, onChange }) {
  const long = ["M", "L", "SS", "NS", "BS"].includes(value.type);
  return html`<${Select} value=${value.type} aria-label=${`Type of ${label}`} onChange=${(type) => onChange({ ...value, type })} options=${Object.entries(TYPES)} />
    ${value.type === "NULL" ? html`<span class="quiet">null</span>`
    : value.type === "BOOL" ? html`<${Select} value=${value.text === "true" ? "true" : "false"} aria-label=${`Value of ${label}`} onChange=${(text) => onChange({ ...value, text })} options=${["true", "false"]} />`
    : long ? html`<textarea class="code" rows="3" aria-label=${`Value of ${label}`} value=${value.text} spellcheck=${false} onInput=${(event) => onChange({ ...value, text: event.target.value })}></textarea>`
    : html`<${Input} value=${value.text} aria-label=${`Value of ${label}`} class="mono" dir="auto" onInput=${(text) => onChange({ ...value, text })} />`}`;
}

function List({ name, shape, form, onChange, tables, table, label }) {
  const change = (id, next) => onChange(form.map((row) => (row.id === id ? { ...row, form: next } : row)));
  const noun = { TransactItems: "action", Statements: "statement", TransactStatements: "statement", Parameters: "parameter", Keys: "key", RequestItems: "write" }[name];
  const add = () => onChange([...form, fresh({ form: formOf(shape) })]);
  return html`<div class="list">${form.map((row, at) => {
      const place = `${noun} ${at + 1}${label ? ` of ${label}` : ""}`;
      const drop = html`<button type="button" class="plain" aria-label=${`Remove ${place}`} onClick=${() => onChange(form.filter((one) => one.id !== row.id))}>✕</button>`;
      if (shape.kind === "value") return html`<div class="placeholder" key=${row.id}><code>? ${at + 1}</code><${Typed} label=${place} value=${row.form} onChange=${(next) => change(row.id, next)} />${drop}</div>`;
      if (shape.kind === "map") return html`<div class="nested" key=${row.id}><div class="bar"><strong>Key ${at + 1}</strong><span class="spacer"></span>${drop}</div><${Attributes} title=${`Key ${at + 1}`} rows=${row.form} onChange=${(next) => change(row.id, next)} schema=${table?.KeySchema || []} definitions=${table?.AttributeDefinitions || []} isKey /></div>`;
      const isEither = shape.kind === "either";
      return html`<div class="nested" key=${row.id}><div class="bar"><strong>${noun[0].toUpperCase()}${noun.slice(1)} ${at + 1}</strong>
          ${isEither && html`<${Select} value=${row.form.kind} aria-label=${`Kind of ${place}`} class="narrow" options=${Object.keys(shape.members).map((kind) => [kind, kind.replace("Request", "")])} onChange=${(kind) => change(row.id, changedKind(shape, row.form, kind))} />`}
          <span class="spacer"></span>${drop}</div>
        ${isEither ? html`<${Record} key=${row.form.kind} shape=${shape.members[row.form.kind]} form=${row.form.form} onChange=${(next) => change(row.id, { ...row.form, form: next })} tables=${tables} table=${table} label=${place} />`
        : html`<${Record} shape=${shape} form=${row.form} onChange=${(next) => change(row.id, next)} tables=${tables} table=${table} label=${place} />`}</div>`;
    })}
    <button type="button" class="small" onClick=${add}>Add ${noun}</button></div>`;
}

// When the user switches between kinds of an action, members that both have are kept.
function changedKind(shape, { kind, form }, next) {
  const empty = formOf(shape.members[next]);
  const kept = Object.fromEntries(Object.keys(empty).filter((name) => name in form).map((name) => [name, form[name]]));
  if ("Item" in empty && form.Key) kept.Item = form.Key;
  if ("Key" in empty && form.Item) kept.Key = form.Item.slice(0, 2);
  return { kind: next, form: { ...empty, ...kept } };
}

function ByTable({ shape, form, onChange, tables }) {
  const change = (id, values) => onChange(form.map((row) => (row.id === id ? { ...row, ...values } : row)));
  return html`<div class="list">${form.map((row, at) => html`<${OfTable} key=${row.id} row=${row} at=${at} shape=${shape} tables=${tables} change=${(values) => change(row.id, values)} remove=${() => onChange(form.filter((one) => one.id !== row.id))} />`)}
    <button type="button" class="small" onClick=${() => onChange([...form, fresh({ name: "", form: formOf(shape) })])}>Add table</button>
    <datalist id="known-tables">${tables.slice(0, 500).map((one) => html`<option value=${one} />`)}</datalist></div>`;
}

function OfTable({ row, at, shape, tables, change, remove }) {
  const table = useTable(row.name);
  const label = `table ${at + 1}`;
  return html`<div class="nested"><div class="bar"><${Field} label=${`Table ${at + 1}`}><${Input} value=${row.name} onInput=${(name) => change({ name })} list="known-tables" /><//><span class="spacer"></span><button type="button" class="plain" aria-label=${`Remove ${label}`} onClick=${remove}>✕</button></div>
    ${shape.kind === "list" ? html`<${List} name="RequestItems" shape=${shape.of} form=${row.form} onChange=${(form) => change({ form })} tables=${tables} table=${table} label=${label} />`
    : html`<${Record} shape=${shape} form=${row.form} onChange=${(form) => change({ form })} tables=${tables} table=${table} label=${label} />`}</div>`;
}
