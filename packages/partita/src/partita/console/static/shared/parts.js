// Parts that all pages use: addresses, messages, dialogs, fields and figures.

import { html, useState, useEffect, useLayoutEffect, useRef } from "../vendor/preact-htm.js";

export { html, useState, useEffect, useRef };
export { useMemo, useCallback } from "../vendor/preact-htm.js";

// The address of a page: #/page/part?name=value

export function route() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [page = "", ...parts] = path.split("/").map(decodeURIComponent);
  return { page: page || "tables", parts, query: new URLSearchParams(query) };
}

export function link(page, parts = [], query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== "" && value !== undefined && value !== null && value !== false);
  const search = new URLSearchParams(given).toString();
  return `#/${[page, ...parts].map(encodeURIComponent).join("/")}${search ? `?${search}` : ""}`;
}

// Changes the address at once. Setting location.hash would notify the page later, and input typed
// meanwhile would become part of the query.
export function visit(address) {
  if (address === location.hash) return;
  const oldURL = location.href;
  history.pushState(null, "", address);
  dispatchEvent(new HashChangeEvent("hashchange", { oldURL, newURL: location.href }));
}

// Filters of a view are part of its address, but typing them adds no entries to the history.
export const keepAddress = (...place) => history.replaceState(null, "", link(...place));

// Messages in the corner

let tell = () => {};
export const say = (text, more = {}) => tell({ text, ...more });

export function Toasts() {
  const [shown, setShown] = useState([]);
  useEffect(() => {
    let number = 0;
    tell = (message) => {
      const id = ++number;
      setShown((before) => [...before.slice(-3), { id, ...message }]);
      setTimeout(() => setShown((before) => before.filter((one) => one.id !== id)), message.action ? 15000 : 6000);
    };
  }, []);
  const close = (id) => setShown((before) => before.filter((one) => one.id !== id));
  return html`<div class="toasts" role="status" aria-live="polite">
    ${shown.map((one) => html`<div class=${`toast ${one.bad ? "bad" : ""}`} key=${one.id}>
      <span>${one.text}</span>
      ${one.action && html`<button class="small" onClick=${() => { close(one.id); one.action(); }}>${one.label}</button>`}
    </div>`)}
  </div>`;
}

export function Problem({ error }) {
  if (!error) return null;
  const code = error.code && error.code !== "EndpointUnreachable" ? `${error.code}: ` : "";
  return html`<div class="problem" role="alert">${code}${error.message}</div>`;
}

// Shows the API call that an action makes; calls on data can be opened in the builder.

const BUILT = /^(?:(?:Get|Put|Update|Delete|BatchGet|BatchWrite)Item|Query|Scan|Transact(?:Get|Write)Items|(?:BatchExecute|Execute)Statement|ExecuteTransaction)$/;
const SHOWN_MAX = 20000;
export const clipped = (text) => (text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}\n…` : text);

export function Call({ operation, request, open }) {
  const text = JSON.stringify(request, null, 2);
  return html`<details class="call" open=${open}>
    <summary>API call: <code>${operation}</code></summary>
    <pre tabindex="0" aria-label=${`Request of ${operation}`}>${clipped(text)}</pre>
    ${BUILT.test(operation) && text.length <= SHOWN_MAX && html`<p class="foot"><a href=${link("build", [operation], { request: JSON.stringify(request) })}>Open in the builder</a> as code, or to change it</p>`}
  </details>`;
}

export async function copy(text) {
  try { await navigator.clipboard.writeText(text); } catch {
    // Without HTTPS, browsers offer the clipboard API only to localhost.
    const area = Object.assign(document.createElement("textarea"), { value: text });
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  say("Copied.");
}

export function Field({ label, children }) {
  return html`<label class="field"><span>${label}</span>${children}</label>`;
}

export function Select({ value, onChange, options, ...more }) {
  return html`<select value=${value} onChange=${(event) => onChange(event.target.value)} ...${more}>
    ${options.map((option) => {
      const [key, text] = Array.isArray(option) ? option : [option, option];
      return html`<option value=${key} selected=${key === value}>${text}</option>`;
    })}
  </select>`;
}

export const Input = ({ value, onInput, ...more }) =>
  html`<input value=${value} onInput=${(event) => onInput(event.target.value)} autocomplete="off" spellcheck=${false} ...${more} />`;

// Unsaved input: leaving the page needs a confirmation.

const unsaved = new Set();
export const mayLeave = () => !unsaved.size || window.confirm("Leave without saving?");
addEventListener("beforeunload", (event) => { if (unsaved.size) event.preventDefault(); });

export function useUnsaved(isDirty) {
  const own = useRef({ isReleased: false });
  if (isDirty && !own.current.isReleased) unsaved.add(own.current);
  else unsaved.delete(own.current);
  const release = () => { own.current.isReleased = true; unsaved.delete(own.current); };
  useEffect(() => release, []);
  return release;
}

// A dialog over the page: Escape closes it, Tab stays inside, and focus returns to where it was.

export function Over({ kind = "dialog", label, onClose, children }) {
  const box = useRef(null);
  // A layout effect runs before the first paint, so even a key pressed at once goes to the dialog.
  useLayoutEffect(() => {
    const before = document.activeElement;
    const first = box.current.querySelector("[data-focus]") || box.current.querySelector("input, select, textarea, button");
    (first || box.current).focus();
    return () => before && before.focus && before.focus();
  }, []);
  const onKeyDown = (event) => {
    if (event.key === "Escape") { event.stopPropagation(); onClose(); }
    if (event.key !== "Tab") return;
    const stops = [...box.current.querySelectorAll("a[href], button:not(:disabled), input:not(:disabled), select, textarea, summary, [tabindex='0']")].filter((one) => one.offsetParent);
    const first = stops[0], last = stops[stops.length - 1];
    if (event.shiftKey && document.activeElement === first) { event.preventDefault(); last.focus(); }
    else if (!event.shiftKey && document.activeElement === last) { event.preventDefault(); first.focus(); }
  };
  return html`<div class="veil" onMouseDown=${(event) => event.target === event.currentTarget && onClose()}>
    <div class=${kind} role="dialog" aria-modal="true" aria-label=${label} tabindex="-1" ref=${box} onKeyDown=${onKeyDown}>${children}</div>
  </div>`;
}

// Destructive actions need the name of the thing to be typed.

export function Confirm({ title, name, operation, request, verb, onClose, onDone, children }) {
  const [typed, setTyped] = useState("");
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const isClosed = useRef(false);
  useEffect(() => () => { isClosed.current = true; }, []);
  const act = async (event) => {
    event.preventDefault();
    setBusy(true);
    try { await onDone(); if (!isClosed.current) onClose(); } catch (failed) { setError(failed); setBusy(false); }
  };
  return html`<${Over} label=${title} onClose=${onClose}>
    <h1>${title}</h1>
    <form onSubmit=${act}>
      ${children}
      <${Call} operation=${operation} request=${request} open />
      <${Field} label=${`Type ${name} to confirm`}>
        <${Input} value=${typed} onInput=${setTyped} data-focus name="confirm" />
      <//>
      <${Problem} error=${error} />
      <div class="bar" style=${{ marginTop: "14px" }}>
        <button class="danger primary" disabled=${typed !== name || busy}>${verb}</button>
        <button type="button" onClick=${onClose}>Cancel</button>
      </div>
    </form>
  <//>`;
}

// The pages that show one table.

export const PLACES = [["explore", "Items"], ["tables", "Settings"], ["heat", "Heat"], ["streams", "Stream"], ["time", "Time"]];
export const placed = (page, name) => (page === "heat" ? link(page, [], { table: name }) : link(page, [name]));

export function NoTable({ name, error }) {
  return html`<div class="head"><h1>${name}</h1></div><${Problem} error=${error} />${error?.code === "ResourceNotFoundException" && html`<p>It may have been deleted, or has another name. <a href=${link("tables")}>All tables</a></p>`}`;
}

export function TableHead({ name, at, children, actions }) {
  return html`<div class="head"><h1>${name}</h1>${children}${actions && html`<div class="actions">${actions}</div>`}</div>
    <nav class="tabs places" aria-label=${`Views of ${name}`}>${PLACES.map(([page, title]) => html`<a key=${page} class="tab" href=${placed(page, name)} aria-current=${page === at ? "page" : undefined}>${title}</a>`)}</nav>`;
}

// Live lists: while the focus or the pointer is in a list, its rows do not move.

const isUsed = (box) => box?.matches(":hover, :focus-within");

// Figures are updated, but rows stay where they are.
export function useSteadyOrder(list, key) {
  const box = useRef(null), order = useRef([]);
  if (isUsed(box.current)) {
    const places = new Map(order.current.map((one, at) => [one, at]));
    const place = (one) => places.get(key(one)) ?? places.size;
    list = [...list].sort((a, b) => place(a) - place(b));
  }
  order.current = list.map(key);
  return [list, box];
}

// Nothing is updated at all.
export function useHeld(value) {
  const box = useRef(null), held = useRef(value);
  const isHeld = held.current !== null && isUsed(box.current);
  if (!isHeld) held.current = value;
  return [held.current, box];
}

// Calls `ask` repeatedly while the page is visible, and awaits each call before the next pause.
export function useRepeated(ask, everyMs, inputs) {
  useEffect(() => {
    const state = { isGone: false };
    let timer;
    const tick = async () => {
      if (!document.hidden) await ask(state);
      if (!state.isGone) timer = setTimeout(tick, everyMs);
    };
    tick();
    return () => { state.isGone = true; clearTimeout(timer); };
  }, inputs);
}

// Figures

export const count = (number) => (number === undefined ? "–" : Number(number).toLocaleString("en-US"));
export const items = (number) => `${count(number)} ${number === 1 ? "item" : "items"}`;
export const units = (number, kind) => (number === undefined ? "cost unknown" : `${count(Math.round(number * 10) / 10)} ${kind}CU`);
export function size(bytes) {
  if (bytes === undefined) return "–";
  const units = ["B", "KB", "MB", "GB", "TB"];
  let at = 0;
  while (bytes >= 1024 && at < units.length - 1) { bytes /= 1024; at += 1; }
  return `${at && bytes < 100 ? bytes.toFixed(1) : Math.round(bytes)} ${units[at]}`;
}

export function save(name, texts, type = "application/json") {
  const url = URL.createObjectURL(new Blob(texts, { type }));
  const anchor = document.createElement("a");
  anchor.href = url;
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
