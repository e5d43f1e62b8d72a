// Converts a request to the form that shows it, and back. A form has texts where the request has
// values, so that half-typed input stays as it is. `problems` describes what is invalid.

import { editable, typeOf, valueOf } from "../shared/values.js";

let number = 0;
export const fresh = (more) => ({ id: ++number, ...more });

// Returns an empty form, or one filled from a request.
export function formOf(shape, given) {
  switch (shape.kind) {
    case "record": return Object.fromEntries(Object.entries(shape.members).map(([name, member]) => [name, formOf(member, given?.[name])]));
    case "either": {
      const [kind] = Object.keys(given || shape.members);
      return { kind, form: formOf(shape.members[kind], given?.[kind]) };
    }
    case "value": return given ? { type: typeOf(given), text: editable(given) } : { type: "S", text: "" };
    case "map":
      if (shape.placeholder) return Object.fromEntries(Object.entries(given || {}).map(([name, one]) => [name, formOf(shape.of, one)]));
      if (shape.of.kind === "value") return Object.entries(given || {}).map(([name, one]) => fresh({ name, ...formOf(shape.of, one) }));
      return Object.entries(given || { "": undefined }).map(([name, one]) => fresh({ name, form: formOf(shape.of, one) }));
    case "list": return (given || (shape.of.kind === "value" ? [] : [undefined])).map((one) => fresh({ form: formOf(shape.of, one) }));
    default: return given === undefined ? "" : String(given);
  }
}

// Returns the #names and :values that the expressions of a record use.
export function placeholders(shape, form, mark) {
  const texts = Object.entries(shape.members).filter(([, member]) => member.kind === "expression").map(([name]) => form[name].replace(/'[^']*'/g, ""));
  return [...new Set(texts.flatMap((text) => text.match(mark === "#" ? /#[\w-]+/g : /:[\w-]+/g) || []))];
}

export function requestOf(shape, form, problems, where = "") {
  switch (shape.kind) {
    case "record": return recordOf(shape, form, problems, where);
    case "either": return { [form.kind]: requestOf(shape.members[form.kind], form.form, problems, where) };
    case "value": return read(form, problems, where);
    case "map":
      if (shape.of.kind === "value") return Object.fromEntries(form.filter((row) => row.name).map((row) => [row.name, read(row, problems, `${where}: ${row.name}`)]));
      return byTable(shape, form, problems, where);
    case "list": return form.map((row, at) => requestOf(shape.of, row.form, problems, `${where} ${at + 1}`));
    case "flag": return form === "true";
    case "whole":
      if (!/^\d+$/.test(form)) problems.push(`${where} must be a whole number.`);
      return Number(form);
    default: return form;
  }
}

function recordOf(shape, form, problems, where) {
  const request = {};
  const isStatement = "Statement" in shape.members;
  for (const [name, member] of Object.entries(shape.members)) {
    const place = where ? `${where}, ${name}` : name;
    if (member.placeholder) {
      if (isStatement) continue;
      const usedNames = placeholders(shape, form, member.placeholder);
      if (!usedNames.length) continue;
      request[name] = Object.fromEntries(usedNames.map((each) => [each, requestOf(member.of, form[name][each] ?? formOf(member.of), problems, each)]));
      for (const each of usedNames) if (member.placeholder === "#" && !form[name][each]) problems.push(`${where ? `${where}: ` : ""}${each} has no name yet.`);
    } else if (!isEmpty(member, form[name])) request[name] = requestOf(member, form[name], problems, place);
    else if (shape.required.includes(name)) problems.push(`${place} is missing.`);
  }
  return request;
}

const isEmpty = (shape, form) => (Array.isArray(form) ? !form.some((row) => row.form !== undefined || row.name) : form === "");

function byTable(shape, form, problems, where) {
  const found = Object.create(null);
  for (const row of form) {
    if (!row.name) { problems.push(`${where}: a table has no name yet.`); continue; }
    if (row.name in found) { problems.push(`${where}: ${row.name} occurs twice.`); continue; }
    found[row.name] = requestOf(shape.of, row.form, problems, row.name);
  }
  return found;
}

function read({ type, text }, problems, where) {
  try { return valueOf(type, text); } catch (error) { problems.push(`${where}: ${error.message}`); return { S: text }; }
}
