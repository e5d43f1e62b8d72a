// The editor of one item, as a form or as JSON. Input is checked while it is typed, and saved only if
// the item has not changed since it was read.

import { Call, Confirm, Over, Problem, Select, html, mayLeave, say, units, useState, useUnsaved } from "./parts.js";
import { call, session } from "./api.js";
import { Differences } from "./differences.js";
import { TYPES, additionOf, attributeOf, checkedItem, deletionOf, editable, pretty, same, shown, typeOf, updateOf, valueOf } from "./values.js";

const FORM_ATTRIBUTES_MAX = 150;
let number = 0;
const rowsOf = (item) => Object.entries(item).map(([name, value]) => ({ id: ++number, name, type: typeOf(value), text: editable(value), before: value }));

// Returns the item that the rows describe; rows that were not edited keep their exact value.
function read(rows) {
  const item = Object.create(null), problems = {};
  for (const row of rows) {
    if (!row.name) { problems[row.id] = "An attribute needs a name."; continue; }
    if (row.name in item) { problems[row.id] = `There are two attributes ${row.name}.`; continue; }
    try {
      item[row.name] = row.before && typeOf(row.before) === row.type && editable(row.before) === row.text ? row.before : valueOf(row.type, row.text);
    } catch (error) { problems[row.id] = error.message; }
  }
  return { item, problems };
}

// `item` is the item that was read; without it, a new one starts from `draft`.
export function Editor({ table, item, cost, draft = {}, onClose, onSaved, onDuplicate }) {
  const schema = table.KeySchema, keys = schema.map((key) => key.AttributeName);
  const [seen, setSeen] = useState(item);
  const [rows, setRows] = useState(() => rowsOf(orderedBy(keys, item || draft)));
  const [first] = useState(rows);
  const isLarge = Object.keys(item || draft).length > FORM_ATTRIBUTES_MAX;
  const [mode, setMode] = useState(isLarge ? "json" : "form");
  const [text, setText] = useState(() => pretty(item || draft));
  const [error, setError] = useState(null);
  const [theirs, setTheirs] = useState(undefined);
  const [confirming, setConfirming] = useState(false);
  const [busy, setBusy] = useState(false);

  let edited = {}, problems = {}, wrong = null;
  if (mode === "form") ({ item: edited, problems } = read(rows));
  else try { edited = checkedItem(JSON.parse(text)); } catch (failed) { wrong = failed instanceof SyntaxError ? `This is not JSON: ${failed.message}.` : failed.message; }
  const isWrong = wrong || Object.keys(problems).length > 0;
  const missing = !isWrong && keys.filter((name) => attributeOf(edited, name) === undefined);
  const moved = seen && !isWrong && !missing.length && keys.some((name) => !same(seen[name], edited[name]));
  const request = isWrong || missing.length || moved ? null : seen ? updateOf(table.TableName, schema, seen, edited) : additionOf(table.TableName, schema, edited);
  const operation = seen ? "UpdateItem" : "PutItem";
  const isDirty = session.Mode === "on" && (seen ? request !== null || Boolean(isWrong) || moved : rows !== first || text !== pretty(draft));
  const release = useUnsaved(isDirty);

  const change = (id, values) => setRows(rows.map((row) => (row.id === id ? { ...row, ...values } : row)));
  const switchTo = (next) => {
    if (next === mode || isWrong) return;
    if (next === "json") setText(pretty(edited));
    else setRows(rowsOf(orderedBy(keys, edited)));
    setMode(next);
  };
  const conflict = (failed) => {
    if (failed.code === "ConditionalCheckFailedException") setTheirs(failed.body.Item || null);
    else setError(failed);
  };
  const save = async (event) => {
    event.preventDefault();
    if (!request || busy) return;
    setBusy(true);
    setError(null);
    const before = seen, after = edited;
    try {
      const answer = await call(operation, request);
      const undo = before
        ? updateOf(table.TableName, schema, after, before)
        : deletionOf(table.TableName, schema, after);
      release();
      say(`${before ? "Item saved." : "Item added."} ${paid(answer)}`, { label: "Undo", action: () => reverse(before ? "UpdateItem" : "DeleteItem", undo, onSaved) });
      onSaved();
      onClose();
    } catch (failed) { conflict(failed); setBusy(false); }
  };
  const remove = async () => {
    let answer;
    try { answer = await call("DeleteItem", deletionOf(table.TableName, schema, seen)); } catch (failed) {
      if (failed.code !== "ConditionalCheckFailedException") throw failed;
      setTheirs(failed.body.Item || null);
      return;
    }
    release();
    say(`Item deleted. ${paid(answer)}`, { label: "Undo", action: () => reverse("PutItem", additionOf(table.TableName, schema, seen), onSaved) });
    onSaved();
    onClose();
  };
  const title = seen ? keys.map((name) => shown(seen[name], 60)).join(" · ") : "New item";
  const close = () => { if (mayLeave()) { release(); onClose(); } };
  return html`<${Over} kind="drawer" label=${seen ? "Edit item" : "New item"} onClose=${close}>
    <div class="head"><h1>${title}</h1><div class="actions">
      ${seen && session.Mode === "on" && html`<button type="button" onClick=${() => { release(); onDuplicate(edited); }}>Duplicate</button><button type="button" class="danger" onClick=${() => setConfirming(true)}>Delete</button>`}
      <button type="button" onClick=${close}>Close</button></div></div>
    ${theirs !== undefined && html`<${Conflict} seen=${seen} mine=${edited} theirs=${theirs}
      onTake=${() => { setSeen(theirs); setRows(rowsOf(orderedBy(keys, theirs))); setText(pretty(theirs)); setTheirs(undefined); }}
      onKeep=${() => { const merged = mergedOver(seen || {}, edited, theirs || {}); setSeen(theirs || undefined); setRows(rowsOf(orderedBy(keys, merged))); setText(pretty(merged)); setTheirs(undefined); }} />`}
    <form onSubmit=${save}>
      <div class="tabs" role="tablist"><button type="button" role="tab" aria-selected=${mode === "form" ? "true" : "false"} onClick=${() => switchTo("form")}>Form</button><button type="button" role="tab" aria-selected=${mode === "json" ? "true" : "false"} onClick=${() => switchTo("json")}>JSON</button></div>
      ${mode === "form" ? html`
        ${rows.map((row) => html`<${Attribute} key=${row.id} row=${row} isKey=${Boolean(seen) && keys.includes(row.name)} problem=${problems[row.id]} change=${(values) => change(row.id, values)} remove=${() => setRows(rows.filter((one) => one.id !== row.id))} />`)}
        <button type="button" class="small" onClick=${() => setRows([...rows, { id: ++number, name: "", type: "S", text: "" }])}>Add attribute</button>`
      : html`<label class="field"><span>The item in DynamoDB's JSON</span><textarea class="code" rows="20" spellcheck=${false} value=${text} onInput=${(event) => setText(event.target.value)} aria-invalid=${wrong ? "true" : "false"}></textarea></label>`}
      ${wrong && html`<div class="problem" role="alert">${wrong}</div>`}
      ${missing && missing.length > 0 && html`<div class="note">The key is not complete: ${missing.join(", ")} is missing.</div>`}
      ${moved && html`<div class="note">The key of an item cannot be changed. Duplicate it instead, and delete this one.</div>`}
      ${request && html`<${Call} operation=${operation} request=${request} />`}
      <${Problem} error=${error} />
      ${session.Mode === "on" && html`<div class="bar footing">
        <button class="primary" disabled=${!request || busy}>${seen ? "Save" : "Add item"}</button>
        ${seen && !request && !isWrong && !moved && html`<span class="quiet">Nothing is changed. It was read for ${units(cost, "R")}.</span>`}
      </div>`}
    </form>
    ${confirming && html`<${Confirm} title="Delete item" name=${plain(seen[keys[0]])} verb="Delete item" operation="DeleteItem" request=${deletionOf(table.TableName, schema, seen)}
      onClose=${() => setConfirming(false)} onDone=${remove}><p>The item is deleted only if it has not changed since you read it.</p><//>`}
  <//>`;
}

const paid = (answer) => units(answer.ConsumedCapacity?.CapacityUnits, "W");
const plain = (value) => shown(value, 60);
const orderedBy = (keys, item) => ({ ...Object.fromEntries(keys.filter((name) => Object.hasOwn(item, name)).map((name) => [name, item[name]])), ...item });

async function reverse(operation, request, onSaved) {
  try {
    say(`Undone. ${paid(await call(operation, request))}`);
    onSaved();
  } catch (failed) {
    const text = failed.code === "ConditionalCheckFailedException" ? "Not undone: somebody has changed the item since." : failed.message;
    say(text, { bad: true });
  }
}

// Applies my changes to the item as somebody else has saved it.
function mergedOver(seen, mine, theirs) {
  const merged = Object.assign(Object.create(null), theirs);
  for (const name of new Set([...Object.keys(seen), ...Object.keys(mine)])) {
    const wanted = attributeOf(mine, name);
    if (same(attributeOf(seen, name), wanted)) continue;
    if (wanted === undefined) delete merged[name];
    else merged[name] = wanted;
  }
  return merged;
}

function Conflict({ seen, mine, theirs, onTake, onKeep }) {
  if (theirs === null) return html`<div class="note" role="alert"><p>Somebody has deleted this item since you read it. Nothing was saved.</p><button type="button" class="small" onClick=${onKeep}>Add it again with my values</button></div>`;
  return html`<div class="note" role="alert"><p>${seen ? "Somebody has changed this item since you read it. Nothing was saved." : "There is an item with this key already. Nothing was saved."}</p>
    <${Differences} was=${mine} is=${theirs} titles=${["Yours", "Theirs"]} />
    <div class="bar" style=${{ marginTop: "10px" }}><button type="button" class="small" onClick=${onTake}>Take theirs</button><button type="button" class="small" onClick=${onKeep}>Keep my changes on top of theirs</button></div>
  </div>`;
}

export function Attribute({ row, isKey, problem, change, remove }) {
  const long = ["M", "L", "SS", "NS", "BS"].includes(row.type) || row.text.length > 60 || /[\r\n]/.test(row.text);
  const label = row.name || "new attribute";
  const typed = (event) => change({ text: event.target.value });
  return html`<div class="attribute" data-attribute=${row.name}>
    <input value=${row.name} aria-label=${`Name of ${label}`} disabled=${isKey} onInput=${(event) => change({ name: event.target.value })} spellcheck=${false} />
    <${Select} value=${row.type} aria-label=${`Type of ${label}`} disabled=${isKey} onChange=${(type) => change({ type })} options=${Object.entries(TYPES)} />
    <div class="value">${row.type === "NULL" ? html`<span class="quiet">null</span>`
      : row.type === "BOOL" ? html`<${Select} value=${row.text === "true" ? "true" : "false"} aria-label=${`Value of ${label}`} onChange=${(text) => change({ text })} options=${["true", "false"]} />`
      : long ? html`<textarea class="code" dir="auto" rows=${Math.min(12, Math.max(3, row.text.slice(0, 4000).split("\n").length))} aria-label=${`Value of ${label}`} aria-invalid=${problem ? "true" : "false"} disabled=${isKey} value=${row.text} onInput=${typed} spellcheck=${false}></textarea>`
      : html`<input class="mono" dir="auto" value=${row.text} aria-label=${`Value of ${label}`} aria-invalid=${problem ? "true" : "false"} disabled=${isKey} onInput=${typed} spellcheck=${false} autocomplete="off" />`}</div>
    ${isKey ? html`<span class="badge">key</span>` : html`<button type="button" class="plain" aria-label=${`Remove ${label}`} onClick=${remove}>✕</button>`}
    ${problem && html`<span class="wrong" role="alert">${problem}</span>`}
  </div>`;
}
