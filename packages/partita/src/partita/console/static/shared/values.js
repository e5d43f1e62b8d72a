// Attribute values in wire JSON: how they are displayed, checked and parsed from input.
// Numbers are always strings, so that none of their 38 digits is lost.

export const TYPES = {
  S: "String", N: "Number", B: "Binary", BOOL: "Boolean", NULL: "Null",
  M: "Map", L: "List", SS: "String set", NS: "Number set", BS: "Binary set",
};
const NUMBER = /^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$/;
const DIGITS_MAX = 38;

export const typeOf = (value) => Object.keys(value)[0];

// Returns an attribute. Inherited members of JavaScript objects, such as `constructor`, are not
// attributes.
export const attributeOf = (item, name) => (item && Object.hasOwn(item, name) ? item[name] : undefined);

export function numberProblem(text) {
  if (!NUMBER.test(text)) return `${text || "An empty string"} is not a number.`;
  const [mantissa, exponent = "0"] = text.toLowerCase().split("e");
  const digits = mantissa.replace(/[+-]/, "").replace(/^(\d*)\.?(\d*)$/, "$1$2");
  const significant = digits.replace(/^0+/, "").replace(/0+$/, "");
  if (significant.length > DIGITS_MAX) return `A number has at most ${DIGITS_MAX} digits; this one has ${significant.length}.`;
  if (!significant) return null;
  const whole = mantissa.replace(/[+-]/, "").split(".")[0].replace(/^0+/, "");
  const fraction = mantissa.split(".")[1] || "";
  const leading = whole ? whole.length - 1 : -(fraction.match(/^0*/)[0].length + 1);
  const magnitude = leading + Number(exponent);
  return magnitude > 125 || magnitude < -130 ? "Numbers range from 1E-130 to 9.99E+125." : null;
}

// Binaries

export const bytesOf = (base64) => Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
export const hexOf = (base64, most = Infinity) => {
  const bytes = bytesOf(base64);
  return [...bytes.slice(0, most)].map((b) => b.toString(16).padStart(2, "0")).join(" ") + (bytes.length > most ? " …" : "");
};
export const textOf = (base64, most = Infinity) => {
  const bytes = bytesOf(base64).slice(0, most);
  return [...bytes].map((b) => (b >= 32 && b < 127 ? String.fromCharCode(b) : "·")).join("");
};
export function base64Of(hex) {
  const digits = hex.replace(/\s|0x/g, "");
  if (!/^([0-9a-fA-F]{2})*$/.test(digits)) throw new Error("Write a binary in hex, two digits per byte: 0a ff.");
  let text = "";
  for (let at = 0; at < digits.length; at += 2) text += String.fromCharCode(parseInt(digits.slice(at, at + 2), 16));
  return btoa(text);
}

// Display

export function shown(value, most = 120) {
  const type = typeOf(value), inside = value[type];
  switch (type) {
    case "S": return clipped(inside, most);
    case "N": return inside;
    case "B": return hexOf(inside, 16);
    case "BOOL": return String(inside);
    case "NULL": return "null";
    case "M": return clipped(`{${Object.keys(inside).slice(0, 20).map((name) => `${name}: ${shown(inside[name], 30)}`).join(", ")}}`, most);
    case "L": return clipped(`[${inside.slice(0, 20).map((one) => shown(one, 30)).join(", ")}]`, most);
    case "BS": return clipped(`{${inside.map((one) => hexOf(one, 8)).join(", ")}}`, most);
    default: return clipped(`{${inside.slice(0, 50).join(", ")}}`, most);
  }
}

function clipped(text, most) {
  if (text.length <= most) return text;
  // A surrogate pair must not be cut in half.
  const end = /[\ud800-\udbff]/.test(text[most - 1]) ? most - 1 : most;
  return `${text.slice(0, end)}…`;
}

// Indented JSON, except that a value without nested values is on one line.
const LEAF = /\{\n\s*"(S|N|B|BOOL|NULL)": ("(?:[^"\\]|\\.)*"|true|false)\n\s*\}/g;
export const pretty = (value) => JSON.stringify(value, null, 2).replace(LEAF, '{"$1": $2}');

// Editing: the text of a value, and the value of a text.

export function editable(value) {
  const type = typeOf(value), inside = value[type];
  if (type === "B") return hexOf(inside);
  if (type === "NULL") return "";
  // One member per line, or JSON if a member could not be read back from that.
  if (type === "SS" && inside.some((one) => one === "" || /[\r\n]/.test(one) || one.startsWith("["))) return JSON.stringify(inside, null, 2);
  if (type === "SS" || type === "NS") return inside.join("\n");
  if (type === "BS") return inside.map((one) => hexOf(one)).join("\n");
  if (type === "M" || type === "L") return pretty(inside);
  return String(inside);
}

export function valueOf(type, text) {
  switch (type) {
    case "S": return { S: text };
    case "N": return { N: checkedNumber(text.trim()) };
    case "B": return { B: base64Of(text) };
    case "BOOL": return { BOOL: text === "true" };
    case "NULL": return { NULL: true };
    case "SS": return text.trim().startsWith("[") ? checked({ SS: parsed(text) }) : { SS: checkedSet(lines(text)) };
    case "NS": return { NS: checkedSet(lines(text).map((one) => checkedNumber(one.trim()))) };
    case "BS": return { BS: checkedSet(lines(text).map(base64Of)) };
    default: return checked({ [type]: parsed(text) });
  }
}

const lines = (text) => text.split("\n").filter((line) => line !== "");

function checkedNumber(text) {
  const problem = numberProblem(text);
  if (problem) throw new Error(problem);
  return text;
}

function checkedSet(members) {
  if (!members.length) throw new Error("A set needs at least one member, each on its own line.");
  if (new Set(members).size < members.length) throw new Error("A set cannot contain a member twice.");
  return members;
}

function parsed(text) {
  try { return JSON.parse(text); } catch (error) { throw new Error(`This is not JSON: ${error.message}.`); }
}

export function checked(value, where = "") {
  const at = where ? `${where}: ` : "";
  const keys = value && typeof value === "object" && !Array.isArray(value) ? Object.keys(value) : [];
  if (keys.length !== 1 || !Object.hasOwn(TYPES, keys[0])) throw new Error(`${at}a value must have one type, such as {"S": "text"} or {"N": "1"}.`);
  const [type] = keys, inside = value[type];
  const isText = (one) => typeof one === "string";
  if (["S", "N", "B"].includes(type) && !isText(inside)) throw new Error(`${at}${type} takes a string in quotes.`);
  if (type === "BOOL" && typeof inside !== "boolean") throw new Error(`${at}BOOL must be true or false.`);
  if (type === "NULL" && inside !== true) throw new Error(`${at}NULL must be true.`);
  if (type === "N") { const problem = numberProblem(inside); if (problem) throw new Error(at + problem); }
  if (type === "B") { try { atob(inside); } catch { throw new Error(`${at}B takes base64.`); } }
  if (["SS", "NS", "BS"].includes(type)) {
    if (!Array.isArray(inside) || !inside.every(isText)) throw new Error(`${at}${type} takes a list of strings in quotes.`);
    checkedSet(inside);
    if (type === "NS") inside.forEach(checkedNumber);
  }
  if (type === "L") {
    if (!Array.isArray(inside)) throw new Error(`${at}L takes a list of values.`);
    inside.forEach((one, index) => checked(one, `${where}[${index}]`));
  }
  if (type === "M") checkedItem(inside, where);
  return value;
}

export function checkedItem(item, where = "") {
  if (!item || typeof item !== "object" || Array.isArray(item)) throw new Error(`${where || "An item"} takes attributes: {"name": {"S": "value"}}.`);
  for (const [name, value] of Object.entries(item)) checked(value, where ? `${where}.${name}` : name);
  return item;
}

export const same = (one, other) => canonical(one) === canonical(other);
function canonical(value) {
  if (value === undefined) return "";
  const type = typeOf(value), inside = value[type];
  if (["SS", "NS", "BS"].includes(type)) return JSON.stringify([type, [...inside].sort()]);
  if (type === "L") return `L[${inside.map(canonical)}]`;
  if (type === "M") return `M{${Object.keys(inside).sort().map((name) => `${JSON.stringify(name)}:${canonical(inside[name])}`)}}`;
  return JSON.stringify([type, inside]);
}

// Requests

export const keyOf = (item, schema) => Object.fromEntries(schema.map(({ AttributeName: name }) => [name, attributeOf(item, name)]));

// Returns an update from one state of an item to another. It is refused if somebody else has changed
// one of the same attributes meanwhile; changes to other attributes are kept.
export function updateOf(TableName, schema, from, to) {
  const names = {}, values = {}, set = [], remove = [], conditions = [];
  const keys = schema.map((key) => key.AttributeName);
  names["#k"] = keys[0];
  conditions.push("attribute_exists(#k)");
  [...new Set([...Object.keys(from), ...Object.keys(to)])].filter((name) => !keys.includes(name) && !same(attributeOf(from, name), attributeOf(to, name))).forEach((name, at) => {
    const was = attributeOf(from, name), is = attributeOf(to, name);
    names[`#a${at}`] = name;
    if (is === undefined) remove.push(`#a${at}`);
    else { values[`:n${at}`] = is; set.push(`#a${at} = :n${at}`); }
    if (was === undefined) conditions.push(`attribute_not_exists(#a${at})`);
    else { values[`:o${at}`] = was; conditions.push(`#a${at} = :o${at}`); }
  });
  if (!set.length && !remove.length) return null;
  return {
    TableName,
    Key: keyOf(from, schema),
    UpdateExpression: [set.length && `SET ${set.join(", ")}`, remove.length && `REMOVE ${remove.join(", ")}`].filter(Boolean).join(" "),
    ConditionExpression: conditions.join(" AND "),
    ExpressionAttributeNames: names,
    ...(Object.keys(values).length ? { ExpressionAttributeValues: values } : {}),
    ReturnValuesOnConditionCheckFailure: "ALL_OLD",
    ReturnConsumedCapacity: "TOTAL",
  };
}

const COMPARED_MAX = 60;

// Returns a deletion that is refused if the item has changed; at most COMPARED_MAX attributes are
// compared, to stay within the limits of expressions.
export function deletionOf(TableName, schema, item) {
  const names = {}, values = {}, conditions = [];
  const keys = schema.map((key) => key.AttributeName);
  names["#k"] = keys[0];
  conditions.push("attribute_exists(#k)");
  Object.keys(item).filter((name) => !keys.includes(name)).slice(0, COMPARED_MAX).forEach((name, at) => {
    names[`#a${at}`] = name;
    values[`:o${at}`] = item[name];
    conditions.push(`#a${at} = :o${at}`);
  });
  return {
    TableName,
    Key: keyOf(item, schema),
    ConditionExpression: conditions.join(" AND "),
    ExpressionAttributeNames: names,
    ...(Object.keys(values).length ? { ExpressionAttributeValues: values } : {}),
    ReturnValuesOnConditionCheckFailure: "ALL_OLD",
    ReturnConsumedCapacity: "TOTAL",
  };
}

export const additionOf = (TableName, schema, item) => ({
  TableName,
  Item: item,
  ConditionExpression: "attribute_not_exists(#k)",
  ExpressionAttributeNames: { "#k": schema[0].AttributeName },
  ReturnValuesOnConditionCheckFailure: "ALL_OLD",
  ReturnConsumedCapacity: "TOTAL",
});
