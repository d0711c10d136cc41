/** Why a chunk is there: the way that led to it, edge by edge, and what its score is made of. */

import { kindMark } from "./colors.js";
import { button, h } from "./dom.js";
import { go, opening, state } from "./state.js";
import { counted, foundBy, number, oneLine, placeIn, splitPath, stepWords } from "./words.js";

const TERMS = {
  vector: "nearness of the vectors",
  lexical: "words of the question in the text",
  path: "words of the question in the path",
  file_name: "words of the question in the file's name",
  definition: "it defines what is asked for",
  heat: "what came through the graph",
  cap: "no chunk gets more than the one it came from",
  balance: "evens out words and vectors",
  length: "very short or long chunks count less",
  rerank: "second look by a cross-encoder",
};

const FILE_TERMS = { best: "best chunk", further: "further chunks" };

const quoted = ({ verb, quote }) => [verb, quote && " ", quote && h("code", {}, quote)];

/** One line: the searches that found it, or the way through the graph. */
export function whyLine(explain, answer) {
  if (!explain) return null;
  if (!explain.hop) return h("p", { class: "why" }, "found by ", foundBy(explain.terms));
  const last = explain.steps.at(-1);
  const seed = fileOf(explain.seed, answer);
  const words = stepWords(last);
  const said = { ...words, verb: words.verb.replace(/^is /, "") };
  const steps = explain.hop > 1 ? `, ${counted(explain.hop, "step")}` : "";
  const from = seed ? splitPath(seed)[1] : "another chunk";
  return h(
    "p",
    { class: "why", title: `from ${seed || from}${steps}: ${said.verb} ${said.quote}` },
    kindMark(last.kind),
    h("span", {}, "from ", h("b", {}, from), steps, ": ", quoted(said)),
  );
}

/** File of a chunk, from the answer or the map. */
function fileOf(id, answer = state.answer) {
  return answer?.hits.get(id)?.entry.file ?? state.corpus?.node(id)?.file ?? "";
}

/** A chunk's place as a button that opens it. */
export function placeButton(id, { file = fileOf(id), ...place } = {}, properties = {}) {
  const [directory, name] = splitPath(file || `chunk ${id}`);
  const node = state.corpus?.node(id);
  const where = placeIn(place, state.answer?.hits.get(id)?.part, node);
  return button(
    { class: "place", ...properties, on: { click: () => go(opening.chunk(id)) } },
    h("span", { class: "file" }, h("span", { class: "muted" }, directory), h("b", {}, name)),
    h("span", { class: "mono" }, where),
  );
}

/** Where the text stands that an edge rests on. */
export function evidenceLine(evidence) {
  if (!evidence) return null;
  return h("span", { class: "evidence" }, evidence.line ? `line ${evidence.line} of ` : "in ", evidence.file);
}

/**
 * A way, spelled out.
 * @param {number} seed id it begins at
 * @param {object[]} steps of ragx.query.v3 or ragx.inspect.path.v1
 * @param {string} begins what is said of the first chunk
 */
export function wayList(seed, steps, begins) {
  return h(
    "ol",
    { class: "way", data: { test: "path" } },
    h("li", { class: "stop" }, placeButton(seed), h("p", { class: "muted small" }, begins)),
    steps.map((step) =>
      h(
        "li",
        { class: "stop", data: { test: "path-step", kind: step.kind } },
        h(
          "div",
          { class: "edge" },
          kindMark(step.kind),
          h(
            "p",
            {},
            quoted(stepWords(step)),
            " ",
            h("span", { class: "muted small" }, step.kind, " · ", number(step.weight, 2)),
          ),
          step.evidence && longEvidence(step.evidence),
          step.evidence && h("p", { class: "muted small" }, evidenceLine(step.evidence)),
        ),
        placeButton(step.target, {
          file: step.file,
          line_start: step.line_start,
          line_end: step.line_end,
          place: step.place,
          locator: step.locator,
        }),
      ),
    ),
  );
}

/** Text of an edge that the sentence could only give without its line breaks. */
function longEvidence({ text }) {
  return text.trim().includes("\n") && oneLine(text) !== text.trim() ? h("pre", { class: "said" }, text.trim()) : null;
}

/** The part of the panel that says why the open chunk is in the answer. */
export function whySection({ rank, entry, part }) {
  const { explain } = part;
  if (!explain) return null;
  return h(
    "section",
    { class: "why-section" },
    h("h3", {}, `Why it is result ${rank}`),
    explain.hop
      ? wayList(
          explain.seed,
          explain.steps,
          `found by ${foundBy(state.answer.hits.get(explain.seed)?.part.explain?.terms)}`,
        )
      : h("p", {}, "The searches found it, by ", h("b", {}, foundBy(explain.terms)), "."),
    termTable(explain.terms, part.score, entry),
  );
}

function termTable(terms, score, entry) {
  const names = Object.keys(terms ?? {});
  if (!names.length) return null;
  const most = Math.max(...names.map((name) => Math.abs(terms[name])), 1e-9);
  const negative = Math.max(0, ...names.map((name) => -terms[name]));
  const zero = (100 * negative) / (most + negative);
  const bar = (value) => {
    const width = (100 * Math.abs(value)) / (most + negative);
    return h("span", {
      class: `bar ${value < 0 ? "less" : ""}`,
      style: { left: `${value < 0 ? zero - width : zero}%`, width: `${width}%` },
    });
  };
  const parts = Object.entries(entry.terms ?? {}).filter(([, value]) => Math.abs(value) >= 0.0005);
  const file =
    parts.length > 1
      ? parts.map(([name, value]) => `${FILE_TERMS[name] ?? name.replaceAll("_", " ")} ${number(value)}`).join(" + ")
      : "";
  return h(
    "div",
    { class: "terms", data: { test: "terms" } },
    h(
      "table",
      {},
      h("caption", { class: "hidden" }, "What the score is made of"),
      h(
        "tbody",
        {},
        names.map((name) =>
          h(
            "tr",
            { title: TERMS[name] ?? "" },
            h("th", { scope: "row" }, name.replaceAll("_", " ")),
            h("td", { class: "bars", style: { "--zero": `${zero}%` } }, bar(terms[name])),
            h(
              "td",
              { class: "value" },
              `${terms[name] > 0 ? "+" : terms[name] < 0 ? "−" : ""}${number(Math.abs(terms[name]))}`,
            ),
          ),
        ),
      ),
      h(
        "tfoot",
        {},
        h("tr", {}, h("th", { scope: "row" }, "score"), h("td", {}), h("td", { class: "value" }, number(score))),
      ),
    ),
    file && h("p", { class: "muted small" }, `File: ${number(entry.score)} = ${file}`),
  );
}
