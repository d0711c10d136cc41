/** The form of a question: its text and options, to a view and back. */

import { button, byId, fill, icon } from "./dom.js";
import { OPTIONS, emptyView } from "./route.js";
import { go, on, state } from "./state.js";

const form = byId("question");
const field = (name) => form.elements.namedItem(name);
const WORDS = { lexical: "words only", vector: "vectors only" };

/** What the form says. Lists are typed with commas. */
function read() {
  const found = { q: byId("q").value.trim() };
  for (const name of ["mode", "temporal"]) found[name] = field(name).value;
  for (const name of ["since", "until"]) found[name] = field(name).value.trim();
  for (const name of ["path", "lang", "tag"])
    found[name] = field(name)
      .value.split(",")
      .map((one) => one.trim())
      .filter(Boolean);
  for (const name of ["top", "hops"]) found[name] = field(name).value === "" ? null : Number(field(name).value);
  for (const name of ["graph", "expand", "rerank"]) found[name] = field(name).checked;
  found.kind = [...field("kind")].filter((box) => box.checked).map((box) => box.value);
  return found;
}

function write(view) {
  byId("q").value = view.q;
  for (const name of ["mode", "temporal", "since", "until"]) field(name).value = view[name];
  for (const name of ["path", "lang", "tag"]) field(name).value = view[name].join(", ");
  for (const name of ["top", "hops"]) field(name).value = view[name] ?? "";
  for (const name of ["graph", "expand", "rerank"]) field(name).checked = view[name];
  for (const box of field("kind")) box.checked = view.kind.includes(box.value);
  show();
}

/** Options that are not as usual, in a few words beside the disclosure. */
function show() {
  const given = read();
  const told = [
    WORDS[given.mode],
    given.temporal && `${given.temporal} first`,
    given.top !== null && `top ${given.top}`,
    !given.graph && "no graph",
    given.graph && given.hops !== null && `${given.hops} steps`,
    given.expand && "other wordings",
    given.rerank && "rerank",
    ...given.kind,
    ...given.path,
    ...given.lang,
    ...given.tag.map((tag) => `#${tag}`),
    given.since && `since ${given.since}`,
    given.until && `until ${given.until}`,
  ].filter(Boolean);
  byId("options-told").textContent = told.join(" · ");
  byId("clear").hidden = !byId("q").value && !state.view.q;
}

/** Back to the question in view; true if something else had been typed. */
export function revertDraft() {
  if (byId("q").value === state.view.q) return false;
  byId("q").value = state.view.q;
  show();
  return true;
}

/** No question any more; options stay for the next. */
export const clearQuestion = () => go({ q: "" });

export function startOptions() {
  fill(byId("clear"), icon("close"));
  form.addEventListener("input", show);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const asked = read();
    if (!asked.q) {
      byId("q").focus();
      return;
    }
    // A new question starts from the map: what was open belongs to the last one.
    const same = JSON.stringify(asked) === JSON.stringify(pick(state.view));
    go(same ? {} : { ...asked, chunk: null, from: null, topic: null, file: "" }, { how: "asked" });
  });
  byId("clear").addEventListener("click", () => {
    byId("q").value = "";
    if (state.view.q) clearQuestion();
    show();
    byId("q").focus();
  });
  byId("reset").addEventListener("click", () => write({ ...emptyView(), q: byId("q").value }));
  on("question", () => {
    write(state.view);
    if (state.view.q) byId("options").open = false;
  });
}

const pick = (view) => Object.fromEntries(Object.keys(read()).map((name) => [name, view[name]]));

/** A button that drops one option; for answers that are empty. */
export function dropOptions() {
  const usual = emptyView();
  const patch = Object.fromEntries(OPTIONS.map((name) => [name, usual[name]]));
  const differs = OPTIONS.some((name) => String(state.view[name]) !== String(usual[name]));
  return differs
    ? button({ class: "primary", on: { click: () => go(patch, { how: "asked" }) } }, "Ask without options")
    : null;
}
