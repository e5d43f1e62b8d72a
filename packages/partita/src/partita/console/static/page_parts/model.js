// A data model in the file format of NoSQL Workbench. Members that this page does not know are kept.

import { checkedItem, typeOf } from "../shared/values.js";

const TYPES = ["S", "N", "B"];
const keyed = (attributes) => [attributes.PartitionKey, attributes.SortKey].filter(Boolean);
export const keysOf = (thing) => keyed(thing.KeyAttributes).map((one) => one.AttributeName);
export const indexesOf = (table) => table.GlobalSecondaryIndexes || [];

export const newModel = () => ({
  ModelName: "New model",
  ModelMetadata: { Author: "", DateCreated: dated(), DateLastModified: dated(), Description: "", AWSService: "Amazon DynamoDB", Version: "3.0" },
  DataModel: [],
});
export const newTable = (TableName) => ({
  TableName,
  KeyAttributes: { PartitionKey: { AttributeName: "pk", AttributeType: "S" }, SortKey: { AttributeName: "sk", AttributeType: "S" } },
  NonKeyAttributes: [], TableFacets: [], GlobalSecondaryIndexes: [], TableData: [], DataAccess: { MySql: {} }, BillingMode: "PAY_PER_REQUEST",
});
const dated = () => new Date().toLocaleString("en-US", { month: "short", day: "2-digit", year: "numeric", hour: "2-digit", minute: "2-digit" });

export function readModel(text) {
  let model;
  try { model = JSON.parse(text); } catch (error) { throw new Error(`This is not JSON: ${error.message}.`); }
  if (!model || !Array.isArray(model.DataModel)) throw new Error("This is not a model of NoSQL Workbench: it has no DataModel.");
  for (const table of model.DataModel) {
    const name = table?.TableName;
    if (typeof name !== "string" || !name) throw new Error("A table of the model has no TableName.");
    for (const one of [table, ...(table.GlobalSecondaryIndexes || [])]) {
      const place = one === table ? name : `${name}, index ${one?.IndexName}`;
      if (!one?.KeyAttributes?.PartitionKey?.AttributeName) throw new Error(`${place} has no partition key.`);
      for (const key of keyed(one.KeyAttributes)) if (!TYPES.includes(key.AttributeType)) throw new Error(`${place}: the key ${key.AttributeName} is S, N or B.`);
    }
    for (const [place, rows] of [[name, table.TableData], ...(table.TableFacets || []).map((one) => [`${name}, facet ${one?.FacetName}`, one?.TableData])]) (rows || []).forEach((item, at) => checkedItem(item, `${place}, row ${at + 1}`));
  }
  return model;
}

// Workbench stores some rows with the table and others with its facets. Rows with the same key are
// one item.
const rowKey = (table, item) => JSON.stringify(keysOf(table).map((name) => item[name]));

export function rowsOf(table) {
  const rows = new Map();
  for (const item of [...(table.TableData || []), ...(table.TableFacets || []).flatMap((one) => one.TableData || [])]) rows.set(rowKey(table, item), { ...rows.get(rowKey(table, item)), ...item });
  return [...rows.values()];
}

// Rows stay with the facet that had them; new rows belong to the table.
export function withRows(table, rows) {
  const left = new Map(rows.map((item) => [rowKey(table, item), item]));
  const TableFacets = (table.TableFacets || []).map((facet) => {
    const own = new Set((facet.TableData || []).map((item) => rowKey(table, item)));
    const kept = [...left].filter(([key]) => own.has(key));
    kept.forEach(([key]) => left.delete(key));
    return { ...facet, TableData: kept.map(([, item]) => item) };
  });
  return { ...table, TableFacets, TableData: [...left.values()] };
}

export const changed = (model) => ({ ...model, ModelMetadata: { ...model.ModelMetadata, DateLastModified: dated() } });

// Proof and price belong to this page and are not written to Workbench's file.
export const written = ({ partita, ...model }) => `${JSON.stringify(model, null, 2)}\n`;

// Groups rows into item collections, as AWS draws them: same partition key, ordered by sort key.
export function collections(items, [hash, range]) {
  const found = new Map();
  for (const item of items) {
    if (!item[hash] || (range && !item[range])) continue;
    const key = JSON.stringify(item[hash]);
    if (!found.has(key)) found.set(key, []);
    found.get(key).push(item);
  }
  const order = (one, other) => {
    if (!range) return 0;
    const type = typeOf(one[range]), [a, b] = [one[range][type], other[range]?.[type] ?? ""];
    return type === "N" ? Number(a) - Number(b) : a < b ? -1 : a > b ? 1 : 0;
  };
  return [...found.values()].map((rows) => rows.sort(order));
}

// Returns the rows as an index would project them.
export function projected(table, index) {
  const { ProjectionType: kind = "ALL", NonKeyAttributes: more = [] } = index.Projection || {};
  const kept = new Set([...keysOf(table), ...keysOf(index), ...(kind === "INCLUDE" ? more : [])]);
  return rowsOf(table).map((item) => (kind === "ALL" ? item : Object.fromEntries(Object.entries(item).filter(([name]) => kept.has(name)))));
}

// Returns the rows of a facet: its own, or else the table's rows that have only attributes of the
// facet, and keys that begin like the facet's key aliases.
export function rowsOfFacet(table, facet) {
  if (facet.TableData?.length) return facet.TableData;
  const [hash, range] = keysOf(table);
  const alias = facet.KeyAttributeAlias || {};
  const begins = (value, text) => { const fixed = (text || "").split(/[{<]/)[0]; return !fixed || fixed === text || value === undefined || String(Object.values(value)[0]).startsWith(fixed); };
  return rowsOf(table).filter((item) => begins(item[hash], alias.PartitionKeyAlias) && (!range || begins(item[range], alias.SortKeyAlias))
    && Object.keys(item).every((name) => name === hash || name === range || (facet.NonKeyAttributes || []).includes(name)));
}

// Returns the CreateTable request for a table of the model.
export function creationOf(table) {
  const definitions = new Map();
  const schema = (thing) => keyed(thing.KeyAttributes).map((one, at) => { definitions.set(one.AttributeName, one.AttributeType); return { AttributeName: one.AttributeName, KeyType: at ? "RANGE" : "HASH" }; });
  const provisioned = table.BillingMode === "PROVISIONED" && table.ProvisionedCapacitySettings?.ProvisionedThroughput;
  const throughput = provisioned ? { ProvisionedThroughput: provisioned } : {};
  const KeySchema = schema(table);
  const GlobalSecondaryIndexes = indexesOf(table).map((index) => ({ IndexName: index.IndexName, KeySchema: schema(index), Projection: index.Projection || { ProjectionType: "ALL" }, ...throughput }));
  return {
    TableName: table.TableName, KeySchema,
    AttributeDefinitions: [...definitions].map(([AttributeName, AttributeType]) => ({ AttributeName, AttributeType })),
    ...(GlobalSecondaryIndexes.length ? { GlobalSecondaryIndexes } : {}),
    BillingMode: provisioned ? "PROVISIONED" : "PAY_PER_REQUEST", ...throughput,
  };
}

// Converts a table of the server, with some of its items, to a table of the model.
export function tableOf(described, items) {
  const type = (name) => described.AttributeDefinitions.find((one) => one.AttributeName === name).AttributeType;
  const attributes = (schema) => Object.fromEntries(schema.map((one) => [one.KeyType === "HASH" ? "PartitionKey" : "SortKey", { AttributeName: one.AttributeName, AttributeType: type(one.AttributeName) }]));
  const keys = described.KeySchema.map((one) => one.AttributeName);
  const others = new Map(items.flatMap((item) => Object.entries(item)).filter(([name]) => !keys.includes(name)).map(([name, value]) => [name, typeOf(value)]));
  return {
    ...newTable(described.TableName), KeyAttributes: attributes(described.KeySchema),
    NonKeyAttributes: [...others].map(([AttributeName, AttributeType]) => ({ AttributeName, AttributeType })),
    GlobalSecondaryIndexes: (described.GlobalSecondaryIndexes || []).map((one) => ({ IndexName: one.IndexName, KeyAttributes: attributes(one.KeySchema), Projection: one.Projection })),
    TableData: items,
  };
}
