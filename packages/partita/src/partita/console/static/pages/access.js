// Access: users, keys and policies; who is allowed to do what, and why; and who did what.

import { Call, Confirm, Field, Input, Over, Problem, Select, copy, count, html, keepAddress, link, say, useEffect, useState } from "../shared/parts.js";
import { call as ask, session } from "../shared/api.js";

const call = (operation, request = {}) => ask(operation, request, undefined, "access");
const day = (seconds) => (seconds ? new Date(seconds * 1000).toISOString().slice(0, 10) : "");
const TABS = [["", "Users"], ["policies", "Policies"], ["why", "Who may what"], ["events", "Who did what"]];

export default function Access({ parts, query }) {
  const tab = parts[0] || "";
  const [found, setFound] = useState(null);
  const [error, setError] = useState(null);
  const [round, setRound] = useState(0);
  const again = () => setRound((n) => n + 1);
  useEffect(() => { if (tab !== "events") call("ListUsers").then((answer) => { setFound(answer); setError(null); }, setError); }, [round, tab === "events"]);
  return html`<div class="head"><h1>Access</h1></div>
    <nav class="tabs wrap" aria-label="Access">${TABS.map(([name, title]) => html`<a class="tab" href=${link("access", name ? [name] : [])} aria-current=${name === tab ? "page" : undefined}>${title}</a>`)}</nav>
    ${tab === "events" ? html`<${Events} given=${query.get("text") || ""} />` : html`<${Denied} error=${error} what="users and policies" right="partita:ListUsers" />
      ${found && tab === "" && html`<${Users} found=${found} again=${again} />`}
      ${found && tab === "policies" && html`<${Policies} found=${found} again=${again} />`}
      ${found && tab === "why" && html`<${Why} found=${found} />`}`}`;
}

function Denied({ error, what, right }) {
  if (error?.code === "AccessDeniedException") return html`<div class="card empty"><h2>No access</h2><p>To see ${what}, you need the right <code>${right}</code>.</p></div>`;
  return html`<${Problem} error=${error} />`;
}

function Users({ found, again }) {
  const [over, setOver] = useState(null);
  const [error, setError] = useState(null);
  const may = found.CanChange && session.Mode === "on";
  const act = async (operation, request, said) => {
    try { await call(operation, request); say(said); setError(null); again(); } catch (failed) { setError(failed); }
  };
  return html`<div class="bar" style=${{ marginBottom: "12px" }}><span class="quiet">${count(found.Users.length)} users, ${count(found.Groups.length)} groups, ${count(found.Roles.length)} roles</span><span class="spacer"></span>
      ${may && html`<button class="primary" onClick=${() => setOver({ add: true })}>Add user</button>`}</div>
    ${!found.CanChange && html`<p class="note">The users of this server are managed elsewhere and cannot be changed here.</p>`}
    <${Problem} error=${error} />
    <div class="scroll" tabindex="0" role="region" aria-label="Users"><table id="users"><thead><tr><th scope="col">User</th><th scope="col">Keys</th><th scope="col">Policies and groups</th>${may && html`<th scope="col"><span class="hidden-label">Actions</span></th>`}</tr></thead><tbody>
      ${found.Users.map((user) => html`<tr key=${user.UserName}><td><strong>${user.UserName}</strong> ${user.IsDisabled && html`<span class="badge warn">disabled</span>`}<div class="quiet">since ${day(user.CreatedAt)}</div></td>
        <td>${user.Keys.map((key) => html`<div key=${key.AccessKeyId}><code>${key.AccessKeyId}</code> <span class=${`badge ${key.Status === "Active" ? "good" : "warn"}`}>${key.Status}</span> ${may && user.UserName !== "root" && html`<button class="small plain" onClick=${() => act("UpdateAccessKey", { UserName: user.UserName, AccessKeyId: key.AccessKeyId, IsActive: key.Status !== "Active" }, `${key.AccessKeyId} is ${key.Status === "Active" ? "disabled" : "enabled"}.`)}>${key.Status === "Active" ? "Disable" : "Enable"}<span class="hidden-label"> ${key.AccessKeyId}</span></button>`}</div>`)}</td>
        <td>${user.Policies.map((name) => html`<div key=${name}><a href=${link("access", ["policies"])}>${name}</a></div>`)}${user.Groups.length > 0 && html`<div class="quiet">in ${user.Groups.join(", ")}</div>`}${user.Boundary && html`<div class="quiet">bounded by ${user.Boundary}</div>`}</td>
        ${may && html`<td>${user.UserName !== "root" && html`<div class="bar close"><button class="small" onClick=${() => setOver({ key: user.UserName })}>New key<span class="hidden-label"> for ${user.UserName}</span></button>
          <button class="small" onClick=${() => act("UpdateUser", { UserName: user.UserName, IsActive: user.IsDisabled }, `${user.UserName} is ${user.IsDisabled ? "enabled" : "disabled"}.`)}>${user.IsDisabled ? "Enable" : "Disable"}<span class="hidden-label"> ${user.UserName}</span></button>
          <button class="small danger" aria-label=${`Delete ${user.UserName}`} onClick=${() => setOver({ remove: user.UserName })}>Delete</button></div>`}</td>`}</tr>`)}
    </tbody></table></div>
    ${found.Groups.length + found.Roles.length > 0 && html`<section class="card" style=${{ marginTop: "16px" }} aria-label="Groups and roles"><h2>Groups and roles</h2><div class="scroll" tabindex="0" role="region" aria-label="Groups and roles"><table><thead><tr><th scope="col">Name</th><th scope="col">Kind</th><th scope="col">Policies</th></tr></thead><tbody>
      ${found.Groups.map((one) => html`<tr key=${one.GroupName}><td>${one.GroupName}</td><td>group</td><td>${one.Policies.join(", ")}</td></tr>`)}
      ${found.Roles.map((one) => html`<tr key=${one.RoleName}><td>${one.RoleName}</td><td>role</td><td>${one.Policies.join(", ")}</td></tr>`)}</tbody></table></div></section>`}
    ${over?.add && html`<${AddUser} found=${found} onClose=${() => setOver(null)} again=${again} />`}
    ${over?.key && html`<${NewKey} name=${over.key} onClose=${() => setOver(null)} again=${again} />`}
    ${over?.remove && html`<${Confirm} title="Delete user" name=${over.remove} verb="Delete user" operation="DeleteUser" request=${{ UserName: over.remove }} onClose=${() => setOver(null)}
      onDone=${async () => { await call("DeleteUser", { UserName: over.remove }); say(`${over.remove} was deleted.`); again(); }}><p class="note">All keys of ${over.remove} are deleted too. Requests signed with them are refused from now on.</p><//>`}`;
}

function AddUser({ found, onClose, again }) {
  const [name, setName] = useState("");
  const [policy, setPolicy] = useState("AmazonDynamoDBReadOnlyAccess");
  const [made, setMade] = useState(null);
  const [error, setError] = useState(null);
  const request = { UserName: name, ...(policy ? { Policies: [policy] } : {}) };
  const act = async (event) => {
    event.preventDefault();
    try { setMade(await call("CreateUser", request)); again(); } catch (failed) { setError(failed); }
  };
  return html`<${Over} label="Add user" onClose=${onClose}><h1>Add user</h1>
    ${made ? html`<${Secret} made=${made} onClose=${onClose} />` : html`<form onSubmit=${act}>
      <div class="row"><${Field} label="Name"><${Input} value=${name} onInput=${setName} required data-focus /><//>
        <${Field} label="Policy to attach"><${Select} value=${policy} onChange=${setPolicy} options=${[["", "nothing yet"], ...found.Policies.map((one) => one.PolicyName)]} /><//></div>
      <${Call} operation="CreateUser" request=${request} /><${Problem} error=${error} />
      <div class="bar"><button class="primary">Add user</button><button type="button" onClick=${onClose}>Cancel</button></div></form>`}<//>`;
}

function NewKey({ name, onClose, again }) {
  const [made, setMade] = useState(null);
  const [error, setError] = useState(null);
  const act = async () => { try { setMade(await call("CreateAccessKey", { UserName: name })); again(); } catch (failed) { setError(failed); } };
  return html`<${Over} label="New key" onClose=${onClose}><h1>New key for ${name}</h1>
    ${made ? html`<${Secret} made=${made} onClose=${onClose} />` : html`<p>The old key stays valid until it is disabled.</p><${Problem} error=${error} /><div class="bar"><button class="primary" onClick=${act} data-focus>Create key</button><button onClick=${onClose}>Cancel</button></div>`}<//>`;
}

function Secret({ made, onClose }) {
  const text = `AWS_ACCESS_KEY_ID=${made.AccessKeyId}\nAWS_SECRET_ACCESS_KEY=${made.SecretAccessKey}\n`;
  return html`<p class="note">The secret is shown only once.</p><pre class="code" tabindex="0" id="secret" aria-label="The new key">${text}</pre><div class="bar"><button class="primary" onClick=${() => copy(text)}>Copy</button><button onClick=${onClose}>Done</button></div>`;
}

const EMPTY = JSON.stringify({ Version: "2012-10-17", Statement: [{ Effect: "Allow", Action: ["dynamodb:GetItem", "dynamodb:Query"], Resource: "arn:aws:dynamodb:us-east-1:123456789012:table/Orders" }] }, null, 2);

function Policies({ found, again }) {
  const [over, setOver] = useState(null);
  const [error, setError] = useState(null);
  const may = found.CanChange && session.Mode === "on";
  const holders = [...found.Users.filter((one) => one.UserName !== "root").map((one) => `user/${one.UserName}`), ...found.Groups.map((one) => `group/${one.GroupName}`), ...found.Roles.map((one) => `role/${one.RoleName}`)];
  const act = async (operation, request, said) => {
    try { await call(operation, request); say(said); setError(null); again(); } catch (failed) { setError(failed); }
  };
  return html`<div class="bar" style=${{ marginBottom: "12px" }}><span class="spacer"></span>${may && html`<button class="primary" onClick=${() => setOver({ name: "", text: EMPTY })}>New policy</button>`}</div><${Problem} error=${error} />
    ${found.Policies.map((one) => html`<section class="card" key=${one.PolicyName} aria-label=${one.PolicyName}><div class="bar"><strong>${one.PolicyName}</strong>${one.IsManaged && html`<span class="badge">built in</span>`}
      ${one.Holders.map((holder) => html`<span class="badge good" key=${holder}>${holder}${may && html` <button class="chip" aria-label=${`Detach ${one.PolicyName} from ${holder}`} onClick=${() => act("DetachPolicy", { PolicyName: one.PolicyName, Holder: holder }, `${one.PolicyName} was detached from ${holder}.`)}>✕</button>`}</span>`)}<span class="spacer"></span>
      ${may && html`<${Select} class="narrow" value="" aria-label=${`Attach ${one.PolicyName} to`} options=${[["", "Attach to…"], ...holders.filter((holder) => !one.Holders.includes(holder))]} onChange=${(holder) => holder && act("AttachPolicy", { PolicyName: one.PolicyName, Holder: holder }, `${holder} has ${one.PolicyName}.`)} />`}
      ${may && !one.IsManaged && html`<button class="small" onClick=${() => setOver({ name: one.PolicyName, text: JSON.stringify(one.Document, null, 2) })}>Edit<span class="hidden-label"> ${one.PolicyName}</span></button><button class="small danger" onClick=${() => setOver({ remove: one.PolicyName })}>Delete<span class="hidden-label"> ${one.PolicyName}</span></button>`}</div>
      <details class="more"><summary>Document<span class="hidden-label"> of ${one.PolicyName}</span></summary><pre class="code" tabindex="0" aria-label=${`The policy ${one.PolicyName}`}>${JSON.stringify(one.Document, null, 2)}</pre></details></section>`)}
    ${over?.text !== undefined && html`<${EditPolicy} given=${over} onClose=${() => setOver(null)} again=${again} />`}
    ${over?.remove && html`<${Confirm} title="Delete policy" name=${over.remove} verb="Delete policy" operation="DeletePolicy" request=${{ PolicyName: over.remove }} onClose=${() => setOver(null)}
      onDone=${async () => { await call("DeletePolicy", { PolicyName: over.remove }); say(`${over.remove} was deleted.`); again(); }} />`}`;
}

function EditPolicy({ given, onClose, again }) {
  const [name, setName] = useState(given.name);
  const [text, setText] = useState(given.text);
  const [error, setError] = useState(null);
  const act = async (event) => {
    event.preventDefault();
    try { await call("PutPolicy", { PolicyName: name, Document: text }); say(`${name} is in effect now.`); again(); onClose(); } catch (failed) { setError(failed); }
  };
  return html`<${Over} label="Policy" onClose=${onClose}><h1>${given.name || "New policy"}</h1><form onSubmit=${act}>
    <${Field} label="Name"><${Input} value=${name} onInput=${setName} required disabled=${Boolean(given.name)} data-focus /><//>
    <label class="field stacked"><span>Policy document, as in IAM</span><textarea class="code" rows="16" spellcheck=${false} value=${text} onInput=${(event) => setText(event.target.value)}></textarea></label>
    <${Problem} error=${error} /><div class="bar"><button class="primary">Save policy</button><button type="button" onClick=${onClose}>Cancel</button></div></form><//>`;
}

function Why({ found }) {
  const who = [...found.Users.map((one) => one.UserName), ...found.Roles.map((one) => `role/${one.RoleName}`)];
  const [form, setForm] = useState({ UserName: who[0] || "", Action: "dynamodb:PutItem", Resource: "arn:aws:dynamodb:us-east-1:123456789012:table/Orders" });
  const [lines, setLines] = useState(null);
  const [error, setError] = useState(null);
  const set = (name) => (value) => setForm({ ...form, [name]: value });
  const act = async (event) => { event.preventDefault(); try { setLines((await call("ExplainDecision", form)).Lines); setError(null); } catch (failed) { setLines(null); setError(failed); } };
  return html`<form class="card" onSubmit=${act} aria-label="Decision"><div class="row">
      <${Field} label="Who"><${Select} value=${form.UserName} onChange=${set("UserName")} options=${who} /><//>
      <${Field} label="does"><${Input} value=${form.Action} onInput=${set("Action")} required /><//></div>
      <${Field} label="on"><${Input} value=${form.Resource} onInput=${set("Resource")} required /><//>
      <div class="bar" style=${{ marginTop: "12px" }}><button class="primary">Check</button></div><${Problem} error=${error} /></form>
    ${lines && html`<div class="card" role="status" id="decision"><strong>${lines[0]}</strong>${lines.slice(1).map((line, at) => html`<div key=${at} class=${line.startsWith("  ") ? "quiet" : ""}>${line}</div>`)}</div>`}`;
}

function Events({ given }) {
  const [page, setPage] = useState(null);
  const [text, setText] = useState(given);
  const [error, setError] = useState(null);
  const look = (before, shown = []) => call("ListEvents", { Text: text, ...(before ? { Before: before } : {}) }).then((answer) => { setPage({ ...answer, Events: [...shown, ...answer.Events] }); setError(null); }, setError);
  useEffect(() => { const timer = setTimeout(() => look(), 200); return () => clearTimeout(timer); }, [text]);
  return html`<${Denied} error=${error} what="the audit log" right="partita:ListEvents" />
    ${page && html`<div class="row narrow"><${Field} label="Search for a user, a table or an operation"><${Input} value=${text} onInput=${(value) => { setText(value); keepAddress("access", ["events"], { text: value }); }} type="search" /><//></div>
      <div class="scroll" tabindex="0" role="region" aria-label="Events"><table id="events"><thead><tr><th scope="col">When</th><th scope="col">Who</th><th scope="col">What</th><th scope="col">On</th><th scope="col">From</th><th scope="col">Outcome</th></tr></thead><tbody>
        ${page.Events.map((one) => html`<tr key=${one.eventID}><td class="mono">${one.eventTime.replace("T", " ").replace("Z", "")}</td><td title=${one.userIdentity.arn || ""}>${one.userIdentity.userName || one.userIdentity.arn?.split(/[:/]/).pop() || "unknown"}</td><td>${one.eventName} <span class="quiet">${one.eventSource.split(".")[0]}</span></td><td class="mono">${Object.values(one.serviceEventDetails || one.requestParameters || {}).flat().join(", ").slice(0, 120)}</td><td class="mono">${one.sourceIPAddress}</td><td>${one.errorCode ? html`<span class="badge warn" title=${one.errorMessage || ""}>${one.errorCode}</span>` : html`<span class="badge good">done</span>`}</td></tr>`)}
      </tbody></table></div>
      ${!page.Events.length && html`<p class="empty">No event matches.</p>`}
      ${page.Before && html`<div class="bar" style=${{ marginTop: "10px" }}><button onClick=${() => look(page.Before, page.Events)}>Older</button></div>`}`}`;
}
