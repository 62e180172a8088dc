// The official TypeScript client, run through the steps of the table in docs/reference/mcp.md.
//
//     node node_sdk.mjs TARGET NAME
//
// As adapters.py: TARGET is a URL, or JSON of a command; prints JSON of what came of each step.

import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

// The packages are installed where this is run, not beside this file.
const installed = createRequire(pathToFileURL(`${process.cwd()}/x`));
const load = (path) => import(pathToFileURL(installed.resolve(`@modelcontextprotocol/sdk/${path}`)));
const { Client } = await load("client/index.js");
const { StdioClientTransport } = await load("client/stdio.js");
const { StreamableHTTPClientTransport } = await load("client/streamableHttp.js");

const [given, fresh] = process.argv.slice(2);

async function connect() {
  const client = new Client({ name: "matrix", version: "1" });
  const transport = given.startsWith("{")
    ? new StdioClientTransport(JSON.parse(given))
    : new StreamableHTTPClientTransport(new URL(given));
  await client.connect(transport);
  return client;
}

function want(part, value) {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  if (!text.includes(part)) throw new Error(`${part} is not in ${text.slice(0, 200)}`);
}

const told = (promise) => promise.catch((error) => String(error));
const call = (name, args) => client.callTool({ name, arguments: args });

const steps = {
  "list tools": async () => want("search_skills", await client.listTools()),
  search: async () => want("pdf-forms", await call("search_skills", { query: "fill a form" })),
  read: async () => want("# Forms", await call("read_skill", { name: "pdf-forms" })),
  create: async () => want(fresh, await call("create_skill", { name: fresh, description: "New." })),
  "refused call": async () =>
    want("skill_exists", await told(call("create_skill", { name: "haiku", description: "New." }))),
  "null for optionals": async () =>
    want("haiku", await call("list_skills", { limit: null, tags: null, scope: null })),
  "unknown tool": async () => want("no_such_tool", await told(call("no_such_tool", {}))),
  "list resources": async () =>
    want("skill://mine/pdf-forms/SKILL.md", await client.listResources()),
  "read resource": async () =>
    want("# Forms", await client.readResource({ uri: "skill://mine/pdf-forms/SKILL.md" })),
  prompts: async () => want('"prompts":[]', await client.listPrompts()),
};

const started = performance.now();
const client = await connect();
const done = { connect: `${Math.round(performance.now() - started)} ms` };
for (const [name, step] of Object.entries(steps)) {
  done[name] = await step().then(
    () => "yes",
    (error) => `no: ${error}`.slice(0, 300),
  );
}
await client.close();
console.log(JSON.stringify(done));
