// Pretty-prints source text: a group is on one line if it fits, or else each of its parts is.
// A document is a string, a list of documents to be joined, or a group.

const WIDTH = 88;

export const group = (open, parts, close, more = {}) => ({ open, parts, close, between: ", ", broken: ",", last: "", ...more });

function flat(document) {
  if (typeof document === "string") return document;
  if (Array.isArray(document)) return document.map(flat).join("");
  return document.open + document.parts.map(flat).join(document.between) + document.close;
}

export function laid(document, unit, indent = "", column = indent.length) {
  if (typeof document === "string") return document;
  const line = flat(document);
  if (column + line.length <= WIDTH && !line.includes("\n")) return line;
  if (Array.isArray(document)) {
    let text = "";
    for (const part of document) text += laid(part, unit, indent, column + text.length - (text.lastIndexOf("\n") + 1));
    return text;
  }
  if (!document.parts.length) return line;
  const inner = indent + unit;
  const parts = document.parts.map((part) => inner + laid(part, unit, inner));
  return `${document.open.trimEnd()}\n${parts.join(`${document.broken}\n`)}${document.last}\n${document.closesInside ? inner : indent}${document.close.trimStart()}`;
}

// String literals of Python, JavaScript, Java and Go. Invisible characters such as direction marks
// and byte order marks are escaped, so that the code shows what it does.
export const quoted = (text) =>
  JSON.stringify(text).replace(/[\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);

export const lowered = (name) => name[0].toLowerCase() + name.slice(1);
export const words = (name, separator) => name.replace(/(?<!^)([A-Z])/g, `${separator}$1`).toLowerCase();
