// Changes of a table's settings: each is shown as its API call, and they are made in sequence.

import { Call, Field, Input, Over, Problem, Select, html, say, useEffect, useRef, useState } from "../shared/parts.js";
import { call } from "../shared/api.js";
import { Billing, CapacityFields, IndexFields, SettingsFields, capacityOf, classOf, definitionsOf, indexOf, maximums, newIndex, provisioned, sseOf, streamOf, tagText, tagsOf, typesOf, warmth } from "./options.js";

const POLL_MS = 500;
const LIFTED = -1;

const billingOf = (table) => table.BillingModeSummary?.BillingMode || "PROVISIONED";
const viewOf = (table) => (table.StreamSpecification?.StreamEnabled ? table.StreamSpecification.StreamViewType : "");
const isEqual = (one, other) => JSON.stringify(one) === JSON.stringify(other);

// Settings that DescribeTable does not return; undefined if the endpoint does not support them.
export async function described(TableName, ResourceArn) {
  const [expiry, recovery, tags, policy] = await Promise.allSettled([
    call("DescribeTimeToLive", { TableName }), call("DescribeContinuousBackups", { TableName }),
    call("ListTagsOfResource", { ResourceArn }), call("GetResourcePolicy", { ResourceArn }),
  ]);
  return {
    expiry: expiry.value?.TimeToLiveDescription?.AttributeName || "",
    recovery: recovery.value?.ContinuousBackupsDescription?.PointInTimeRecoveryDescription,
    tags: tags.value?.Tags, policy: policy.value?.Policy || "",
  };
}

const formOf = (table, more) => ({
  billing: billingOf(table), ...capacityOf(table),
  stream: viewOf(table), protect: Boolean(table.DeletionProtectionEnabled), infrequent: table.TableClassSummary?.TableClass === "STANDARD_INFREQUENT_ACCESS",
  encryption: table.SSEDescription?.SSEType === "KMS" && table.SSEDescription.Status !== "DISABLED" ? "KMS" : "", key: table.SSEDescription?.KMSMasterKeyArn || "",
  tags: tagText(more.tags || []), policy: more.policy, expiry: more.expiry, recovers: more.recovery?.PointInTimeRecoveryStatus === "ENABLED", days: String(more.recovery?.RecoveryPeriodInDays || ""),
  index: newIndex(),
});

// A limit that was removed from the form is lifted with -1.
function limits(before, form) {
  const newLimits = maximums(form), oldLimits = maximums(before);
  return Object.fromEntries(["MaxReadRequestUnits", "MaxWriteRequestUnits"].filter((name) => newLimits[name] !== oldLimits[name]).map((name) => [name, newLimits[name] ?? LIFTED]));
}

// Changes of capacity, of a table or one of its global indexes.
function capacityChanges(billing, before, form) {
  const units = provisioned(form), lifted = limits(before, form), warm = warmth(form);
  return {
    ...(billing === "PROVISIONED" && !isEqual(units, provisioned(before)) ? { ProvisionedThroughput: units } : {}),
    ...(billing !== "PROVISIONED" && Object.keys(lifted).length ? { OnDemandThroughput: lifted } : {}),
    ...(Object.keys(warm).length ? { WarmThroughput: warm } : {}),
  };
}

function billingCalls(table, before, form) {
  const TableName = table.TableName, changed = capacityChanges(form.billing, before, form), calls = [];
  const { WarmThroughput, ...units } = changed;
  if (form.billing !== before.billing) {
    const indexes = form.billing === "PROVISIONED" && table.GlobalSecondaryIndexes ? { GlobalSecondaryIndexUpdates: table.GlobalSecondaryIndexes.map((one) => ({ Update: { IndexName: one.IndexName, ProvisionedThroughput: provisioned(form) } })) } : {};
    calls.push({ TableName, BillingMode: form.billing, ...(form.billing === "PROVISIONED" ? { ProvisionedThroughput: provisioned(form), ...indexes } : units) });
  } else if (Object.keys(units).length) calls.push({ TableName, ...units });
  if (WarmThroughput) calls.push({ TableName, WarmThroughput });
  return calls;
}

function newIndexCall(table, form) {
  const definitions = new Map([...table.AttributeDefinitions.map((one) => [one.AttributeName, one.AttributeType]), ...typesOf(form.index)]);
  return { TableName: table.TableName, AttributeDefinitions: definitionsOf(definitions), GlobalSecondaryIndexUpdates: [{ Create: indexOf(form.index, form.billing) }] };
}

function tagCalls(ResourceArn, before, form) {
  const had = new Map(tagsOf(before.tags).map((one) => [one.Key, one.Value])), wanted = tagsOf(form.tags);
  const set = wanted.filter((one) => had.get(one.Key) !== one.Value), names = new Set(wanted.map((one) => one.Key));
  const gone = [...had.keys()].filter((name) => !names.has(name));
  return [...(gone.length ? [["UntagResource", { ResourceArn, TagKeys: gone }]] : []), ...(set.length ? [["TagResource", { ResourceArn, Tags: set }]] : [])];
}

const recoveryOf = ({ recovers, days }) => ({ PointInTimeRecoveryEnabled: recovers, ...(recovers && days ? { RecoveryPeriodInDays: Number(days) } : {}) });

function changes(table, before, form) {
  const TableName = table.TableName, update = (members) => ["UpdateTable", { TableName, ...members }], expire = (AttributeName, Enabled) => ["UpdateTimeToLive", { TableName, TimeToLiveSpecification: { AttributeName, Enabled } }];
  const differs = (...names) => names.some((name) => form[name] !== before[name]);
  return [
    ...billingCalls(table, before, form).map((request) => ["UpdateTable", request]),
    ...(differs("stream") && before.stream ? [update({ StreamSpecification: streamOf("") })] : []),
    ...(differs("stream") && form.stream ? [update({ StreamSpecification: streamOf(form.stream) })] : []),
    ...(differs("protect") ? [update({ DeletionProtectionEnabled: form.protect })] : []),
    ...(differs("infrequent") ? [update({ TableClass: classOf(form) })] : []),
    ...(differs("encryption", "key") ? [update({ SSESpecification: sseOf(form) })] : []),
    ...(differs("expiry") && before.expiry ? [expire(before.expiry, false)] : []),
    ...(differs("expiry") && form.expiry ? [expire(form.expiry, true)] : []),
    ...(differs("recovers") || (form.recovers && differs("days")) ? [["UpdateContinuousBackups", { TableName, PointInTimeRecoverySpecification: recoveryOf(form) }]] : []),
    ...(differs("policy") ? [form.policy.trim() ? ["PutResourcePolicy", { ResourceArn: table.TableArn, Policy: form.policy }] : ["DeleteResourcePolicy", { ResourceArn: table.TableArn }]] : []),
    ...tagCalls(table.TableArn, before, form),
    ...(form.index.name ? [["UpdateTable", newIndexCall(table, form)]] : []),
  ];
}

// A table that is being updated refuses other updates.
async function settled(TableName) {
  for (;;) {
    const { Table } = await call("DescribeTable", { TableName });
    if (Table.TableStatus === "ACTIVE") return;
    await new Promise((next) => setTimeout(next, POLL_MS));
  }
}

async function make(calls, onMade, signal) {
  for (const [at, [operation, request]] of calls.entries()) {
    if (signal.aborted) return;
    if (at && request.TableName) await settled(request.TableName);
    await call(operation, request);
    onMade(at + 1);
  }
}

function Changing({ title, calls, onClose, onDone, children }) {
  const [error, setError] = useState(null);
  const [made, setMade] = useState(0);
  const [sent, setSent] = useState(null);
  const [busy, setBusy] = useState(false);
  const control = useRef(new AbortController());
  useEffect(() => () => control.current.abort(), []);
  const apply = async (event) => {
    event.preventDefault();
    const { signal } = control.current;
    let done = 0;
    setBusy(true);
    // After a refusal, changes that were made before it are not repeated.
    const left = sent ? calls.filter((one) => !sent.slice(0, made).some((each) => isEqual(one, each))) : calls;
    setSent(left);
    setMade(0);
    setError(null);
    try {
      await make(left, (number) => { done = number; setMade(number); }, signal);
      say(signal.aborted ? `Cancelled: ${done} of ${left.length} changes were made.` : `${title} was changed.`);
      onDone();
      if (!signal.aborted) onClose();
    } catch (failed) { setError(failed); setBusy(false); onDone(); }
  };
  return html`<${Over} label="Change table" onClose=${onClose}><h1>Change ${title[0].toLowerCase()}${title.slice(1)}</h1>
    <form onSubmit=${apply} style=${{ marginTop: "14px" }}>${children}
      ${calls.map(([operation, request], at) => html`<${Call} key=${at} operation=${operation} request=${request} open />`)}
      ${!calls.length && html`<p class="quiet">Nothing is changed yet.</p>`}
      ${sent && html`<p role="status">${made} of ${sent.length} applied</p>`}<${Problem} error=${error} />
      <div class="bar"><button class="primary" disabled=${!calls.length || busy}>Apply</button><button type="button" onClick=${onClose}>Cancel</button></div>
    </form><//>`;
}

export function Change({ table, more, onClose, onDone }) {
  const [before] = useState(() => formOf(table, more));
  const [form, setForm] = useState(before);
  const set = (name) => (value) => setForm({ ...form, [name]: value });
  const setIndex = (name) => (value) => setForm({ ...form, index: { ...form.index, [name]: value } });
  return html`<${Changing} title=${`Table ${table.TableName}`} calls=${changes(table, before, form)} onClose=${onClose} onDone=${onDone}>
    <${CapacityFields} billing=${form.billing} form=${form} set=${set} unset="unchanged"><${Billing} value=${form.billing} onChange=${set("billing")} data-focus /><//>
    <div class="row"><${Field} label="Time to live attribute (empty: off)"><${Input} value=${form.expiry} onInput=${set("expiry")} name="expiry" /><//>
      ${more.recovery && html`<${Field} label="Point-in-time recovery"><${Select} value=${form.recovers ? "on" : ""} onChange=${(value) => set("recovers")(value === "on")} options=${[["", "Off"], ["on", "On"]]} /><//>${form.recovers && html`<${Field} label="Days to go back"><${Input} type="number" min="1" max="35" placeholder="35" value=${form.days} onInput=${set("days")} /><//>`}`}</div>
    <${SettingsFields} form=${form} set=${set} />
    <fieldset class="card"><legend>New global index</legend><${IndexFields} index=${form.index} billing=${form.billing} set=${setIndex} isRequired=${Boolean(form.index.name)} /></fieldset><//>`;
}

export function ChangeIndex({ table, index, onClose, onDone }) {
  const [before] = useState(() => capacityOf(index));
  const [form, setForm] = useState(before);
  const set = (name) => (value) => setForm({ ...form, [name]: value });
  const { WarmThroughput, ...units } = capacityChanges(billingOf(table), before, form);
  const update = (members) => ["UpdateTable", { TableName: table.TableName, GlobalSecondaryIndexUpdates: [{ Update: { IndexName: index.IndexName, ...members } }] }];
  const calls = [...(Object.keys(units).length ? [update(units)] : []), ...(WarmThroughput ? [update({ WarmThroughput })] : [])];
  return html`<${Changing} title=${`Index ${index.IndexName}`} calls=${calls} onClose=${onClose} onDone=${onDone}>
    <${CapacityFields} billing=${billingOf(table)} form=${form} set=${set} unset="unchanged" /><//>`;
}
