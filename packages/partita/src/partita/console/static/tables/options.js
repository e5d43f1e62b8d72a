// The settings of a table and its indexes: their form fields, and their members in requests.

import { Field, Input, Select, html } from "../shared/parts.js";

export const KEY_TYPES = [["S", "String"], ["N", "Number"], ["B", "Binary"]];
export const PROJECTIONS = [["ALL", "All attributes"], ["KEYS_ONLY", "Keys only"], ["INCLUDE", "Some attributes"]];
export const VIEWS = [["", "Off"], ["NEW_AND_OLD_IMAGES", "New and old images"], ["NEW_IMAGE", "New image"], ["OLD_IMAGE", "Old image"], ["KEYS_ONLY", "Keys only"]];
const BILLING = [["PAY_PER_REQUEST", "On demand"], ["PROVISIONED", "Provisioned"]];
const ENCRYPTION = [["", "DynamoDB's own key"], ["KMS", "A KMS key of this account"]];

export const listed = (text) => text.split(",").map((one) => one.trim()).filter(Boolean);
const both = (read, write, names) => ({ ...(read !== "" ? { [names[0]]: Number(read) } : {}), ...(write !== "" ? { [names[1]]: Number(write) } : {}) });
const some = (name, units) => (Object.keys(units).length ? { [name]: units } : {});

// Capacity: of a table or a global index

export const newCapacity = () => ({ rcu: 5, wcu: 5, maxRead: "", maxWrite: "", warmRead: "", warmWrite: "" });

export const capacityOf = (described) => ({
  rcu: described.ProvisionedThroughput?.ReadCapacityUnits || 5, wcu: described.ProvisionedThroughput?.WriteCapacityUnits || 5,
  maxRead: most(described.OnDemandThroughput?.MaxReadRequestUnits), maxWrite: most(described.OnDemandThroughput?.MaxWriteRequestUnits),
  warmRead: "", warmWrite: "",
});
const most = (units) => (units > 0 ? units : "");

export const provisioned = (form) => ({ ReadCapacityUnits: Number(form.rcu), WriteCapacityUnits: Number(form.wcu) });
export const maximums = (form) => both(form.maxRead, form.maxWrite, ["MaxReadRequestUnits", "MaxWriteRequestUnits"]);
export const warmth = (form) => both(form.warmRead, form.warmWrite, ["ReadUnitsPerSecond", "WriteUnitsPerSecond"]);

export const capacityMembers = (billing, form) => ({
  ...(billing === "PROVISIONED" ? { ProvisionedThroughput: provisioned(form) } : some("OnDemandThroughput", maximums(form))),
  ...some("WarmThroughput", warmth(form)),
});

export function CapacityFields({ billing, form, set, unset = "default", children }) {
  const units = (label, name, placeholder) => html`<${Field} label=${label}><${Input} type="number" min="1" value=${form[name]} placeholder=${placeholder} onInput=${set(name)} /><//>`;
  return html`<div class="row">${children}${billing === "PROVISIONED" ? html`${units("Read units", "rcu")}${units("Write units", "wcu")}` : html`${units("Maximum read units", "maxRead", "no limit")}${units("Maximum write units", "maxWrite", "no limit")}`}</div>
    <div class="row">${units("Warm read units", "warmRead", unset)}${units("Warm write units", "warmWrite", unset)}</div>`;
}

export const Billing = ({ value, onChange, ...more }) => html`<${Field} label="Capacity"><${Select} value=${value} onChange=${onChange} options=${BILLING} ...${more} /><//>`;

// Keys and indexes

export const newIndex = (kind = "global") => ({ kind, name: "", hash: "", hashType: "S", range: "", rangeType: "S", projection: "ALL", include: "", ...newCapacity() });

export const schemaOf = (hash, range) => [...listed(hash).map((AttributeName) => ({ AttributeName, KeyType: "HASH" })), ...listed(range).map((AttributeName) => ({ AttributeName, KeyType: "RANGE" }))];

export function indexOf(one, billing, tableHash) {
  return {
    IndexName: one.name,
    KeySchema: schemaOf(one.kind === "local" ? tableHash : one.hash, one.range),
    Projection: { ProjectionType: one.projection, ...(one.projection === "INCLUDE" ? { NonKeyAttributes: listed(one.include) } : {}) },
    ...(one.kind === "global" ? capacityMembers(billing, one) : {}),
  };
}

// Returns the types of the keys by name; all attributes of a multi-attribute key share a type here.
export const typesOf = (one, isLocal) => [...(isLocal ? [] : listed(one.hash).map((name) => [name, one.hashType])), ...listed(one.range).map((name) => [name, one.rangeType])];
export const definitionsOf = (types) => [...types].map(([AttributeName, AttributeType]) => ({ AttributeName, AttributeType }));

export function IndexFields({ index, billing, set, isRequired = true }) {
  const isGlobal = index.kind === "global";
  return html`<div class="row">
      <${Field} label="Name"><${Input} value=${index.name} onInput=${set("name")} required=${isRequired} name="index" /><//>
      ${isGlobal && html`<${Field} label="Partition key"><${Input} value=${index.hash} onInput=${set("hash")} required=${isRequired} name="indexHash" /><//><${Field} label="Its type"><${Select} value=${index.hashType} onChange=${set("hashType")} options=${KEY_TYPES} /><//>`}
      <${Field} label="Sort key"><${Input} value=${index.range} onInput=${set("range")} required=${!isGlobal} /><//>
      <${Field} label="Its type"><${Select} value=${index.rangeType} onChange=${set("rangeType")} options=${KEY_TYPES} /><//>
      <${Field} label="Projection"><${Select} value=${index.projection} onChange=${set("projection")} options=${PROJECTIONS} /><//>
      ${index.projection === "INCLUDE" && html`<${Field} label="Attributes, with commas"><${Input} value=${index.include} onInput=${set("include")} required /><//>`}
    </div>
    ${isGlobal && html`<${CapacityFields} billing=${billing} form=${index} set=${set} />`}`;
}

// The rest: stream, class, protection, encryption, tags, policy

export const newSettings = () => ({ stream: "", protect: false, infrequent: false, encryption: "", key: "", tags: "", policy: "" });

export const sseOf = (form) => (form.encryption === "KMS" ? { Enabled: true, SSEType: "KMS", ...(form.key ? { KMSMasterKeyId: form.key } : {}) } : { Enabled: false });
export const streamOf = (view) => (view ? { StreamEnabled: true, StreamViewType: view } : { StreamEnabled: false });
export const classOf = (form) => (form.infrequent ? "STANDARD_INFREQUENT_ACCESS" : "STANDARD");
export const tagsOf = (text) => text.split("\n").filter((line) => line.trim()).map((line) => { const [Key, ...Value] = line.split("="); return { Key: Key.trim(), Value: Value.join("=").trim() }; });
export const tagText = (tags) => tags.map((one) => `${one.Key}=${one.Value}`).join("\n");

export function SettingsFields({ form, set }) {
  const tick = (name) => (event) => set(name)(event.target.checked);
  return html`<div class="row"><${Field} label="Stream"><${Select} value=${form.stream} onChange=${set("stream")} options=${VIEWS} name="stream" /><//>
      <${Field} label="Encryption"><${Select} value=${form.encryption} onChange=${set("encryption")} options=${ENCRYPTION} /><//>
      ${form.encryption === "KMS" && html`<${Field} label="KMS key (empty: the default key)"><${Input} value=${form.key} onInput=${set("key")} placeholder="arn:aws:kms:…" /><//>`}</div>
    <div class="bar ticks"><label class="tick"><input type="checkbox" checked=${form.protect} onChange=${tick("protect")} />Deletion protection</label>
      <label class="tick"><input type="checkbox" checked=${form.infrequent} onChange=${tick("infrequent")} />Infrequent access class</label></div>
    <details class="more"><summary>Tags and policy</summary>
      <label class="field stacked"><span>Tags, one name=value per line</span><textarea class="code" rows="3" spellcheck=${false} value=${form.tags} onInput=${(event) => set("tags")(event.target.value)}></textarea></label>
      <label class="field stacked"><span>Resource policy, in JSON</span><textarea class="code" rows="5" spellcheck=${false} value=${form.policy} onInput=${(event) => set("policy")(event.target.value)}></textarea></label></details>`;
}
