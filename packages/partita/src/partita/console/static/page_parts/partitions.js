// The current partitions. A partition that was one at the last refresh and is two now has split.

import { count, html, size, useEffect, useRef, useState } from "../shared/parts.js";
import { shown } from "../shared/values.js";

const SPLITS_KEPT = 10;
const FRESH_MS = 20000;
const KEY_MAX = 40;

function splitsBetween(before, now) {
  return before.flatMap(([first, last]) => {
    const parts = now.filter(([start, stop]) => start >= first && stop <= last).map(([start]) => start);
    return parts.length > 1 ? [{ at: Date.now(), first, parts }] : [];
  });
}

const heat = (load) => ({ background: `color-mix(in srgb, var(--danger-soft) ${Math.min(100, Math.round(load * 100))}%, var(--surface))` });

const percent = (load) => (load > 0 && load < 0.01 ? "< 1 %" : `${Math.round(load * 100)} %`);

export function Partitions({ resource }) {
  const seen = useRef(null);
  const [splits, setSplits] = useState([]);
  useEffect(() => {
    const now = resource.Partitions.map((one) => [one.FirstHash, one.LastHash]);
    const found = splitsBetween(seen.current || [], now);
    if (found.length) setSplits((before) => [...found, ...before].slice(0, SPLITS_KEPT));
    seen.current = now;
  }, [resource]);
  const isFresh = (each) => splits.some((one) => Date.now() - one.at < FRESH_MS && one.parts.includes(each.FirstHash));
  const { Partitions: all } = resource;
  return html`<div class="resource"><p><strong>${resource.IndexName ? `Index ${resource.IndexName}` : resource.TableName}</strong> <span class="quiet">${count(all.length)} ${all.length === 1 ? "partition" : "partitions"}</span></p>
    <div class="heatmap">${all.map((each) => html`<div class=${`partition ${isFresh(each) ? "fresh" : ""}`} key=${each.FirstHash} style=${heat(each.Load)} title=${`${each.FirstHash} to ${each.LastHash}`}>
      <strong>${percent(each.Load)}</strong> <span class="quiet">${size(each.SizeBytes)}</span>${isFresh(each) && html` <span class="badge warn">split</span>`}
      ${each.HottestKeys.map((key) => html`<div class="mono" title=${key.Key}>${shown({ S: String(key.Key) }, KEY_MAX)} ${Math.round(key.Share * 100)} %</div>`)}</div>`)}</div>
    ${splits.length > 0 && html`<ul class="splits" aria-label="Splits" aria-live="polite">${splits.map((one) => html`<li key=${one.first + one.at}>${new Date(one.at).toLocaleTimeString()}: the partition from <span class="mono">${one.first}</span> split into ${one.parts.length}.</li>`)}</ul>`}</div>`;
}
