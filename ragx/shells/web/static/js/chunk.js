/** The panel of a chunk: its text, why it is there, what it is joined to. */

import { topicDot } from "./colors.js";
import { button, h, icon } from "./dom.js";
import { EDITORS, chooseEditor, chosenEditor, editorLink } from "./editor.js";
import { wayList, whySection } from "./explain.js";
import { tell } from "./live.js";
import { marked } from "./mark.js";
import { neighboursSection } from "./neighbours.js";
import { openTopic } from "./topics.js";
import { panelHead } from "./panelhead.js";
import { go, opening, state } from "./state.js";
import { counted, number, placeIn, splitPath } from "./words.js";

const MANY_LINES = 400;
const STATES = {
  changed: "The file changed on disk since it was indexed. This is the text that was indexed.",
  deleted: "The file is gone from the disk. This is the text that was indexed.",
  unknown: "The file on disk cannot be compared with the index now.",
};

/** @param {object} chunk ragx.chunk.v1 @param {object|null} way of ragx.inspect.path.v1, from state.view.from */
export function chunkPanel(chunk, way) {
  const node = state.corpus?.node(chunk.id);
  const [directory, name] = splitPath(chunk.file);
  const place = placeIn(chunk, node);
  const hit = state.answer?.hits.get(chunk.id);
  return [
    panelHead(
      button(
        { class: "filelink", title: "All chunks of this file", on: { click: () => go(opening.file(chunk.file)) } },
        h("span", { class: "muted" }, directory),
        h("b", {}, name),
      ),
      place,
    ),
    h(
      "div",
      { class: "scroll", tabindex: "0", role: "group", "aria-label": `${chunk.file} ${place}` },
      h("p", { class: "crumbs" }, chunk.heading.length ? chunk.heading.join(" › ") : chunk.label),
      chunk.community !== null &&
        h(
          "p",
          {},
          button(
            { class: "chip", on: { click: () => openTopic(chunk.community) } },
            topicDot(chunk.community),
            h("span", {}, chunk.community_label || `topic ${chunk.community}`),
          ),
        ),
      STATES[chunk.state] && h("p", { class: "notice" }, STATES[chunk.state]),
      state.corpus &&
        !node &&
        h(
          "p",
          { class: "notice" },
          state.corpus.capped
            ? `It is not on the map, which shows ${state.corpus.shown}.`
            : "It is not on the map: the index changed since the map was drawn.",
        ),
      actions(chunk, place),
      way === undefined ? null : waySection(chunk, way),
      way === undefined && hit && whySection(hit),
      textSection(chunk),
      neighboursSection(chunk),
    ),
  ];
}

function actions(chunk, place) {
  const root = state.corpus?.meta.root;
  const link = h("a", { class: "button", data: { test: "editor-link" } });
  const select = h(
    "select",
    { "aria-label": "Editor" },
    Object.entries(EDITORS).map(([key, { name }]) => h("option", { value: key }, name)),
  );
  select.value = chosenEditor();
  const aim = () => {
    link.replaceChildren(icon("open"), `Open in ${EDITORS[select.value].name}`);
    if (root) link.href = editorLink(select.value, root, chunk.file, chunk.line_start);
  };
  select.addEventListener("change", () => (chooseEditor(select.value), aim()));
  aim();
  const spot = Number.isFinite(chunk.line_start) ? `${chunk.file}:${chunk.line_start}` : chunk.file;
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(spot);
      tell(`Copied ${spot}`);
    } catch {
      tell(`The browser refuses to copy; it is ${spot}`, 12_000);
    }
  };
  const here = state.view.from === chunk.id;
  return h(
    "div",
    { class: "actions" },
    root && h("span", { class: "split" }, link, h("span", { class: "pick" }, select)),
    button(
      { data: { test: "copy-place" }, title: spot, "aria-label": `Copy ${spot}`, on: { click: copy } },
      icon("copy"),
      place && Number.isFinite(chunk.line_start) ? "Copy" : "Copy path",
    ),
    button(
      {
        data: { test: "path-from-here" },
        "aria-pressed": String(here),
        on: { click: () => go({ from: here ? null : chunk.id }) },
      },
      icon("way"),
      "Path from here",
    ),
  );
}

function waySection(chunk, way) {
  const end = button({ class: "link", on: { click: () => go({ from: null }) } }, "End");
  if (state.view.from === chunk.id) {
    return h(
      "section",
      { class: "why-section" },
      h("div", { class: "sectionhead" }, h("h3", {}, "Path from here"), end),
      h("p", {}, "Choose another chunk, on the map or in a list: the strongest way to it is shown."),
    );
  }
  if (!way) return null;
  return h(
    "section",
    { class: "why-section" },
    h("div", { class: "sectionhead" }, h("h3", {}, "The way here"), end),
    way.fault
      ? h("p", { class: "notice" }, way.fault)
      : way.steps.length
        ? [
            wayList(state.view.from, way.steps, "where the way begins"),
            h(
              "p",
              { class: "muted small", title: "weights multiplied, and less for every further step" },
              `${counted(way.steps.length, "step")}, strength ${number(way.strength, way.strength < 0.01 ? 5 : 2)}`,
            ),
          ]
        : h("p", { data: { test: "path" } }, "No way through the graph leads from there to this chunk."),
  );
}

function textSection(chunk) {
  const stems = state.answer?.stems;
  const numbered = Number.isFinite(chunk.line_start);
  const line = (text, n, dim) => [
    h("span", { class: dim ? "line dim" : "line", data: numbered ? { n } : {} }, marked(text, dim ? null : stems)),
    "\n",
  ];
  const around = (part) =>
    part
      ? linesOf(part.text, part.line_end - part.line_start + 1).map((text, at) =>
          line(text, part.line_start + at, true),
        )
      : [];
  const lines = linesOf(chunk.text, numbered ? chunk.line_end - chunk.line_start + 1 : Infinity);
  const pre = h("pre", { class: `text ${numbered ? "numbered" : ""}`, data: { test: "chunk-text" } });
  const body = (some) => some.map((text, at) => line(text, chunk.line_start + at, false));
  const whole = () => pre.replaceChildren(...[around(chunk.before), body(lines), around(chunk.after)].flat(2));
  if (lines.length <= MANY_LINES) {
    whole();
    return h("section", {}, h("h3", { class: "hidden" }, "Text"), pre);
  }
  pre.replaceChildren(...[around(chunk.before), body(lines.slice(0, MANY_LINES))].flat(2));
  const rest = button(
    { class: "more", on: { click: () => (whole(), rest.remove()) } },
    `Show all ${counted(lines.length, "line")}`,
  );
  return h("section", {}, h("h3", { class: "hidden" }, "Text"), pre, rest);
}

/** Lines of a text; the break at its end begins no line. */
function linesOf(text, most) {
  const lines = text.split(/\r\n|\n|\r/);
  if (lines.length > most && lines.at(-1) === "") lines.pop();
  return lines;
}
