// Time: backups and point-in-time recovery; a table of the past is compared with the current one,
// and items can be put back.

import { Call, Confirm, Field, Input, Over, Problem, Select, TableHead, count, html, items as counted, keepAddress, link, say, size, units, useEffect, useRef, useState } from "../shared/parts.js";
import { allTables, call, isUnknown, session } from "../shared/api.js";
import { compare } from "../page_parts/compare.js";
import { Differences } from "../shared/differences.js";
import { additionOf, keyOf, shown, updateOf } from "../shared/values.js";
import { Progress, deleteWhenRestored, isCancelled, untilActive } from "../shared/work.js";

const SHOWN_MAX = 200;
const when = (seconds) => (seconds ? new Date(seconds * 1000).toLocaleString() : "–");
const local = (date) => new Date(date.getTime() - date.getTimezoneOffset() * 60000).toISOString().slice(0, 19);

export default function Time({ parts, query }) {
  return parts[0] ? html`<${OneTable} key=${parts[0]} name=${parts[0]} query=${query} />` : html`<${All} />`;
}

const Missing = () => html`<div class="card empty"><h2>No backups on this endpoint</h2><p>It does not support CreateBackup and the operations of point-in-time recovery.</p></div>`;

function All() {
  const [tables, setTables] = useState([]);
  const [error, setError] = useState(null);
  const [name, setName] = useState("");
  useEffect(() => { allTables().then((found) => { setTables(found); setName(found[0] || ""); }, setError); }, []);
  return html`<div class="head"><h1>Time</h1></div><${Problem} error=${error} />
    <div class="card"><form class="bar" onSubmit=${(event) => { event.preventDefault(); location.hash = link("time", [name]); }}><${Field} label="Table"><${Select} value=${name} onChange=${setName} options=${tables} /><//><button class="primary" disabled=${!name} style=${{ alignSelf: "end" }}>Show history</button></form></div>
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
    ${over?.restore && html`<${Restore} backup=${over.restore} onClose=${() => setOver(null)} />`}
    ${over?.remove && html`<${Confirm} title="Delete backup" name=${over.remove.BackupName} verb="Delete backup" operation="DeleteBackup" request=${{ BackupArn: over.remove.BackupArn }} onClose=${() => setOver(null)}
      onDone=${async () => { await call("DeleteBackup", { BackupArn: over.remove.BackupArn }); say(`${over.remove.BackupName} was deleted.`); again(); }}><p class="note">Data that only this backup contains is lost.</p><//>`}</section>`;
}

function Ask({ title, label, given, operation, request, done, verb, onClose, onDone }) {
  const [name, setName] = useState(given);
  const [error, setError] = useState(null);
  const act = async (event) => { event.preventDefault(); try { await call(operation, request(name)); say(done(name)); onDone(); onClose(); } catch (failed) { setError(failed); } };
  return html`<${Over} label=${title} onClose=${onClose}><h1>${title}</h1><form onSubmit=${act}><${Field} label=${label}><${Input} value=${name} onInput=${setName} required data-focus /><//><${Call} operation=${operation} request=${request(name)} open /><${Problem} error=${error} /><div class="bar"><button class="primary">${verb}</button><button type="button" onClick=${onClose}>Cancel</button></div></form><//>`;
}

// Closing the dialog lets the restore continue; canceling deletes the new table.
function Restore({ backup, onClose }) {
  const [name, setName] = useState(`${backup.TableName}-restored`);
  const [step, setStep] = useState(null);
  const [error, setError] = useState(null);
  const control = useRef(new AbortController()), isClosed = useRef(false);
  useEffect(() => () => { isClosed.current = true; }, []);
  const request = { BackupArn: backup.BackupArn, TargetTableName: name };
  const act = async (event) => {
    event.preventDefault();
    const { signal } = control.current;
    setError(null);
    setStep({});
    try {
      const { BackupDescription: { SourceTableDetails: { ItemCount: total } } } = await call("DescribeBackup", { BackupArn: backup.BackupArn });
      await call("RestoreTableFromBackup", request);
      await untilActive(name, (table) => setStep({ of: { done: table.ItemCount }, total }), signal);
      say(`${name} is restored.`, { label: "Explore it", action: () => { location.hash = link("explore", [name]); } });
      if (!isClosed.current) onClose();
    } catch (failed) {
      if (isCancelled(failed)) deleteWhenRestored(name);
      else { setError(failed); setStep(null); }
    }
  };
  const cancel = () => { control.current.abort(); onClose(); };
  return html`<${Over} label=${`Restore ${backup.BackupName}`} onClose=${onClose}><h1>Restore ${backup.BackupName}</h1><form onSubmit=${act}><${Field} label="Name of the new table"><${Input} value=${name} onInput=${setName} required data-focus disabled=${Boolean(step)} /><//>
    <${Call} operation="RestoreTableFromBackup" request=${request} open=${!step} /><${Problem} error=${error} />
    ${step && html`<p role="status">Restoring ${name}</p><${Progress} of=${step.of || { done: 0 }} total=${step.total} isAbout verb="items restored" />`}
    <div class="bar"><button class="primary" disabled=${Boolean(step)}>Restore</button><button type="button" onClick=${cancel}>Cancel</button>${step && html`<button type="button" onClick=${onClose}>Close and continue in the background</button>`}</div></form><//>`;
}

function OneTable({ name, query }) {
  const [recovery, setRecovery] = useState(null);
  const [error, setError] = useState(null);
  const [round, setRound] = useState(0);
  const isOn = recovery?.PointInTimeRecoveryStatus === "ENABLED", isReady = Boolean(recovery?.LatestRestorableDateTime);
  useEffect(() => {
    let timer;
    call("DescribeContinuousBackups", { TableName: name }).then(({ ContinuousBackupsDescription: found }) => { setRecovery(found.PointInTimeRecoveryDescription || {}); setError(null); }, setError);
    // The first copy of a large table takes some time.
    if (isOn && !isReady) timer = setTimeout(() => setRound(round + 1), 1000);
    return () => clearTimeout(timer);
  }, [name, round, isOn, isReady]);
  const request = { TableName: name, PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: !isOn } };
  const flip = async () => { try { await call("UpdateContinuousBackups", request); say(`Recovery is ${isOn ? "off" : "on"}.`); setRound(round + 1); } catch (failed) { setError(failed); } };
  return html`<${TableHead} name=${name} at="time" />
    ${isUnknown(error) ? html`<${Missing} />` : html`<${Problem} error=${error} />
    ${recovery && html`<section class="card" aria-label="Recovery"><div class="bar"><h2>Point-in-time recovery</h2><span class=${`badge ${isOn ? "good" : "warn"}`} id="recovery">${isOn ? "on" : "off"}</span><span class="spacer"></span>${session.Mode === "on" && html`<button class="small" onClick=${flip}>${isOn ? "Switch off" : "Switch on"}</button>`}</div>
      ${isOn ? html`<p class="quiet">${isReady ? `From ${when(recovery.EarliestRestorableDateTime)} to ${when(recovery.LatestRestorableDateTime)}.` : "The first copy of the table is being made."}</p>${session.Mode === "on" && isReady && html`<${AsItWas} name=${name} recovery=${recovery} query=${query} />`}` : html`<p class="quiet">Once it is on, you can go back to any later second.</p>`}
      ${session.Mode === "on" && html`<${Call} operation="UpdateContinuousBackups" request=${request} />`}</section>
      <${Backups} table=${name} />`}`}`;
}

// Restores a copy of the table as it was, from which different items can be put back one by one.
function AsItWas({ name, recovery, query }) {
  const [moment, setMoment] = useState(() => query.get("at") || local(new Date(Math.max(Math.floor(recovery.LatestRestorableDateTime), Math.ceil(recovery.EarliestRestorableDateTime || 0)) * 1000)));
  const [copy, setCopy] = useState(`${name}-as-it-was`);
  const [only, setOnly] = useState(query.get("only") || "");
  const [step, setStep] = useState(null);
  const [found, setFound] = useState(null);
  const [error, setError] = useState(null);
  const [removing, setRemoving] = useState(false);
  const control = useRef(null), isGone = useRef(false);
  useEffect(() => () => { isGone.current = true; control.current?.abort(); }, []);
  const request = { SourceTableName: name, TargetTableName: copy, RestoreDateTime: Math.floor(new Date(moment).getTime() / 1000) };
  const work = async (steps) => {
    control.current = new AbortController();
    setError(null);
    try { await steps(control.current.signal); } catch (failed) { if (!isCancelled(failed)) setError(failed); }
    setStep(null);
  };
  const restore = async (signal) => {
    const { Table: { ItemCount: total } } = await call("DescribeTable", { TableName: name }, signal);
    const onProgress = (done) => setStep({ text: `Restoring ${copy}`, of: { done }, total, verb: "items restored" });
    onProgress(0);
    await call("RestoreTableToPointInTime", request);
    try { await untilActive(copy, (table) => onProgress(table.ItemCount), signal); } catch (failed) {
      if (isCancelled(failed) && !isGone.current) deleteWhenRestored(copy);
      throw failed;
    }
  };
  const compareNow = async (signal) => {
    const { Table } = await call("DescribeTable", { TableName: name }, signal);
    const onProgress = (done) => setStep({ text: `Comparing ${copy} with now`, of: { done }, total: only.trim() ? undefined : Table.ItemCount, verb: "items compared" });
    onProgress(0);
    setFound({ ...(await compare(copy, name, Table, only.trim(), onProgress, signal)), schema: Table.KeySchema });
  };
  const act = (event) => {
    event.preventDefault();
    setFound(null);
    return work(async (signal) => { await restore(signal); await compareNow(signal); });
  };
  const again = () => work(compareNow);
  const putBack = async (one) => {
    try {
      const answer = one.is ? await call("UpdateItem", updateOf(name, found.schema, one.is, one.was)) : await call("PutItem", additionOf(name, found.schema, one.was));
      say(`The item was put back. ${units(answer.ConsumedCapacity?.CapacityUnits, "W")}`);
      setFound({ ...found, count: found.count - 1, differences: found.differences.filter((each) => each !== one) });
    } catch (failed) { setError(failed.code === "ConditionalCheckFailedException" ? new Error("Somebody has changed this item since: compare again.") : failed); }
  };
  return html`<form onSubmit=${act}><div class="row"><${Field} label="As it was at"><${Input} type="datetime-local" step="1" value=${moment} onInput=${(at) => { setMoment(at); keepAddress("time", [name], { at, only }); }} min=${recovery.EarliestRestorableDateTime ? local(new Date(Math.ceil(recovery.EarliestRestorableDateTime) * 1000)) : undefined} required /><//><${Field} label="In a table of its own"><${Input} value=${copy} onInput=${setCopy} required /><//><${Field} label="Only this partition key (empty: all)"><${Input} value=${only} onInput=${(text) => { setOnly(text); keepAddress("time", [name], { at: moment, only: text }); }} /><//></div>
      <div class="bar"><button class="primary" disabled=${Boolean(step)}>Restore and compare with now</button>${step && html`<button type="button" onClick=${() => control.current.abort()}>Cancel</button><strong>${step.text}</strong>`}</div>
      ${step && html`<${Progress} of=${step.of} total=${step.total} isAbout verb=${step.verb} />`}
      <${Call} operation="RestoreTableToPointInTime" request=${request} /></form><${Problem} error=${error} />
    ${error?.code === "TableAlreadyExistsException" && html`<p class="bar"><button type="button" class="small" onClick=${again}>Compare with the existing ${copy}</button></p>`}
    ${found && html`<div id="differences"><p class="bar"><strong>${verdict(found)}</strong><button type="button" class="small" onClick=${again}>Compare again</button><a href=${link("explore", [copy])}>Explore ${copy}</a> <button type="button" class="small danger" onClick=${() => setRemoving(true)}>Delete ${copy}</button></p>
      ${found.part && html`<p class="note">${PARTS[found.part]} ${counted(found.compared)} were compared.</p>`}
      ${found.count > SHOWN_MAX && html`<p class="quiet">The first ${SHOWN_MAX} are shown.</p>`}
      ${found.differences.slice(0, SHOWN_MAX).map((one) => html`<${Difference} key=${one.key} one=${one} schema=${found.schema} onPutBack=${() => putBack(one)} />`)}</div>`}
    ${removing && html`<${Confirm} title="Delete table" name=${copy} verb="Delete table" operation="DeleteTable" request=${{ TableName: copy }} onClose=${() => setRemoving(false)} onDone=${async () => { await call("DeleteTable", { TableName: copy }); say(`Table ${copy} was deleted.`); setFound(null); }} />`}`;
}

const PARTS = { "too different": "The tables differ too much, or are read in different orders: comparing ended early.", cancelled: "Comparing was cancelled." };
const verdict = ({ count: number, part }) => `${number ? `${count(number)} ${number === 1 ? "item differs" : "items differ"}` : "Nothing differs"}${part ? " in what was compared" : ""}`;

function Difference({ one, schema, onPutBack }) {
  const [kind, title] = !one.is ? ["warn", "deleted since"] : !one.was ? ["good", "added since"] : ["", "changed since"];
  const key = keyOf(one.was || one.is, schema);
  return html`<article class="card" aria-label="Difference"><div class="bar"><span class=${`badge ${kind}`}>${title}</span><strong class="mono">${Object.values(key).map((value) => shown(value, 60)).join(" · ")}</strong><span class="spacer"></span>${one.was && html`<button type="button" class="small" onClick=${onPutBack}>Put back</button>`}</div>
    <${Differences} was=${one.was} is=${one.is} titles=${["Then", "Now"]} but=${Object.keys(key)} /></article>`;
}
