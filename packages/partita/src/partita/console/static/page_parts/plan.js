// The plan of a statement: the server's own, or a guess from the statement's text if the endpoint
// does not explain statements.

import { count, html, items, size, useEffect, useState } from "../shared/parts.js";
import { explain } from "../shared/api.js";
import { shown } from "../shared/values.js";

const PAUSE_MS = 250;
const RANGES_SHOWN = 5;

export function usePlan(request, described) {
  const [explained, setExplained] = useState({});
  const key = request?.Statement ? JSON.stringify([request.Statement, request.Parameters || []]) : "";
  useEffect(() => {
    if (!key) return;
    const control = new AbortController();
    const [Statement, Parameters] = JSON.parse(key);
    const timer = setTimeout(() => explain(Statement, Parameters, control.signal).then(
      (plan) => setExplained({ key, plan }),
      (failed) => failed.code === "NotMonitored" && setExplained({ key, isSilent: true }),
    ), PAUSE_MS);
    return () => { clearTimeout(timer); control.abort(); };
  }, [key]);
  if (!key || explained.key !== key) return null;
  return explained.isSilent ? readFromText(request.Statement, described) : explained.plan;
}

// The rule of the service: the keys that WHERE pins down determine what is read.
export function readFromText(statement, table) {
  const from = /^\s*select\s+.*?\sfrom\s+"?([\w.-]+)"?(?:\s*\.\s*"?([\w.-]+)"?)?(?:\s+where\s+(.*))?$/is.exec(statement);
  if (!from || !table || table.TableName !== from[1]) return null;
  const index = [...(table.GlobalSecondaryIndexes || []), ...(table.LocalSecondaryIndexes || [])].find((one) => one.IndexName === from[2]);
  if (from[2] && !index) return { Access: "refused", Message: `There is no index ${from[2]} of ${from[1]}.`, isGuess: true };
  const [hash, range] = (index || table).KeySchema.map((key) => key.AttributeName);
  const where = (from[3] || "").replace(/'(?:[^']|'')*'/g, "'…'");
  const pinned = (name, operators) => new RegExp(`(?:^|[\\s("])"?${name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}"?\\s*(?:${operators})`, "i").test(where);
  const guess = { Statement: "SELECT", TableName: from[1], IndexName: from[2], isGuess: true, hash };
  if (/\bor\b/i.test(where) || !pinned(hash, "=|in\\b")) return { ...guess, Access: "scan" };
  return { ...guess, Access: !index && (!range || pinned(range, "=")) ? "key" : "query" };
}

const place = (plan) => (plan.IndexName ? `index ${plan.IndexName} of ${plan.TableName}` : `table ${plan.TableName}`);
const units = (number, kind) => `${count(number)} ${kind} ${number === 1 ? "unit" : "units"}`;

function condition({ Name, Comparison, Operands }) {
  const values = Operands.map((value) => shown(value, 60));
  if (Comparison === "BETWEEN") return `${Name} BETWEEN ${values.join(" AND ")}`;
  return Comparison === "begins_with" ? `begins_with(${Name}, ${values[0]})` : `${Name} ${Comparison} ${values.join(", ")}`;
}

const rangeText = (range) => [...Object.entries(range.PartitionKey).map(([name, value]) => `${name} = ${shown(value, 60)}`), ...(range.SortKey ? [condition(range.SortKey)] : [])].join(" AND ");

function sentence(plan) {
  switch (plan.Access) {
    case "refused": return `It would be refused: ${plan.Message}`;
    case "scan": return `Scan of the whole ${place(plan)}: WHERE does not pin down the partition key${plan.hash ? ` ${plan.hash}` : ""}. Every item is read and paid for.`;
    case "query": return `Query of ${place(plan)}: ${plan.RangeCount > 1 ? `${count(plan.RangeCount)} item collections are` : "one item collection is"} read.`;
    case "key": return `Read by key from ${place(plan)}.`;
    default: return `${plan.Statement} of one item in ${place(plan)}, by its key.`;
  }
}

function cost(plan) {
  if (plan.WriteUnits) return `${plan.IsLeast ? "at least " : ""}${units(plan.WriteUnits, "write")}`;
  if (!plan.FirstPage) return null;
  const { Items, ReadUnits, IsWhole } = plan.FirstPage;
  return IsWhole ? `${units(ReadUnits, "read")} for ${items(Items)}` : `${units(ReadUnits, "read")} for the first page of ${items(Items)}${plan.Whole ? `, ${units(plan.Whole.ReadUnits, "read")} for all ${count(plan.Whole.Items)} (${size(plan.Whole.Bytes)})` : ", and more for the next pages"}`;
}

export function Plan({ plan }) {
  if (!plan) return null;
  const ranges = plan.Ranges || [], price = cost(plan);
  return html`<section class=${`plan ${plan.Access === "scan" || plan.Access === "refused" ? "note" : "quiet"}`} id="plan" aria-label="Plan" aria-live="polite">
    <p><strong>${sentence(plan)}</strong></p>
    ${(ranges.length > 0 || price) && html`<dl class="facts">
      ${ranges.length > 0 && html`<div><dt>${ranges.length > 1 ? "Keys" : "Key"}</dt><dd class="mono">${ranges.slice(0, RANGES_SHOWN).map((one, n) => html`<div key=${n}>${rangeText(one)}</div>`)}${plan.RangeCount > RANGES_SHOWN && html`<div>and ${count(plan.RangeCount - RANGES_SHOWN)} more</div>`}</dd></div>`}
      ${price && html`<div><dt>Cost</dt><dd>${price}</dd></div>`}
      ${plan.Statement === "SELECT" && html`<div><dt>Filter</dt><dd>${plan.IsFiltered ? "the rest of WHERE, after reading" : "none"}</dd></div>`}
      ${plan.Access === "query" && html`<div><dt>Order</dt><dd>${plan.IsForward ? "ascending" : "descending"}</dd></div>`}
    </dl>`}
    <p class="source">${plan.isGuess ? "Guessed from the text of the statement: this endpoint does not show its plan." : "The server's own plan."}</p>
  </section>`;
}
