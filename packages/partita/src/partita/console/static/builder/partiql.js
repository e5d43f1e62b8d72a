// PartiQL: the statements that do the same as a request; if there are none, an error says why.
// Binaries have no literal in PartiQL, so values that contain them become parameters.

const TOKEN = /\s*([#:][\w-]+|[A-Za-z_]\w*|\d+|<>|<=|>=|[=<>+\-(),.[\]])/y;
const WORDS = new Set(["AND", "OR", "NOT", "BETWEEN", "IN"]);
const CLAUSES = new Set(["SET", "REMOVE", "ADD", "DELETE"]);
const FUNCTIONS = new Set(["begins_with", "contains", "size", "attribute_type", "list_append"]);

export class NoStatement extends Error {}

const name = (text) => `"${text.replaceAll('"', '""')}"`;
const isBinary = (value) => {
  const [type] = Object.keys(value), inside = value[type];
  return type === "B" || type === "BS" || (type === "L" && inside.some(isBinary)) || (type === "M" && Object.values(inside).some(isBinary));
};
const text = (given) => `'${given.replaceAll("'", "''")}'`;

function literal(value) {
  const [type] = Object.keys(value), inside = value[type];
  switch (type) {
    case "S": return text(inside);
    case "N": return inside;
    case "BOOL": return String(inside);
    case "NULL": return "NULL";
    case "L": return `[${inside.map(literal).join(", ")}]`;
    case "M": return `{${Object.entries(inside).map(([each, one]) => `${text(each)}: ${literal(one)}`).join(", ")}}`;
    case "SS": return `<<${inside.map(text).join(", ")}>>`;
    default: return `<<${inside.join(", ")}>>`;
  }
}

// Builds a statement, and collects its parameters in the order of its question marks.
class Writer {
  parameters = [];
  value(given) {
    if (given === undefined) throw new NoStatement("A value of the expression is missing.");
    if (!isBinary(given)) return literal(given);
    this.parameters.push(given);
    return "?";
  }
  item = (given) => (isBinary({ M: given }) ? `{${Object.entries(given).map(([each, one]) => `${text(each)}: ${this.value(one)}`).join(", ")}}` : literal({ M: given }));
  key = (given) => Object.entries(given).map(([each, one]) => `${name(each)} = ${this.value(one)}`);
}

function tokensOf(expression) {
  const found = [];
  TOKEN.lastIndex = 0;
  const whole = expression.trimEnd();
  while (TOKEN.lastIndex < whole.length) {
    const match = TOKEN.exec(whole);
    if (!match) throw new NoStatement("The expression is not complete.");
    found.push(match[1]);
  }
  return found;
}

// Translates the tokens of an expression to PartiQL.
class Expression {
  constructor(expression, request, writer) {
    this.tokens = tokensOf(expression);
    this.at = 0;
    this.names = request.ExpressionAttributeNames || {};
    this.values = request.ExpressionAttributeValues || {};
    this.writer = writer;
  }
  get next() { return this.tokens[this.at]; }
  take() { this.at += 1; return this.tokens[this.at - 1]; }
  get isCall() { return /^[A-Za-z_]\w*$/.test(this.next || "") && this.tokens[this.at + 1] === "("; }

  path() {
    const part = (token) => {
      if (!token?.startsWith("#")) return name(token || "");
      if (!this.names[token]) throw new NoStatement(`${token} has no name yet.`);
      return name(this.names[token]);
    };
    let written = part(this.take());
    while (this.next === "." || this.next === "[") {
      if (this.take() === ".") written += `.${part(this.take())}`;
      else { written += `[${this.take()}]`; this.take(); }
    }
    return written;
  }

  operand() {
    if (this.next?.startsWith(":")) return this.writer.value(this.values[this.take()]);
    if (this.isCall) return this.call();
    return this.path();
  }

  call() {
    const called = this.take();
    this.take();
    const given = [];
    const isSide = called === "attribute_exists" || called === "attribute_not_exists";
    while (this.next && this.next !== ")") {
      given.push(this.operand());
      if (this.next === ",") this.take();
    }
    this.take();
    if (isSide) return `${given[0]} IS ${called === "attribute_exists" ? "NOT " : ""}MISSING`;
    if (!FUNCTIONS.has(called)) throw new NoStatement(`PartiQL has no ${called}.`);
    return `${called}(${given.join(", ")})`;
  }

  // Conditions: the syntax is the same, except for attribute_exists and the brackets of IN.
  condition() {
    const parts = [];
    let isList = false;
    while (this.next !== undefined) {
      const token = this.next, word = token.toUpperCase();
      if (WORDS.has(word)) {
        parts.push(` ${word} `);
        this.take();
        if (word === "IN" && this.next === "(") { this.take(); parts.push("["); isList = true; }
      } else if (isList && token === ")") { this.take(); parts.push("]"); isList = false; }
      else if (token === "(" || token === ")") { this.take(); parts.push(token); }
      else if (token === ",") { this.take(); parts.push(", "); }
      else if (/^(<>|<=|>=|[=<>])$/.test(token)) { this.take(); parts.push(` ${token} `); }
      else parts.push(this.operand());
    }
    return parts.join("").replace(/ {2,}/g, " ").trim();
  }

  // Clauses of an update: [["SET", 'a = 1'], ["REMOVE", "b"]]
  actions() {
    const found = [];
    let clause = null;
    while (this.next !== undefined) {
      const word = this.next.toUpperCase();
      if (CLAUSES.has(word)) { this.take(); clause = word; }
      if (!clause) throw new NoStatement("An update begins with SET, REMOVE, ADD or DELETE.");
      const path = this.path();
      if (clause === "SET") { this.take(); found.push(["SET", `${path} = ${this.sum()}`]); }
      else if (clause === "REMOVE") found.push(["REMOVE", path]);
      else found.push(["SET", this.changed(clause, path)]);
      if (this.next === ",") this.take();
    }
    return found;
  }

  sum() {
    let written = this.operand();
    while (this.next === "+" || this.next === "-") written += ` ${this.take()} ${this.operand()}`;
    return written;
  }

  changed(clause, path) {
    const value = this.values[this.take()] || {};
    const isSet = ["SS", "NS", "BS"].includes(Object.keys(value)[0]);
    if (!isSet && clause === "ADD") throw new NoStatement("PartiQL has no ADD for numbers: SET a = a + 1 fails where there is no number yet.");
    return `${path} = ${clause === "ADD" ? "set_add" : "set_delete"}(${path}, ${this.writer.value(value)})`;
  }
}

// Statements by operation

const conditionOf = (request, member, writer) => (request[member] ? [bracketed(new Expression(request[member], request, writer).condition())] : []);
const bracketed = (condition) => (/ OR /.test(condition) ? `(${condition})` : condition);
const columns = (request, writer) => {
  if (!request.ProjectionExpression) return "*";
  const expression = new Expression(request.ProjectionExpression, request, writer), found = [];
  while (expression.next !== undefined) { found.push(expression.path()); if (expression.next === ",") expression.take(); }
  return found.join(", ");
};

function select(request, writer) {
  const from = `${name(request.TableName)}${request.IndexName ? `.${name(request.IndexName)}` : ""}`;
  const shown = columns(request, writer);
  const tests = [...(request.Key ? writer.key(request.Key) : []), ...conditionOf(request, "KeyConditionExpression", writer), ...conditionOf(request, "FilterExpression", writer)];
  return `SELECT ${shown} FROM ${from}${tests.length ? ` WHERE ${tests.join(" AND ")}` : ""}`;
}

const WRITES = {
  Put(request, writer) {
    const condition = (request.ConditionExpression || "").trim();
    if (condition && !/^attribute_not_exists\s*\(\s*[#\w-]+\s*\)$/.test(condition)) throw new NoStatement("An INSERT cannot have a condition, except that the item is new.");
    return [`INSERT INTO ${name(request.TableName)} VALUE ${writer.item(request.Item)}`, condition ? "" : "INSERT refuses an item whose key exists; PutItem replaces it."];
  },
  Update(request, writer) {
    if (!request.UpdateExpression) throw new NoStatement("An UPDATE must change something.");
    const actions = new Expression(request.UpdateExpression, request, writer).actions();
    const changes = actions.map(([clause, change]) => `${clause} ${change}`).join(" ");
    const tests = [...writer.key(request.Key), ...conditionOf(request, "ConditionExpression", writer)];
    return [`UPDATE ${name(request.TableName)} ${changes} WHERE ${tests.join(" AND ")}`, "UPDATE fails if the item is missing; UpdateItem creates it."];
  },
  Delete(request, writer) {
    const tests = [...writer.key(request.Key), ...conditionOf(request, "ConditionExpression", writer)];
    return [`DELETE FROM ${name(request.TableName)} WHERE ${tests.join(" AND ")}`, ""];
  },
  ConditionCheck(request, writer) {
    const tests = [...writer.key(request.Key), ...conditionOf(request, "ConditionExpression", writer)];
    return [`EXISTS(SELECT * FROM ${name(request.TableName)} WHERE ${tests.join(" AND ")})`, ""];
  },
};

const one = (write, request) => {
  const writer = new Writer(), [Statement, note] = write(request, writer);
  return { Statement, Parameters: writer.parameters, note };
};
const selected = (request) => one((given, writer) => [select(given, writer), ""], request);

const TRANSLATED = {
  GetItem: (request) => [selected(request)],
  Scan: (request) => [selected(request)],
  Query: (request, { sortKey }) => {
    const found = selected(request);
    return [request.ScanIndexForward === false && sortKey ? { ...found, Statement: `${found.Statement} ORDER BY ${name(sortKey)} DESC` } : found];
  },
  PutItem: (request) => [one(WRITES.Put, request)],
  UpdateItem: (request) => [one(WRITES.Update, request)],
  DeleteItem: (request) => [one(WRITES.Delete, request)],
  BatchGetItem: (request) => Object.entries(request.RequestItems).flatMap(([TableName, { Keys, ...more }]) => Keys.map((Key) => selected({ TableName, Key, ...more }))),
  BatchWriteItem: (request) => Object.entries(request.RequestItems).flatMap(([TableName, writes]) => writes.map(({ PutRequest, DeleteRequest }) => (PutRequest ? one(WRITES.Put, { TableName, ...PutRequest }) : one(WRITES.Delete, { TableName, ...DeleteRequest })))),
  TransactGetItems: (request) => request.TransactItems.map(({ Get }) => selected(Get)),
  TransactWriteItems: (request) => request.TransactItems.map((action) => { const [kind] = Object.keys(action); return one(WRITES[kind], action[kind]); }),
  ExecuteStatement: (request) => [request],
  BatchExecuteStatement: (request) => request.Statements,
  ExecuteTransaction: (request) => request.TransactStatements,
};

// Returns the operation that runs several statements in the way in which the request runs its parts.
export const RUNNERS = { BatchGetItem: "BatchExecuteStatement", BatchWriteItem: "BatchExecuteStatement", TransactGetItems: "ExecuteTransaction", TransactWriteItems: "ExecuteTransaction", BatchExecuteStatement: "BatchExecuteStatement", ExecuteTransaction: "ExecuteTransaction" };

export function partiql(shape, request, where) {
  const statements = TRANSLATED[shape.name](request, where);
  const notes = [...new Set(statements.map((each) => each.note).filter(Boolean))];
  const parameters = statements.map((each, at) => [at, each.Parameters || []]).filter(([, given]) => given.length);
  const runner = RUNNERS[shape.name];
  if (runner) notes.unshift(`${runner} runs ${statements.length === 1 ? "this statement" : `these ${statements.length} statements`} together.`);
  for (const [at, given] of parameters) notes.push(`Parameters${statements.length > 1 ? ` of statement ${at + 1}` : ""}: ${JSON.stringify(given)}`);
  return { text: `${statements.map((each) => each.Statement).join("\n\n")}\n`, note: notes.join(" ") };
}
