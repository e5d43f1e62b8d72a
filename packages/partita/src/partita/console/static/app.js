// The shell around all pages: navigation, command palette, theme, sign-in, and connection status.

import { render } from "./vendor/preact-htm.js";
import { Field, Input, Over, PLACES, Problem, Toasts, html, link, mayLeave, placed, route, useEffect, useState } from "./shared/parts.js";
import { allTables, onSession, session, signIn, signOut, start } from "./shared/api.js";

const PAGES = [
  ["tables", "Tables"],
  ["explore", "Explorer"],
  ["partiql", "PartiQL"],
  ["build", "Builder"],
  ["model", "Modeler"],
  ["heat", "Heat"],
  ["streams", "Streams"],
  ["workflows", "Workflows"],
  ["time", "Time"],
  ["move", "Move"],
];
const GUARDED = [["access", "Access"]];
const pages = () => (session.SignsIn ? [...PAGES, ...GUARDED] : PAGES);

function applyTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
}
applyTheme(localStorage.getItem("theme"));

function switchTheme() {
  const isDark = document.documentElement.dataset.theme
    ? document.documentElement.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  const theme = isDark ? "light" : "dark";
  localStorage.setItem("theme", theme);
  applyTheme(theme);
}

function Palette({ onClose }) {
  const [text, setText] = useState("");
  const [tables, setTables] = useState([]);
  const [at, setAt] = useState(0);
  useEffect(() => { allTables().then(setTables, () => {}); }, []);
  const all = [
    ...pages().map(([page, title]) => ({ text: title, kind: "page", go: () => { location.hash = link(page); } })),
    ...(session.Mode === "on" ? [{ text: "Create a table", kind: "action", go: () => { location.hash = link("tables", [], { create: 1 }); } }] : []),
    { text: "Switch between dark and light", kind: "action", go: switchTheme },
    ...(session.User ? [{ text: "Sign out", kind: "action", go: signOut }] : []),
    ...tables.flatMap((name) => PLACES.map(([page, title], at) => ({ text: at ? `${name}: ${title.toLowerCase()}` : name, kind: at ? "table" : "explore", go: () => { location.hash = placed(page, name); } }))),
  ];
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const found = all.filter((one) => words.every((word) => one.text.toLowerCase().includes(word))).slice(0, 50);
  const pick = (one) => { onClose(); one.go(); };
  const onKeyDown = (event) => {
    if (event.key === "ArrowDown") { event.preventDefault(); setAt(Math.min(at + 1, found.length - 1)); }
    if (event.key === "ArrowUp") { event.preventDefault(); setAt(Math.max(at - 1, 0)); }
    if (event.key === "Enter" && found[at]) { event.preventDefault(); pick(found[at]); }
  };
  useEffect(() => { document.getElementById(`choice-${at}`)?.scrollIntoView({ block: "nearest" }); }, [at]);
  return html`<${Over} kind="palette" label="Command palette" onClose=${onClose}>
    <input data-focus placeholder="Go to a page or a table, or run a command" aria-label="Command" role="combobox"
      aria-expanded="true" aria-controls="choices" aria-activedescendant=${found[at] ? `choice-${at}` : undefined}
      value=${text} onInput=${(event) => { setText(event.target.value); setAt(0); }} onKeyDown=${onKeyDown} />
    <ul id="choices" role="listbox" aria-label="Commands">
      ${found.map((one, index) => html`<li id=${`choice-${index}`} role="option" aria-selected=${index === at ? "true" : "false"}
        onMouseMove=${() => setAt(index)} onClick=${() => pick(one)}><span>${one.text}</span><span class="quiet">${one.kind}</span></li>`)}
    </ul>
    ${!found.length && html`<p class="empty">No command matches.</p>`}
  <//>`;
}

// The dialog lies over the page, so that typed input is kept when a session expires.
function SignIn({ isFirst }) {
  const [form, setForm] = useState({ AccessKeyId: "", SecretAccessKey: "", SessionToken: "" });
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const set = (name) => (value) => setForm({ ...form, [name]: value });
  const act = async (event) => {
    event.preventDefault();
    setBusy(true);
    try { await signIn(form); } catch (failed) { setError(failed instanceof TypeError ? new Error("The server does not answer.") : failed); setForm({ ...form, SecretAccessKey: "" }); setBusy(false); }
  };
  return html`<${Over} label="Sign in" onClose=${() => {}}>
    <form onSubmit=${act} class="sign-in">
      <h1>Sign in</h1>
      <p class="quiet">${isFirst ? "Use an access key of this server. The console can do what its user is allowed to do, and nothing more." : "Your session has ended. What you have typed is still here."}</p>
      <${Field} label="Access key"><${Input} value=${form.AccessKeyId} onInput=${set("AccessKeyId")} name="username" autocomplete="username" required data-focus /><//>
      <${Field} label="Secret"><${Input} value=${form.SecretAccessKey} onInput=${set("SecretAccessKey")} type="password" name="password" autocomplete="current-password" required /><//>
      <details class="more"><summary>Temporary credentials</summary><${Field} label="Session token"><${Input} value=${form.SessionToken} onInput=${set("SessionToken")} type="password" /><//></details>
      ${error && html`<div class="problem" role="alert">${error.message}</div>`}
      <button class="primary" disabled=${busy}>Sign in</button>
    </form><//>`;
}

function Banner({ state }) {
  if (state === "gone") return html`<div class="banner gone" role="alert">The server does not answer. Trying again every second; what you have typed stays here.${session.reason && html`<div class="reason">${session.reason}</div>`}</div>`;
  if (state === "back") return html`<div class="banner back" role="status">Connected again.</div>`;
  return null;
}

function App() {
  const [here, setHere] = useState(route());
  const [, redraw] = useState(0);
  const [finding, setFinding] = useState(false);
  const [page, setPage] = useState({});
  useEffect(() => onSession(() => redraw((n) => n + 1)), []);
  useEffect(() => {
    const moved = (event) => {
      if (mayLeave()) setHere(route());
      else history.pushState(null, "", event.oldURL);
    };
    addEventListener("hashchange", moved);
    const pressed = (event) => {
      const typing = /INPUT|TEXTAREA|SELECT/.test(event.target.tagName);
      if ((event.key === "k" && (event.ctrlKey || event.metaKey)) || (event.key === "/" && !typing)) { event.preventDefault(); setFinding(true); }
    };
    addEventListener("keydown", pressed);
    return () => { removeEventListener("hashchange", moved); removeEventListener("keydown", pressed); };
  }, []);
  const known = pages().find(([name]) => name === here.page);
  useEffect(() => {
    document.title = [here.parts[0], known?.[1], "Partita"].filter(Boolean).join(" · ");
    if (!known) { setPage({ name: here.page, error: new Error(`There is no page ${here.page}.`) }); return; }
    import(`./pages/${here.page}.js`).then(
      (module) => setPage({ name: here.page, Page: module.default }),
      () => setPage({ name: here.page, error: new Error("The page could not be loaded: the server does not answer.") }),
    );
  }, [here.page, here.parts[0], session.state === "connected"]);
  // On a phone, the links to the pages are in one row that is wider than the screen.
  useEffect(() => {
    const row = document.querySelector(".nav"), current = row.querySelector("[aria-current]");
    if (current) row.scrollLeft = current.offsetLeft - row.offsetLeft - (row.clientWidth - current.offsetWidth) / 2;
  }, [here.page]);
  const { state } = session;
  const withBanner = state === "gone" || state === "back";
  const isOut = session.isSignedOut;
  // After another user signs in, or after signing out, nothing of the old page is kept.
  const [wasIn, setWasIn] = useState("");
  useEffect(() => { if (session.User) setWasIn(session.User); }, [session.User]);
  const ready = state !== "starting" && !(state === "gone" && !session.Endpoint) && (!isOut || wasIn);
  return html`<div class=${`shell ${withBanner ? "with-banner" : ""}`}>
    <a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); document.getElementById("main").focus(); }}>Skip to the page</a>
    <header class="top">
      <a class="brand" href=${link("tables")}><img src="/console/static/icon.svg" alt="" />Partita</a>
      <span class="where" title="The endpoint that is shown">${session.Endpoint.replace(/^https?:\/\//, "")}</span>
      ${session.Mode === "read-only" && html`<span class="badge warn">read-only</span>`}
      <span class="spacer"></span>
      <button class="finder" onClick=${() => setFinding(true)} aria-label="Find: open the command palette"><span>Find</span><kbd>Ctrl K</kbd></button>
      ${session.User && html`<span class="who" title=${session.User}>${session.User.split(/[:/]/).pop()}</span><button class="small" onClick=${signOut}>Sign out</button>`}
      <button class="plain" onClick=${switchTheme} aria-label="Switch between dark and light" title="Dark or light">◐</button>
    </header>
    <${Banner} state=${state} />
    <nav class="nav" aria-label="Pages">
      ${pages().map(([name, title]) => html`<a href=${link(name)} aria-current=${name === here.page ? "page" : undefined}>${title}</a>`)}
    </nav>
    <main id="main" tabindex="-1">
      ${page.error && html`<${Problem} error=${page.error} />`}
      ${ready && page.Page && page.name === here.page && html`<${page.Page} key=${`${here.page} ${wasIn}`} parts=${here.parts} query=${here.query} />`}
    </main>
    <${Toasts} />
    ${isOut && state !== "starting" && html`<${SignIn} isFirst=${!wasIn} />`}
    ${finding && !isOut && html`<${Palette} onClose=${() => setFinding(false)} />`}
  </div>`;
}

const root = document.getElementById("app");
root.replaceChildren();
render(html`<${App} />`, root);
start();
