// A long session, made by the real server itself: so many turns of the practice model, over its own protocol.
import { spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const launcher = path.join(path.dirname(fileURLToPath(import.meta.url)), "launch.py");

/** The title of a session with `turns` turns, each a prompt and an answer. */
export async function seedLongSession(stage, name, turns) {
  const folder = path.join(stage.root, name);
  fs.mkdirSync(folder, { recursive: true });
  fs.mkdirSync(path.join(stage.root, "stories", name), { recursive: true });
  const env = { ...process.env, STEADYHAND_STORIES: path.join(stage.root, "stories") };
  const server = spawn(stage.python, [launcher], { cwd: folder, env, stdio: ["pipe", "pipe", "inherit"] });
  const client = new Client(server);
  const uri = pathToFileURL(folder).href;
  await client.request("initialize", { processId: process.pid, rootUri: uri, workspaceFolders: [{ uri, name }], capabilities: {} });
  client.send({ method: "initialized", params: {} });
  const { sessionId } = await client.request("steadyhand/session/create", { title: "A long one" });
  for (let turn = 1; turn <= turns; turn += 1) {
    const text = `say number ${turn}`;
    await client.request("workspace/executeCommand", { command: "steadyhand.ask", arguments: [{ sessionId, text }] });
  }
  await client.request("shutdown");
  client.send({ method: "exit" });
  await new Promise((resolve) => server.once("exit", resolve));
  return "A long one";
}

/** As much of JSON-RPC as this needs: requests one after another, everything else of the server passed over. */
class Client {
  constructor(server) {
    this.server = server;
    this.number = 0;
    this.open = new Map();
    this.unread = Buffer.alloc(0);
    server.stdout.on("data", (chunk) => this.read(chunk));
    server.stdin.on("error", () => undefined); // its end says it
    server.once("exit", (code) => {
      for (const waiting of this.open.values()) waiting.reject(new Error(`the server ended with ${code}`));
    });
  }

  request(method, params) {
    const id = ++this.number;
    this.send({ id, method, ...(params === undefined ? {} : { params }) });
    return new Promise((resolve, reject) => this.open.set(id, { resolve, reject }));
  }

  send(message) {
    const body = Buffer.from(JSON.stringify({ jsonrpc: "2.0", ...message }));
    this.server.stdin.write(Buffer.concat([Buffer.from(`Content-Length: ${body.length}\r\n\r\n`), body]));
  }

  read(chunk) {
    this.unread = Buffer.concat([this.unread, chunk]);
    for (;;) {
      const head = this.unread.indexOf("\r\n\r\n");
      if (head < 0) return;
      const length = Number(/Content-Length: (\d+)/i.exec(this.unread.subarray(0, head).toString())?.[1]);
      if (this.unread.length < head + 4 + length) return;
      const message = JSON.parse(this.unread.subarray(head + 4, head + 4 + length).toString());
      this.unread = this.unread.subarray(head + 4 + length);
      const waiting = message.method === undefined ? this.open.get(message.id) : undefined;
      if (waiting === undefined) continue;
      this.open.delete(message.id);
      if (message.error) waiting.reject(new Error(message.error.message));
      else waiting.resolve(message.result);
    }
  }
}
