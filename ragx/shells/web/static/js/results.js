/** The answer to a question, as a list of files with the lines that matter and why they are there. */

import { sentence } from "./connection.js";
import { topicDot } from "./colors.js";
import { button, byId, fill, h, paged } from "./dom.js";
import { whyLine } from "./explain.js";
import { marked, snippet } from "./mark.js";
import { clearQuestion, dropOptions } from "./options.js";
import { ask } from "./questions.js";
import { go, opening, state } from "./state.js";
import { counted, number, placeIn, splitPath } from "./words.js";

const STATES = {
  changed: "changed since it was indexed",
  deleted: "deleted since it was indexed",
  unknown: "cannot be read now",
};

export const openChunk = (id) => go(opening.chunk(id));

/** Fills the list with the answer, or with why there is none. */
export function showResults() {
  const list = byId("list");
  const { answer, fault } = state;
  if (fault?.waiting) {
    fill(
      list,
      h(
        "div",
        { class: "empty", data: { test: "empty" } },
        h("p", {}, "The question is asked as soon as the server answers."),
      ),
    );
    return;
  }
  if (fault) {
    fill(list, failed(fault));
    return;
  }
  if (!answer) {
    fill(
      list,
      h(
        "div",
        { class: "empty" },
        h("p", {}, "Searching. The first question may take a few seconds, while the model is loaded."),
      ),
    );
    return;
  }
  const { doc } = answer;
  fill(
    list,
    h(
      "h2",
      { class: "listhead" },
      doc.results.length ? counted(doc.results.length, "file") : "Nothing found",
      h("span", { class: "muted" }, took(doc)),
    ),
    outdated(),
    (doc.warnings ?? []).map((line) => h("p", { class: "notice" }, sentence(line))),
    doc.variants?.length > 0 && h("p", { class: "muted small" }, "Also searched for: ", doc.variants.join(" · ")),
    doc.results.length
      ? paged("ol", doc.results, (entry, at) => result(entry, at + 1, answer), {
          class: "results",
          data: { test: "results" },
          what: "files",
        })
      : nothing(),
  );
}

const took = (doc) =>
  Number.isFinite(doc.elapsed_ms)
    ? `${doc.elapsed_ms < 1000 ? `${Math.round(doc.elapsed_ms)} ms` : `${(doc.elapsed_ms / 1000).toFixed(1)} s`}`
    : "";

function outdated() {
  if (!state.corpus || !state.answer.corpus || state.answer.corpus === state.corpus) return null;
  return h(
    "p",
    { class: "notice" },
    "The index changed since this was asked. ",
    button({ class: "link", on: { click: () => ask("again") } }, "Ask again"),
  );
}

function failed(fault) {
  const about =
    fault.status === 400
      ? "This cannot be asked"
      : fault.status === 502
        ? "The question could not be answered"
        : "Asking failed";
  return h(
    "div",
    { class: "empty", role: "alert", data: { test: "empty" } },
    h("h2", {}, about),
    h("p", { class: "said" }, sentence(fault.message)),
    fault.status === 400 && h("p", { class: "muted" }, "Look at the options of the question."),
    h(
      "p",
      { class: "ends" },
      button({ class: "primary", on: { click: () => ask("again") } }, "Ask again"),
      dropOptions(),
    ),
  );
}

function nothing() {
  const { view } = state;
  const tries = [
    view.mode === "lexical" && "Only words were searched: let vectors search, too.",
    view.mode === "vector" && "Only vectors were searched: let words search, too.",
    (view.path.length || view.lang.length || view.kind.length || view.tag.length || view.since || view.until) &&
      "The filters may leave too little: take one away.",
    !view.graph && "The graph is off: files that answer without resembling the question are found through it.",
    "Other words, or fewer of them.",
    "A file that is missing may be left out of the index: ragx index -v says why.",
  ].filter(Boolean);
  return h(
    "div",
    { class: "empty", data: { test: "empty" } },
    h("p", {}, "No chunk answers ", h("q", {}, view.q), "."),
    h("p", { class: "muted" }, "What may help:"),
    h(
      "ul",
      {},
      tries.map((line) => h("li", {}, line)),
    ),
    h("p", { class: "ends" }, dropOptions(), button({ on: { click: clearQuestion } }, "Clear the question")),
  );
}

function result(entry, rank, answer) {
  const [best, ...others] = entry.chunks;
  const node = state.corpus?.node(best.chunk_id);
  const [directory, name] = splitPath(entry.file);
  const place = placeIn(best, node);
  const lines = snippet(best.text ?? "", answer.stems);
  const row = button(
    {
      class: "row",
      data: { row: best.chunk_id },
      tabindex: "-1",
      "aria-label": `${rank}: ${entry.file} ${place}`,
      on: { click: () => openChunk(best.chunk_id) },
    },
    h("span", { class: "rank", "aria-hidden": "true" }, rank),
    h("span", { class: "file" }, h("span", { class: "muted" }, directory), h("b", {}, name)),
    h("span", { class: "score", title: "score" }, number(entry.score)),
  );
  const item = h(
    "li",
    { class: "result", data: { test: "result", file: entry.file } },
    row,
    h(
      "p",
      { class: "where" },
      node && topicDot(node.community),
      h("span", { class: "mono" }, place),
      best.heading?.length > 0 && h("span", { class: "crumbs" }, best.heading.join(" › ")),
      entry.date && h("span", {}, entry.date),
      STATES[entry.state] && h("span", { class: "badge" }, STATES[entry.state]),
    ),
    lines.some((text) => text.trim()) &&
      h(
        "pre",
        { class: "snippet" },
        lines.map((text) => h("span", { class: "line" }, marked(text, answer.stems), "\n")),
      ),
    whyLine(best.explain, answer),
    (others.length > 0 || entry.also_in?.length > 0) &&
      h(
        "p",
        { class: "others" },
        others.length > 0 && [
          "also ",
          others.map((part) => {
            const where = placeIn(part, state.corpus?.node(part.chunk_id)) || `chunk ${part.ordinal + 1}`;
            return button(
              {
                class: "chip mono",
                data: { more: part.chunk_id },
                tabindex: "-1",
                title: `score ${number(part.score)}`,
                "aria-label": `${entry.file} ${where}`,
                on: { click: () => openChunk(part.chunk_id) },
              },
              where,
            );
          }),
        ],
        entry.also_in?.length > 0 &&
          h(
            "span",
            { class: "muted", title: entry.also_in.join("\n") },
            `the same text in ${counted(entry.also_in.length, "other file")}`,
          ),
      ),
  );
  item.addEventListener("click", ({ target }) => {
    // The whole entry opens it, but text in it may be selected.
    if (!target.closest("button") && getSelection().isCollapsed) row.click();
  });
  return item;
}

/** Marks what of the list is open. */
export function markCurrent() {
  const { chunk, topic } = state.view;
  for (const one of byId("list").querySelectorAll("[data-row], [data-more]")) {
    const { row, more, topicRow } = one.dataset;
    const is =
      topicRow === undefined
        ? chunk !== null && (row ?? more) === String(chunk)
        : topic !== null && topicRow === String(topic);
    if (is) one.setAttribute("aria-current", "true");
    else one.removeAttribute("aria-current");
  }
  for (const item of byId("list").querySelectorAll("li"))
    item.classList.toggle("open", Boolean(item.querySelector("[aria-current]")));
}
