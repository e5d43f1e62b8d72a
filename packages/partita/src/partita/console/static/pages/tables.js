// Tables: the list of tables, and the page of one table with its settings and actions.

import { Call, Confirm, Field, Input, NoTable, Problem, TableHead, count, html, items as counted, keepAddress, link, say, size, useEffect, useState } from "../shared/parts.js";
import { allTables, call, session } from "../shared/api.js";
import { Change, ChangeIndex, described as describedBeside } from "../tables/change.js";
import { Create } from "../tables/create.js";
import { Destinations } from "../tables/destinations.js";
import { VIEWS } from "../tables/options.js";

const DESCRIBED_AT_ONCE = 6;
const BUSY_MS = 1500;
const ROWS = 100;
const VIEW_NAMES = Object.fromEntries(VIEWS);

const keys = (schema, definitions = []) => schema.map(({ AttributeName, KeyType }) => {
  const type = definitions.find((one) => one.AttributeName === AttributeName)?.AttributeType;
  return `${AttributeName}${type ? ` (${type})` : ""}${KeyType === "HASH" && schema.length > 1 ? " ·" : ""}`;
}).join(" ");

const capacity = (table) => table.BillingModeSummary?.BillingMode === "PAY_PER_REQUEST"
  ? "on demand"
  : `${count(table.ProvisionedThroughput?.ReadCapacityUnits)} RCU, ${count(table.ProvisionedThroughput?.WriteCapacityUnits)} WCU`;

export default function Tables({ parts, query }) {
  return parts[0] ? html`<${One} name=${parts[0]} key=${parts[0]} />` : html`<${All} query=${query} />`;
}

function All({ query }) {
  const [names, setNames] = useState(null);
  const [described, setDescribed] = useState({});
  const [filter, setFilter] = useState(query.get("filter") || "");
  const [page, setPage] = useState(Number(query.get("page")) || 0);
  const [error, setError] = useState(null);
  const [round, setRound] = useState(0);
  const show = (text, at) => { setFilter(text); setPage(at); keepAddress("tables", [], { filter: text, page: at || "" }); };
  useEffect(() => {
    allTables().then((found) => { setNames(found); setError(null); }, setError);
  }, [round, session.state === "connected"]);
  const matching = (names || []).filter((name) => name.toLowerCase().includes(filter.toLowerCase()));
  const shown = matching.slice(page * ROWS, (page + 1) * ROWS);
  useEffect(() => {
    let gone = false;
    const waiting = [...shown];
    let timer;
    const work = async () => {
      while (waiting.length && !gone) {
        const name = waiting.shift();
        const [table, expiry, recovery] = await Promise.allSettled(["DescribeTable", "DescribeTimeToLive", "DescribeContinuousBackups"].map((operation) => call(operation, { TableName: name })));
        if (gone) return;
        const status = recovery.value?.ContinuousBackupsDescription?.PointInTimeRecoveryDescription?.PointInTimeRecoveryStatus;
        setDescribed((before) => ({ ...before, [name]: { ...(table.value?.Table || {}), expiry: expiry.value?.TimeToLiveDescription, recovers: status && status === "ENABLED", refusal: table.reason } }));
        // Tables that are being created or deleted are refreshed until that is done.
        if (table.value && table.value.Table.TableStatus !== "ACTIVE") timer ||= setTimeout(() => setRound((n) => n + 1), BUSY_MS);
      }
    };
    for (let n = 0; n < DESCRIBED_AT_ONCE; n += 1) work();
    return () => { gone = true; clearTimeout(timer); };
  }, [shown.join("\n"), round]);
  const creating = query.get("create");
  const close = () => { location.hash = link("tables"); };
  return html`
    <div class="head"><h1>Tables</h1>${names && html`<span class="quiet">${count(names.length)}</span>`}
      <div class="actions">
        <button onClick=${() => setRound(round + 1)}>Refresh</button>
        ${session.Mode === "on" && html`<button class="primary" id="create" onClick=${() => { location.hash = link("tables", [], { create: 1 }); }}>Create table</button>`}
      </div>
    </div>
    <${Problem} error=${error} />
    ${names && !names.length && html`<div class="card empty"><h2>No tables yet</h2><p>Create one here, or point an application at <code>${session.Endpoint}</code>.</p></div>`}
    ${names && names.length > 0 && html`
      <div class="row narrow"><${Field} label="Filter by name"><${Input} value=${filter} onInput=${(text) => show(text, 0)} type="search" id="filter" /><//></div>
      <div class="scroll" tabindex="0" role="region" aria-label="Tables"><table id="tables">
        <thead><tr><th scope="col">Name</th><th scope="col">Key</th><th scope="col" class="number">Items</th><th scope="col" class="number">Size</th><th scope="col">Capacity</th><th scope="col" class="number">Indexes</th><th scope="col">Stream</th><th scope="col">TTL</th><th scope="col">Recovery</th></tr></thead>
        <tbody>${shown.map((name) => html`<${Row} key=${name} name=${name} table=${described[name]} />`)}</tbody>
      </table></div>
      ${!matching.length && html`<p class="empty">No table has “${filter}” in its name.</p>`}
      ${matching.length > ROWS && html`<div class="bar" style=${{ marginTop: "10px" }}>
        <button disabled=${!page} onClick=${() => show(filter, page - 1)}>Previous</button>
        <span class="quiet">${count(page * ROWS + 1)}–${count(Math.min((page + 1) * ROWS, matching.length))} of ${count(matching.length)}</span>
        <button disabled=${(page + 1) * ROWS >= matching.length} onClick=${() => show(filter, page + 1)}>Next</button>
      </div>`}`}
    ${creating && html`<${Create} onClose=${close} onDone=${() => setRound(round + 1)} />`}`;
}

const Off = () => html`<span class="none">off</span>`;

function Row({ name, table }) {
  const loaded = table?.TableStatus;
  return html`<tr>
    <td><a href=${link("explore", [name])}>${name}</a>${loaded && loaded !== "ACTIVE" && html` <span class="badge warn">${loaded}</span>`}</td>
    <td class="mono wrap">${loaded ? keys(table.KeySchema, table.AttributeDefinitions) : html`<span class="none" title=${table?.refusal?.message}>${table?.refusal?.code || "…"}</span>`}</td>
    <td class="number">${loaded && count(table.ItemCount)}</td>
    <td class="number">${loaded && size(table.TableSizeBytes)}</td>
    <td>${loaded && capacity(table)}</td>
    <td class="number">${loaded && (table.GlobalSecondaryIndexes?.length || 0) + (table.LocalSecondaryIndexes?.length || 0)}</td>
    <td>${loaded && (table.StreamSpecification?.StreamEnabled ? html`<a href=${link("streams", [name])}>${VIEW_NAMES[table.StreamSpecification.StreamViewType]}</a>` : html`<${Off} />`)}</td>
    <td>${loaded && (table.expiry?.AttributeName ? html`<span class="badge good">${table.expiry.AttributeName}</span>` : html`<${Off} />`)}</td>
    <td>${loaded && (table.recovers ? html`<a href=${link("time", [name])}>on</a>` : table.recovers === undefined ? html`<span class="none">–</span>` : html`<${Off} />`)}</td>
  </tr>`;
}

// One table

function One({ name }) {
  const [table, setTable] = useState(null);
  const [more, setMore] = useState(null);
  const [error, setError] = useState(null);
  const [action, setAction] = useState(null);
  const [round, setRound] = useState(0);
  const again = () => setRound((n) => n + 1);
  useEffect(() => {
    let gone = false;
    call("DescribeTable", { TableName: name }).then(({ Table }) => {
      if (gone) return;
      setTable(Table);
      setError(null);
      describedBeside(name, Table.TableArn).then((found) => !gone && setMore(found));
      if (Table.TableStatus !== "ACTIVE" || Table.GlobalSecondaryIndexes?.some((one) => one.IndexStatus !== "ACTIVE")) setTimeout(() => !gone && again(), 1000);
    }, (failed) => !gone && setError(failed));
    return () => { gone = true; };
  }, [name, round, session.state === "connected"]);
  if (!table) return html`<${NoTable} name=${name} error=${error} />`;
  const on = session.Mode === "on";
  const indexes = [...(table.GlobalSecondaryIndexes || []).map((one) => ({ ...one, kind: "global" })), ...(table.LocalSecondaryIndexes || []).map((one) => ({ ...one, kind: "local" }))];
  return html`
    <${TableHead} name=${name} at="tables" actions=${on && html`<button disabled=${!more} onClick=${() => setAction("change")}>Change</button><button class="danger" onClick=${() => setAction("delete")}>Delete</button>`}>
      <span class=${`badge ${table.TableStatus === "ACTIVE" ? "good" : "warn"}`}>${table.TableStatus}</span><//>
    <${Problem} error=${error} />
    <section class="card" aria-label="Overview"><dl class="facts">
      <div><dt>Key</dt><dd class="mono">${keys(table.KeySchema, table.AttributeDefinitions)}</dd></div>
      <div><dt>Items</dt><dd>${count(table.ItemCount)}</dd></div>
      <div><dt>Size</dt><dd>${size(table.TableSizeBytes)}</dd></div>
      <div><dt>Capacity</dt><dd>${capacity(table)}</dd></div>
      <div><dt>Stream</dt><dd>${table.StreamSpecification?.StreamEnabled ? html`<a href=${link("streams", [name])}>${VIEW_NAMES[table.StreamSpecification.StreamViewType]}</a>` : "off"}</dd></div>
      <div><dt>Time to live</dt><dd>${more ? more.expiry || "off" : "…"}</dd></div>
      <div><dt>Point-in-time recovery</dt><dd>${!more ? "…" : !more.recovery ? "not on this server" : more.recovery.PointInTimeRecoveryStatus === "ENABLED" ? `on${more.recovery.RecoveryPeriodInDays ? `, ${more.recovery.RecoveryPeriodInDays} days` : ""}` : "off"}</dd></div>
      <div><dt>Deletion protection</dt><dd>${table.DeletionProtectionEnabled ? "on" : "off"}</dd></div>
      <div><dt>Class</dt><dd>${table.TableClassSummary?.TableClass === "STANDARD_INFREQUENT_ACCESS" ? "infrequent access" : "standard"}</dd></div>
      <div><dt>Encryption</dt><dd>${table.SSEDescription?.Status === "ENABLED" ? table.SSEDescription.KMSMasterKeyArn || table.SSEDescription.SSEType : "DynamoDB's own key"}</dd></div>
      <div><dt>Tags</dt><dd>${!more ? "…" : !more.tags ? "not on this server" : more.tags.map((one) => `${one.Key}=${one.Value}`).join(", ") || "none"}</dd></div>
      <div><dt>Policy</dt><dd>${!more ? "…" : more.policy ? "attached" : "none"}</dd></div>
      <div><dt>Created</dt><dd>${table.CreationDateTime ? new Date(table.CreationDateTime * 1000).toLocaleString() : "–"}</dd></div>
    </dl></section>
    <section class="card" aria-label="Indexes"><h2>Indexes</h2>
      ${indexes.length ? html`<div class="scroll" tabindex="0" role="region" aria-label="Indexes"><table><thead><tr><th scope="col">Name</th><th scope="col">Kind</th><th scope="col">Key</th><th scope="col">Projection</th><th scope="col" class="number">Items</th><th scope="col" class="number">Size</th><th scope="col">Status</th>${on && html`<th scope="col"><span class="hidden-label">Actions</span></th>`}</tr></thead><tbody>
        ${indexes.map((one) => html`<tr key=${one.IndexName}><td><a href=${link("explore", [name], { index: one.IndexName })}>${one.IndexName}</a></td><td>${one.kind}</td><td class="mono">${keys(one.KeySchema, table.AttributeDefinitions)}</td><td>${one.Projection.ProjectionType}${one.Projection.NonKeyAttributes ? `: ${one.Projection.NonKeyAttributes.join(", ")}` : ""}</td><td class="number">${count(one.ItemCount)}</td><td class="number">${size(one.IndexSizeBytes)}</td><td>${one.kind === "global" ? one.IndexStatus : ""}</td>${on && html`<td>${one.kind === "global" && html`<div class="bar close"><button class="small" onClick=${() => setAction({ changeIndex: one })} aria-label=${`Change index ${one.IndexName}`}>Change</button><button class="small danger" onClick=${() => setAction({ dropIndex: one.IndexName })} aria-label=${`Delete index ${one.IndexName}`}>Delete</button></div>`}</td>`}</tr>`)}
      </tbody></table></div>` : html`<p class="quiet">None. A global index can be added at any time.</p>`}
    </section>
    <${Destinations} name=${name} />
    <${Call} operation="DescribeTable" request=${{ TableName: name }} />
    ${action === "change" && html`<${Change} table=${table} more=${more} onClose=${() => setAction(null)} onDone=${again} />`}
    ${action?.changeIndex && html`<${ChangeIndex} table=${table} index=${action.changeIndex} onClose=${() => setAction(null)} onDone=${again} />`}
    ${action === "delete" && html`<${Confirm} title="Delete table" name=${name} verb="Delete table" operation="DeleteTable" request=${{ TableName: name }}
      onClose=${() => setAction(null)} onDone=${async () => { await call("DeleteTable", { TableName: name }); say(`Table ${name} was deleted.`); location.hash = link("tables"); }}>
      <p class="note">This deletes all data of ${name}: ${counted(table.ItemCount)} and its indexes. This cannot be undone.</p><//>`}
    ${action?.dropIndex && html`<${Confirm} title="Delete index" name=${action.dropIndex} verb="Delete index" operation="UpdateTable" request=${dropIndex(name, action.dropIndex)}
      onClose=${() => setAction(null)} onDone=${async () => { await call("UpdateTable", dropIndex(name, action.dropIndex)); say(`Index ${action.dropIndex} is being deleted.`); again(); }}>
      <p>Queries on ${action.dropIndex} will fail. The items of ${name} stay.</p><//>`}`;
}

const dropIndex = (TableName, IndexName) => ({ TableName, GlobalSecondaryIndexUpdates: [{ Delete: { IndexName } }] });
