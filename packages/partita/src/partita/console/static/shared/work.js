// Work that takes many requests: it reports progress, and a cancellation takes effect between two
// requests. A write in flight is awaited, so that the count of finished writes is exact.

import { count, html, say, units } from "./parts.js";
import { call } from "./api.js";

const BATCH = 25;
const PAUSE_MS_MAX = 5000;
const LOOK_MS = 500;

export const consumed = (answer) => [answer.ConsumedCapacity || []].flat().reduce((sum, one) => sum + one.CapacityUnits, 0);
export const isCancelled = (failed) => failed?.name === "AbortError";
const pause = (ms) => new Promise((next) => setTimeout(next, ms));

// Unprocessed items of a batch are sent again, after a growing pause. `sent` counts the requests that
// may have been carried out.
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

// Calls `act` with each page of a request.
export async function eachPage({ operation, request: { Limit, ...request } }, act, signal) {
  let start;
  do {
    const page = await call(operation, start ? { ...request, ExclusiveStartKey: start } : request, signal);
    await act(page);
    start = page.LastEvaluatedKey;
  } while (start && !signal.aborted);
}

// Waits until a new or restored table is ACTIVE; `onProgress` gets its description meanwhile.
export async function untilActive(TableName, onProgress, signal) {
  for (;;) {
    const { Table } = await call("DescribeTable", { TableName }, signal);
    if (Table.TableStatus === "ACTIVE") return Table;
    onProgress(Table);
    await pause(LOOK_MS);
  }
}

// A restore cannot be stopped, so after a cancellation its table is deleted once it is ACTIVE.
export async function deleteWhenRestored(TableName) {
  say(`Cancelled. ${TableName} will be deleted as soon as it is restored, as long as this page stays open.`);
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
