// The AWS CLI.

import { words } from "./layout.js";

const quoted = (text) => (/^[\w./:=@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
const PAGED = ["Query", "Scan"];

function option(shape, name, given) {
  const option = `--${words(name, "-")}`;
  if (shape.kind === "flag") return given ? option : option.replace("--", "--no-");
  const isPlain = ["text", "expression", "choice", "whole"].includes(shape.kind);
  return `${option} ${quoted(isPlain ? String(given) : JSON.stringify(given))}`;
}

const isBinary = (given) => given !== null && typeof given === "object" && Object.entries(given).some(([name, one]) => ((name === "B" && typeof one === "string") || (name === "BS" && Array.isArray(one)) ? true : isBinary(one)));

export function shell(shape, request, { endpoint, region }) {
  const lines = [
    `aws dynamodb ${words(shape.name, "-")}`,
    ...(endpoint ? [`--endpoint-url ${quoted(endpoint)}`] : []),
    `--region ${quoted(region)}`,
    ...Object.entries(request).map(([name, given]) => option(shape.members[name], name, given)),
    // Without this, the CLI would fetch all pages.
    ...(PAGED.includes(shape.name) ? ["--no-paginate"] : []),
  ];
  const note = isBinary(request) ? "Binaries are in base64, as version 2 of the AWS CLI takes them." : "";
  return { text: `${lines.join(" \\\n  ")}\n`, note };
}
