/** What a chunk is joined to, by kind or by strength. */

import { kindMark } from "./colors.js";
import { button, fill, h, paged } from "./dom.js";
import { evidenceLine } from "./explain.js";
import { go, opening } from "./state.js";
import { counted, number, oneLine, placeIn, splitPath } from "./words.js";
import { EDGE_KINDS } from "./map/index.js";

const FIRST = 8;
let order = "kind";

/** The part of the panel with the neighbours of a chunk. @param {object} chunk ragx.chunk.v1 */
export function neighboursSection(chunk) {
  const { neighbors } = chunk;
  const body = h("div", { data: { test: "neighbours" } });
  const choose = (by) =>
    button({ "aria-pressed": String(order === by), on: { click: () => ((order = by), show()) } }, by);
  const choice = h("div", { class: "choice", role: "group", "aria-label": "Order of neighbours" });
  const show = () => {
    const focused = choice.contains(document.activeElement);
    fill(choice, choose("kind"), choose("weight"));
    if (focused) choice.querySelector("[aria-pressed=true]").focus();
    fill(
      body,
      order === "kind"
        ? byKind(neighbors)
        : paged("ul", neighbors, neighbour, { first: 3 * FIRST, class: "neighbours", what: "neighbours" }),
    );
  };
  show();
  const more = chunk.degree - neighbors.length;
  return h(
    "section",
    {},
    h("div", { class: "sectionhead" }, h("h3", {}, counted(chunk.degree, "neighbour")), neighbors.length > 1 && choice),
    neighbors.length ? body : h("p", { class: "muted" }, "No edge joins this chunk to another."),
    more > 0 && h("p", { class: "muted small" }, `The strongest ${neighbors.length.toLocaleString("en")} are listed.`),
  );
}

function byKind(neighbors) {
  return EDGE_KINDS.map((kind) => {
    const some = neighbors.filter((one) => one.kind === kind);
    if (!some.length) return null;
    return h(
      "div",
      { class: "kindgroup" },
      h("h4", {}, kindMark(kind), kind, h("span", { class: "muted" }, some.length)),
      paged("ul", some, neighbour, { first: FIRST, class: "neighbours", what: `with ${kind}` }),
    );
  });
}

function neighbour(one) {
  const [directory, name] = splitPath(one.file);
  return h(
    "li",
    {},
    button(
      {
        class: "neighbour",
        data: { test: "neighbour", id: one.chunk_id },
        on: { click: () => go(opening.chunk(one.chunk_id)) },
      },
      h(
        "span",
        { class: "nhead" },
        kindMark(one.kind),
        h("span", { class: "file" }, h("span", { class: "muted" }, directory), h("b", {}, name)),
        h("span", { class: "mono muted" }, placeIn(one)),
        h("span", { class: "weight", title: "weight of the edge" }, number(one.weight, 2)),
      ),
      h(
        "span",
        { class: "nwords" },
        oneLine(one.words),
        one.label && one.label !== one.file && h("span", { class: "muted" }, " · ", oneLine(one.label).slice(0, 90)),
      ),
      one.evidence && one.evidence.line && h("span", { class: "nwords muted" }, evidenceLine(one.evidence)),
    ),
  );
}
