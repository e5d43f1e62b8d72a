// Converts the form of the explorer to the page's address and to a request.

import { valueOf } from "../shared/values.js";

export const RANGE = [["", "any"], ["=", "="], ["<", "<"], ["<=", "≤"], [">", ">"], [">=", "≥"], ["between", "between"], ["begins_with", "begins with"]];
export const FILTER = [["=", "="], ["<>", "≠"], ["<", "<"], ["<=", "≤"], [">", ">"], [">=", "≥"], ["between", "between"], ["in", "is one of"], ["begins_with", "begins with"], ["contains", "contains"], ["not_contains", "does not contain"], ["attribute_exists", "exists"], ["attribute_not_exists", "does not exist"], ["attribute_type", "has the type"], ["size", "has a size above"]];
export const UNARY = ["attribute_exists", "attribute_not_exists", "attribute_type"];
const PAGE = "50";

export const indexesOf = (table) => [...(table.GlobalSecondaryIndexes || []), ...(table.LocalSecondaryIndexes || [])];

// Lists and keys are JSON in the address; invalid JSON is ignored.
export function parsedParameter(query, name, otherwise) {
  try { return JSON.parse(query.get(name)) ?? otherwise; } catch { return otherwise; }
}

export function formOf(query) {
  const text = (name, otherwise = "") => query.get(name) || otherwise;
  return {
    index: text("index"), pk: query.get("pk") ?? null, op: text("op"), sk: text("sk"), sk2: text("sk2"), filters: parsedParameter(query, "filters", []), any: query.get("any") === "1",
    order: text("order"), limit: text("limit", PAGE), show: text("show"), consistent: query.get("consistent") === "1",
  };
}

export const queryOf = (form) => ({ ...form, pk: form.pk || undefined, filters: form.filters.length ? JSON.stringify(form.filters) : undefined, any: form.any && form.filters.length > 1 ? 1 : undefined, limit: form.limit === PAGE ? undefined : form.limit, consistent: form.consistent ? 1 : undefined });

function keyCondition(form, [hash, range], typeOfKey, names, values) {
  names["#pk"] = hash;
  values[":pk"] = valueOf(typeOfKey(hash), form.pk);
  if (!range || !form.op || form.sk === "") return "#pk = :pk";
  names["#sk"] = range;
  values[":sk"] = valueOf(typeOfKey(range), form.sk);
  if (form.op === "between") { values[":sk2"] = valueOf(typeOfKey(range), form.sk2); return "#pk = :pk AND #sk BETWEEN :sk AND :sk2"; }
  return `#pk = :pk AND ${form.op === "begins_with" ? "begins_with(#sk, :sk)" : `#sk ${form.op} :sk`}`;
}

// A filter compares an attribute with the typed value; commas separate the members of a list.
function condition({ name, op, type, text, text2 = "" }, at, names, values) {
  const attribute = `#f${at}`, value = `:f${at}`;
  names[attribute] = name;
  if (op === "attribute_type") { values[value] = { S: type }; return `attribute_type(${attribute}, ${value})`; }
  if (UNARY.includes(op)) return `${op}(${attribute})`;
  if (op === "size") { values[value] = valueOf("N", text); return `size(${attribute}) > ${value}`; }
  if (op === "in") {
    const members = text.split(",").map((one) => one.trim());
    members.forEach((one, n) => { values[`${value}_${n}`] = valueOf(type, one); });
    return `${attribute} IN (${members.map((_, n) => `${value}_${n}`).join(", ")})`;
  }
  values[value] = valueOf(type, text);
  if (op === "between") { values[`${value}_2`] = valueOf(type, text2); return `${attribute} BETWEEN ${value} AND ${value}_2`; }
  if (op === "not_contains") return `NOT contains(${attribute}, ${value})`;
  return ["begins_with", "contains"].includes(op) ? `${op}(${attribute}, ${value})` : `${attribute} ${op} ${value}`;
}

// Returns the request of a form: a query if it has a partition key, else a scan.
export function requestOf(table, form) {
  const schema = form.index ? indexesOf(table).find((one) => one.IndexName === form.index)?.KeySchema : table.KeySchema;
  if (!schema) throw new Error(`There is no index ${form.index}.`);
  const typeOfKey = (name) => table.AttributeDefinitions.find((one) => one.AttributeName === name)?.AttributeType || "S";
  const names = {}, values = {};
  const request = { TableName: table.TableName, ...(form.index ? { IndexName: form.index } : {}), Limit: Number(form.limit), ReturnConsumedCapacity: "TOTAL", ...(form.consistent ? { ConsistentRead: true } : {}) };
  const isQuery = Boolean(form.pk);
  if (isQuery) {
    request.KeyConditionExpression = keyCondition(form, schema.map((key) => key.AttributeName), typeOfKey, names, values);
    if (form.order === "descending") request.ScanIndexForward = false;
  }
  const filters = form.filters.filter((one) => one.name).map((one, at) => condition(one, at, names, values));
  if (filters.length) request.FilterExpression = filters.join(form.any ? " OR " : " AND ");
  const wanted = form.show.split(",").map((text) => text.trim()).filter(Boolean);
  if (wanted.length) {
    const all = [...new Set([...table.KeySchema.map((key) => key.AttributeName), ...wanted])];
    request.ProjectionExpression = all.map((name, at) => { names[`#p${at}`] = name; return `#p${at}`; }).join(", ");
  }
  if (Object.keys(names).length) request.ExpressionAttributeNames = names;
  if (Object.keys(values).length) request.ExpressionAttributeValues = values;
  return [isQuery ? "Query" : "Scan", request];
}
