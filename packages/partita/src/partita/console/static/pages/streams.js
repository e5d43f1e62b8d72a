// Streams: the changes of a table as they happen, with old and new image side by side.

import { Call, Problem, TableHead, count, html, link, useEffect, useRef, useState } from "../shared/parts.js";
import { call } from "../shared/api.js";
import { Consumers } from "../page_parts/consumers.js";
import { Differences } from "../shared/differences.js";
import { bytesOf, hexOf, shown } from "../shared/values.js";

const EVERY_MS = 1000;
const KEPT = 200;
const SHOWN_BYTES = 4000;
const KINDS = { INSERT: "good", MODIFY: "", REMOVE: "warn" };
const ask = (operation, request) => call(operation, request, undefined, "dynamodbstreams");

const askKinesis = (operation, request) => call(operation, request, undefined, "kinesis");

export default function Streams({ parts, query }) {
  if (parts[0] === "kinesis" && parts[1]) return html`<${Kinesis} key=${parts[1]} name=${parts[1]} leases=${query.get("leases") || ""} />`;
  return parts[0] ? html`<${Tail} key=${parts[0]} table=${parts[0]} />` : html`<${All} />`;
}

async function allStreams() {
  const found = [];
  let start;
  do {
    const page = await ask("ListStreams", start ? { ExclusiveStartStreamArn: start } : {});
    found.push(...page.Streams);
    start = page.LastEvaluatedStreamArn;
  } while (start);
  return found;
}

function All() {
  const [streams, setStreams] = useState(null);
  const [error, setError] = useState(null);
  const [others, setOthers] = useState([]);
  useEffect(() => { allStreams().then(setStreams, setError); allKinesis().then(setOthers, () => {}); }, []);
  return html`<div class="head"><h1>Streams</h1>${streams && html`<span class="quiet">${count(streams.length)}</span>`}</div><${Problem} error=${error} />
    ${streams && (streams.length ? html`<div class="scroll" tabindex="0" role="region" aria-label="Streams"><table id="streams"><thead><tr><th scope="col">Table</th><th scope="col">Since</th></tr></thead><tbody>
      ${streams.map((one) => html`<tr key=${one.StreamArn}><td><a href=${link("streams", [one.TableName])}>${one.TableName}</a></td><td class="mono">${one.StreamLabel}</td></tr>`)}</tbody></table></div>`
    : html`<div class="card empty"><h2>No streams</h2><p>Switch one on in the settings of a table.</p></div>`)}
    ${others.length > 0 && html`<section class="card" style=${{ marginTop: "16px" }} aria-label="Kinesis"><h2>Kinesis streams</h2><div class="scroll" tabindex="0" role="region" aria-label="Kinesis streams"><table id="kinesis"><thead><tr><th scope="col">Stream</th><th scope="col">Status</th><th scope="col">Mode</th></tr></thead><tbody>
      ${others.map((one) => html`<tr key=${one.StreamName}><td><a href=${link("streams", ["kinesis", one.StreamName])}>${one.StreamName}</a></td><td>${one.StreamStatus}</td><td>${one.StreamModeDetails?.StreamMode || ""}</td></tr>`)}</tbody></table></div></section>`}`;
}

async function allKinesis() {
  const found = [];
  let token;
  do {
    const page = await askKinesis("ListStreams", token ? { NextToken: token } : {});
    found.push(...(page.StreamSummaries || page.StreamNames.map((StreamName) => ({ StreamName }))));
    token = page.HasMoreStreams ? page.NextToken : null;
  } while (token);
  return found;
}

// The records of a Kinesis stream as they arrive, and how far each shard is behind.
function Kinesis({ name, leases }) {
  const [arn, setArn] = useState("");
  useEffect(() => { askKinesis("DescribeStreamSummary", { StreamName: name }).then((found) => setArn(found.StreamDescriptionSummary.StreamARN), () => {}); }, [name]);
  const [records, setRecords] = useState([]);
  const [shards, setShards] = useState([]);
  const [error, setError] = useState(null);
  const [paused, setPaused] = useState(false);
  const state = useRef({ iterators: new Map(), places: new Map(), done: new Set(), lags: new Map() });
  const isPaused = useRef(false);
  isPaused.current = paused;
  const read = async () => {
    const { iterators, places, done, lags } = state.current;
    const listed = [];
    let token;
    do {
      const page = await askKinesis("ListShards", token ? { NextToken: token } : { StreamName: name });
      listed.push(...page.Shards);
      token = page.NextToken;
    } while (token);
    for (const { ShardId } of listed) {
      if (done.has(ShardId)) continue;
      try {
        if (!iterators.has(ShardId)) {
          const place = places.has(ShardId) ? { ShardIteratorType: "AFTER_SEQUENCE_NUMBER", StartingSequenceNumber: places.get(ShardId) } : { ShardIteratorType: "TRIM_HORIZON" };
          iterators.set(ShardId, (await askKinesis("GetShardIterator", { StreamName: name, ShardId, ...place })).ShardIterator);
        }
        const page = await askKinesis("GetRecords", { ShardIterator: iterators.get(ShardId), Limit: 100 });
        lags.set(ShardId, page.MillisBehindLatest);
        if (page.NextShardIterator) iterators.set(ShardId, page.NextShardIterator);
        else done.add(ShardId);
        if (!page.Records.length) continue;
        places.set(ShardId, page.Records[page.Records.length - 1].SequenceNumber);
        setRecords((before) => page.Records.map((one) => ({ ...one, ShardId })).reverse().concat(before).slice(0, KEPT));
      } catch (failed) {
        iterators.delete(ShardId);
        if (failed.code !== "ExpiredIteratorException") throw failed;
      }
    }
    setShards(listed.map((one) => ({ ...one, lag: lags.get(one.ShardId), isClosed: Boolean(one.SequenceNumberRange?.EndingSequenceNumber) })));
  };
  useEffect(() => {
    let gone = false, timer;
    const tick = async () => {
      if (!document.hidden && !isPaused.current) try { await read(); if (!gone) setError(null); } catch (failed) { if (!gone) setError(failed); }
      if (!gone) timer = setTimeout(tick, EVERY_MS);
    };
    tick();
    return () => { gone = true; clearTimeout(timer); };
  }, [name]);
  return html`<div class="head"><h1>${name}</h1><span class="badge">Kinesis</span><div class="actions"><button onClick=${() => setRecords([])}>Clear</button><button aria-pressed=${paused ? "true" : "false"} onClick=${() => setPaused(!paused)}>${paused ? "Resume" : "Pause"}</button></div></div>
    <${Problem} error=${error} />
    ${shards.length > 0 && html`<div class="scroll" tabindex="0" role="region" aria-label="Shards"><table id="shards"><thead><tr><th scope="col">Shard</th><th scope="col">Status</th><th scope="col" class="number">This page is behind by</th></tr></thead><tbody>${shards.map((one) => html`<tr key=${one.ShardId}><td class="mono">${one.ShardId}</td><td>${one.isClosed ? "closed" : "open"}</td><td class="number">${one.lag === undefined ? "" : `${count(one.lag)} ms`}</td></tr>`)}</tbody></table></div>`}
    ${arn && html`<${Consumers} stream=${{ arn, name, isKinesis: true }} shards=${shards} leases=${leases} onLeases=${(table) => { location.hash = link("streams", ["kinesis", name], { leases: table }); }} />`}
    ${!records.length && html`<div class="card empty"><h2>No records yet</h2><p>They appear here as they arrive.</p></div>`}
    <div id="records" style=${{ marginTop: "14px" }}>${records.map((one) => html`<article class="card" key=${`${one.ShardId} ${one.SequenceNumber}`} aria-label="Record"><div class="bar"><strong class="mono">${one.PartitionKey}</strong><span class="spacer"></span><span class="quiet">${new Date(one.ApproximateArrivalTimestamp * 1000).toLocaleTimeString()} · <span class="mono">${one.ShardId}</span></span></div><pre class="code" tabindex="0" aria-label=${`Data of ${one.PartitionKey}`}>${readable(one.Data)}</pre></article>`)}</div>`;
}

// Shows data as text if it is text, else as hex.
function readable(base64) {
  const bytes = bytesOf(base64);
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes.slice(0, SHOWN_BYTES));
    try { return JSON.stringify(JSON.parse(text), null, 2); } catch { return text; }
  } catch { return hexOf(base64, SHOWN_BYTES); }
}

function Tail({ table }) {
  const [stream, setStream] = useState(null);
  const [shards, setShards] = useState([]);
  const [records, setRecords] = useState([]);
  const [error, setError] = useState(null);
  const [paused, setPaused] = useState(false);
  const state = useRef({ iterators: new Map(), places: new Map(), done: new Set() });
  const isPaused = useRef(false);
  isPaused.current = paused;

  // One round over all shards, including new ones; a closed shard is read to its end once.
  const read = async (arn) => {
    const { iterators, places, done } = state.current;
    const listed = [];
    let start;
    do {
      const { StreamDescription: described } = await ask("DescribeStream", { StreamArn: arn, ...(start ? { ExclusiveStartShardId: start } : {}) });
      setStream(described);
      listed.push(...described.Shards);
      start = described.LastEvaluatedShardId;
    } while (start);
    setShards(listed);
    for (const { ShardId } of listed) {
      if (done.has(ShardId)) continue;
      if (!iterators.has(ShardId)) {
        const place = places.has(ShardId) ? { ShardIteratorType: "AFTER_SEQUENCE_NUMBER", SequenceNumber: places.get(ShardId) } : { ShardIteratorType: "TRIM_HORIZON" };
        iterators.set(ShardId, (await ask("GetShardIterator", { StreamArn: arn, ShardId, ...place })).ShardIterator);
      }
      let page;
      try { page = await ask("GetRecords", { ShardIterator: iterators.get(ShardId) }); } catch (failed) {
        // Iterators expire after minutes, or with a restart; the last position is known.
        iterators.delete(ShardId);
        if (failed.code === "TrimmedDataAccessException") places.delete(ShardId);
        else if (failed.code !== "ExpiredIteratorException") throw failed;
        continue;
      }
      if (page.NextShardIterator) iterators.set(ShardId, page.NextShardIterator);
      else done.add(ShardId);
      if (!page.Records.length) continue;
      places.set(ShardId, page.Records[page.Records.length - 1].dynamodb.SequenceNumber);
      setRecords((before) => latest(page.Records, before));
    }
  };
  useEffect(() => {
    let gone = false, timer;
    const tick = async (arn) => {
      if (!document.hidden && !isPaused.current) try { await read(arn); if (!gone) setError(null); } catch (failed) { if (!gone) setError(failed); }
      if (!gone) timer = setTimeout(() => tick(arn), EVERY_MS);
    };
    call("DescribeTable", { TableName: table }).then(({ Table }) => {
      if (gone) return;
      if (Table.StreamSpecification?.StreamEnabled) tick(Table.LatestStreamArn);
      else setError(new Error(`${table} has no stream: switch one on in its settings.`));
    }, setError);
    return () => { gone = true; clearTimeout(timer); };
  }, [table]);
  return html`<${TableHead} name=${table} at="streams" actions=${html`<button onClick=${() => setRecords([])}>Clear</button><button aria-pressed=${paused ? "true" : "false"} onClick=${() => setPaused(!paused)}>${paused ? "Resume" : "Pause"}</button>`}>
      ${stream && html`<span class="badge good">${stream.StreamViewType}</span><span class="quiet">${count(shards.length)} ${shards.length === 1 ? "shard" : "shards"}</span>`}<//>
    <${Problem} error=${error} />
    ${stream && html`<${Consumers} stream=${{ arn: stream.StreamArn, name: table, isKinesis: false }} shards=${shards} /><${Shards} shards=${shards} />`}
    ${stream && !records.length && html`<div class="card empty"><h2>No changes yet</h2><p>They appear here as they happen.</p></div>`}
    <div id="records">${records.map((one) => html`<${Change} key=${one.eventID} record=${one} />`)}</div>
    ${stream && html`<${Call} operation="DescribeStream" request=${{ StreamArn: stream.StreamArn }} />`}`;
}

// Newest first over all shards; records of the same shard and second stay in order.
const latest = (records, before) => [...records].reverse().concat(before).sort((one, other) => (other.dynamodb.ApproximateCreationDateTime || 0) - (one.dynamodb.ApproximateCreationDateTime || 0)).slice(0, KEPT);

// Closed shards disappear a day after their last record; each has a child that continues it.
function Shards({ shards }) {
  return html`<details class="call"><summary>Shards: ${count(shards.length)}</summary><div class="scroll" tabindex="0" role="region" aria-label="Shards"><table id="shards"><thead><tr><th scope="col">Shard</th><th scope="col">Status</th><th scope="col">After</th><th scope="col">From</th></tr></thead><tbody>
    ${shards.map((one) => html`<tr key=${one.ShardId}><td class="mono">${one.ShardId}</td><td>${one.SequenceNumberRange?.EndingSequenceNumber ? "closed" : "open"}</td><td class="mono">${one.ParentShardId || ""}</td><td class="mono">${one.SequenceNumberRange?.StartingSequenceNumber || ""}</td></tr>`)}</tbody></table></div></details>`;
}

function Change({ record }) {
  const { Keys, OldImage, NewImage, SequenceNumber, ApproximateCreationDateTime: when } = record.dynamodb;
  return html`<article class="card" aria-label=${record.eventName}>
    <div class="bar"><span class=${`badge ${KINDS[record.eventName]}`}>${record.eventName}</span><strong class="mono">${Object.values(Keys).map((value) => shown(value, 60)).join(" · ")}</strong><span class="spacer"></span><span class="quiet">${when ? new Date(when * 1000).toLocaleTimeString() : ""} · <span class="mono">${SequenceNumber}</span></span></div>
    <${Differences} was=${OldImage} is=${NewImage} titles=${["Before", "After"]} but=${Object.keys(Keys)} />
  </article>`;
}
