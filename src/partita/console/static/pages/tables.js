// Tables: all of them, one of them, and what can be done with it.

import { Call, Confirm, Field, Input, Over, Problem, Select, count, html, link, say, size, useEffect, useState } from "../parts.js";
import { allTables, call, session } from "../api.js";

const DESCRIBED_AT_ONCE = 6;
const ROWS = 100;
const PROJECTIONS = [["ALL", "All attributes"], ["KEYS_ONLY", "Keys only"], ["INCLUDE", "Some attributes"]];

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
  const [page, setPage] = useState(0);
  const [error, setError] = useState(null);
  const [round, setRound] = useState(0);
  useEffect(() => {
    allTables().then((found) => { setNames(found); setError(null); }, setError);
  }, [round, session.state === "connected"]);
  const matching = (names || []).filter((name) => name.toLowerCase().includes(filter.toLowerCase()));
  const shown = matching.slice(page * ROWS, (page + 1) * ROWS);
  useEffect(() => {
    let gone = false;
    const waiting = [...shown];
    const work = async () => {
      while (waiting.length && !gone) {
        const name = waiting.shift();
        const [table, expiry] = await Promise.allSettled([call("DescribeTable", { TableName: name }), call("DescribeTimeToLive", { TableName: name })]);
        if (gone) return;
        setDescribed((before) => ({ ...before, [name]: { ...(table.value?.Table || {}), expiry: expiry.value?.TimeToLiveDescription } }));
      }
    };
    for (let n = 0; n < DESCRIBED_AT_ONCE; n += 1) work();
    return () => { gone = true; };
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
      <div class="row narrow"><${Field} label="Filter by name"><${Input} value=${filter} onInput=${(text) => { setFilter(text); setPage(0); }} type="search" id="filter" /><//></div>
      <div class="scroll" tabindex="0" role="region" aria-label="Tables"><table id="tables">
        <thead><tr><th scope="col">Name</th><th scope="col">Key</th><th scope="col" class="number">Items</th><th scope="col" class="number">Size</th><th scope="col">Capacity</th><th scope="col" class="number">Indexes</th><th scope="col">Stream</th><th scope="col">TTL</th><th scope="col">Status</th><th scope="col"><span class="hidden-label">Actions</span></th></tr></thead>
        <tbody>${shown.map((name) => html`<${Row} key=${name} name=${name} table=${described[name]} />`)}</tbody>
      </table></div>
      ${!matching.length && html`<p class="empty">No table has “${filter}” in its name.</p>`}
      ${matching.length > ROWS && html`<div class="bar" style=${{ marginTop: "10px" }}>
        <button disabled=${!page} onClick=${() => setPage(page - 1)}>Previous</button>
        <span class="quiet">${count(page * ROWS + 1)}–${count(Math.min((page + 1) * ROWS, matching.length))} of ${count(matching.length)}</span>
        <button disabled=${(page + 1) * ROWS >= matching.length} onClick=${() => setPage(page + 1)}>Next</button>
      </div>`}`}
    ${creating && html`<${Create} onClose=${close} onDone=${() => setRound(round + 1)} />`}`;
}

function Row({ name, table }) {
  const loaded = table?.TableStatus;
  return html`<tr>
    <td><a href=${link("tables", [name])}>${name}</a></td>
    <td class="mono">${loaded ? keys(table.KeySchema, table.AttributeDefinitions) : html`<span class="none">…</span>`}</td>
    <td class="number">${loaded && count(table.ItemCount)}</td>
    <td class="number">${loaded && size(table.TableSizeBytes)}</td>
    <td>${loaded && capacity(table)}</td>
    <td class="number">${loaded && (table.GlobalSecondaryIndexes?.length || 0) + (table.LocalSecondaryIndexes?.length || 0)}</td>
    <td>${loaded && (table.StreamSpecification?.StreamEnabled ? html`<span class="badge good">${table.StreamSpecification.StreamViewType}</span>` : html`<span class="none">off</span>`)}</td>
    <td>${loaded && (table.expiry?.AttributeName ? html`<span class="badge good">${table.expiry.AttributeName}</span>` : html`<span class="none">off</span>`)}</td>
    <td>${loaded && html`<span class=${`badge ${table.TableStatus === "ACTIVE" ? "good" : "warn"}`}>${table.TableStatus}</span>`}</td>
    <td><a href=${link("explore", [name])} aria-label=${`Explore ${name}`}>Explore</a></td>
  </tr>`;
}

// Create

const newIndex = () => ({ kind: "global", name: "", hash: "", hashType: "S", range: "", rangeType: "S", projection: "ALL", include: "" });

function creation(form) {
  const types = {};
  const schema = (hash, hashType, range, rangeType) => {
    types[hash] = hashType;
    if (range) types[range] = rangeType;
    return [{ AttributeName: hash, KeyType: "HASH" }, ...(range ? [{ AttributeName: range, KeyType: "RANGE" }] : [])];
  };
  const throughput = { ReadCapacityUnits: Number(form.rcu), WriteCapacityUnits: Number(form.wcu) };
  const provisioned = form.billing === "PROVISIONED";
  const KeySchema = schema(form.hash, form.hashType, form.range, form.rangeType);
  const index = (one) => ({
    IndexName: one.name,
    KeySchema: one.kind === "local" ? schema(form.hash, form.hashType, one.range, one.rangeType) : schema(one.hash, one.hashType, one.range, one.rangeType),
    Projection: { ProjectionType: one.projection, ...(one.projection === "INCLUDE" ? { NonKeyAttributes: one.include.split(",").map((text) => text.trim()).filter(Boolean) } : {}) },
    ...(provisioned && one.kind === "global" ? { ProvisionedThroughput: throughput } : {}),
  });
  const global = form.indexes.filter((one) => one.kind === "global").map(index);
  const local = form.indexes.filter((one) => one.kind === "local").map(index);
  return {
    TableName: form.name,
    KeySchema,
    ...(global.length ? { GlobalSecondaryIndexes: global } : {}),
    ...(local.length ? { LocalSecondaryIndexes: local } : {}),
    AttributeDefinitions: Object.entries(types).map(([AttributeName, AttributeType]) => ({ AttributeName, AttributeType })),
    BillingMode: form.billing,
    ...(provisioned ? { ProvisionedThroughput: throughput } : {}),
    ...(form.stream ? { StreamSpecification: { StreamEnabled: true, StreamViewType: form.stream } } : {}),
    ...(form.protect ? { DeletionProtectionEnabled: true } : {}),
    ...(form.infrequent ? { TableClass: "STANDARD_INFREQUENT_ACCESS" } : {}),
  };
}

const KEY_TYPES = [["S", "String"], ["N", "Number"], ["B", "Binary"]];
const VIEWS = ["NEW_AND_OLD_IMAGES", "NEW_IMAGE", "OLD_IMAGE", "KEYS_ONLY"];

function Create({ onClose, onDone }) {
  const [form, setForm] = useState({ name: "", hash: "pk", hashType: "S", range: "", rangeType: "S", billing: "PAY_PER_REQUEST", rcu: 5, wcu: 5, stream: "", protect: false, infrequent: false, indexes: [] });
  const [error, setError] = useState(null);
  const set = (name) => (value) => setForm({ ...form, [name]: value });
  const request = creation(form);
  const create = async (event) => {
    event.preventDefault();
    try {
      await call("CreateTable", request);
      say(`Table ${form.name} was created.`);
      onDone();
      onClose();
    } catch (failed) { setError(failed); }
  };
  const setIndex = (at, name, value) => setForm({ ...form, indexes: form.indexes.map((one, n) => (n === at ? { ...one, [name]: value } : one)) });
  return html`<${Over} label="Create table" onClose=${onClose}>
    <h1>Create table</h1>
    <form onSubmit=${create}>
      <div class="row" style=${{ marginTop: "14px" }}><${Field} label="Name"><${Input} value=${form.name} onInput=${set("name")} name="name" required data-focus /><//></div>
      <div class="row">
        <${Field} label="Partition key"><${Input} value=${form.hash} onInput=${set("hash")} name="hash" required /><//>
        <${Field} label="Its type"><${Select} value=${form.hashType} onChange=${set("hashType")} options=${KEY_TYPES} /><//>
        <${Field} label="Sort key (optional)"><${Input} value=${form.range} onInput=${set("range")} name="range" /><//>
        <${Field} label="Its type"><${Select} value=${form.rangeType} onChange=${set("rangeType")} options=${KEY_TYPES} /><//>
      </div>
      <div class="row">
        <${Field} label="Capacity"><${Select} value=${form.billing} onChange=${set("billing")} options=${[["PAY_PER_REQUEST", "On demand"], ["PROVISIONED", "Provisioned"]]} /><//>
        ${form.billing === "PROVISIONED" && html`
          <${Field} label="Read units"><${Input} type="number" min="1" value=${form.rcu} onInput=${set("rcu")} /><//>
          <${Field} label="Write units"><${Input} type="number" min="1" value=${form.wcu} onInput=${set("wcu")} /><//>`}
        <${Field} label="Stream"><${Select} value=${form.stream} onChange=${set("stream")} options=${[["", "Off"], ...VIEWS]} /><//>
      </div>
      <div class="bar" style=${{ marginBottom: "10px", gap: "18px" }}>
        <label class="tick"><input type="checkbox" checked=${form.protect} onChange=${(event) => set("protect")(event.target.checked)} />Deletion protection</label>
        <label class="tick"><input type="checkbox" checked=${form.infrequent} onChange=${(event) => set("infrequent")(event.target.checked)} />Infrequent access class</label>
      </div>
      ${form.indexes.map((one, at) => html`<fieldset class="card" key=${at}><legend>Index ${at + 1}</legend>
        <div class="row">
          <${Field} label="Kind"><${Select} value=${one.kind} onChange=${(value) => setIndex(at, "kind", value)} options=${[["global", "Global"], ["local", "Local"]]} /><//>
          <${Field} label="Name"><${Input} value=${one.name} onInput=${(value) => setIndex(at, "name", value)} required /><//>
          ${one.kind === "global" && html`
            <${Field} label="Partition key"><${Input} value=${one.hash} onInput=${(value) => setIndex(at, "hash", value)} required /><//>
            <${Field} label="Its type"><${Select} value=${one.hashType} onChange=${(value) => setIndex(at, "hashType", value)} options=${KEY_TYPES} /><//>`}
          <${Field} label="Sort key"><${Input} value=${one.range} onInput=${(value) => setIndex(at, "range", value)} required=${one.kind === "local"} /><//>
          <${Field} label="Its type"><${Select} value=${one.rangeType} onChange=${(value) => setIndex(at, "rangeType", value)} options=${KEY_TYPES} /><//>
          <${Field} label="Projection"><${Select} value=${one.projection} onChange=${(value) => setIndex(at, "projection", value)} options=${PROJECTIONS} /><//>
          ${one.projection === "INCLUDE" && html`<${Field} label="Attributes, with commas"><${Input} value=${one.include} onInput=${(value) => setIndex(at, "include", value)} required /><//>`}
        </div>
        <button type="button" class="small" onClick=${() => setForm({ ...form, indexes: form.indexes.filter((_, n) => n !== at) })}>Remove index ${at + 1}</button>
      </fieldset>`)}
      <button type="button" class="small" onClick=${() => setForm({ ...form, indexes: [...form.indexes, newIndex()] })}>Add index</button>
      <${Call} operation="CreateTable" request=${request} />
      <${Problem} error=${error} />
      <div class="bar"><button class="primary">Create table</button><button type="button" onClick=${onClose}>Cancel</button></div>
    </form>
  <//>`;
}

// One table

function One({ name }) {
  const [table, setTable] = useState(null);
  const [more, setMore] = useState({});
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
      if (Table.TableStatus !== "ACTIVE" || Table.GlobalSecondaryIndexes?.some((one) => one.IndexStatus !== "ACTIVE")) setTimeout(() => !gone && again(), 1000);
    }, (failed) => !gone && setError(failed));
    Promise.allSettled([call("DescribeTimeToLive", { TableName: name }), call("DescribeContinuousBackups", { TableName: name })]).then(([expiry, recovery]) => {
      if (!gone) setMore({ expiry: expiry.value?.TimeToLiveDescription, recovery: recovery.value?.ContinuousBackupsDescription?.PointInTimeRecoveryDescription, unknownRecovery: recovery.reason });
    });
    return () => { gone = true; };
  }, [name, round, session.state === "connected"]);
  if (!table) return html`<div class="head"><h1>${name}</h1></div><${Problem} error=${error} />`;
  const on = session.Mode === "on";
  const indexes = [...(table.GlobalSecondaryIndexes || []).map((one) => ({ ...one, kind: "global" })), ...(table.LocalSecondaryIndexes || []).map((one) => ({ ...one, kind: "local" }))];
  return html`
    <div class="head"><h1>${name}</h1><span class=${`badge ${table.TableStatus === "ACTIVE" ? "good" : "warn"}`}>${table.TableStatus}</span>
      <div class="actions">
        <a class="button" href=${link("explore", [name])}>Explore items</a>
        ${on && html`<button onClick=${() => setAction("change")}>Change</button><button class="danger" onClick=${() => setAction("delete")}>Delete</button>`}
      </div>
    </div>
    <${Problem} error=${error} />
    <section class="card" aria-label="Overview"><dl class="facts">
      <div><dt>Key</dt><dd class="mono">${keys(table.KeySchema, table.AttributeDefinitions)}</dd></div>
      <div><dt>Items</dt><dd>${count(table.ItemCount)}</dd></div>
      <div><dt>Size</dt><dd>${size(table.TableSizeBytes)}</dd></div>
      <div><dt>Capacity</dt><dd>${capacity(table)}</dd></div>
      <div><dt>Stream</dt><dd>${table.StreamSpecification?.StreamEnabled ? html`<a href=${link("streams", [name])}>${table.StreamSpecification.StreamViewType}</a>` : "off"}</dd></div>
      <div><dt>Time to live</dt><dd>${more.expiry?.AttributeName || "off"}</dd></div>
      <div><dt>Recovery to a moment</dt><dd>${more.unknownRecovery ? "not on this server" : more.recovery?.PointInTimeRecoveryStatus === "ENABLED" ? "on" : "off"}</dd></div>
      <div><dt>Deletion protection</dt><dd>${table.DeletionProtectionEnabled ? "on" : "off"}</dd></div>
      <div><dt>Class</dt><dd>${table.TableClassSummary?.TableClass === "STANDARD_INFREQUENT_ACCESS" ? "infrequent access" : "standard"}</dd></div>
      <div><dt>Created</dt><dd>${table.CreationDateTime ? new Date(table.CreationDateTime * 1000).toLocaleString() : "–"}</dd></div>
    </dl></section>
    <section class="card" aria-label="Indexes"><h2>Indexes</h2>
      ${indexes.length ? html`<div class="scroll" tabindex="0" role="region" aria-label="Indexes"><table><thead><tr><th scope="col">Name</th><th scope="col">Kind</th><th scope="col">Key</th><th scope="col">Projection</th><th scope="col" class="number">Items</th><th scope="col" class="number">Size</th><th scope="col">Status</th>${on && html`<th scope="col"><span class="hidden-label">Actions</span></th>`}</tr></thead><tbody>
        ${indexes.map((one) => html`<tr key=${one.IndexName}><td><a href=${link("explore", [name], { index: one.IndexName })}>${one.IndexName}</a></td><td>${one.kind}</td><td class="mono">${keys(one.KeySchema, table.AttributeDefinitions)}</td><td>${one.Projection.ProjectionType}${one.Projection.NonKeyAttributes ? `: ${one.Projection.NonKeyAttributes.join(", ")}` : ""}</td><td class="number">${count(one.ItemCount)}</td><td class="number">${size(one.IndexSizeBytes)}</td><td>${one.kind === "global" ? one.IndexStatus : ""}</td>${on && html`<td>${one.kind === "global" && html`<button class="small danger" onClick=${() => setAction({ dropIndex: one.IndexName })}>Delete<span class="hidden-label"> index ${one.IndexName}</span></button>`}</td>`}</tr>`)}
      </tbody></table></div>` : html`<p class="quiet">None. A global index can be added at any time.</p>`}
    </section>
    <${Call} operation="DescribeTable" request=${{ TableName: name }} />
    ${action === "change" && html`<${Change} table=${table} expiry=${more.expiry} onClose=${() => setAction(null)} onDone=${again} />`}
    ${action === "delete" && html`<${Confirm} title="Delete table" name=${name} verb="Delete table" operation="DeleteTable" request=${{ TableName: name }}
      onClose=${() => setAction(null)} onDone=${async () => { await call("DeleteTable", { TableName: name }); say(`Table ${name} was deleted.`); location.hash = link("tables"); }}>
      <p class="note">All ${count(table.ItemCount)} items of ${name} and its indexes go with it. This cannot be undone.</p><//>`}
    ${action?.dropIndex && html`<${Confirm} title="Delete index" name=${action.dropIndex} verb="Delete index" operation="UpdateTable" request=${dropIndex(name, action.dropIndex)}
      onClose=${() => setAction(null)} onDone=${async () => { await call("UpdateTable", dropIndex(name, action.dropIndex)); say(`Index ${action.dropIndex} is being deleted.`); again(); }}>
      <p>Queries on ${action.dropIndex} will fail. The items of ${name} stay.</p><//>`}`;
}

const dropIndex = (TableName, IndexName) => ({ TableName, GlobalSecondaryIndexUpdates: [{ Delete: { IndexName } }] });

function changes(table, expiry, form) {
  const TableName = table.TableName, calls = [];
  const billing = table.BillingModeSummary?.BillingMode || "PROVISIONED";
  const throughput = { ReadCapacityUnits: Number(form.rcu), WriteCapacityUnits: Number(form.wcu) };
  const before = table.ProvisionedThroughput || {};
  if (form.billing !== billing || (form.billing === "PROVISIONED" && (throughput.ReadCapacityUnits !== before.ReadCapacityUnits || throughput.WriteCapacityUnits !== before.WriteCapacityUnits))) {
    const update = { TableName, BillingMode: form.billing };
    if (form.billing === "PROVISIONED") {
      update.ProvisionedThroughput = throughput;
      if (billing !== "PROVISIONED" && table.GlobalSecondaryIndexes) update.GlobalSecondaryIndexUpdates = table.GlobalSecondaryIndexes.map((one) => ({ Update: { IndexName: one.IndexName, ProvisionedThroughput: throughput } }));
    }
    calls.push(["UpdateTable", update]);
  }
  const view = table.StreamSpecification?.StreamEnabled ? table.StreamSpecification.StreamViewType : "";
  if (form.stream !== view) {
    if (view) calls.push(["UpdateTable", { TableName, StreamSpecification: { StreamEnabled: false } }]);
    if (form.stream) calls.push(["UpdateTable", { TableName, StreamSpecification: { StreamEnabled: true, StreamViewType: form.stream } }]);
  }
  if (form.protect !== Boolean(table.DeletionProtectionEnabled)) calls.push(["UpdateTable", { TableName, DeletionProtectionEnabled: form.protect }]);
  const attribute = expiry?.AttributeName || "";
  if (form.expiry !== attribute) {
    if (attribute) calls.push(["UpdateTimeToLive", { TableName, TimeToLiveSpecification: { AttributeName: attribute, Enabled: false } }]);
    if (form.expiry) calls.push(["UpdateTimeToLive", { TableName, TimeToLiveSpecification: { AttributeName: form.expiry, Enabled: true } }]);
  }
  if (form.index.name) {
    const { name, hash, hashType, range, rangeType, projection, include } = form.index;
    const definitions = new Map(table.AttributeDefinitions.map((one) => [one.AttributeName, one.AttributeType]));
    definitions.set(hash, hashType);
    if (range) definitions.set(range, rangeType);
    calls.push(["UpdateTable", {
      TableName,
      AttributeDefinitions: [...definitions].map(([AttributeName, AttributeType]) => ({ AttributeName, AttributeType })),
      GlobalSecondaryIndexUpdates: [{ Create: {
        IndexName: name,
        KeySchema: [{ AttributeName: hash, KeyType: "HASH" }, ...(range ? [{ AttributeName: range, KeyType: "RANGE" }] : [])],
        Projection: { ProjectionType: projection, ...(projection === "INCLUDE" ? { NonKeyAttributes: include.split(",").map((text) => text.trim()).filter(Boolean) } : {}) },
        ...(form.billing === "PROVISIONED" ? { ProvisionedThroughput: throughput } : {}),
      } }],
    }]);
  }
  return calls;
}

function Change({ table, expiry, onClose, onDone }) {
  const [form, setForm] = useState({
    billing: table.BillingModeSummary?.BillingMode || "PROVISIONED",
    rcu: table.ProvisionedThroughput?.ReadCapacityUnits || 5, wcu: table.ProvisionedThroughput?.WriteCapacityUnits || 5,
    stream: table.StreamSpecification?.StreamEnabled ? table.StreamSpecification.StreamViewType : "",
    protect: Boolean(table.DeletionProtectionEnabled), expiry: expiry?.AttributeName || "", index: newIndex(),
  });
  const [error, setError] = useState(null);
  const [done, setDone] = useState(0);
  const set = (name) => (value) => setForm({ ...form, [name]: value });
  const setIndex = (name) => (value) => setForm({ ...form, index: { ...form.index, [name]: value } });
  const calls = changes(table, expiry, form);
  const apply = async (event) => {
    event.preventDefault();
    let at = done;
    try {
      for (; at < calls.length; at += 1) await call(...calls[at]);
      say(`Table ${table.TableName} was changed.`);
      onDone();
      onClose();
    } catch (failed) { setDone(at); setError(failed); onDone(); }
  };
  return html`<${Over} label="Change table" onClose=${onClose}>
    <h1>Change ${table.TableName}</h1>
    <form onSubmit=${apply} style=${{ marginTop: "14px" }}>
      <div class="row">
        <${Field} label="Capacity"><${Select} value=${form.billing} onChange=${set("billing")} options=${[["PAY_PER_REQUEST", "On demand"], ["PROVISIONED", "Provisioned"]]} data-focus /><//>
        ${form.billing === "PROVISIONED" && html`
          <${Field} label="Read units"><${Input} type="number" min="1" value=${form.rcu} onInput=${set("rcu")} /><//>
          <${Field} label="Write units"><${Input} type="number" min="1" value=${form.wcu} onInput=${set("wcu")} /><//>`}
      </div>
      <div class="row">
        <${Field} label="Stream"><${Select} value=${form.stream} onChange=${set("stream")} options=${[["", "Off"], ...VIEWS]} name="stream" /><//>
        <${Field} label="Time to live attribute (empty: off)"><${Input} value=${form.expiry} onInput=${set("expiry")} name="expiry" /><//>
      </div>
      <p><label class="tick"><input type="checkbox" checked=${form.protect} onChange=${(event) => set("protect")(event.target.checked)} />Deletion protection</label></p>
      <fieldset class="card"><legend>New global index</legend><div class="row">
        <${Field} label="Name"><${Input} value=${form.index.name} onInput=${setIndex("name")} name="index" /><//>
        <${Field} label="Partition key"><${Input} value=${form.index.hash} onInput=${setIndex("hash")} name="indexHash" required=${Boolean(form.index.name)} /><//>
        <${Field} label="Its type"><${Select} value=${form.index.hashType} onChange=${setIndex("hashType")} options=${KEY_TYPES} /><//>
        <${Field} label="Sort key"><${Input} value=${form.index.range} onInput=${setIndex("range")} /><//>
        <${Field} label="Its type"><${Select} value=${form.index.rangeType} onChange=${setIndex("rangeType")} options=${KEY_TYPES} /><//>
        <${Field} label="Projection"><${Select} value=${form.index.projection} onChange=${setIndex("projection")} options=${PROJECTIONS} /><//>
      </div></fieldset>
      ${calls.map(([operation, request]) => html`<${Call} operation=${operation} request=${request} open />`)}
      ${!calls.length && html`<p class="quiet">Nothing is changed yet.</p>`}
      <${Problem} error=${error} />
      <div class="bar"><button class="primary" disabled=${!calls.length}>Apply</button><button type="button" onClick=${onClose}>Cancel</button></div>
    </form>
  <//>`;
}
