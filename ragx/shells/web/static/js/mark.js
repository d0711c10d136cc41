/** The words of a question, marked in a text. */

import { h } from "./dom.js";

const COMMON = new Set(
  (
    "a an and are as at be but by can did do does for from had has have how i if in into is it its me my no not of on or our so such" +
    " that the their them then there these they this to us was we were what when where which who whom whose why will with would you your"
  ).split(" "),
);
const WORD = /[\p{L}\p{N}]+/gu;

const stem = (word) => (word.length > 4 ? word.replace(/(?:ing|ed|es|s|e)$/u, "") : word);

/** Beginnings of words to look for. Words that are excluded (`-word`) are not among them. */
export function stemsOf(question) {
  const wanted =
    question
      .replace(/(^|\s)-\S+/g, " ")
      .toLowerCase()
      .match(WORD) ?? [];
  const telling = wanted.filter((word) => word.length > 1 && !COMMON.has(word));
  return new Set((telling.length ? telling : wanted).map(stem));
}

function hits(word, stems) {
  const lower = word.toLowerCase();
  return stems.has(lower) || stems.has(stem(lower));
}

/** Text with marks, as nodes for `h`. @param {string} text @param {Set<string>} stems */
export function marked(text, stems) {
  if (!stems?.size) return [text];
  const parts = [];
  let done = 0;
  for (const found of text.matchAll(WORD)) {
    if (!hits(found[0], stems)) continue;
    if (found.index > done) parts.push(text.slice(done, found.index));
    parts.push(h("mark", {}, found[0]));
    done = found.index + found[0].length;
  }
  parts.push(text.slice(done));
  return parts;
}

const LONG = 150;
const LEAD = 24;

/** The few lines that say most of what is asked, without common indentation; long ones are cut to where it is said. */
export function snippet(text, stems, most = 3) {
  const lines = text.split(/\r\n|\n|\r/);
  const worth = lines.map((line) => {
    const seen = new Set(
      (line.match(WORD) ?? []).filter((word) => hits(word, stems)).map((word) => stem(word.toLowerCase())),
    );
    return line.trim() ? seen.size : -0.5;
  });
  let best = 0;
  let bestWorth = -Infinity;
  for (let at = 0; at < Math.max(1, lines.length - most + 1); at += 1) {
    // Of equal windows the one that begins with what is asked.
    const sum =
      worth.slice(at, at + most).reduce((one, other) => one + other, 0) + 0.3 * worth[at] - (lines[at].trim() ? 0 : 1);
    if (sum > bestWorth) [best, bestWorth] = [at, sum];
  }
  const chosen = lines.slice(best, best + most).filter((line) => line.trim());
  const indents = chosen.map((line) => line.match(/^[ \t]*/)[0].length);
  const indent = indents.length ? Math.min(...indents) : 0;
  return chosen.map((line) => around(line.slice(indent).trimEnd(), stems));
}

/** A line, or the part of a long one that begins shortly before what is asked. */
function around(line, stems) {
  if (line.length <= LONG) return line;
  const first = [...line.matchAll(WORD)].find(([word]) => hits(word, stems))?.index ?? 0;
  const from = first > LEAD * 2 ? line.lastIndexOf(" ", first - LEAD) + 1 || first : 0;
  const part = line.slice(from, from + LONG);
  return `${from ? "…" : ""}${part}${from + LONG < line.length ? "…" : ""}`;
}
