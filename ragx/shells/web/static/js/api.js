/** What the server is asked; every reply is JSON. */

/** The server did not answer at all. */
export class Gone extends Error {}

/** The server refused; `status` is that of HTTP, the message its own words. */
export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

let tag = "";

async function ask(path, options = {}) {
  let reply;
  try {
    reply = await fetch(path, { cache: "no-store", credentials: "same-origin", ...options });
  } catch (fault) {
    if (fault.name === "AbortError") throw fault;
    throw new Gone("the server does not answer");
  }
  if (reply.status === 304) return { reply, document: null };
  let document;
  try {
    document = await reply.json();
  } catch (fault) {
    if (fault.name === "AbortError") throw fault;
    if (reply.ok) throw new Gone("the server broke off its answer");
    document = null;
  }
  if (!reply.ok)
    throw new Refused(reply.status, document?.error ?? `the server answered with ${reply.status} and no reason`);
  return { reply, document };
}

/** `ragx.graph.v1`, or null while it is what was read last. */
export async function readGraph() {
  const { reply, document } = await ask("/api/graph", { headers: tag ? { "If-None-Match": tag } : {} });
  if (document) tag = reply.headers.get("ETag") ?? "";
  return document;
}

/** `ragx.chunk.v1` */
export const readChunk = async (id, signal) => (await ask(`/api/chunk/${id}`, { signal })).document;

/** `ragx.inspect.community.v1` */
export const readCommunity = async (number, signal) => (await ask(`/api/community/${number}`, { signal })).document;

/** `ragx.inspect.path.v1` */
export const readPath = async (from, to, signal) => (await ask(`/api/path/${from}/${to}`, { signal })).document;

/** `ragx.query.v3` with `elapsed_ms` */
export const sendQuery = async (body, signal) =>
  (
    await ask("/api/query", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
      signal,
    })
  ).document;
