// Time: backups and recovery; a table as it was at a moment, compared with now, and put back.

import { Call, Confirm, Field, Input, Over, Problem, Select, TableHead, count, html, items as counted, keepAddress, link, say, size, units, useEffect, useRef, useState } from "../parts.js";
import { allTables, call, isUnknown, session } from "../api.js";
import { compare } from "../compare.js";
import { additionOf, keyOf, shown, side, updateOf } from "../values.js";

const SHOWN_MAX = 200;
const when = (seconds) => (seconds ? new Date(seconds * 1000).toLocaleString() : "–");
const local = (date) => new Date(date.getTime() - date.getTimezoneOffset() * 60000).toISOString().slice(0, 19);

export default function Time({ parts, query }) {
  return parts[0] ? html`<${OneTable} key=${parts[0]} name=${parts[0]} query=${query} />` : html`<${All} />`;
}

const Missing = () => html`<div class="card empty"><h2>No backups on this endpoint</h2><p>It does not know CreateBackup and the operations of point-in-time recovery.</p></div>`;

function All() {
  const [tables, setTables] = useState([]);
  const [error, setError] = useState(null);
  const [name, setName] = useState("");
  useEffect(() => { allTables().then((found) => { setTables(found); setName(found[0] || ""); }, setError); }, []);
  return html`<div class="head"><h1>Time</h1></div><${Problem} error=${error} />
    <div class="card"><form class="bar" onSubmit=${(event) => { event.preventDefault(); location.hash = link("time", [name]); }}><${Field} label="Table"><${Select} value=${name} onChange=${setName} options=${tables} /><//><button class="primary" disabled=${!name} style=${{ alignSelf: "end" }}>Show its past</button></form></div>
    <${Backups} />`;
}

async function allBackups(request) {
  const found = [];
  let start;
  do {
    const page = await call("ListBackups", start ? { ...request, ExclusiveStartBackupArn: start } : request);
    found.push(...page.BackupSummaries);
    start = page.LastEvaluatedBackupArn;
  } while (start);
  return found;
}

function Backups({ table }) {
  const [backups, setBackups] = useState(null);
  const [error, setError] = useState(null);
  const [over, setOver] = useState(null);
  const [round, setRound] = useState(0);
  const again = () => setRound((n) => n + 1);
  useEffect(() => {
    let gone = false;
    allBackups(table ? { TableName: table } : {}).then((found) => {
      if (gone) return;
      setBackups(found);
      setError(null);
      if (found.some((one) => one.BackupStatus === "CREATING")) setTimeout(() => !gone && again(), 1000);
    }, (failed) => !gone && setError(failed));
    return () => { gone = true; };
  }, [table, round]);
  if (isUnknown(error)) return html`<${Missing} />`;
  const on = session.Mode === "on";
  return html`<section class="card" aria-label="Backups"><div class="bar"><h2>Backups</h2><span class="spacer"></span>${on && table && html`<button class="small" onClick=${() => setOver({ create: true })}>Create backup</button>`}</div><${Problem} error=${error} />
    ${backups && (backups.length ? html`<div class="scroll" tabindex="0" role="region" aria-label="Backups"><table id="backups"><thead><tr><th scope="col">Backup</th><th scope="col">Table</th><th scope="col">Made</th><th scope="col" class="number">Size</th><th scope="col">Status</th>${on && html`<th scope="col"><span class="hidden-label">Actions</span></th>`}</tr></thead><tbody>
      ${backups.map((one) => html`<tr key=${one.BackupArn}><td>${one.BackupName}</td><td><a href=${link("time", [one.TableName])}>${one.TableName}</a></td><td>${when(one.BackupCreationDateTime)}</td><td class="number">${size(one.BackupSizeBytes)}</td><td>${one.BackupStatus}</td>
        ${on && html`<td><div class="bar close"><button class="small" onClick=${() => setOver({ restore: one })} aria-label=${`Restore ${one.BackupName}`}>Restore</button><button class="small danger" onClick=${() => setOver({ remove: one })} aria-label=${`Delete ${one.BackupName}`}>Delete</button></div></td>`}</tr>`)}</tbody></table></div>` : html`<p class="quiet">None yet.</p>`)}
    ${over?.create && html`<${Ask} title=${`Back up ${table}`} label="Name of the backup" given=${`${table}-${local(new Date()).replace(/[^0-9]/g, "")}`} operation="CreateBackup" request=${(BackupName) => ({ TableName: table, BackupName })} done=${(name) => `Backup ${name} is being made.`} verb="Create backup" onClose=${() => setOver(null)} onDone=${again} />`}
    ${over?.restore && html`<${Ask} title=${`Restore ${over.restore.BackupName}`} label="Name of the new table" given=${`${over.restore.TableName}-restored`} operation="RestoreTableFromBackup" request=${(TargetTableName) => ({ BackupArn: over.restore.BackupArn, TargetTableName })} done=${(name) => `${name} is being restored.`} verb="Restore" onClose=${() => setOver(null)} onDone=${again} />`}
    ${over?.remove && html`<${Confirm} title="Delete backup" name=${over.remove.BackupName} verb="Delete backup" operation="DeleteBackup" request=${{ BackupArn: over.remove.BackupArn }} onClose=${() => setOver(null)}
      onDone=${async () => { await call("DeleteBackup", { BackupArn: over.remove.BackupArn }); say(`${over.remove.BackupName} was deleted.`); again(); }}><p class="note">What only this backup has is lost.</p><//>`}</section>`;
}

function Ask({ title, label, given, operation, request, done, verb, onClose, onDone }) {
  const [name, setName] = useState(given);
  const [error, setError] = useState(null);
  const act = async (event) => { event.preventDefault(); try { await call(operation, request(name)); say(done(name)); onDone(); onClose(); } catch (failed) { setError(failed); } };
  return html`<${Over} label=${title} onClose=${onClose}><h1>${title}</h1><form onSubmit=${act}><${Field} label=${label}><${Input} value=${name} onInput=${setName} required data-focus /><//><${Call} operation=${operation} request=${request(name)} open /><${Problem} error=${error} /><div class="bar"><button class="primary">${verb}</button><button type="button" onClick=${onClose}>Cancel</button></div></form><//>`;
}

function OneTable({ name, query }) {
  const [recovery, setRecovery] = useState(null);
  const [error, setError] = useState(null);
  const [round, setRound] = useState(0);
  const isOn = recovery?.PointInTimeRecoveryStatus === "ENABLED", isReady = Boolean(recovery?.LatestRestorableDateTime);
  useEffect(() => {
    let timer;
    call("DescribeContinuousBackups", { TableName: name }).then(({ ContinuousBackupsDescription: found }) => { setRecovery(found.PointInTimeRecoveryDescription || {}); setError(null); }, setError);
    // The first copy of a large table takes a while.
    if (isOn && !isReady) timer = setTimeout(() => setRound(round + 1), 1000);
    return () => clearTimeout(timer);
  }, [name, round, isOn, isReady]);
  const request = { TableName: name, PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: !isOn } };
  const flip = async () => { try { await call("UpdateContinuousBackups", request); say(`Recovery is ${isOn ? "off" : "on"}.`); setRound(round + 1); } catch (failed) { setError(failed); } };
  return html`<${TableHead} name=${name} at="time" />
    ${isUnknown(error) ? html`<${Missing} />` : html`<${Problem} error=${error} />
    ${recovery && html`<section class="card" aria-label="Recovery"><div class="bar"><h2>Recovery to a moment</h2><span class=${`badge ${isOn ? "good" : "warn"}`} id="recovery">${isOn ? "on" : "off"}</span><span class="spacer"></span>${session.Mode === "on" && html`<button class="small" onClick=${flip}>${isOn ? "Switch off" : "Switch on"}</button>`}</div>
      ${isOn ? html`<p class="quiet">${isReady ? `From ${when(recovery.EarliestRestorableDateTime)} to ${when(recovery.LatestRestorableDateTime)}.` : "The first copy of the table is being made."}</p>${session.Mode === "on" && isReady && html`<${AsItWas} name=${name} recovery=${recovery} query=${query} />`}` : html`<p class="quiet">Switched on, it lets you go back to any second from then on.</p>`}
      ${session.Mode === "on" && html`<${Call} operation="UpdateContinuousBackups" request=${request} />`}</section>
      <${Backups} table=${name} />`}`}`;
}

// A copy of the table as it was is made; what differs from now can be put back item by item.
function AsItWas({ name, recovery, query }) {
  const [moment, setMoment] = useState(() => query.get("at") || local(new Date((recovery.LatestRestorableDateTime || Date.now() / 1000) * 1000)));
  const [copy, setCopy] = useState(`${name}-as-it-was`);
  const [only, setOnly] = useState(query.get("only") || "");
  const [step, setStep] = useState(null);
  const [found, setFound] = useState(null);
  const [error, setError] = useState(null);
  const [removing, setRemoving] = useState(false);
  const control = useRef(null);
  const request = { SourceTableName: name, TargetTableName: copy, RestoreDateTime: Math.floor(new Date(moment).getTime() / 1000) };
  const act = async (event) => {
    event.preventDefault();
    const signal = (control.current = new AbortController()).signal;
    setError(null);
    setFound(null);
    try {
      setStep(`Restoring ${copy}`);
      await call("RestoreTableToPointInTime", request, signal);
      for (;;) {
        const { Table } = await call("DescribeTable", { TableName: copy }, signal);
        if (Table.TableStatus === "ACTIVE") break;
        await new Promise((next) => setTimeout(next, 500));
      }
      await compareNow(signal);
    } catch (failed) { if (failed.name !== "AbortError") setError(failed); setStep(null); }
  };
  const compareNow = async (signal) => {
    const { Table } = await call("DescribeTable", { TableName: name }, signal);
    const told = (number) => setStep(`Comparing: ${counted(number)} of about ${count(Table.ItemCount)}`);
    setFound({ ...(await compare(copy, name, Table, only.trim(), told, signal)), schema: Table.KeySchema });
    setStep(null);
  };
  const again = async () => {
    setError(null);
    setStep("Comparing");
    try { await compareNow((control.current = new AbortController()).signal); } catch (failed) { if (failed.name !== "AbortError") setError(failed); setStep(null); }
  };
  const putBack = async (one) => {
    try {
      const answer = one.is ? await call("UpdateItem", updateOf(name, found.schema, one.is, one.was)) : await call("PutItem", additionOf(name, found.schema, one.was));
      say(`The item is as it was. ${units(answer.ConsumedCapacity?.CapacityUnits, "W")}`);
      setFound({ ...found, count: found.count - 1, differences: found.differences.filter((each) => each !== one) });
    } catch (failed) { setError(failed.code === "ConditionalCheckFailedException" ? new Error("Somebody has changed this item since: compare again.") : failed); }
  };
  return html`<form onSubmit=${act}><div class="row"><${Field} label="As it was at"><${Input} type="datetime-local" step="1" value=${moment} onInput=${(at) => { setMoment(at); keepAddress("time", [name], { at, only }); }} min=${recovery.EarliestRestorableDateTime ? local(new Date(Math.ceil(recovery.EarliestRestorableDateTime) * 1000)) : undefined} required /><//><${Field} label="In a table of its own"><${Input} value=${copy} onInput=${setCopy} required /><//><${Field} label="Only this partition key (empty: all)"><${Input} value=${only} onInput=${(text) => { setOnly(text); keepAddress("time", [name], { at: moment, only: text }); }} /><//></div>
      <div class="bar"><button class="primary" disabled=${Boolean(step)}>Restore and compare with now</button>${step && html`<button type="button" onClick=${() => control.current?.abort()}>Cancel</button><span role="status">${step}</span>`}</div>
      <${Call} operation="RestoreTableToPointInTime" request=${request} /></form><${Problem} error=${error} />
    ${found && html`<div id="differences"><p class="bar"><strong>${found.count ? `${count(found.count)} ${found.count === 1 ? "item differs" : "items differ"}` : "Nothing differs"}</strong>${found.isPart && html` <span class="quiet">in the part that was compared: the tables differ too much, or are read in different orders</span>`}<button type="button" class="small" onClick=${again}>Compare again</button><a href=${link("explore", [copy])}>Explore ${copy}</a> <button type="button" class="small danger" onClick=${() => setRemoving(true)}>Delete ${copy}</button></p>
      ${found.count > SHOWN_MAX && html`<p class="quiet">The first ${SHOWN_MAX} are shown.</p>`}
      ${found.differences.slice(0, SHOWN_MAX).map((one) => html`<article class="card" key=${one.key} aria-label="Difference"><div class="bar"><span class=${`badge ${one.is ? (one.was ? "" : "good") : "warn"}`}>${!one.is ? "deleted since" : !one.was ? "added since" : "changed since"}</span><strong class="mono">${Object.values(keyOf(one.was || one.is, found.schema)).map((value) => shown(value, 60)).join(" · ")}</strong><span class="spacer"></span>${one.was && html`<button type="button" class="small" onClick=${() => putBack(one)}>Put back</button>`}</div>
        ${one.was && one.is && html`<div class="scroll change"><table class="grid"><thead><tr><th scope="col">Attribute</th><th scope="col">Then</th><th scope="col">Now</th></tr></thead><tbody>${one.names.map((each) => html`<tr key=${each}><td>${each}</td><td class="was">${side(one.was, each)}</td><td class="is">${side(one.is, each)}</td></tr>`)}</tbody></table></div>`}</article>`)}</div>`}
    ${removing && html`<${Confirm} title="Delete table" name=${copy} verb="Delete table" operation="DeleteTable" request=${{ TableName: copy }} onClose=${() => setRemoving(false)} onDone=${async () => { await call("DeleteTable", { TableName: copy }); say(`Table ${copy} was deleted.`); setFound(null); }} />`}`;
}
