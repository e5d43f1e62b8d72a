// AWS SDK for Java, version 2.

import { hexOf } from "../shared/values.js";
import { group, laid, lowered, quoted } from "./layout.js";

const JAVA = "    ";
const listed = (documents) => group("List.of(", documents, ")");
const mapped = (entries) => group("Map.ofEntries(", entries.map(([name, document]) => ["Map.entry(", quoted(name), ", ", document, ")"]), ")");
const bytes = (base64) => `SdkBytes.fromByteArray(HexFormat.of().parseHex("${hexOf(base64).replaceAll(" ", "")}"))`;
const built = (name, parts) => group(`${name}.builder()`, parts, ".build()", { between: "", broken: "", closesInside: true });

function typed(value) {
  const [type] = Object.keys(value), inside = value[type];
  const of = (name, ...documents) => [`AttributeValue.from${name}(`, ...documents, ")"];
  switch (type) {
    case "B": return of("B", bytes(inside));
    case "BS": return of("Bs", listed(inside.map(bytes)));
    case "BOOL": return of("Bool", String(inside));
    case "NULL": return of("Nul", "true");
    case "L": return of("L", listed(inside.map(typed)));
    case "M": return of("M", mapped(Object.entries(inside).map(([name, one]) => [name, typed(one)])));
    case "SS": return of("Ss", listed(inside.map(quoted)));
    case "NS": return of("Ns", listed(inside.map(quoted)));
    default: return of(type, quoted(inside));
  }
}

function written(shape, given, name = shape.name) {
  switch (shape.kind) {
    case "value": return typed(given);
    case "map": return mapped(Object.entries(given).map(([each, one]) => [each, written(shape.of, one)]));
    case "list": return listed(given.map((one) => written(shape.of, one)));
    case "record": case "either": return built(name, Object.entries(given).map(([member, one]) => [`.${lowered(member)}(`, written(shape.members[member], one), ")"]));
    case "flag": case "whole": return String(given);
    default: return quoted(given);
  }
}

export function java(shape, request, { endpoint, region }) {
  const call = laid([`            ${shape.name}Response response = client.${lowered(shape.name)}(`, written(shape, request, `${shape.name}Request`), ");"], JAVA, JAVA.repeat(3), 0);
  const imports = [
    ...(endpoint ? ["java.net.URI"] : []),
    ...["HexFormat", "List", "Map"].filter((name) => call.includes(`${name}.`)).map((name) => `java.util.${name}`),
    ...(call.includes("SdkBytes.") ? ["software.amazon.awssdk.core.SdkBytes"] : []),
    "software.amazon.awssdk.regions.Region",
    "software.amazon.awssdk.services.dynamodb.DynamoDbClient",
    "software.amazon.awssdk.services.dynamodb.model.*",
  ];
  return `${imports.map((name) => `import ${name};`).join("\n")}

public class Example {
    public static void main(String[] arguments) {
        try (DynamoDbClient client = DynamoDbClient.builder()${endpoint ? `\n                .endpointOverride(URI.create(${quoted(endpoint)}))` : ""}
                .region(Region.of(${quoted(region)}))
                .build()) {
${call}
            System.out.println(response);
        }
    }
}
`;
}
