// The members of data operations' requests, from the service's model, with the names that the form
// and typed languages use for them.

const text = { kind: "text" };
const expression = { kind: "expression" };
const whole = { kind: "whole" };
const flag = { kind: "flag" };
const value = { kind: "value" };
const map = (of, more) => ({ kind: "map", of, ...more });
const list = (of) => ({ kind: "list", of });
const choice = (name, ...values) => ({ kind: "choice", name, values });
const record = (name, members, required = []) => ({ kind: "record", name, members, required });
// A union: exactly one of its members is set.
const either = (name, members) => ({ kind: "either", name, members });

const item = map(value);
const key = { ...item, isKey: true };
const names = map(text, { placeholder: "#" });
const values = map(value, { placeholder: ":" });
const capacity = choice("ReturnConsumedCapacity", "TOTAL", "INDEXES", "NONE");
const sizes = choice("ReturnItemCollectionMetrics", "SIZE", "NONE");
const onFailure = choice("ReturnValuesOnConditionCheckFailure", "ALL_OLD", "NONE");
const returned = (...allowed) => choice("ReturnValue", ...allowed);
const expressed = { ExpressionAttributeNames: names, ExpressionAttributeValues: values };
const answered = { ReturnValuesOnConditionCheckFailure: onFailure };
const charged = { ReturnConsumedCapacity: capacity };
const measured = { ...charged, ReturnItemCollectionMetrics: sizes };

const Get = record("Get", { TableName: text, Key: key, ProjectionExpression: expression, ExpressionAttributeNames: names }, ["TableName", "Key"]);
const Put = record("Put", { TableName: text, Item: item, ConditionExpression: expression, ...expressed, ...answered }, ["TableName", "Item"]);
const Update = record("Update", { TableName: text, Key: key, UpdateExpression: expression, ConditionExpression: expression, ...expressed, ...answered }, ["TableName", "Key", "UpdateExpression"]);
const Delete = record("Delete", { TableName: text, Key: key, ConditionExpression: expression, ...expressed, ...answered }, ["TableName", "Key"]);
const ConditionCheck = record("ConditionCheck", { TableName: text, Key: key, ConditionExpression: expression, ...expressed, ...answered }, ["TableName", "Key", "ConditionExpression"]);
const KeysAndAttributes = record("KeysAndAttributes", { Keys: list(key), ProjectionExpression: expression, ExpressionAttributeNames: names, ConsistentRead: flag }, ["Keys"]);
const WriteRequest = either("WriteRequest", {
  PutRequest: record("PutRequest", { Item: item }, ["Item"]),
  DeleteRequest: record("DeleteRequest", { Key: key }, ["Key"]),
});
const statement = { Statement: expression, Parameters: list(value) };
const selected = choice("Select", "ALL_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES", "SPECIFIC_ATTRIBUTES", "COUNT");
const read = { ProjectionExpression: expression, FilterExpression: expression, ...expressed, Limit: whole, ConsistentRead: flag, Select: selected };

export const OPERATIONS = {
  GetItem: record("GetItem", { TableName: text, Key: key, ProjectionExpression: expression, ExpressionAttributeNames: names, ConsistentRead: flag, ...charged }, ["TableName", "Key"]),
  PutItem: record("PutItem", { TableName: text, Item: item, ConditionExpression: expression, ...expressed, ReturnValues: returned("NONE", "ALL_OLD"), ...answered, ...measured }, ["TableName", "Item"]),
  UpdateItem: record("UpdateItem", { TableName: text, Key: key, UpdateExpression: expression, ConditionExpression: expression, ...expressed, ReturnValues: returned("NONE", "ALL_OLD", "UPDATED_OLD", "ALL_NEW", "UPDATED_NEW"), ...answered, ...measured }, ["TableName", "Key"]),
  DeleteItem: record("DeleteItem", { TableName: text, Key: key, ConditionExpression: expression, ...expressed, ReturnValues: returned("NONE", "ALL_OLD"), ...answered, ...measured }, ["TableName", "Key"]),
  Query: record("Query", { TableName: text, IndexName: text, KeyConditionExpression: expression, ...read, ScanIndexForward: flag, ExclusiveStartKey: item, ...charged }, ["TableName", "KeyConditionExpression"]),
  Scan: record("Scan", { TableName: text, IndexName: text, ...read, Segment: whole, TotalSegments: whole, ExclusiveStartKey: item, ...charged }, ["TableName"]),
  BatchGetItem: record("BatchGetItem", { RequestItems: map(KeysAndAttributes, { isByTable: true }), ...charged }, ["RequestItems"]),
  BatchWriteItem: record("BatchWriteItem", { RequestItems: map(list(WriteRequest), { isByTable: true }), ...measured }, ["RequestItems"]),
  TransactGetItems: record("TransactGetItems", { TransactItems: list(record("TransactGetItem", { Get }, ["Get"])), ...charged }, ["TransactItems"]),
  TransactWriteItems: record("TransactWriteItems", { TransactItems: list(either("TransactWriteItem", { Put, Update, Delete, ConditionCheck })), ClientRequestToken: text, ...measured }, ["TransactItems"]),
  ExecuteStatement: record("ExecuteStatement", { ...statement, ConsistentRead: flag, Limit: whole, NextToken: text, ...charged, ...answered }, ["Statement"]),
  BatchExecuteStatement: record("BatchExecuteStatement", { Statements: list(record("BatchStatementRequest", { ...statement, ConsistentRead: flag, ...answered }, ["Statement"])), ...charged }, ["Statements"]),
  ExecuteTransaction: record("ExecuteTransaction", { TransactStatements: list(record("ParameterizedStatement", { ...statement, ...answered }, ["Statement"])), ClientRequestToken: text, ...charged }, ["TransactStatements"]),
};

export const READS = new Set(["GetItem", "Query", "Scan", "BatchGetItem", "TransactGetItems"]);
