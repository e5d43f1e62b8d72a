// A value in a grid of items, with its type.

import { html } from "./parts.js";
import { TYPES, hexOf, shown, textOf, typeOf } from "./values.js";

export const Type = ({ value }) => html`<span class="type" title=${TYPES[typeOf(value)]}>${typeOf(value)}</span>${" "}`;

export function Cell({ value }) {
  if (value === undefined) return html`<span class="none">·</span>`;
  if ("B" in value) return html`<${Type} value=${value} /><span title=${`Text: ${textOf(value.B, 200)}`}>${hexOf(value.B, 12)} <span class="quiet">${textOf(value.B, 12)}</span></span>`;
  if (value.S === "") return html`<${Type} value=${value} /><span class="quiet">(empty)</span>`;
  return html`<${Type} value=${value} />${shown(value)}`;
}
