/** Before any question: what the corpus is about, group by group. */

import { sentence } from "./connection.js";
import { topicDot } from "./colors.js";
import { button, byId, fill, h, paged } from "./dom.js";
import { go, opening, state } from "./state.js";
import { counted } from "./words.js";

export const openTopic = (number) => go(opening.topic(number));

export function showTopics() {
  const { corpus } = state;
  const list = byId("list");
  if (!corpus) {
    fill(
      list,
      h("div", { class: "empty" }, h("p", {}, state.graphFault ? sentence(state.graphFault) : "Reading the map.")),
    );
    return;
  }
  const { meta, communities, grouped } = corpus;
  if (!meta.nodes) {
    fill(
      list,
      h(
        "div",
        { class: "empty", data: { test: "empty" } },
        h("h2", {}, "The index is empty"),
        h("p", {}, "There is nothing to ask or to look at yet."),
        h("p", {}, h("code", {}, "ragx index -v"), " lists what is left out, and why."),
      ),
    );
    return;
  }
  if (!communities.length) {
    fill(
      list,
      h(
        "div",
        { class: "empty", data: { test: "empty" } },
        h("p", {}, "This index holds no topics. Ask a question, or look at the map."),
      ),
    );
    return;
  }
  fill(
    list,
    h(
      "h2",
      { class: "listhead" },
      grouped.one === "topic" ? "Topics" : "Directories",
      h("span", { class: "muted" }, communities.length.toLocaleString("en")),
    ),
    paged("ol", communities, topic, { class: "topics", data: { test: "topics" }, what: grouped.many }),
  );
}

function topic(one) {
  return h(
    "li",
    {},
    button(
      {
        class: "row topic",
        data: { row: "", test: "topic", topicRow: one.community_id },
        tabindex: "-1",
        on: { click: () => openTopic(one.community_id) },
      },
      topicDot(one.community_id),
      h("span", { class: "label" }, one.label || `Topic ${one.community_id}`),
      h("span", { class: "sizes muted" }, `${counted(one.size, "chunk")}, ${counted(one.files, "file")}`),
    ),
  );
}
