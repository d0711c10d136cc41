/** Begins: paints the shell, reads the map, follows the address and the index. */

import { Refused, readGraph } from "./api.js";
import { kindMark, recolor } from "./colors.js";
import { back, isGone, noteFault, sentence, startConnection } from "./connection.js";
import { Corpus } from "./corpus.js";
import { byId, fill, h, icon } from "./dom.js";
import { startKeys } from "./keys.js";
import { tell } from "./live.js";
import { EDGE_KINDS } from "./map/index.js";
import { map, note, noteMap, retheme, showGraph, startMap } from "./mapview.js";
import { startOptions } from "./options.js";
import { startPanel } from "./panel.js";
import { startQuestions } from "./questions.js";
import { markCurrent, showResults } from "./results.js";
import { settleRows } from "./rows.js";
import { emit, follow, on, state } from "./state.js";
import { startTheme } from "./theme.js";
import { showTopics } from "./topics.js";
import { KINDS, counted } from "./words.js";

const POLL_MS = 5000;
let polling = 0;
let reading = false;

/** Reads the map if it changed, and shows it. */
async function readMap() {
  const doc = await readGraph();
  back();
  if (state.graphFault) {
    state.graphFault = "";
    noteMap();
  }
  if (!doc) return;
  const again = state.corpus !== null;
  const empty = again && !state.corpus.meta.nodes;
  state.corpus = new Corpus(doc);
  if (!again && state.answer) state.answer.corpus = state.corpus;
  byId("corpus").textContent = doc.meta.name;
  counts();
  notices();
  showGraph(again && !empty);
  showList();
  emit("corpus", again);
  if (again) tell(`The index changed: ${counted(doc.meta.nodes, "chunk")}.`);
}

async function poll() {
  clearTimeout(polling);
  if (!reading && !isGone() && document.visibilityState === "visible") {
    reading = true;
    try {
      await readMap();
    } catch (fault) {
      if (!noteFault(fault)) failed(fault);
    } finally {
      reading = false;
    }
  }
  polling = setTimeout(poll, POLL_MS);
}

function failed(fault) {
  state.graphFault = fault.message;
  if (!state.corpus) byId("status").textContent = "no map";
  note(
    fault instanceof Refused
      ? `The map could not be read. ${sentence(fault.message)}`
      : `The map could not be drawn: ${fault.message}.`,
  );
  if (!state.corpus && !state.view.q) showTopics();
  if (!(fault instanceof Refused)) throw fault;
}

function counts() {
  const { meta, files, grouped } = state.corpus;
  const n = files.size;
  const parts = [
    state.corpus.capped ? null : counted(n, "file"),
    counted(meta.nodes, "chunk"),
    counted(meta.edges, "edge"),
    counted(meta.communities || state.corpus.communities.length, grouped.one, grouped.many),
  ];
  byId("status").textContent = parts.filter(Boolean).join(" · ");
  byId("status").title = meta.embedding_model
    ? `Vectors by ${meta.embedding_model}`
    : "An index without vectors: words only";
}

function notices() {
  const { notices: lines } = state.corpus.meta;
  byId("notices").hidden = !lines.length;
  fill(
    byId("notices"),
    lines.map((line) => h("p", { class: "notice" }, sentence(line))),
  );
}

function title() {
  const name = state.corpus?.meta.name ?? "";
  document.title = [state.view.q, name, "ragx"].filter(Boolean).join(" · ");
}

/** The list on the left: the answer, or the topics; who was in a row stays in one. */
function showList() {
  const inside = byId("list").contains(document.activeElement);
  if (state.view.q) showResults();
  else showTopics();
  markCurrent();
  const rows = [...byId("list").querySelectorAll("[data-row]")];
  const open = rows.findIndex((row) => row.hasAttribute("aria-current"));
  settleRows(open < 0 ? null : open);
  if (inside) rows[Math.max(0, open)]?.focus({ preventScroll: true });
}

function helpKinds() {
  fill(
    byId("help-kinds"),
    EDGE_KINDS.map((kind) => h("div", {}, h("dt", {}, kindMark(kind), kind), h("dd", {}, KINDS[kind]))),
  );
  fill(byId("help-close"), icon("close"));
}

function start() {
  startTheme(() => (recolor(), retheme()));
  startMap();
  window.ragx = Object.freeze({ map, state });
  helpKinds();
  startOptions();
  startQuestions();
  startPanel();
  startKeys();
  startConnection(readMap);
  on("asking", () => {
    document.body.classList.add("asking");
    byId("list").setAttribute("aria-busy", "true");
    if (!state.answer) showList();
  });
  on("answer", (how) => {
    document.body.classList.remove("asking");
    byId("list").removeAttribute("aria-busy");
    showList();
    byId("list").scrollTop = 0;
    if (how === "load") byId("list").querySelector("li.open")?.scrollIntoView({ block: "nearest" });
  });
  on("selection", markCurrent);
  on("view", title);
  on("corpus", title);
  showTopics();
  follow("load");
  // Back and Forward are told by one of these or by both, an edited address by the second.
  addEventListener("popstate", () => follow("address"));
  addEventListener("hashchange", () => follow("address"));
  document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && poll());
  poll();
}

start();
