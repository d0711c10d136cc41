/** The panels of a topic and of a file. */

import { topicDot } from "./colors.js";
import { button, h, paged } from "./dom.js";
import { panelHead } from "./panelhead.js";
import { openTopic } from "./topics.js";
import { go, opening, state } from "./state.js";
import { counted, number, oneLine, placeIn, splitPath } from "./words.js";

const MOST_LINKED = 8;

/** @param {object} doc ragx.inspect.community.v1 */
export function communityPanel(doc) {
  const files = new Map();
  for (const { file } of doc.members) files.set(file, (files.get(file) ?? 0) + 1);
  const sorted = [...files].sort((one, other) => other[1] - one[1] || (one[0] < other[0] ? -1 : 1));
  const linked = state.corpus?.linked(doc.community_id).slice(0, MOST_LINKED) ?? [];
  const most = linked[0]?.strength ?? 1;
  const word = state.corpus?.grouped.one ?? "topic";
  return [
    panelHead([topicDot(doc.community_id), h("b", {}, doc.label || `Topic ${doc.community_id}`)]),
    h(
      "div",
      { class: "scroll", tabindex: "0", role: "group", "aria-label": `${word} ${doc.label}` },
      h(
        "p",
        { class: "muted" },
        `${word === "topic" ? "Topic" : "Directory"} of ${counted(doc.size, "chunk")} in ${counted(files.size, "file")}`,
      ),
      doc.summary && h("p", { class: "summary" }, doc.summary),
      linked.length > 0 &&
        h(
          "section",
          {},
          h("h3", {}, "Joined most to"),
          h(
            "ul",
            { class: "plain" },
            linked.map(({ topic, strength }) =>
              h(
                "li",
                {},
                button(
                  { class: "row linked", on: { click: () => openTopic(topic.community_id) } },
                  topicDot(topic.community_id),
                  h("span", { class: "label" }, topic.label),
                  h(
                    "span",
                    { class: "meter", title: `sum of the edges' weights: ${number(strength, 1)}` },
                    h("span", { style: { width: `${Math.max(2, (100 * strength) / most)}%` } }),
                  ),
                ),
              ),
            ),
          ),
        ),
      h(
        "section",
        {},
        h("h3", {}, "Files"),
        paged(
          "ul",
          sorted,
          ([file, n]) => {
            const [directory, name] = splitPath(file);
            return h(
              "li",
              {},
              button(
                { class: "row filerow", data: { test: "file" }, on: { click: () => go(opening.file(file)) } },
                h("span", { class: "file" }, h("span", { class: "muted" }, directory), h("b", {}, name)),
                h("span", { class: "muted", title: counted(n, "chunk") }, n.toLocaleString("en")),
              ),
            );
          },
          { class: "plain", what: "files" },
        ),
      ),
    ),
  ];
}

/** @param {string} file that the map knows, or not */
export function filePanel(file) {
  const [directory, name] = splitPath(file);
  const nodes = state.corpus?.files.get(file);
  const head = panelHead(h("span", {}, h("span", { class: "muted" }, directory), h("b", {}, name)));
  if (!nodes) {
    const why = !state.corpus
      ? "The map is being read."
      : state.corpus.capped
        ? `No chunk of this file is on the map, which shows ${state.corpus.shown}.`
        : "The index holds no such file. Perhaps the index changed since this address was made.";
    return [head, h("div", { class: "scroll" }, h("p", { class: "notice" }, why))];
  }
  const topics = [...new Set(nodes.map((node) => node.community))]
    .map((id) => state.corpus.topics.get(id))
    .filter(Boolean);
  return [
    head,
    h(
      "div",
      { class: "scroll", tabindex: "0", role: "group", "aria-label": file },
      h("p", { class: "muted" }, counted(nodes.length, "chunk")),
      h(
        "p",
        { class: "chips" },
        topics.map((one) =>
          button(
            { class: "chip", on: { click: () => openTopic(one.community_id) } },
            topicDot(one.community_id),
            h("span", {}, one.label),
          ),
        ),
      ),
      paged(
        "ol",
        nodes,
        (node) =>
          h(
            "li",
            {},
            button(
              { class: "row chunkrow", data: { test: "chunk" }, on: { click: () => go(opening.chunk(node.id)) } },
              topicDot(node.community),
              h("span", { class: "mono" }, placeIn(node)),
              h("span", { class: "label" }, oneLine(node.label).slice(0, 160)),
              h("span", { class: "muted", title: counted(node.degree, "edge") }, node.degree.toLocaleString("en")),
            ),
          ),
        { class: "plain", what: "chunks" },
      ),
    ),
  ];
}
