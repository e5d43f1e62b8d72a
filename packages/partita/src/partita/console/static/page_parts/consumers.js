// The consumers of a stream, and how far each is behind: event source mappings, and workers that
// share leases in a table.

import { Field, Input, Problem, count, html, link, useEffect, useState } from "../shared/parts.js";
import { call, isUnknown, look } from "../shared/api.js";

const EVERY_MS = 2000;
const READ_MAX = 1000;
const CHECKPOINTS = "partita-functions";
const END = "SHARD_END";
const FROM_START = "TRIM_HORIZON";

async function pagesOf(request) {
  const found = [];
  let start;
  do {
    const page = await call("Query", { ...request, ConsistentRead: true, ...(start ? { ExclusiveStartKey: start } : {}) });
    found.push(...page.Items);
    start = page.LastEvaluatedKey;
  } while (start);
  return found;
}

const among = (TableName, name, value) => pagesOf({ TableName, KeyConditionExpression: "#k = :k", ExpressionAttributeNames: { "#k": name }, ExpressionAttributeValues: { ":k": { S: value } } });

// Returns the checkpoints of a mapping. A Partita server keeps them in a table; Amazon does not show
// them.
async function notedBy(mapping) {
  const items = await among(CHECKPOINTS, "pk", `checkpoints#${mapping.UUID}`);
  const records = items.filter((one) => one.record).map((one) => JSON.parse(one.record.S));
  const start = records.find((one) => one.shard_id === "start")?.positions || {};
  return { start, positions: new Map(records.filter((one) => one.shard_id !== "start").map((one) => [one.shard_id, one.position])) };
}

// Returns how many records follow a position in a shard, and the age of the first of them.
async function behind(stream, ShardId, position) {
  if (position === END) return { records: 0, seconds: 0 };
  const moment = /^AT_TIMESTAMP (.+)$/.exec(position || "")?.[1];
  const sequence = position && position !== FROM_START && !moment;
  const place = moment ? { ShardIteratorType: "AT_TIMESTAMP", Timestamp: Number(moment) } : { ShardIteratorType: sequence ? "AFTER_SEQUENCE_NUMBER" : FROM_START, ...(sequence ? { [stream.isKinesis ? "StartingSequenceNumber" : "SequenceNumber"]: position } : {}) };
  const service = stream.isKinesis ? "kinesis" : "dynamodbstreams";
  const named = stream.isKinesis ? { StreamName: stream.name } : { StreamArn: stream.arn };
  try {
    const { ShardIterator } = await call("GetShardIterator", { ...named, ShardId, ...place }, undefined, service);
    const page = await call("GetRecords", { ShardIterator, Limit: READ_MAX }, undefined, service);
    const first = page.Records[0];
    const since = first && (first.ApproximateArrivalTimestamp ?? first.dynamodb.ApproximateCreationDateTime);
    return { records: page.Records.length, isMore: page.Records.length === READ_MAX || page.MillisBehindLatest > 0, seconds: since ? Math.max(0, Date.now() / 1000 - since) : 0 };
  } catch (failed) {
    if (["TrimmedDataAccessException", "InvalidArgumentException", "ValidationException"].includes(failed.code)) return { lost: true };
    throw failed;
  }
}

const together = (lags) => ({ records: lags.reduce((sum, lag) => sum + (lag.records || 0), 0), isMore: lags.some((lag) => lag.isMore), seconds: Math.max(0, ...lags.map((lag) => lag.seconds || 0)), lost: lags.length > 0 && lags.every((lag) => lag.lost) });
const lagText = ({ records, isMore, seconds, lost }) => (lost ? "its position has expired" : records ? `${count(records)}${isMore ? " and more" : ""} ${records === 1 ? "record" : "records"}, since ${age(seconds)}` : "nothing");
const age = (seconds) => (seconds < 90 ? `${Math.round(seconds)} s` : seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`);

async function mappingsOf(stream) {
  const { EventSourceMappings: all } = await look("mappings");
  const table = stream.arn.split("/stream/")[0];
  return all.filter((one) => one.EventSourceArn === stream.arn || (!stream.isKinesis && one.EventSourceArn === table));
}

async function withLag(stream, shards, one) {
  let noted = null;
  try { noted = await notedBy(one); } catch (failed) { if (!["ResourceNotFoundException", "AccessDeniedException"].includes(failed.code)) throw failed; }
  if (!noted) return { ...one, lags: null };
  const label = stream.arn.split("/").pop();
  const lags = [];
  for (const { ShardId } of shards) {
    const id = stream.isKinesis ? ShardId : `${label}/${ShardId}`;
    const position = noted.positions.get(id) ?? noted.start[id] ?? (one.StartingPosition === FROM_START ? FROM_START : undefined);
    lags.push({ ShardId, position, ...(await behind(stream, ShardId, position)) });
  }
  return { ...one, lags };
}

export function Consumers({ stream, shards, leases, onLeases }) {
  const [mappings, setMappings] = useState(null);
  const [error, setError] = useState(null);
  const names = shards.map((one) => one.ShardId).join(" ");
  useEffect(() => {
    let gone = false, timer;
    const tick = async () => {
      if (!document.hidden) {
        try {
          const found = [];
          for (const one of await mappingsOf(stream)) found.push(await withLag(stream, shards, one));
          if (!gone) { setMappings(found); setError(null); }
        } catch (failed) { if (!gone) { setError(failed); if (isUnknown(failed)) return; } }
      }
      if (!gone) timer = setTimeout(tick, EVERY_MS);
    };
    if (names) tick();
    return () => { gone = true; clearTimeout(timer); };
  }, [stream.arn, names]);
  return html`<section class="card" aria-label="Consumers"><h2>Consumers</h2>
    ${isUnknown(error) || error?.code === "NotMonitored" ? html`<p class="quiet">This endpoint has no event source mappings.</p>` : html`<${Problem} error=${error} />`}
    ${mappings && (mappings.length ? html`<div class="scroll" tabindex="0" role="region" aria-label="Event source mappings"><table id="mappings"><thead><tr><th scope="col">Function</th><th scope="col">State</th><th scope="col">Last result</th><th scope="col">Not read yet</th><th scope="col">When it fails</th></tr></thead><tbody>
      ${mappings.map((one) => html`<${Mapping} key=${one.UUID} mapping=${one} />`)}</tbody></table></div>` : html`<p class="quiet">No function is called with these records.</p>`)}
    ${stream.isKinesis && html`<${Leases} stream=${stream} shards=${shards} table=${leases} onTable=${onLeases} />`}</section>`;
}

const isBad = (result) => /^PROBLEM/.test(result || "");

function Mapping({ mapping: one }) {
  const late = (one.lags || []).filter((lag) => lag.records || lag.lost);
  const retries = one.MaximumRetryAttempts ?? -1;
  const destination = one.DestinationConfig?.OnFailure?.Destination;
  return html`<tr><td title=${one.FunctionArn}>${one.FunctionArn?.split(":function:")[1] || one.FunctionArn}<div class="quiet mono">${one.UUID}</div></td>
    <td><span class=${`badge ${one.State === "Enabled" ? "good" : "warn"}`}>${one.State}</span></td>
    <td><span class=${`badge ${isBad(one.LastProcessingResult) ? "warn" : ""}`}>${one.LastProcessingResult || "–"}</span></td>
    <td>${one.lags ? html`${lagText(together(one.lags))}${late.length > 0 && one.lags.length > 1 && late.map((lag) => html`<div class="quiet" key=${lag.ShardId}>${lagText(lag)} in <span class="mono">${lag.ShardId.slice(-8)}</span></div>`)}` : html`<span class="quiet">unknown</span>`}</td>
    <td class="wrap">${retries < 0 ? "retried forever" : `given up after ${count(retries)} ${retries === 1 ? "retry" : "retries"}`}${one.BisectBatchOnFunctionError ? ", batches are halved" : ""}${destination ? html`<div class="quiet">then to <span class="mono">${destination}</span></div>` : ""}</td></tr>`;
}

// Workers of the Kinesis consumer keep their leases in a table with the name of their application.
function Leases({ stream, shards, table, onTable }) {
  const [name, setName] = useState(table);
  const [found, setFound] = useState(null);
  const [error, setError] = useState(null);
  const names = shards.map((one) => one.ShardId).join(" ");
  useEffect(() => {
    setFound(null);
    if (!table || !names) return;
    let gone = false, timer;
    const tick = async () => {
      if (!document.hidden) try {
        const rows = [];
        for (const item of await among(table, "stream", stream.name)) {
          const ShardId = item.shard?.S, position = item.checkpoint?.S;
          rows.push({ ShardId, position, owner: item.owner?.S === "-" ? "" : item.owner?.S, counter: item.counter?.N, ...(await behind(stream, ShardId, position)) });
        }
        if (!gone) { setFound(rows); setError(null); }
      } catch (failed) { if (!gone) setError(failed); }
      if (!gone) timer = setTimeout(tick, EVERY_MS);
    };
    tick();
    return () => { gone = true; clearTimeout(timer); };
  }, [table, stream.name, names]);
  return html`<form class="row narrow" onSubmit=${(event) => { event.preventDefault(); onTable(name.trim()); }}><${Field} label="Table of leases"><${Input} value=${name} onInput=${setName} /><//><button>Show leases</button></form><${Problem} error=${error} />
    ${found && (found.length ? html`<div class="scroll" tabindex="0" role="region" aria-label="Leases"><table id="leases"><thead><tr><th scope="col">Shard</th><th scope="col">Worker</th><th scope="col">Checkpoint</th><th scope="col">Not read yet</th></tr></thead><tbody>
      ${found.map((one) => html`<tr key=${one.ShardId}><td class="mono">${one.ShardId}</td><td>${one.owner || html`<span class="quiet">nobody</span>`}</td><td class="mono clip" title=${one.position}>${one.position}</td><td>${lagText(one)}</td></tr>`)}</tbody></table></div><p><a href=${link("explore", [table])}>Explore ${table}</a></p>` : html`<p class="quiet">${table} has no leases of ${stream.name}.</p>`)}`;
}
