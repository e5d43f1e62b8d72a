// boto3: as a client, with wire types such as {"S": "text"}, or as a resource, with Python's types.

import { hexOf } from "../shared/values.js";
import { group, laid, quoted, words } from "./layout.js";

const PYTHON = "    ";
const dictionary = (entries) => group("{", entries.map(([name, document]) => [`${quoted(name)}: `, document]), "}", { last: "," });
const sequence = (documents) => group("[", documents, "]", { last: "," });
const bytes = (base64) => `bytes.fromhex("${hexOf(base64).replaceAll(" ", "")}")`;

// Returns a value as {"S": "text"}.
function typed(value) {
  const [type] = Object.keys(value), inside = value[type];
  const documents = {
    B: () => bytes(inside), BS: () => sequence(inside.map(bytes)),
    BOOL: () => (inside ? "True" : "False"), NULL: () => "True",
    L: () => sequence(inside.map(typed)), M: () => dictionary(Object.entries(inside).map(([name, one]) => [name, typed(one)])),
    SS: () => sequence(inside.map(quoted)), NS: () => sequence(inside.map(quoted)),
  };
  return dictionary([[type, (documents[type] || (() => quoted(inside)))()]]);
}

// Returns a value as boto3's resources take it.
function native(value) {
  const [type] = Object.keys(value), inside = value[type];
  const set = (documents) => group("{", documents, "}", { last: "," });
  const number = (text) => `Decimal("${text}")`;
  switch (type) {
    case "N": return number(inside);
    case "B": return bytes(inside);
    case "BOOL": return inside ? "True" : "False";
    case "NULL": return "None";
    case "L": return sequence(inside.map(native));
    case "M": return dictionary(Object.entries(inside).map(([name, one]) => [name, native(one)]));
    case "SS": return set(inside.map(quoted));
    case "NS": return set(inside.map(number));
    case "BS": return set(inside.map(bytes));
    default: return quoted(inside);
  }
}

function written(shape, given, value) {
  switch (shape.kind) {
    case "value": return value(given);
    case "map": return dictionary(Object.entries(given).map(([name, one]) => [name, written(shape.of, one, value)]));
    case "list": return sequence(given.map((one) => written(shape.of, one, value)));
    case "record": case "either": return dictionary(Object.entries(given).map(([name, one]) => [name, written(shape.members[name], one, value)]));
    case "flag": return given ? "True" : "False";
    case "whole": return String(given);
    default: return quoted(given);
  }
}

const call = (start, shape, request, value) => laid([`response = ${start}`, group("(", Object.entries(request).map(([name, given]) => [`${name}=`, written(shape.members[name], given, value)]), ")", { last: "," })], PYTHON);
const made = (start, { endpoint, region }) => laid([start, group("(", ['"dynamodb"', ...(endpoint ? [`endpoint_url=${quoted(endpoint)}`] : []), `region_name=${quoted(region)}`], ")", { last: "," })], PYTHON);

export function client(shape, request, where) {
  return `import boto3

${made("client = boto3.client", where)}
${call(`client.${words(shape.name, "_")}`, shape, request, typed)}
print(response)
`;
}

const OF_TABLE = ["GetItem", "PutItem", "UpdateItem", "DeleteItem", "Query", "Scan"];
const OF_RESOURCE = ["BatchGetItem", "BatchWriteItem"];

export function resource(shape, request, where) {
  const method = words(shape.name, "_");
  const { TableName, ...others } = request;
  let lines;
  if (OF_TABLE.includes(shape.name)) lines = `table = dynamodb.Table(${quoted(TableName || "")})\n${call(`table.${method}`, shape, others, native)}`;
  else if (OF_RESOURCE.includes(shape.name)) lines = call(`dynamodb.${method}`, shape, request, native);
  // The resource has no method for this operation; its client takes the same types.
  else lines = call(`dynamodb.meta.client.${method}`, shape, request, native);
  const decimal = lines.includes("Decimal(\"") ? "from decimal import Decimal\n\n" : "";
  return `${decimal}import boto3

${made("dynamodb = boto3.resource", where)}
${lines}
print(response)
`;
}
