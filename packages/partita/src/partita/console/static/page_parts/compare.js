// Compares two tables with the same keys, page by page from both. Only items of which the other
// table's page has not come yet are kept in memory.

import { call } from "../shared/api.js";
import { changedNames } from "../shared/differences.js";
import { keyOf, valueOf } from "../shared/values.js";
import { isCancelled } from "../shared/work.js";

const WAITING_MAX = 200000;
const KEPT_MAX = 10000;

// Returns a Scan of everything, or a Query of one item collection.
function requestOf(TableName, { KeySchema, AttributeDefinitions }, only) {
  if (!only) return ["Scan", { TableName, ConsistentRead: true }];
  const { AttributeName: name } = KeySchema[0], type = AttributeDefinitions.find((one) => one.AttributeName === name).AttributeType;
  return ["Query", { TableName, ConsistentRead: true, KeyConditionExpression: "#k = :k", ExpressionAttributeNames: { "#k": name }, ExpressionAttributeValues: { ":k": valueOf(type, only) } }];
}

// `then` and `now` are names of tables, `described` is the description of either. `onProgress` gets
// the number of compared items. After a cancellation, the differences found so far are returned.
export async function compare(then, now, described, only, onProgress, signal) {
  const sides = [then, now].map((name) => ({ request: requestOf(name, described, only), waiting: new Map(), start: undefined, isDone: false }));
  const found = { differences: [], count: 0, compared: 0, part: null };
  const note = (key, was, is) => {
    if (!changedNames(was, is).length) return;
    found.count += 1;
    if (found.differences.length < KEPT_MAX) found.differences.push({ key, was, is });
  };
  while (sides.some((side) => !side.isDone)) {
    for (const [at, side] of sides.entries()) {
      if (side.isDone) continue;
      const [operation, request] = side.request, other = sides[1 - at].waiting;
      let page;
      try { page = await call(operation, side.start ? { ...request, ExclusiveStartKey: side.start } : request, signal); } catch (failed) {
        if (isCancelled(failed)) return { ...found, part: "cancelled" };
        throw failed;
      }
      for (const item of page.Items) {
        const key = JSON.stringify(Object.values(keyOf(item, described.KeySchema))), match = other.get(key);
        if (!match) { side.waiting.set(key, item); continue; }
        other.delete(key);
        found.compared += 1;
        if (at) note(key, match, item); else note(key, item, match);
      }
      side.start = page.LastEvaluatedKey;
      side.isDone = !side.start;
    }
    onProgress(found.compared);
    if (sides.some((side) => side.waiting.size > WAITING_MAX)) return { ...found, part: "too different" };
  }
  for (const [key, item] of sides[0].waiting) note(key, item, undefined);
  for (const [key, item] of sides[1].waiting) note(key, undefined, item);
  return found;
}
