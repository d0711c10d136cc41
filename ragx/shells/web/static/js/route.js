/** What the page shows, as the part of its address after `#`, and back. */

const NUMBERS = { top: [1, 1000], hops: [0, 10] };
const CHOICES = { mode: ["lexical", "vector"], temporal: ["recent", "oldest"] };
const FLAGS = { graph: true, expand: false, rerank: false };
const TEXTS = ["since", "until"];
const LISTS = ["path", "lang", "kind", "tag"];
const IDS = ["chunk", "from", "topic"];
const MOST_ID = Number.MAX_SAFE_INTEGER;

/** Names of what belongs to a question beside its text. */
export const OPTIONS = [...Object.keys(CHOICES), ...Object.keys(NUMBERS), ...Object.keys(FLAGS), ...TEXTS, ...LISTS];

/** A view of nothing in particular. Ids are null, texts "", lists empty, numbers null. */
export function emptyView() {
  return {
    q: "",
    mode: "",
    temporal: "",
    top: null,
    hops: null,
    ...FLAGS,
    since: "",
    until: "",
    path: [],
    lang: [],
    kind: [],
    tag: [],
    chunk: null,
    from: null,
    topic: null,
    file: "",
    at: null,
  };
}

/** What an address says; what it says wrongly is left out. @param {string} hash with or without "#" */
export function parse(hash) {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const view = emptyView();
  view.q = given.get("q") ?? "";
  view.file = given.get("file") ?? "";
  for (const name of IDS) {
    const text = given.get(name) ?? "";
    if (/^\d{1,16}$/.test(text) && Number(text) <= MOST_ID) view[name] = Number(text);
  }
  for (const [name, [least, most]] of Object.entries(NUMBERS)) {
    const text = given.get(name) ?? "";
    if (/^\d+$/.test(text) && Number(text) >= least && Number(text) <= most) view[name] = Number(text);
  }
  for (const [name, choices] of Object.entries(CHOICES))
    if (choices.includes(given.get(name))) view[name] = given.get(name);
  for (const [name, otherwise] of Object.entries(FLAGS)) {
    if (given.has(name)) view[name] = otherwise ? given.get(name) !== "off" : given.get(name) === "on";
  }
  for (const name of TEXTS) view[name] = given.get(name) ?? "";
  for (const name of LISTS) view[name] = given.getAll(name).filter(Boolean);
  const at = (given.get("at") ?? "").split(",").map(Number);
  if (at.length === 3 && at.every(Number.isFinite) && at[2] > 0) view.at = { x: at[0], y: at[1], scale: at[2] };
  return view;
}

/** The address of a view, without "#"; what is as usual is not in it. */
export function format(view) {
  const parts = [];
  const put = (name, value) => parts.push(`${name}=${encode(String(value))}`);
  if (view.q) put("q", view.q);
  for (const name of [...Object.keys(CHOICES), ...TEXTS]) if (view[name]) put(name, view[name]);
  for (const name of Object.keys(NUMBERS)) if (view[name] !== null) put(name, view[name]);
  for (const [name, otherwise] of Object.entries(FLAGS))
    if (view[name] !== otherwise) put(name, view[name] ? "on" : "off");
  for (const name of LISTS) for (const value of view[name]) put(name, value);
  for (const name of IDS) if (view[name] !== null) put(name, view[name]);
  if (view.file) put("file", view.file);
  if (view.at) put("at", [view.at.x.toFixed(1), view.at.y.toFixed(1), view.at.scale.toPrecision(4)].join(","));
  return parts.join("&");
}

// Slashes and commas may stand as they are: addresses stay legible.
const encode = (text) =>
  encodeURIComponent(text.toWellFormed?.() ?? text)
    .replace(/%2F/g, "/")
    .replace(/%2C/g, ",")
    .replace(/%20/g, "+");

/** Whether two views ask the same. */
export const sameQuestion = (one, other) =>
  ["q", ...OPTIONS].every((name) => String(one[name]) === String(other[name]));

/** Whether two views have the same open. */
export const sameSelection = (one, other) =>
  ["chunk", "from", "topic", "file"].every((name) => one[name] === other[name]);

/** The body of a question. */
export function bodyOf(view) {
  const body = { text: view.q, explain: true };
  for (const name of ["mode", "temporal", ...TEXTS]) if (view[name]) body[name] = view[name];
  for (const name of Object.keys(NUMBERS)) if (view[name] !== null) body[name] = view[name];
  for (const [name, otherwise] of Object.entries(FLAGS)) if (view[name] !== otherwise) body[name] = view[name];
  for (const name of LISTS) if (view[name].length) body[name] = view[name];
  return body;
}
