// AWS SDK for JavaScript, version 3, as a module.

import { hexOf } from "../shared/values.js";
import { group, laid, quoted } from "./layout.js";

const property = (name) => (name === "__proto__" ? '["__proto__"]' : /^[A-Za-z_$][\w$]*$/.test(name) ? name : quoted(name));
const object = (entries) => group("{ ", entries.map(([name, document]) => [`${property(name)}: `, document]), " }", { last: "," });
const array = (documents) => group("[", documents, "]", { last: "," });
const bytes = (base64) => `Buffer.from("${hexOf(base64).replaceAll(" ", "")}", "hex")`;

function typed(value) {
  const [type] = Object.keys(value), inside = value[type];
  const documents = {
    B: () => bytes(inside), BS: () => array(inside.map(bytes)), BOOL: () => String(inside), NULL: () => "true",
    L: () => array(inside.map(typed)), M: () => object(Object.entries(inside).map(([name, one]) => [name, typed(one)])),
    SS: () => array(inside.map(quoted)), NS: () => array(inside.map(quoted)),
  };
  return object([[type, (documents[type] || (() => quoted(inside)))()]]);
}

function written(shape, given) {
  switch (shape.kind) {
    case "value": return typed(given);
    case "map": return object(Object.entries(given).map(([name, one]) => [name, written(shape.of, one)]));
    case "list": return array(given.map((one) => written(shape.of, one)));
    case "record": case "either": return object(Object.entries(given).map(([name, one]) => [name, written(shape.members[name], one)]));
    case "flag": case "whole": return String(given);
    default: return quoted(given);
  }
}

export function javascript(shape, request, { endpoint, region }) {
  const options = object([...(endpoint ? [["endpoint", quoted(endpoint)]] : []), ["region", quoted(region)]]);
  const command = laid([`const response = await client.send(new ${shape.name}Command(`, written(shape, request), "));"], "  ");
  return `import { DynamoDBClient, ${shape.name}Command } from "@aws-sdk/client-dynamodb";

${laid(["const client = new DynamoDBClient(", options, ");"], "  ")}
${command}
console.log(JSON.stringify(response, null, 2));
`;
}
