// Kinesis streams to which the changes of a table are sent, in addition to its own stream.

import { Call, Confirm, Field, Input, Over, Problem, Select, html, link, say, useEffect, useState } from "../shared/parts.js";
import { call, isUnknown, session } from "../shared/api.js";

const BUSY_MS = 1000;
const PRECISIONS = [["MILLISECOND", "Milliseconds"], ["MICROSECOND", "Microseconds"]];
const nameOf = (arn) => arn.split("/").pop();
const isBusy = (one) => one.DestinationStatus.endsWith("ING");
const precisionOf = (one) => one.ApproximateCreationDateTimePrecision || "MILLISECOND";

export function Destinations({ name }) {
  const [found, setFound] = useState(null);
  const [error, setError] = useState(null);
  const [over, setOver] = useState(null);
  const [round, setRound] = useState(0);
  const again = () => setRound((n) => n + 1);
  useEffect(() => {
    let gone = false, timer;
    call("DescribeKinesisStreamingDestination", { TableName: name }).then(({ KinesisDataStreamDestinations: listed }) => {
      if (gone) return;
      setFound(listed);
      setError(null);
      if (listed.some(isBusy)) timer = setTimeout(again, BUSY_MS);
    }, (failed) => !gone && setError(failed));
    return () => { gone = true; clearTimeout(timer); };
  }, [name, round]);
  const on = session.Mode === "on", isUsed = found?.some((one) => one.DestinationStatus === "ACTIVE" || isBusy(one));
  const close = () => setOver(null);
  return html`<section class="card" aria-label="Kinesis destinations"><div class="bar"><h2>Kinesis destinations</h2><span class="spacer"></span>${on && found && !isUsed && html`<button class="small" onClick=${() => setOver({ add: true })}>Send changes to a Kinesis stream</button>`}</div>
    ${isUnknown(error) ? html`<p class="quiet">Not on this endpoint.</p>` : html`<${Problem} error=${error} />`}
    ${found && (found.length ? html`<div class="scroll" tabindex="0" role="region" aria-label="Kinesis destinations"><table id="destinations"><thead><tr><th scope="col">Stream</th><th scope="col">Status</th><th scope="col">Times in</th>${on && html`<th scope="col"><span class="hidden-label">Actions</span></th>`}</tr></thead><tbody>
      ${found.map((one) => html`<tr key=${one.StreamArn}><td><a href=${link("streams", ["kinesis", nameOf(one.StreamArn)])}>${nameOf(one.StreamArn)}</a></td><td class="wrap"><span class=${`badge ${one.DestinationStatus === "ACTIVE" ? "good" : ""}`}>${one.DestinationStatus}</span> ${one.DestinationStatusDescription || ""}</td><td>${precisionOf(one).toLowerCase()}s</td>
        ${on && html`<td>${one.DestinationStatus === "ACTIVE" && html`<div class="bar close"><button class="small" onClick=${() => setOver({ change: one })} aria-label=${`Change times of ${nameOf(one.StreamArn)}`}>Change times</button><button class="small danger" onClick=${() => setOver({ stop: one })} aria-label=${`Stop sending to ${nameOf(one.StreamArn)}`}>Stop</button></div>`}</td>`}</tr>`)}</tbody></table></div>` : html`<p class="quiet">None. Every change of an item can also go to a Kinesis stream.</p>`)}
    ${over?.add && html`<${Add} name=${name} onClose=${close} onDone=${again} />`}
    ${over?.change && html`<${Times} name=${name} one=${over.change} onClose=${close} onDone=${again} />`}
    ${over?.stop && html`<${Confirm} title="Stop sending" name=${nameOf(over.stop.StreamArn)} verb="Stop sending" operation="DisableKinesisStreamingDestination" request=${{ TableName: name, StreamArn: over.stop.StreamArn }} onClose=${close}
      onDone=${async () => { await call("DisableKinesisStreamingDestination", { TableName: name, StreamArn: over.stop.StreamArn }); say("Changes made until now are still delivered."); again(); }}><p>Later changes of ${name} do not reach ${nameOf(over.stop.StreamArn)}.</p><//>`}</section>`;
}

function CallDialog({ title, operation, request, verb, said, onClose, onDone, children }) {
  const [error, setError] = useState(null);
  const act = async (event) => { event.preventDefault(); try { await call(operation, request); say(said); onDone(); onClose(); } catch (failed) { setError(failed); } };
  return html`<${Over} label=${title} onClose=${onClose}><h1>${title}</h1><form onSubmit=${act} style=${{ marginTop: "14px" }}><div class="row">${children}</div><${Call} operation=${operation} request=${request} open /><${Problem} error=${error} /><div class="bar"><button class="primary">${verb}</button><button type="button" onClick=${onClose}>Cancel</button></div></form><//>`;
}

const Precision = ({ value, onChange }) => html`<${Field} label="Times in"><${Select} value=${value} onChange=${onChange} options=${PRECISIONS} /><//>`;

function Add({ name, onClose, onDone }) {
  const [streams, setStreams] = useState([]);
  const [StreamArn, setArn] = useState("");
  const [precision, setPrecision] = useState("MILLISECOND");
  useEffect(() => { call("ListStreams", {}, undefined, "kinesis").then((page) => setStreams(page.StreamSummaries || []), () => {}); }, []);
  const request = { TableName: name, StreamArn, EnableKinesisStreamingConfiguration: { ApproximateCreationDateTimePrecision: precision } };
  return html`<${CallDialog} title="Send changes to a Kinesis stream" operation="EnableKinesisStreamingDestination" request=${request} verb="Send changes" said=${`Changes of ${name} go to ${nameOf(StreamArn)}.`} onClose=${onClose} onDone=${onDone}>
    <${Field} label="ARN of the stream"><${Input} value=${StreamArn} onInput=${setArn} list="kinesis-streams" required data-focus /><//><datalist id="kinesis-streams">${streams.map((one) => html`<option value=${one.StreamARN}>${one.StreamName}</option>`)}</datalist>
    <${Precision} value=${precision} onChange=${setPrecision} /><//>`;
}

function Times({ name, one, onClose, onDone }) {
  const [precision, setPrecision] = useState(PRECISIONS.map(([value]) => value).find((value) => value !== precisionOf(one)));
  const request = { TableName: name, StreamArn: one.StreamArn, UpdateKinesisStreamingConfiguration: { ApproximateCreationDateTimePrecision: precision } };
  return html`<${CallDialog} title=${`Times sent to ${nameOf(one.StreamArn)}`} operation="UpdateKinesisStreamingDestination" request=${request} verb="Change times" said="From now on, times have the precision that you chose." onClose=${onClose} onDone=${onDone}><${Precision} value=${precision} onChange=${setPrecision} /><//>`;
}
