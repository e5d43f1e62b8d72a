// Shows two states of an item side by side: what differs, down to members of maps, with types.

import { count, html, useState } from "./parts.js";
import { Type } from "./cells.js";
import { TYPES, attributeOf, bytesOf, hexOf, same, shown, textOf, typeOf } from "./values.js";

const ROWS = 12;
const TEXT_MAX = 160;
const BYTES_MAX = 24;
const BEFORE_MAX = 20;

const PLAIN = /^[\w-]+$/;
const step = (name) => (PLAIN.test(name) ? name : JSON.stringify(name));

// Two maps or two lists are compared member by member; other values differ as a whole.
function leaves(path, was, is) {
  if (same(was, is)) return [];
  const type = was && is && typeOf(was) === typeOf(is) ? typeOf(was) : "";
  if (type === "M") return names(was.M, is.M).flatMap((name) => leaves(`${path}.${step(name)}`, attributeOf(was.M, name), attributeOf(is.M, name)));
  if (type === "L") return Array.from({ length: Math.max(was.L.length, is.L.length) }, (_, at) => leaves(`${path}[${at}]`, was.L[at], is.L[at])).flat();
  return [{ path, was, is }];
}

const names = (was, is) => [...new Set([...Object.keys(was || {}), ...Object.keys(is || {})])];
export const changedNames = (was, is) => names(was, is).filter((name) => !same(attributeOf(was, name), attributeOf(is, name)));
const differencesOf = (was, is, but) => changedNames(was, is).filter((name) => !but.includes(name)).flatMap((name) => leaves(step(name), attributeOf(was, name), attributeOf(is, name)));

// Returns where two strings or binaries begin to differ: of a long value, that place is shown.
function parting(one, other) {
  let at = 0;
  while (at < one.length && at < other.length && one[at] === other[at]) at += 1;
  return at;
}

// If two strings look alike, their invisible characters are shown as escapes.
const UNSEEN = /[\x00-\x1f\x7f\u00a0\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;
const seen = (text) => text.replace(UNSEEN, " ").replace(/\s+/g, "");
const escaped = (text) => JSON.stringify(text).replace(UNSEEN, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);

function textFrom(text, other) {
  const from = text.length <= TEXT_MAX ? 0 : Math.max(0, parting(text, other ?? "") - BEFORE_MAX), part = text.slice(from, from + TEXT_MAX);
  const written = other !== undefined && seen(text) === seen(other) ? escaped(part) : part;
  return `${from ? "…" : ""}${written}${from + TEXT_MAX < text.length ? "…" : ""}`;
}

function bytesFrom(base64, at) {
  const bytes = bytesOf(base64), from = bytes.length <= BYTES_MAX ? 0 : Math.max(0, at - 4);
  const part = btoa(String.fromCharCode(...bytes.slice(from, from + BYTES_MAX)));
  return html`${from ? `… at byte ${count(from)}: ` : ""}${hexOf(part)}${from + BYTES_MAX < bytes.length ? " …" : ""} <span class="quiet">${textOf(part)}</span>`;
}

// Of a large set, only the members that the other side does not have are shown.
function membersOf(type, members, others) {
  const one = { [type]: members };
  if (shown(one, Infinity).length <= TEXT_MAX && members.length <= 50) return shown(one, Infinity);
  const there = new Set(others), own = members.filter((member) => !there.has(member));
  return `${shown({ [type]: own }, TEXT_MAX)} and ${count(members.length - own.length)} that are the same`;
}

function Side({ value, other }) {
  if (value === undefined) return html`<span class="none">–</span>`;
  const type = typeOf(value), inside = value[type], beside = other && typeOf(other) === type ? other[type] : undefined;
  return html`<${Type} value=${value} />${type === "S" && inside === "" ? html`<span class="quiet">(empty)</span>`
    : type === "S" ? textFrom(inside, beside)
    : type === "B" ? bytesFrom(inside, parting(bytesOf(inside), bytesOf(beside ?? "")))
    : type.length === 2 ? membersOf(type, inside, beside || [])
    : shown(value, TEXT_MAX)}${other && typeOf(other) !== type && type !== "NULL" && html` <span class="badge warn">${TYPES[type].toLowerCase()}</span>`}`;
}

// `titles` are the headings of the two sides; a missing item has no column. `but` are attributes to
// leave out, such as the key.
export function Differences({ was, is, titles, but = [] }) {
  const rows = differencesOf(was, is, but);
  const [isWhole, setIsWhole] = useState(false);
  if (!rows.length) return null;
  return html`<div class="scroll change" tabindex="0" role="region" aria-label="What differs"><table class="grid"><thead><tr><th scope="col">Attribute</th>${was && html`<th scope="col">${titles[0]}</th>`}${is && html`<th scope="col">${titles[1]}</th>`}</tr></thead><tbody>
    ${rows.slice(0, isWhole ? Infinity : ROWS).map((one) => html`<tr key=${one.path}><td>${one.path}</td>${was && html`<td class="was" dir="auto"><${Side} value=${one.was} other=${one.is} /></td>`}${is && html`<td class="is" dir="auto"><${Side} value=${one.is} other=${one.was} /></td>`}</tr>`)}</tbody></table></div>
    ${rows.length > ROWS && html`<p><button type="button" class="small" onClick=${() => setIsWhole(!isWhole)}>${isWhole ? "Show fewer" : `Show ${count(rows.length - ROWS)} more`}</button></p>`}`;
}
