/** Places, numbers and edges as people read them. */

// As the end says it in which the evidence stands, as the other hears it, and that with the evidence.
const SPOKEN = {
  link: ["links to", "is linked from", "is linked with"],
  mention: ["mentions", "is mentioned in", "is mentioned as"],
  import: ["imports", "is imported by", "is imported with"],
  symbol: ["uses", "is used in", "is used as"],
  adjacent: ["stands beside", "stands beside", "stands beside"],
  similar: ["resembles", "resembles", "resembles"],
};

/** What each kind of edge says, for the help and the legend. */
export const KINDS = {
  link: "one links to the other",
  mention: "one names the other's title",
  import: "one imports the other",
  symbol: "one uses what the other defines",
  adjacent: "they follow each other in a file",
  similar: "their vectors are near each other",
};

/** `uses "x"` as the end says it from which one comes. @param {object} step of a path */
export function stepWords({ source, kind, evidence }) {
  const [says, hears, hearsWith] = SPOKEN[kind] ?? [kind, kind, kind];
  const tells = !evidence || evidence.chunk_id === source;
  if (!evidence?.text) return { verb: tells ? says : hears, quote: "" };
  const quote = oneLine(evidence.text);
  // An import is quoted whole, with its own verb.
  return { verb: tells ? (kind === "import" ? "says" : says) : hearsWith, quote };
}

/** Text without line breaks and control characters. */
export const oneLine = (text) => text.replace(/[\s\p{Cc}]+/gu, " ").trim();

/** Where in its file a chunk is: "56-98", "page 3", or "". @param {...object} sources documents that may say so */
export function placeIn(...sources) {
  for (const one of sources) {
    if (!one) continue;
    if (Number.isFinite(one.line_start))
      return one.line_start === one.line_end ? `${one.line_start}` : `${one.line_start}-${one.line_end}`;
    const words = one.place ?? one.locator?.label;
    if (words) return words;
  }
  return "";
}

/** "docs/" and "a.md" of "docs/a.md". */
export function splitPath(path) {
  const at = path.lastIndexOf("/") + 1;
  return [path.slice(0, at), path.slice(at)];
}

/** A count with its word. */
export const counted = (n, one, many = `${one}s`) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;

/** A score or weight. */
export const number = (value, digits = 3) => (Number.isFinite(value) ? value.toFixed(digits) : "");

/** The searches that found a chunk, by its terms: "words and vectors". */
export function foundBy(terms = {}) {
  const by = [terms.lexical > 0 && "words", terms.vector > 0 && "vectors"].filter(Boolean);
  return by.join(" and ") || "the searches";
}
