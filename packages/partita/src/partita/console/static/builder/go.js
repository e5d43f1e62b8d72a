// AWS SDK for Go, version 2.

import { bytesOf } from "../shared/values.js";
import { group, laid, quoted } from "./layout.js";

const braces = (name, documents) => group(`${name}{`, documents, "}", { last: "," });
const keyed = (name, entries) => braces(name, entries.map(([each, document]) => [`${quoted(each)}: `, document]));
const bytes = (base64) => braces("[]byte", [...bytesOf(base64)].map((one) => `0x${one.toString(16).padStart(2, "0")}`));

function typed(value) {
  const [type] = Object.keys(value), inside = value[type];
  const of = (document) => braces(`&types.AttributeValueMember${type}`, [["Value: ", document]]);
  switch (type) {
    case "B": return of(bytes(inside));
    case "BS": return of(braces("[][]byte", inside.map(bytes)));
    case "BOOL": case "NULL": return of(String(inside));
    case "L": return of(braces("[]types.AttributeValue", inside.map(typed)));
    case "M": return of(keyed("map[string]types.AttributeValue", Object.entries(inside).map(([name, one]) => [name, typed(one)])));
    case "SS": case "NS": return of(braces("[]string", inside.map(quoted)));
    default: return of(quoted(inside));
  }
}

function typeName(shape) {
  switch (shape.kind) {
    case "value": return "types.AttributeValue";
    case "map": return `map[string]${typeName(shape.of)}`;
    case "list": return `[]${typeName(shape.of)}`;
    case "record": case "either": return `types.${shape.name}`;
    default: return "string";
  }
}

const members = (shape, given) => Object.entries(given).map(([name, one]) => [`${name}: `, written(shape.members[name], one)]);

function written(shape, given) {
  switch (shape.kind) {
    case "value": return typed(given);
    case "map": return keyed(typeName(shape), Object.entries(given).map(([name, one]) => [name, inside(shape.of, one)]));
    case "list": return braces(typeName(shape), given.map((one) => inside(shape.of, one)));
    case "record": case "either": return braces(`&${typeName(shape)}`, members(shape, given));
    case "flag": return `aws.Bool(${given})`;
    case "whole": return `aws.Int32(${given})`;
    case "choice": return `types.${shape.name}(${quoted(given)})`;
    default: return `aws.String(${quoted(given)})`;
  }
}

// Members of a record are pointers, since they may be missing; those of maps and lists are not.
function inside(shape, given) {
  if (shape.kind === "record" || shape.kind === "either") return braces("", members(shape, given));
  return shape.kind === "text" ? quoted(given) : written(shape, given);
}

export function go(shape, request, { endpoint, region }) {
  const call = laid([`response, err := client.${shape.name}(ctx, `, braces(`&dynamodb.${shape.name}Input`, members(shape, request)), ")"], "\t", "\t");
  const options = endpoint ? `, func(options *dynamodb.Options) {\n\t\toptions.BaseEndpoint = aws.String(${quoted(endpoint)})\n\t}` : "";
  const packages = [
    ...(call.includes("aws.") || endpoint ? ["aws"] : []), "config", "service/dynamodb", ...(call.includes("types.") ? ["service/dynamodb/types"] : []),
  ].map((name) => `\t"github.com/aws/aws-sdk-go-v2/${name}"`);
  return `package main

import (
\t"context"
\t"fmt"
\t"log"

${packages.join("\n")}
)

func main() {
\tctx := context.Background()
\tcfg, err := config.LoadDefaultConfig(ctx, config.WithRegion(${quoted(region)}))
\tif err != nil {
\t\tlog.Fatal(err)
\t}
\tclient := dynamodb.NewFromConfig(cfg${options})
\t${call}
\tif err != nil {
\t\tlog.Fatal(err)
\t}
\tfmt.Printf("%+v\\n", response)
}
`;
}
