// Draws a state machine: states in rows from the first to the last, and those of a Parallel or Map
// state inside it. The path of an execution is shown by color, marks and words.

import { html } from "../shared/parts.js";

// A drawing that is too wide is scaled down, but only as far as it can still be read.
const SMALLEST = 0.7;
const WIDTH = 150, HEIGHT = 42, GAP_X = 28, GAP_Y = 34, PAD = 14, TITLE = 22;
const MARKS = { done: "✓", failed: "✕", running: "…", caught: "!" };

function transitions(state) {
  const found = [];
  if (state.Next) found.push([state.Next, ""]);
  if (state.Default) found.push([state.Default, "default"]);
  (state.Choices || []).forEach((choice, at) => choice.Next && found.push([choice.Next, `${at + 1}`]));
  (state.Catch || []).forEach((one) => one.Next && found.push([one.Next, "catch"]));
  return found;
}

const inside = (state) => [...(state.Branches || []), ...(state.ItemProcessor || state.Iterator ? [state.ItemProcessor || state.Iterator] : [])].filter((one) => one?.States);

// Returns the row of each state: below all states that lead to it, except through a loop.
function ranksOf(machine) {
  const ranks = {}, onPath = new Set();
  const visit = (name, rank) => {
    const state = machine.States[name];
    if (!state || onPath.has(name) || (ranks[name] ?? -1) >= rank) return;
    ranks[name] = rank;
    onPath.add(name);
    for (const [next] of transitions(state)) visit(next, rank + 1);
    onPath.delete(name);
  };
  visit(machine.StartAt, 0);
  const last = Math.max(0, ...Object.values(ranks));
  for (const name of Object.keys(machine.States)) if (!(name in ranks)) ranks[name] = last + 1;
  return ranks;
}

export function laidOut(machine) {
  const ranks = ranksOf(machine), rows = [];
  for (const name of Object.keys(machine.States)) {
    const inner = inside(machine.States[name]).map(laidOut);
    const size = inner.length
      ? { width: inner.reduce((sum, one) => sum + one.width + GAP_X, -GAP_X) + 2 * PAD, height: Math.max(...inner.map((one) => one.height)) + TITLE + 2 * PAD }
      : { width: WIDTH, height: HEIGHT };
    (rows[ranks[name]] ||= []).push({ name, state: machine.States[name], inner, ...size });
  }
  const shown = rows.filter(Boolean);
  const width = Math.max(...shown.map((row) => row.reduce((sum, one) => sum + one.width + GAP_X, -GAP_X)));
  const nodes = {};
  let y = 0;
  for (const row of shown) {
    let x = (width - row.reduce((sum, one) => sum + one.width + GAP_X, -GAP_X)) / 2;
    for (const node of row) { nodes[node.name] = { ...node, x, y }; x += node.width + GAP_X; }
    y += Math.max(...row.map((one) => one.height)) + GAP_Y;
  }
  const edges = Object.values(nodes).flatMap((from) => transitions(from.state).filter(([next]) => nodes[next]).map(([next, label]) => ({ from, to: nodes[next], label })));
  // Transitions back, or past other rows, are drawn around the states on the right.
  for (const edge of edges) edge.isRound = edge.to.y <= edge.from.y || ranks[edge.to.name] > ranks[edge.from.name] + 1;
  const round = edges.filter((edge) => edge.isRound).length;
  return { nodes: Object.values(nodes), edges, inner: width, width: width + (round && 24 + round * 14), height: y - GAP_Y };
}

// Derives the status of each state and transition from the history of an execution.
export function pathOf(events, status) {
  const byId = new Map(events.map((one) => [one.id, one]));
  const nameOf = (event) => event.stateEnteredEventDetails?.name || event.stateExitedEventDetails?.name;
  const owner = (event) => { let one = event; for (let n = 0; one && n < 500; n += 1) { if (one.stateEnteredEventDetails) return nameOf(one); one = byId.get(one.previousEventId); } return null; };
  const open = new Map(), states = {}, ways = new Set(), counts = {};
  for (const event of events) {
    const name = nameOf(event);
    if (event.stateEnteredEventDetails) {
      states[name] = "running";
      counts[name] = (counts[name] || 0) + 1;
      open.set(name, (open.get(name) || 0) + 1);
      const before = byId.get(event.previousEventId);
      if (before?.stateExitedEventDetails) ways.add(`${nameOf(before)}\n${name}`);
    } else if (event.stateExitedEventDetails) {
      open.set(name, open.get(name) - 1);
      states[name] = states[name] === "failing" ? "caught" : "done";
    } else if (/(Failed|TimedOut)$/.test(event.type) && !event.type.startsWith("Execution")) {
      const failing = owner(event);
      if (failing) states[failing] = "failing";
    } else if (/Succeeded$/.test(event.type) && !event.type.startsWith("Execution")) {
      // A retry has succeeded.
      const again = owner(event);
      if (states[again] === "failing") states[again] = "running";
    }
  }
  for (const [name, count] of open) if (count > 0) states[name] = status === "RUNNING" ? "running" : "failed";
  for (const name of Object.keys(states)) if (states[name] === "failing") states[name] = status === "RUNNING" ? "running" : "failed";
  return { states, ways, counts };
}

export function Drawing({ machine, path = { states: {}, ways: new Set(), counts: {} }, label }) {
  const drawn = laidOut(machine);
  const words = drawn.nodes.map((node) => `${node.name}${path.states[node.name] ? ` ${path.states[node.name]}` : ""}`).join(", ");
  return html`<div class="scroll drawing" tabindex="0" role="region" aria-label=${label}><svg role="img" aria-label=${`${label}: ${words}`} width=${drawn.width + 2 * PAD} height=${drawn.height + 2 * PAD} viewBox=${`0 0 ${drawn.width + 2 * PAD} ${drawn.height + 2 * PAD}`} style=${{ minWidth: `${Math.round((drawn.width + 2 * PAD) * SMALLEST)}px` }}>
    <defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="context-stroke" /></marker></defs>
    <${Graph} drawn=${drawn} x=${PAD} y=${PAD} path=${path} /></svg></div>`;
}

function Graph({ drawn, x, y, path }) {
  let round = 0;
  return html`<g transform=${`translate(${x},${y})`}>
    ${drawn.edges.map(({ from, to, label, isRound }, at) => {
      const taken = path.ways.has(`${from.name}\n${to.name}`);
      const x1 = from.x + from.width / 2, y1 = from.y + from.height, x2 = to.x + to.width / 2, y2 = to.y;
      if (isRound) round += 1;
      const side = drawn.inner + 10 + round * 14, middle = (one) => one.y + one.height / 2;
      const d = isRound ? `M${from.x + from.width},${middle(from)} H${side - 8} Q${side},${middle(from)} ${side},${middle(from) + (to.y > from.y ? 8 : -8)} V${middle(to) + (to.y > from.y ? -8 : 8)} Q${side},${middle(to)} ${side - 8},${middle(to)} H${to.x + to.width}` : `M${x1},${y1} C${x1},${y1 + GAP_Y / 2} ${x2},${y2 - GAP_Y / 2} ${x2},${y2}`;
      return html`<g key=${at} class=${`way ${taken ? "taken" : ""} ${label === "catch" ? "catch" : ""}`}><path d=${d} marker-end="url(#arrow)" />${label && html`<text x=${isRound ? from.x + from.width + 6 : (x1 + x2) / 2 + 6} y=${isRound ? middle(from) - 4 : (y1 + y2) / 2 + 3}>${label}</text>`}</g>`;
    })}
    ${drawn.nodes.map((node) => {
      const status = path.states[node.name];
      const count = path.counts[node.name];
      const name = node.name.length > 19 ? `${node.name.slice(0, 18)}…` : node.name;
      let inner = PAD;
      return html`<g key=${node.name} class=${`state ${status || ""}`} transform=${`translate(${node.x},${node.y})`}><title>${node.name}</title>
        <rect width=${node.width} height=${node.height} rx="8" />
        <text class="name" x=${node.inner.length ? PAD : node.width / 2} y=${node.inner.length ? 18 : 19} text-anchor=${node.inner.length ? "start" : "middle"}>${status ? `${MARKS[status] || ""} ` : ""}${name}${count > 1 ? ` ×${count}` : ""}</text>
        ${!node.inner.length && html`<text class="kind" x=${node.width / 2} y="33" text-anchor="middle">${node.state.Type}</text>`}
        ${node.inner.map((each, at) => { const shown = html`<${Graph} key=${at} drawn=${each} x=${inner} y=${TITLE + PAD} path=${path} />`; inner += each.width + GAP_X; return shown; })}</g>`;
    })}</g>`;
}
