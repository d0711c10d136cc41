/** The right panel: reads what is open, and shows it when it is there. */

import { Refused, readChunk, readCommunity, readPath } from "./api.js";
import { chunkPanel } from "./chunk.js";
import { communityPanel, filePanel } from "./community.js";
import { back, noteFault, sentence } from "./connection.js";
import { byId, fill, h } from "./dom.js";
import { say } from "./live.js";
import { panelHead } from "./panelhead.js";
import { emit, on, state } from "./state.js";

const SLOW_MS = 250;

const panel = byId("panel");
let running = null;
let waiting = false;
let shown = "";

export function startPanel() {
  on("selection", (how) => show(how));
  on("back", () => waiting && show("back"));
  on("answer", () => redraw());
  on("corpus", (again) => (again && state.view.file === "" ? show("again") : redraw()));
}

const key = ({ chunk, topic, file }) =>
  chunk !== null ? `chunk ${chunk}` : topic !== null ? `topic ${topic}` : file ? `file ${file}` : "";

async function show(how) {
  running?.abort();
  running = null;
  waiting = false;
  const { view } = state;
  const wanted = key(view);
  if (!wanted) {
    const focused = panel.contains(document.activeElement);
    shown = "";
    Object.assign(state, { selected: null, way: null });
    panel.hidden = true;
    panel.replaceChildren();
    emit("shown", how);
    if (focused) (document.querySelector("#list [data-row][tabindex='0']") ?? byId("q")).focus();
    return;
  }
  const stop = new AbortController();
  running = stop;
  // What was open stays until the next is there, so that nothing jumps; if that takes long, it is said.
  const slow = setTimeout(
    () =>
      draw(
        [
          panelHead(h("b", {}, wanted.split(" ")[0] === "chunk" ? "Chunk" : "Topic")),
          h("p", { class: "muted pad" }, "Reading."),
        ],
        "",
      ),
    SLOW_MS,
  );
  try {
    const found = await read(view, stop.signal);
    if (running !== stop) return;
    Object.assign(state, found);
    if (found.answered) back();
    if (found.said) say(found.said);
    draw(contents(), wanted);
  } catch (fault) {
    if (running !== stop || fault.name === "AbortError") return;
    Object.assign(state, { selected: null, way: null });
    waiting = noteFault(fault);
    draw(failed(fault, wanted), wanted);
  } finally {
    clearTimeout(slow);
  }
  emit("shown", how);
}

async function read(view, signal) {
  if (view.chunk !== null) {
    const [selected, way] = await Promise.all([readChunk(view.chunk, signal), wayTo(view, signal)]);
    return { selected, way, answered: true, said: `Opened ${selected.file} ${selected.line_start ?? ""}` };
  }
  if (view.topic !== null) {
    const selected = await readCommunity(view.topic, signal);
    return { selected, way: null, answered: true, said: `Opened ${selected.label}` };
  }
  return { selected: { file: view.file }, way: null, answered: false, said: `Opened ${view.file}` };
}

/** The way to the open chunk from where one shall begin; undefined if nobody asked for one. */
async function wayTo({ chunk, from }, signal) {
  if (from === null) return undefined;
  if (from === chunk) return null;
  try {
    return await readPath(from, chunk, signal);
  } catch (fault) {
    if (!(fault instanceof Refused) || fault.status === 503) throw fault;
    return { steps: [], path: [], fault: sentence(fault.message) };
  }
}

function contents() {
  const { view, selected, way } = state;
  if (view.chunk !== null) return chunkPanel(selected, way);
  if (view.topic !== null) return communityPanel(selected);
  return filePanel(view.file);
}

function failed(fault, wanted) {
  const [what] = wanted.split(" ");
  const gone = fault instanceof Refused && fault.status === 404;
  const name = wanted.slice(what.length + 1);
  const word = what === "topic" ? (state.corpus?.grouped.one ?? "topic") : what;
  return [
    panelHead(h("b", {}, gone ? `There is no ${word} ${name}` : `This ${word} could not be read`)),
    h(
      "div",
      { class: "scroll" },
      h(
        "p",
        { class: "notice", role: "alert" },
        waiting ? "It is read as soon as the server answers." : sentence(fault.message),
      ),
      gone &&
        h(
          "p",
          {},
          "The index changed since this address was made: numbers of chunks and topics change with the texts. Ask again, or begin at the topics.",
        ),
    ),
  ];
}

/** Shows content; focus that was in the old one goes to the head of the new. */
function draw(content, of) {
  const focused = panel.contains(document.activeElement);
  const same = of !== "" && of === shown;
  const scrolled = same ? panel.querySelector(".scroll")?.scrollTop : 0;
  panel.hidden = false;
  fill(panel, content);
  const scroll = panel.querySelector(".scroll");
  if (scroll && scrolled) scroll.scrollTop = scrolled;
  if (focused) panel.querySelector("h2")?.focus({ preventScroll: true });
  shown = of;
}

/** The same content again, as what is known beside it changed. */
function redraw() {
  if (shown && state.selected && shown === key(state.view)) draw(contents(), shown);
}
