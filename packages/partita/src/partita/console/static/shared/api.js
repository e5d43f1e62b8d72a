// Requests to the console's API, which forwards them to the endpoint; and the state of the connection.

const TYPE = "application/vnd.partita.console+json";
const RETRY_MS = 1000;

let token = "";
const listeners = new Set();
export const session = { state: "starting", reason: "", Mode: "on", Endpoint: "", Region: "", Version: "", SignsIn: false, User: "" };

export class Refusal extends Error {
  constructor(code, message, body) {
    super(message || code);
    this.code = code;
    this.body = body || {};
  }
}

// True when the endpoint does not implement the operation at all.
export const isUnknown = (error) => ["UnknownOperationException", "InvalidAction", "Http404"].includes(error?.code);

export function onSession(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function change(values) {
  Object.assign(session, values);
  for (const listener of listeners) listener();
}

export async function connect() {
  const response = await fetch("/console/api/session");
  if (!response.ok) throw new Refusal("Refused", (await response.json()).detail);
  const { Token = "", ...others } = await response.json();
  token = Token;
  change({ User: "", ...others, isSignedOut: others.SignsIn && !Token });
}

// The key and its secret are sent to the server once, and are not kept in the browser.
export async function signIn(key) {
  await send("POST", "sign-in", key);
  await connect();
}

export async function signOut() {
  await send("POST", "sign-out", {});
  await connect();
}

// The console reports why it cannot reach its endpoint. If the console itself is gone, nobody does.
const reasonOf = (error) => (error.code === "EndpointUnreachable" ? error.message : "");

let waiting = false;
async function reconnect(reason = "") {
  if (waiting) return;
  waiting = true;
  change({ state: "gone", reason });
  for (;;) {
    await new Promise((done) => setTimeout(done, RETRY_MS));
    try {
      await connect();
      if (!session.isSignedOut) await send("POST", "dynamodb/ListTables", { Limit: 1 });
      break;
    } catch (error) {
      if (error.code !== "EndpointUnreachable" && !(error instanceof TypeError)) break;
      if (reasonOf(error) !== session.reason) change({ reason: reasonOf(error) });
    }
  }
  waiting = false;
  change({ state: "back" });
  setTimeout(() => session.state === "back" && change({ state: "connected" }), 4000);
}

async function send(method, path, request, signal) {
  const response = await fetch(`/console/api/${path}`, {
    method,
    signal,
    headers: { "content-type": TYPE, "x-console-token": token },
    body: request === undefined ? undefined : JSON.stringify(request),
  });
  const body = await response.json();
  if (response.ok) return body;
  throw new Refusal(body.__type || String(response.status), body.message || body.detail, body);
}

async function ask(method, path, request, signal) {
  try {
    return await send(method, path, request, signal);
  } catch (error) {
    if (error.code === "403") {
      // The server has been restarted, and the new process has another token.
      await connect();
      return send(method, path, request, signal);
    }
    if (error.code === "SignedOut") change({ isSignedOut: true, User: "" });
    if (error.name === "AbortError") throw error;
    if (error instanceof TypeError || error.code === "EndpointUnreachable") {
      reconnect(reasonOf(error));
      throw new Refusal("EndpointUnreachable", "The server does not answer. Nothing that you typed is lost: try again when it is back.");
    }
    throw error;
  }
}

export const call = (operation, request, signal, service = "dynamodb") =>
  ask("POST", `${service}/${operation}`, request, signal);
export const look = (path, signal) => ask("GET", path, undefined, signal);
export const tell = (path, request) => ask("POST", path, request);
export const explain = (Statement, Parameters, signal) => ask("POST", "explain", { Statement, Parameters }, signal);

export async function start() {
  try {
    await connect();
    change({ state: "connected" });
  } catch (error) {
    reconnect();
  }
}

// Notices that the server is gone even while the page sends no requests.
setInterval(() => {
  if (document.hidden || session.state !== "connected") return;
  fetch("/console/api/session").catch(() => reconnect());
}, 5000);

export async function allTables(each, signal) {
  const names = [];
  let start;
  do {
    const page = await call("ListTables", start ? { ExclusiveStartTableName: start } : {}, signal);
    names.push(...page.TableNames);
    start = page.LastEvaluatedTableName;
    if (each) each(names);
  } while (start);
  return names;
}
