// Items in files: DynamoDB's JSON, one item per line, or CSV. CSV has a column for each attribute:
// strings as they are, other types as DynamoDB's JSON.

import { attributeOf, checkedItem, keyOf, valueOf } from "../shared/values.js";

export const jsonOf = (items) => items.map((Item) => `${JSON.stringify({ Item })}\n`).join("");

const cell = (value) => { const text = value === undefined ? "" : "S" in value && value.S !== "" && !value.S.startsWith("{") ? value.S : JSON.stringify(value); return /[",\n\r]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text; };
export function csvOf(items) {
  const names = [...new Set(items.flatMap((item) => Object.keys(item)))];
  return [names.map((name) => cell({ S: name })).join(","), ...items.map((item) => names.map((name) => cell(attributeOf(item, name))).join(","))].join("\r\n") + "\r\n";
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

const at = (place, read) => { try { return read(); } catch (failed) { throw new Error(`${place}: ${failed instanceof SyntaxError ? `this is not JSON: ${failed.message}` : failed.message}`); } };

// An item is {"Item": {...}}, as in DynamoDB's exports, or {...}, which may have an attribute Item.
const unwrapped = (one) => (one?.Item && Object.keys(one).length === 1 && Object.values(one.Item).every((value) => value && typeof value === "object") ? one.Item : one);

function jsonItems(text) {
  const trimmed = text.trim();
  if (trimmed.startsWith("[")) return at("The file", () => JSON.parse(trimmed)).map((one, n) => at(`Item ${n + 1}`, () => checkedItem(unwrapped(one))));
  return trimmed.split("\n").map((line, n) => [line, n]).filter(([line]) => line.trim()).map(([line, n]) => at(`Line ${n + 1}`, () => checkedItem(unwrapped(JSON.parse(line)))));
}

function csvItems(text, definitions) {
  const [names = [], ...rows] = csvRows(text);
  const types = Object.fromEntries(definitions.map((one) => [one.AttributeName, one.AttributeType]));
  const value = (column, written) => (TYPED.test(written) ? JSON.parse(written) : valueOf(types[column] || "S", written));
  return rows.map((row, n) => at(`Row ${n + 2}`, () => checkedItem(Object.fromEntries(names.map((column, m) => [column, row[m]]).filter(([, written]) => written !== undefined && written !== "").map(([column, written]) => [column, value(column, written)])))));
}

const TYPED = /^\{"(S|N|B|BOOL|NULL|M|L|SS|NS|BS)":/;

// Checks that each item has the table's key. Of items with the same key the last one wins, as if
// they were written one by one.
export function itemsOf(name, text, { KeySchema, AttributeDefinitions }) {
  const found = /\.csv$/i.test(name) ? csvItems(text, AttributeDefinitions) : jsonItems(text), byKey = new Map();
  found.forEach((item, n) => {
    const missing = KeySchema.find((key) => attributeOf(item, key.AttributeName) === undefined);
    if (missing) throw new Error(`Item ${n + 1} has no ${missing.AttributeName}, which is part of the key.`);
    byKey.set(JSON.stringify(Object.values(keyOf(item, KeySchema))), item);
  });
  return [...byKey.values()];
}
