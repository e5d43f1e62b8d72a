// A new table.

import { Call, Field, Input, Over, Problem, Select, html, say, useState } from "../shared/parts.js";
import { call } from "../shared/api.js";
import { Billing, CapacityFields, IndexFields, KEY_TYPES, SettingsFields, capacityMembers, classOf, definitionsOf, indexOf, newCapacity, newIndex, newSettings, schemaOf, sseOf, streamOf, tagsOf, typesOf } from "./options.js";

function creation(form) {
  const of = (kind) => form.indexes.filter((one) => one.kind === kind).map((one) => indexOf(one, form.billing, form.hash));
  const types = new Map([...typesOf(form), ...form.indexes.flatMap((one) => typesOf(one, one.kind === "local"))]);
  const global = of("global"), local = of("local"), tags = tagsOf(form.tags);
  return {
    TableName: form.name,
    KeySchema: schemaOf(form.hash, form.range),
    ...(global.length ? { GlobalSecondaryIndexes: global } : {}),
    ...(local.length ? { LocalSecondaryIndexes: local } : {}),
    AttributeDefinitions: definitionsOf(types),
    BillingMode: form.billing,
    ...capacityMembers(form.billing, form),
    ...(form.stream ? { StreamSpecification: streamOf(form.stream) } : {}),
    ...(form.protect ? { DeletionProtectionEnabled: true } : {}),
    ...(form.infrequent ? { TableClass: classOf(form) } : {}),
    ...(form.encryption ? { SSESpecification: sseOf(form) } : {}),
    ...(tags.length ? { Tags: tags } : {}),
    ...(form.policy.trim() ? { ResourcePolicy: form.policy } : {}),
  };
}

export function Create({ onClose, onDone }) {
  const [form, setForm] = useState({ name: "", hash: "pk", hashType: "S", range: "", rangeType: "S", billing: "PAY_PER_REQUEST", ...newCapacity(), ...newSettings(), indexes: [] });
  const [error, setError] = useState(null);
  const set = (name) => (value) => setForm({ ...form, [name]: value });
  const setIndex = (at) => (name) => (value) => setForm({ ...form, indexes: form.indexes.map((one, n) => (n === at ? { ...one, [name]: value } : one)) });
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
      <${CapacityFields} billing=${form.billing} form=${form} set=${set}><${Billing} value=${form.billing} onChange=${set("billing")} /><//>
      <${SettingsFields} form=${form} set=${set} />
      ${form.indexes.map((one, at) => html`<fieldset class="card" key=${at}><legend>Index ${at + 1}</legend>
        <div class="row narrow"><${Field} label="Kind"><${Select} value=${one.kind} onChange=${setIndex(at)("kind")} options=${[["global", "Global"], ["local", "Local"]]} /><//></div>
        <${IndexFields} index=${one} billing=${form.billing} set=${setIndex(at)} />
        <button type="button" class="small" onClick=${() => setForm({ ...form, indexes: form.indexes.filter((_, n) => n !== at) })}>Remove index ${at + 1}</button>
      </fieldset>`)}
      <button type="button" class="small" onClick=${() => setForm({ ...form, indexes: [...form.indexes, newIndex()] })}>Add index</button>
      <${Call} operation="CreateTable" request=${request} />
      <${Problem} error=${error} />
      <div class="bar"><button class="primary">Create table</button><button type="button" onClick=${onClose}>Cancel</button></div>
    </form>
  <//>`;
}
