// Work of many requests: it says how far it is, and stops between two of them when it is cancelled.
// A write that is on its way is waited for: what was done is counted, not guessed.

import { count, html, say, units } from "./parts.js";
import { call } from "./api.js";

const BATCH = 25;
const PAUSE_MS_MAX = 5000;
const LOOK_MS = 500;

export const consumed = (answer) => [answer.ConsumedCapacity || []].flat().reduce((sum, one) => sum + one.CapacityUnits, 0);
export const isCancelled = (failed) => failed?.name === "AbortError";
const pause = (ms) => new Promise((next) => setTimeout(next, ms));

// A batch may be taken in part: what was not is sent again, later each time. `sent` are those that may have been done.
export async function writeBatches(TableName, requests, onProgress, signal) {
  const made = { done: 0, sent: 0, units: 0 };
  for (let from = 0; from < requests.length && !signal.aborted; from += BATCH) {
    let waiting = requests.slice(from, from + BATCH), wait = 50;
    made.sent = from + waiting.length;
    while (waiting.length && !signal.aborted) {
      const answer = await call("BatchWriteItem", { RequestItems: { [TableName]: waiting }, ReturnConsumedCapacity: "TOTAL" });
      const left = answer.UnprocessedItems?.[TableName] || [];
      made.done += waiting.length - left.length;
      made.units += consumed(answer);
      onProgress({ ...made });
      waiting = left;
      if (left.length) { await pause(wait); wait = Math.min(wait * 2, PAUSE_MS_MAX); }
    }
  }
  return made;
}

// All that a request finds, a page at a time.
export async function eachPage({ operation, request: { Limit, ...request } }, act, signal) {
  let start;
  do {
    const page = await call(operation, start ? { ...request, ExclusiveStartKey: start } : request, signal);
    await act(page);
    start = page.LastEvaluatedKey;
  } while (start && !signal.aborted);
}

// Until a table that is made or restored can be used; `told` hears what is known of it meanwhile.
export async function untilActive(TableName, told, signal) {
  for (;;) {
    const { Table } = await call("DescribeTable", { TableName }, signal);
    if (Table.TableStatus === "ACTIVE") return Table;
    told(Table);
    await pause(LOOK_MS);
  }
}

// The service does not stop a restore: a table that nobody waits for any more is deleted when it is there.
export async function deleteWhenRestored(TableName) {
  say(`Cancelled. ${TableName} is deleted as soon as it is restored, if this page stays open.`);
  try {
    await untilActive(TableName, () => {});
    await call("DeleteTable", { TableName });
    say(`${TableName} was deleted.`);
  } catch (failed) { say(`${TableName} was not deleted: ${failed.message}`, { bad: true }); }
}

export function Progress({ of, total, isAbout, verb, kind = "W" }) {
  if (!of) return null;
  const known = total ? ` of ${isAbout ? "about " : ""}${count(total)}` : "", cost = of.units === undefined ? "" : `, ${units(of.units, kind)}`;
  return html`<p role="status">${count(of.done)}${known} ${verb}${cost}</p><progress class="wide" max=${total || 1} value=${total ? Math.min(of.done, total) : undefined} aria-label="Progress"></progress>`;
}
