// Items in files: DynamoDB's JSON, an item a line, or CSV. CSV has a column for each attribute: texts
// as they are, other types as DynamoDB's JSON.

import { attributeOf, checkedItem, valueOf } from "../values.js";

export const jsonOf = (items) => items.map((Item) => JSON.stringify({ Item })).join("\n") + "\n";

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

export function itemsOf(name, text, definitions) {
  if (!/\.csv$/i.test(name)) {
    const trimmed = text.trim();
    const found = trimmed.startsWith("[") ? JSON.parse(trimmed) : trimmed.split("\n").filter((line) => line.trim()).map((line) => JSON.parse(line));
    return found.map((one) => checkedItem(one.Item || one));
  }
  const [names, ...rows] = csvRows(text);
  const types = Object.fromEntries(definitions.map((one) => [one.AttributeName, one.AttributeType]));
  return rows.map((row) => checkedItem(Object.fromEntries(names.map((column, n) => [column, row[n]]).filter(([, value]) => value !== undefined && value !== "").map(([column, value]) => [column, /^\{"(S|N|B|BOOL|NULL|M|L|SS|NS|BS)":/.test(value) ? JSON.parse(value) : valueOf(types[column] || "S", value)]))));
}
